package frontdoor

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/whippet-mq/whippet/libs/wire"
)

func secureClient(secured *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: secured}}
}

// rawWeb is a WebSocket spoken byte by byte.
type rawWeb struct {
	t    testing.TB
	sock net.Conn
	in   *bufio.Reader
}

const upgradeRequest = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

func (w *world) rawWeb(t testing.TB) *rawWeb {
	t.Helper()
	c := w.rawHTTP(t, upgradeRequest)
	response, err := http.ReadResponse(c.in, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("upgrade: %v %v", response, err)
	}
	if got := response.Header.Get("Sec-WebSocket-Accept"); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" { // RFC 6455 §1.3
		t.Fatalf("accept key %q", got)
	}
	if len(response.Header) != 3 {
		t.Errorf("the answer has headers %v", response.Header)
	}
	return c
}

func (w *world) rawHTTP(t testing.TB, request string) *rawWeb {
	t.Helper()
	sock, err := net.Dial("tcp", w.WebSocketAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sock.Close() })
	sock.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(sock, request); err != nil {
		t.Fatal(err)
	}
	return &rawWeb{t, sock, bufio.NewReader(sock)}
}

// frame sends one WebSocket frame with a mask of zeros.
func (c *rawWeb) frame(first byte, payload []byte) {
	c.t.Helper()
	b := []byte{first, 0x80 | 127}
	b = binary.BigEndian.AppendUint64(b, uint64(len(payload)))
	if len(payload) < 126 {
		b = []byte{first, 0x80 | byte(len(payload))}
	}
	c.bytes(append(append(b, 0, 0, 0, 0), payload...))
}

