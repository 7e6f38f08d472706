package frontdoor

import (
	"errors"
	"io"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// errNoRoom says that a frame was read and thrown away because there was no room for it. Its header was kept.
var errNoRoom = errors.New("no room")

// frameReader reads single frames from where the transport has put them: a WebSocket message, a QUIC
// stream.
type frameReader struct {
	core    *Core
	session *Session
	buf     []byte // header, and the whole of small frames
	max     uint32 // largest frame in bytes
}

// read takes one frame from r. b is valid until the next read; f, when not nil, owns it. announce is
// told the frame's size before its body is waited for. At errNoRoom b is the header alone.
func (fr *frameReader) read(r io.Reader, announce func(size int)) (b []byte, f *buffer.Frame, err error) {
	header := fr.buf[:wire.HeaderSize]
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, nil, err
	}
	size, err := wire.FrameSize(header, fr.max)
	if err != nil {
		return nil, nil, err
	}
	announce(int(size))
	stranger := fr.session.stranger()
	if int(size) <= len(fr.buf) && (stranger || !wantsFrame(header)) {
		b = fr.buf[:size]
		_, err = io.ReadFull(r, b[wire.HeaderSize:])
		return b, nil, err
	}
	if stranger {
		_, err = io.CopyN(io.Discard, r, int64(size)-wire.HeaderSize)
		return header, nil, err
	}
	front := fr.buf[:min(int(size), len(fr.buf))]
	if _, err := io.ReadFull(r, front[wire.HeaderSize:]); err != nil {
		return nil, nil, err
	}
	f, ok := fr.core.room(fr.session, front, int(size))
	if !ok {
		if _, err := io.CopyN(io.Discard, r, int64(int(size)-len(front))); err != nil {
			return nil, nil, err
		}
		return header, nil, errNoRoom
	}
	b = f.Bytes()
	copy(b, front)
	if _, err := io.ReadFull(r, b[len(front):]); err != nil {
		f.Release()
		return nil, nil, err
	}
	return b, f, nil
}
