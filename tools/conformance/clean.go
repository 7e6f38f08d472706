package conformance

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"
)

// Operations and command codes the cleaner needs.
const (
	opNonReplicated = 2
	opDeleteStream  = 130
	opDeleteUser    = 143
	opDeleteToken   = 147

	codeGetMe      = 20
	codeGetClient  = 21
	codeGetClients = 22
	codeGetUsers   = 32
	codeGetTokens  = 41
	codeGetStreams = 201

	offReqCode = 196
)

// admin is a bare root session, enough to empty a server.
type admin struct {
	*conn
	id               [16]byte // fresh each time: a known id would keep its request watermark
	session, request uint64
}

// Clean deletes every stream, every user but root and root's tokens, and waits until no other
// client is connected, so that the server is as a scenario expects it.
func Clean(address, user, password string) error {
	c, err := dial(address)
	if err != nil {
		return err
	}
	defer c.hangUp()
	a := &admin{conn: c, request: 1}
	rand.Read(a.id[:])
	if err := a.login(user, password); err != nil {
		return fmt.Errorf("login as %s: %w", user, err)
	}
	if err := a.deleteAll(codeGetStreams, opDeleteStream, streamRecord); err != nil {
		return fmt.Errorf("delete streams: %w", err)
	}
	if err := a.deleteAll(codeGetUsers, opDeleteUser, userRecord); err != nil {
		return fmt.Errorf("delete users: %w", err)
	}
	if err := a.deleteAll(codeGetTokens, opDeleteToken, tokenRecord); err != nil {
		return fmt.Errorf("delete tokens: %w", err)
	}
	return a.awaitSolitude()
}

func (a *admin) login(user, password string) error {
	body := []byte{0, 0x2c, 0, 0}
	for _, text := range []string{"whippet-conformance", "1", user, password} {
		body = append(append(body, byte(len(text))), text...)
	}
	body = append(body, 0, 0, 0, 0)
	got, err := a.exchange(opRegister, 0, 0, body)
	if err != nil {
		return err
	}
	if len(got) < 16 {
		return fmt.Errorf("login reply of %d bytes", len(got))
	}
	a.session = binary.LittleEndian.Uint64(got[8:])
	return nil
}

func (a *admin) read(code uint32) ([]byte, error) {
	return a.exchange(opNonReplicated, code, a.request, nil)
}

func (a *admin) write(op byte, body []byte) error {
	a.request++
	_, err := a.exchange(op, 0, a.request-1, body)
	return err
}

// exchange sends one request and returns the body of its reply; refusals are errors, 57 and 58
// are repeated.
func (a *admin) exchange(op byte, code uint32, request uint64, body []byte) ([]byte, error) {
	frame := make([]byte, headerSize, headerSize+len(body))
	frame = append(frame, body...)
	binary.LittleEndian.PutUint32(frame[offSize:], uint32(len(frame)))
	frame[offCommand] = 5
	copy(frame[128:], a.id[:])
	binary.LittleEndian.PutUint64(frame[168:], request)
	frame[offReqOp] = op
	binary.LittleEndian.PutUint64(frame[184:], a.session)
	binary.LittleEndian.PutUint32(frame[offReqCode:], code)
	for started := time.Now(); ; time.Sleep(retryPause) {
		if err := a.send(frame); err != nil {
			return nil, err
		}
		got, err := a.receive(retryTime)
		switch {
		case err != nil:
			return nil, err
		case retryable(got) && time.Since(started) < retryTime:
			continue
		case typedRefusal(got):
			return nil, fmt.Errorf("%s", describe(got))
		}
		return got[headerSize:], nil
	}
}

// record takes the first record off a list and returns the body that deletes it, nil when it
// stays.
type record func(list []byte) (remove, rest []byte, err error)

func (a *admin) deleteAll(list uint32, op byte, next record) error {
	rest, err := a.read(list)
	if err != nil {
		return err
	}
	for len(rest) > 0 {
		var remove []byte
		if remove, rest, err = next(rest); err != nil {
			return err
		}
		if remove == nil {
			continue
		}
		if err := a.write(op, remove); err != nil {
			return err
		}
	}
	return nil
}

func numbered(id []byte) []byte { return append([]byte{1, 4}, id...) }

func streamRecord(b []byte) (remove, rest []byte, err error) {
	return named(b, 32, func() []byte { return numbered(b[:4]) })
}

func userRecord(b []byte) (remove, rest []byte, err error) {
	return named(b, 13, func() []byte {
		if binary.LittleEndian.Uint32(b) == 0 {
			return nil
		}
		return numbered(b[:4])
	})
}

// named splits a record of fixed bytes, a name and an options block.
func named(b []byte, fixed int, remove func() []byte) (_, rest []byte, err error) {
	if len(b) < fixed+1 {
		return nil, nil, fmt.Errorf("record of %d bytes", len(b))
	}
	n := fixed + 1 + int(b[fixed])
	if len(b) < n+4 {
		return nil, nil, fmt.Errorf("record of %d bytes", len(b))
	}
	n += 4 + int(binary.LittleEndian.Uint32(b[n:]))
	if len(b) < n {
		return nil, nil, fmt.Errorf("record of %d bytes", len(b))
	}
	return remove(), b[n:], nil
}

func tokenRecord(b []byte) (remove, rest []byte, err error) {
	n := 1 + int(b[0]) + 8
	if len(b) < n {
		return nil, nil, fmt.Errorf("token record of %d bytes", len(b))
	}
	return b[:n-8], b[n:], nil
}

// awaitSolitude waits until the server lists no connection but this one.
func (a *admin) awaitSolitude() error {
	for started := time.Now(); ; time.Sleep(untilPause) {
		list, err := a.read(codeGetClients)
		if err != nil {
			return err
		}
		others := -1
		for rest := list; len(rest) > 0; others++ {
			if len(rest) < 13 {
				return fmt.Errorf("client record of %d bytes", len(rest))
			}
			n := 13 + int(binary.LittleEndian.Uint32(rest[9:])) + 4
			if len(rest) < n {
				return fmt.Errorf("client record of %d bytes", len(rest))
			}
			rest = rest[n:]
		}
		if others <= 0 {
			return nil
		}
		if time.Since(started) > answerTime {
			return fmt.Errorf("%d other clients stay connected", others)
		}
	}
}
