package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// maxReply bounds the size a server may announce; larger ones are a broken frame.
const maxReply = 1 << 28

// errClosed says that the server ended the connection.
var errClosed = errors.New("connection closed")

// errSilent says that nothing arrived in time.
var errSilent = errors.New("no answer")

// conn is one client connection of a scenario.
type conn struct{ net.Conn }

func dial(address string) (*conn, error) {
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &conn{c}, nil
}

func (c *conn) send(frame []byte) error {
	c.SetWriteDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Write(frame); err != nil {
		return fmt.Errorf("%w: %v", errClosed, err)
	}
	return nil
}

// receive reads the next frame. Errors are errClosed, errSilent, or a broken frame.
func (c *conn) receive(within time.Duration) ([]byte, error) {
	c.SetReadDeadline(time.Now().Add(within))
	var header [headerSize]byte
	if n, err := io.ReadFull(c, header[:]); err != nil {
		if n == 0 || !timedOut(err) {
			return nil, readError(err)
		}
		return nil, fmt.Errorf("%d bytes of a header, then nothing", n)
	}
	size := binary.LittleEndian.Uint32(header[offSize:])
	if size < headerSize || size > maxReply {
		return nil, fmt.Errorf("frame announces %d bytes", size)
	}
	frame := make([]byte, size)
	copy(frame, header[:])
	if n, err := io.ReadFull(c, frame[headerSize:]); err != nil {
		return nil, fmt.Errorf("%d of %d body bytes: %w", n, size-headerSize, readError(err))
	}
	return frame, nil
}

func timedOut(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func readError(err error) error {
	if timedOut(err) {
		return errSilent
	}
	return fmt.Errorf("%w: %v", errClosed, err)
}

// hangUp ends the connection and waits until the server has let go of it too, so that the next
// scenario does not meet a half-dead neighbour.
func (c *conn) hangUp() {
	if t, ok := c.Conn.(*net.TCPConn); ok && t.CloseWrite() == nil {
		c.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, c)
	}
	c.Close()
}
