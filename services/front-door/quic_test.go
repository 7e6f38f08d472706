package frontdoor

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/whippet-mq/whippet/libs/wire"
)

func openStream(t testing.TB, c *quic.Conn) *quic.Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stream, err := c.OpenStreamSync(ctx)
	if err != nil {
		t.Fatalf("next stream: %v", err)
	}
	stream.SetDeadline(time.Now().Add(10 * time.Second))
	return stream
}

// What is no frame ends its stream without an answer; the connection and its session go on.
func TestStreamsThatAreNoRequest(t *testing.T) {
	w := everywhere(t, func(c *Config) { c.FrameGrace = 300 * time.Millisecond })
	conn := w.connectQUIC(t, anyCertificate)
	c := newClient(t, newQUICSock(conn)).login(rootName, rootPassword)
	size := func(n uint32) []byte { b := ping(0); binary.LittleEndian.PutUint32(b[48:], n); return b }
	command := ping(0)
	command[60] = 30
	for what, send := range map[string]func(*quic.Stream){
		"nothing":                func(s *quic.Stream) { s.Close() },
		"half a header":          func(s *quic.Stream) { s.Write(ping(0)[:100]); s.Close() },
		"half a body":            func(s *quic.Stream) { s.Write(ping(1000)[:500]); s.Close() },
		"half a large body":      func(s *quic.Stream) { s.Write(ping(100_000)[:50_000]); s.Close() },
		"half a header, silence": func(s *quic.Stream) { s.Write(ping(0)[:100]) },
		"half a body, silence":   func(s *quic.Stream) { s.Write(ping(100_000)[:50_000]) },
		"size 255":               func(s *quic.Stream) { s.Write(size(255)); s.Close() },
		"size 0":                 func(s *quic.Stream) { s.Write(size(0)); s.Close() },
		"size above the limit":   func(s *quic.Stream) { s.Write(size(wire.MaxFrameSize + 1)); s.Close() },
		"unknown command":        func(s *quic.Stream) { s.Write(command); s.Close() },
		"reset":                  func(s *quic.Stream) { s.Write(ping(0)[:100]); s.CancelWrite(0) },
	} {
		stream := openStream(t, conn)
		send(stream)
		if b, err := io.ReadAll(stream); len(b) != 0 || err != nil {
			t.Errorf("%s: %d bytes, %v, want a bare end", what, len(b), err)
		}
	}
	c.ok(c.read(wire.CmdGetStreams, nil))
	eventually(t, "the buffers to come back", func() bool { return w.pool.Used() == 0 })
}

// The next stream can be opened whatever the client did with the last one.
func TestStreamsFollowEachOther(t *testing.T) {
	w := everywhere(t, nil)
	conn := w.connectQUIC(t, anyCertificate)
	for range 3 {
		never := openStream(t, conn) // never ended by the client
		never.Write(ping(0))
		if b, err := io.ReadAll(never); len(b) != wire.HeaderSize || err != nil {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		two := openStream(t, conn) // the second frame is not read
		two.Write(append(ping(0), ping(0)...))
		two.Close()
		if b, err := io.ReadAll(two); len(b) != wire.HeaderSize || err != nil {
			t.Fatalf("two frames: %d bytes, %v", len(b), err)
		}
		uninterested := openStream(t, conn)
		uninterested.CancelRead(0)
		uninterested.Write(ping(0))
		uninterested.Close()
		late := openStream(t, conn) // its end comes in a later packet than its frame
		late.Write(ping(0))
		if _, err := io.ReadFull(late, make([]byte, wire.HeaderSize)); err != nil {
			t.Fatal(err)
		}
		late.Close()
	}
	if stream, err := conn.OpenUniStream(); err == nil {
		stream.CancelWrite(0)
		t.Error("a stream without an answer could be opened")
	}
}

// One request is served at a time and in order, also where more may be on their way.
func TestStreamsAheadOfTheirAnswer(t *testing.T) {
	w := everywhere(t, func(c *Config) { c.QUIC.Streams = 4 })
	conn := w.connectQUIC(t, anyCertificate)
	var streams []*quic.Stream
	for range 4 {
		s := openStream(t, conn)
		s.Write(ping(2000))
		s.Close()
		streams = append(streams, s)
	}
	for i := range streams {
		if b, err := io.ReadAll(streams[len(streams)-1-i]); len(b) != wire.HeaderSize || err != nil {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	alone := everywhere(t, nil).connectQUIC(t, anyCertificate)
	for range 2 { // one, and one more while the answer's acknowledgement is on its way
		openStream(t, alone)
	}
	if _, err := alone.OpenStream(); err == nil {
		t.Error("three streams at once")
	}
}

// Clients ask for no application protocol; one that does gets what it asked for.
func TestApplicationProtocols(t *testing.T) {
	w := everywhere(t, nil)
	for _, protocols := range [][]string{nil, {"iggy"}, {"h3", "iggy"}} {
		conn := w.connectQUIC(t, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
		state := conn.ConnectionState().TLS
		if want := append(protocols, "")[0]; state.NegotiatedProtocol != want {
			t.Errorf("asked for %v, got %q", protocols, state.NegotiatedProtocol)
		}
		if leaf := state.PeerCertificates[0]; leaf.VerifyHostname("localhost") != nil || leaf.PublicKeyAlgorithm.String() != "ECDSA" {
			t.Errorf("certificate for %v with %v", leaf.DNSNames, leaf.PublicKeyAlgorithm)
		}
		conn.CloseWithError(0, "")
	}
	eventually(t, "all to be gone", func() bool { return w.core.clients.len() == 0 })
}

// A server that stops says so, also to a client that never completes its frame.
func TestQUICCloseCode(t *testing.T) {
	w := everywhere(t, nil)
	conn := w.connectQUIC(t, anyCertificate)
	c := newClient(t, newQUICSock(conn))
	c.ok(c.read(wire.CmdPing, nil))
	openStream(t, conn).Write(ping(0)[:100])
	eventually(t, "the half frame to be read", func() bool {
		w.Server.mu.Lock()
		defer w.Server.mu.Unlock()
		for c := range w.conns {
			q := c.(*quicConn)
			q.mu.Lock()
			defer q.mu.Unlock()
			return q.stream != nil
		}
		return false
	})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := w.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	<-conn.Context().Done()
	var closed *quic.ApplicationError
	if err := context.Cause(conn.Context()); !errors.As(err, &closed) || !closed.Remote || closed.ErrorCode != quicShutdown {
		t.Errorf("closed with %v", err)
	}
}
