package floor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
)

const (
	header    = 256
	polled    = 16
	batchHead = 256

	commandReply   = 8
	opRegister     = 1
	opRead         = 2
	opLogout       = 3
	opCreateStream = 128
	opCreateTopic  = 132
	opSend         = 160
	codePoll       = 100
	strategyAt     = 1  // poll strategy: from an offset
	pollTail       = 18 // bytes behind the identifiers: selector, strategy, count
)

var errMalformed = errors.New("malformed request")

func u32(b []byte) uint32       { return binary.LittleEndian.Uint32(b) }
func u64(b []byte) uint64       { return binary.LittleEndian.Uint64(b) }
func putU32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }
func putU64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

// Serve answers clients on l, with its files in dir, until l closes. With backups, each running
// ServeBackup, it answers a send when one of them has the batch too.
func Serve(l net.Listener, dir string, mode Sync, backups ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	s, err := newStore(dir, mode)
	if err != nil {
		return err
	}
	if len(backups) > 0 {
		if s.quorum, err = dialQuorum(backups); err != nil {
			return err
		}
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			_ = (&connection{conn: c, store: s}).serve() // the client sees the connection end
		}()
	}
}

// connection is one client. Its buffers only grow.
type connection struct {
	conn  net.Conn
	store *store
	in    []byte
	out   []byte
	key   []byte
	last  struct { // the partition used last, so that a request costs no map look-up
		key []byte
		*partition
	}
}

func (c *connection) serve() error {
	c.in = make([]byte, header)
	for {
		if _, err := io.ReadFull(c.conn, c.in[:header]); err != nil {
			return err
		}
		size := int(u32(c.in[48:]))
		if size < header || size > 64<<20 {
			return nil
		}
		if cap(c.in) < size {
			c.in = append(make([]byte, 0, size), c.in[:header]...)
		}
		c.in = c.in[:size]
		if _, err := io.ReadFull(c.conn, c.in[header:]); err != nil {
			return err
		}
		if err := c.answer(); err != nil {
			return err
		}
		if _, err := c.conn.Write(c.out); err != nil {
			return err
		}
	}
}

// reply starts the answer to the request in c.in with n bytes of body.
func (c *connection) reply(n int) []byte {
	if cap(c.out) < header+n {
		c.out = make([]byte, header+n)
	}
	c.out = c.out[:header+n]
	clear(c.out[:header])
	putU32(c.out[48:], uint32(header+n))
	c.out[60] = commandReply
	copy(c.out[200:208], c.in[168:176])
	c.out[208] = c.in[176]
	return c.out[header:]
}

func (c *connection) answer() error {
	switch op := c.in[176]; {
	case op == opRegister:
		body := c.reply(22)
		clear(body)
		body[8] = 1                 // session
		body[17] = 0x2c             // protocol 0.11.0
		body[20], body[21] = 1, 'f' // server version
	case op == opSend:
		return c.append()
	case op == opRead && u32(c.in[196:]) == codePoll:
		return c.poll()
	case op == opRead || op == opLogout:
		c.reply(0)
	case op == opCreateStream:
		c.store.clear()
		c.last.partition = nil
		c.object(32, 1+1+4) // numbers, then name and options
	case op == opCreateTopic:
		c.object(49, 1+1+4+4)
	default:
		clear(c.reply(4))
	}
	return nil
}

// object answers a create with an empty record: numbers bytes of zero, then tail bytes that begin
// with a name of one character.
func (c *connection) object(numbers, tail int) {
	body := c.reply(4 + numbers + tail)
	clear(body)
	body[4+numbers], body[4+numbers+1] = 1, 'f'
}

func (c *connection) append() error {
	body := c.in[header:]
	routing := int(u32(body))
	p, err := c.target(body[4:routing]) // without the message count behind it
	if err != nil {
		return err
	}
	base, err := c.stored(p, header+4+routing)
	if err != nil {
		return err
	}
	out := c.reply(24)
	clear(out)
	putU32(out, 1)
	putU64(out[16:], base)
	return nil
}

// stored writes the batch at c.in[start:] here and, in a quorum, at the same time elsewhere.
func (c *connection) stored(p *partition, start int) (uint64, error) {
	b, q := c.in[start:], c.store.quorum
	if q == nil {
		return p.append(c.in, start, u32(b[48:]), c.store.sync)
	}
	number := q.send(b)
	base, err := p.append(c.in, start, u32(b[48:]), c.store.sync)
	if err != nil {
		return 0, err
	}
	return base, q.wait(number)
}

// target finds the partition of a routing prefix: stream, topic, explicit partition.
func (c *connection) target(key []byte) (*partition, error) {
	if c.last.partition != nil && bytes.Equal(c.last.key, key) {
		return c.last.partition, nil
	}
	p, err := c.store.partition(key)
	if err == nil {
		c.last.key = append(c.last.key[:0], key...)
		c.last.partition = p
	}
	return p, err
}

// poll answers with whole batches from an offset on. Body: consumer, stream, topic, selector,
// strategy, count.
func (c *connection) poll() error {
	body := c.in[header:]
	stream := ident(body, 1)
	rest := ident(body, ident(body, stream))
	if rest+pollTail > len(body) {
		return errMalformed
	}
	c.key = append(append(c.key[:0], body[stream:rest]...), 2, 4)
	c.key = append(c.key, body[rest+1:rest+5]...)
	p, err := c.target(c.key)
	if err != nil {
		return err
	}
	offset := uint64(0)
	if body[rest+5] == strategyAt {
		offset = u64(body[rest+6:])
	}
	at, size, messages := p.find(offset, uint64(u32(body[rest+14:])))
	out := c.reply(polled + int(size))
	copy(out, body[rest+1:rest+5])
	putU64(out[4:], p.end())
	putU32(out[12:], messages)
	_, err = p.file.f.ReadAt(out[polled:], at)
	return err
}

func (p *partition) end() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.next, 1) - 1
}

// ident returns where the identifier at b[at:] ends, len(b) when it is cut.
func ident(b []byte, at int) int {
	if at+1 >= len(b) {
		return len(b)
	}
	return min(len(b), at+2+int(b[at+1]))
}