func (c *rawWeb) bytes(b []byte) {
	c.t.Helper()
	if _, err := c.sock.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads one WebSocket frame.
func (c *rawWeb) receive() (first byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, err
	}
	size := uint64(head[1])
	if n := map[uint64]int{126: 2, 127: 8}[size]; n > 0 {
		var long [8]byte
		if _, err := io.ReadFull(c.in, long[8-n:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(long[:])
	}
	payload = make([]byte, size)
	_, err = io.ReadFull(c.in, payload)
	return head[0], payload, err
}

// ended reads a Close frame and then the end.
func (c *rawWeb) ended(what string) {
	c.t.Helper()
	first, _, err := c.receive()
	if err != nil || first != 0x88 {
		c.t.Errorf("%s: %x %v instead of a Close frame", what, first, err)
		return
	}
	c.frame(0x88, nil)
	if _, _, err := c.receive(); err == nil || timedOut(err) {
		c.t.Errorf("%s: %v instead of the end after the Close frame", what, err)
	}
}

func ping(body int) []byte {
	h := wire.RequestHeader{Size: uint32(wire.HeaderSize + body), Client: wire.U128{Lo: 1}, Operation: wire.OpNonReplicated, Code: wire.CmdPing, Session: 1, Request: 1}
	return frameOf(h, make([]byte, body))
}

func TestMessagesThatEndTheWebSocket(t *testing.T) {
	w := everywhere(t, func(c *Config) { c.WebSocket.MaxMessage = 1 << 20 })
	good, two := ping(0), append(ping(0), ping(0)...)
	for what, send := range map[string]func(*rawWeb){
		"text":                     func(c *rawWeb) { c.frame(0x81, good) },
		"255 bytes":                func(c *rawWeb) { c.frame(0x82, good[:255]) },
		"nothing":                  func(c *rawWeb) { c.frame(0x82, nil) },
		"one byte more":            func(c *rawWeb) { c.frame(0x82, append(good[:256:256], 0)) },
		"one byte less":            func(c *rawWeb) { c.frame(0x82, ping(10)[:265]) },
		"two frames":               func(c *rawWeb) { c.frame(0x82, two) },
		"half a frame, then more":  func(c *rawWeb) { c.frame(0x82, good[:128]); c.frame(0x82, good[128:]) },
		"above the limit":          func(c *rawWeb) { c.frame(0x82, ping(1<<20)) },
		"no mask":                  func(c *rawWeb) { c.bytes(append([]byte{0x82, 126, 1, 0}, good...)) },
		"a reserved bit":           func(c *rawWeb) { c.frame(0xc2, good) },
		"a reserved opcode":        func(c *rawWeb) { c.frame(0x83, good) },
		"a lone continuation":      func(c *rawWeb) { c.frame(0x80, good) },
		"a fragmented ping":        func(c *rawWeb) { c.frame(0x09, []byte("x")) },
		"unknown command in frame": func(c *rawWeb) { bad := ping(0); bad[60] = 30; c.frame(0x82, bad) },
	} {
		c := w.rawWeb(t)
		send(c)
		c.ended(what)
	}
	eventually(t, "all of them to be gone", func() bool { return w.core.clients.len() == 0 })
	eventually(t, "the buffers to come back", func() bool { return w.pool.Used() == 0 })
}

// Fragments and pings between them are the transport's own business.
func TestWebSocketFragments(t *testing.T) {
	w := everywhere(t, nil)
	c := w.rawWeb(t)
	frame := ping(100_000)
	c.frame(0x02, frame[:100])
	c.frame(0x89, []byte("beat"))
	c.frame(0x00, frame[100:70_000])
	c.frame(0x80, frame[70_000:])
	if first, payload, err := c.receive(); first != 0x8a || string(payload) != "beat" || err != nil {
		t.Fatalf("%x %q %v instead of a Pong", first, payload, err)
	}
	if first, payload, err := c.receive(); first != 0x82 || len(payload) != wire.HeaderSize || err != nil {
		t.Fatalf("%x, %d bytes, %v instead of a reply", first, len(payload), err)
	}
	for range 3 { // several requests before the first answer
		c.frame(0x82, ping(0))
	}
	for range 3 {
		if first, payload, err := c.receive(); first != 0x82 || len(payload) != wire.HeaderSize || err != nil {
			t.Fatalf("%x, %d bytes, %v instead of a reply", first, len(payload), err)
		}
	}
	c.frame(0x88, []byte{3, 232, 'b', 'y', 'e'})
	if first, payload, err := c.receive(); first != 0x88 || string(payload) != "\x03\xe8bye" || err != nil {
		t.Fatalf("%x %q %v instead of the Close frame's echo", first, payload, err)
	}
}

// A large reply leaves in frames that clients take, as one message.
func TestLargeRepliesAreFragmented(t *testing.T) {
	w := everywhere(t, func(c *Config) { c.WebSocket.MaxFragment = 1000 })
	maker := w.root(t)
	for i := range 100 {
		maker.ok(maker.call(wire.OpCreateStream, 0, wire.CreateStreamRequest{Name: []byte(strings.Repeat("s", 100) + string(rune('a'+i%26)) + string(rune('a'+i/26)))}.Append(nil)))
	}
	want := maker.ok(maker.read(wire.CmdGetStreams, nil))
	c := w.rawWeb(t)
	peer := newClient(t, nil)
	login := loginBody(rootName, rootPassword)
	c.frame(0x82, frameOf(peer.header(wire.OpRegister, 0, login), login))
	c.receive()
	peer.session, peer.request = 1, 1
	c.frame(0x82, frameOf(peer.header(wire.OpNonReplicated, wire.CmdGetStreams, nil), nil))
	var got []byte
	frames := 0
	for final := byte(0); final == 0; frames++ {
		first, payload, err := c.receive()
		if err != nil || len(payload) > 1000 {
			t.Fatalf("frame %d: %d bytes, %v", frames, len(payload), err)
		}
		if first&0x0f != map[bool]byte{true: 2, false: 0}[frames == 0] {
			t.Fatalf("frame %d has opcode %x", frames, first)
		}
		final = first & 0x80
		got = append(got, payload...)
	}
	if string(got[wire.HeaderSize:]) != string(want) || frames < 10 {
		t.Errorf("%d bytes in %d frames, want %d bytes", len(got), frames, len(want))
	}
}

func TestRefusedUpgrades(t *testing.T) {
	w := everywhere(t, nil)
	for what, request := range map[string]string{
		"a plain GET": "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"version 12":  strings.Replace(upgradeRequest, ": 13", ": 12", 1),
		"no key":      strings.Replace(upgradeRequest, "Sec-WebSocket-Key", "X", 1),
		"a POST":      strings.Replace(upgradeRequest, "GET", "POST", 1),
	} {
		c := w.rawHTTP(t, request)
		response, err := http.ReadResponse(c.in, nil)
		if err != nil || response.StatusCode < 400 || response.StatusCode > 499 {
			t.Errorf("%s: %v %v", what, response, err)
			continue
		}
		io.Copy(io.Discard, response.Body)
		if _, err := c.in.ReadByte(); err != io.EOF {
			t.Errorf("%s: %v instead of the end", what, err)
		}
	}
	if n := w.core.clients.len(); n != 0 {
		t.Errorf("%d of them became clients", n)
	}
}

func TestBrokenUpgrades(t *testing.T) {
	w := everywhere(t, func(c *Config) { c.HandshakeGrace = 300 * time.Millisecond })
	for what, request := range map[string]string{
		"half a request":   upgradeRequest[:40],
		"silence":          "",
		"no HTTP at all":   string(ping(300)),
		"endless headers":  "GET / HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", 10_000),
		"a TLS hello":      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"a request line\n": "GET /\r\n\r\n",
	} {
		c := w.rawHTTP(t, request)
		if _, err := c.in.ReadByte(); err == nil || timedOut(err) {
			t.Errorf("%s: %v instead of the end", what, err)
		}
	}
	if n := w.core.clients.len(); n != 0 {
		t.Errorf("%d of them became clients", n)
	}
}

func TestSecureWebSocket(t *testing.T) {
	w := everywhere(t, func(c *Config) {
		c.WebSocket.TLS = TLS{Enabled: true, SelfSigned: true, CertFile: "absent.pem", KeyFile: "absent.pem"}
		c.HandshakeGrace = time.Second
	})
	ws := w.upgrade(t, "wss")
	c := newClient(t, websocket.NetConn(context.Background(), ws, websocket.MessageBinary)).login(rootName, rootPassword)
	c.topic("s", "t", 1)
	c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningPartition}, string(make([]byte, 5<<20)))))
	if err := ws.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Errorf("close: %v", err)
	}
	plain := w.rawHTTP(t, upgradeRequest)
	if _, err := plain.in.ReadByte(); err == nil || timedOut(err) {
		t.Errorf("plain bytes read %v", err)
	}
}

// A message begun must be completed; a connection without one may wait.
func TestSlowWebSocketMessages(t *testing.T) {
	w := everywhere(t, func(c *Config) { c.FrameGrace = 400 * time.Millisecond })
	idle := w.rawWeb(t)
	for what, n := range map[string]int{"half a header": 100, "half a body": 3000, "half a large body": 100_000} {
		c := w.rawWeb(t)
		c.bytes(append([]byte{0x82, 0xff, 0, 0, 0, 0, 0, 3, 0x0e, 0x40, 0, 0, 0, 0}, ping(200_000)[:n]...)) // 200256 bytes announced
		if first, _, err := c.receive(); err != nil || first != 0x88 {
			t.Errorf("%s: %x %v, want a Close frame", what, first, err)
		}
	}
	idle.frame(0x82, ping(0))
	if first, _, err := idle.receive(); err != nil || first != 0x82 {
		t.Errorf("the idle connection reads %x %v", first, err)
	}
	eventually(t, "the buffers of half frames to come back", func() bool { return w.pool.Used() == 0 })
}
