package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
	frontdoor "github.com/whippet-mq/whippet/services/front-door"
)

// call is one HTTP request in progress.
type call struct {
	api    *Server
	w      http.ResponseWriter
	r      *http.Request
	route  *route
	params []string // of the path, decoded
	caller caller

	frames []*buffer.Frame // released when the call ends
}

// finish gives back what the call took from the buffer budget.
func (c *call) finish() {
	for _, f := range c.frames {
		f.Release()
	}
	c.frames = nil
}

// frame takes n bytes from the buffer budget until the call ends.
func (c *call) frame(n int) (*buffer.Frame, error) {
	f, err := c.api.frame(n)
	if err == nil {
		c.frames = append(c.frames, f)
	}
	return f, err
}

// frame takes n bytes from the buffer budget.
func (s *Server) frame(n int) (*buffer.Frame, error) {
	f, ok := s.local.Pool().Try(n)
	if !ok {
		f, ok = s.local.Pool().Wait(n, budgetGrace)
	}
	if !ok {
		return nil, errBusy
	}
	return f, nil
}

// publicBody bounds, in bytes, the body of a request without a credential: strangers get no more of
// the buffer budget than a login needs.
const publicBody = 64 << 10

// body reads the JSON body. Its bytes are the call's until it ends.
func (c *call) body() (*reader, error) {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	main, sub, _ := strings.Cut(kind, "/")
	if err != nil || main != "application" || sub != "json" && !strings.HasSuffix(sub, "+json") {
		return nil, errContentType
	}
	limit := c.api.cfg.MaxRequestSize
	if c.route.public {
		limit = min(limit, publicBody)
	}
	size := limit
	if n := c.r.ContentLength; n >= 0 && n < int64(limit) {
		size = int(n)
	}
	f, err := c.frame(size + 1)
	if err != nil {
		return nil, err
	}
	grace := time.Now().Add(c.api.cfg.FrameGrace + time.Duration(size>>20)*time.Second)
	_ = http.NewResponseController(c.w).SetReadDeadline(grace)
	text, err := readAll(c.r.Body, f.Bytes()[:size+1])
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	switch {
	case err != nil:
		return nil, errCutBody
	case len(text) > limit:
		return nil, errTooLarge
	}
	return newReader(text), nil
}

// readAll reads to the end of the body or of b. A body that ends before its announced length is an
// error.
func readAll(body io.Reader, b []byte) ([]byte, error) {
	n := 0
	for n < len(b) {
		m, err := body.Read(b[n:])
		n += m
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return b[:n], nil
}

// read performs a command that is not ordered and hands its answer to use.
func (c *call) read(cmd wire.Cmd, body []byte, use func(answer []byte) error) error {
	r := c.api.local.Read(c.caller.user, cmd, body)
	defer r.Release()
	if r.Status != 0 {
		return refusal(r.Status)
	}
	return use(r.Body)
}

// write orders a metadata operation and hands its answer to use.
func (c *call) write(op wire.Operation, body []byte, use func(answer []byte) error) error {
	if c.caller.ghost {
		return refusal(wire.CodeUnauthorized)
	}
	r := c.api.local.Write(c.caller.user, op, body)
	defer r.Release()
	return c.wrote(&r, use)
}

func (c *call) wrote(r *frontdoor.LocalReply, use func(answer []byte) error) error {
	if r.Status != 0 {
		return refusal(r.Status)
	}
	c.api.sawView(r.View)
	return use(r.Body)
}

// noContent answers a write that has nothing to tell.
func (c *call) noContent([]byte) error {
	c.head(http.StatusNoContent, "", 0)
	return nil
}

// head sends the status line and the headers of a success whose body has size bytes.
func (c *call) head(status int, contentType string, size int) {
	c.due(size)
	h := c.w.Header()
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	if !c.route.unmarked {
		h.Set("Iggy-View", strconv.FormatUint(uint64(c.api.view.Load()), 10))
	}
	c.w.WriteHeader(status)
}

// send answers with a whole body.
func (c *call) send(status int, contentType string, body []byte) error {
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.head(status, contentType, len(body))
	_, _ = c.w.Write(body) // a client that left has no use for an error
	return nil
}

// due gives the answer a time to leave in. Every answer has one of its own: on a connection that
// stays open the one before is over.
func (c *call) due(size int) {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(c.api.cfg.WriteGrace + time.Duration(size>>20)*time.Second))
}

const jsonType = "application/json"

// json answers with v: compact, keys in the order of the struct, no HTML escapes.
func (c *call) json(v any) error { return c.send(http.StatusOK, jsonType, encode(v)) }

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("httpapi: an answer that cannot be encoded: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// fail answers with a failure.
func (c *call) fail(err error) {
	var f *failure
	if !errors.As(err, &f) {
		f = refusal(wire.CodeError)
	}
	h := c.w.Header()
	if f.retry {
		h.Set("Retry-After", "1")
	}
	if f.closes && c.r.ProtoMajor == 1 {
		h.Set("Connection", "close")
	}
	c.drain(f)
	c.due(0)
	if f.bare {
		h.Set("Content-Length", "0")
		c.w.WriteHeader(f.status)
		return
	}
	body := encode(f.body())
	h.Set("Content-Type", jsonType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(f.status)
	_, _ = c.w.Write(body)
}

// drained is how many bytes of a body that nobody wanted are read, so that the connection can go on.
const drained = 4 << 20

// drain takes a body that was not read off the connection, unless the connection ends or its client
// waits to be asked for the body.
func (c *call) drain(f *failure) {
	if f.closes || c.r.ProtoMajor != 1 || c.r.ContentLength == 0 || c.r.Header.Get("Expect") != "" {
		return
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(c.api.cfg.HandshakeGrace))
	_, _ = io.CopyN(io.Discard, c.r.Body, drained) // what is left over closes the connection
}

// id reads the i-th variable segment as a number or a name.
func (c *call) id(i int) (wire.Identifier, error) {
	id, ok := identifier(c.params[i])
	if !ok {
		return id, refusal(wire.CodeInvalidIdentifier)
	}
	return id, nil
}

// topic reads the first two segments as a stream and a topic.
func (c *call) topic() (t wire.TopicTarget, err error) {
	if t.Stream, err = c.id(0); err == nil {
		t.Topic, err = c.id(1)
	}
	return t, err
}

// number reads the i-th variable segment as a u32.
func (c *call) number(i int) (uint32, error) {
	n, err := strconv.ParseUint(c.params[i], 10, 32)
	if err != nil {
		return 0, badRequest("The path does not hold a number where one is needed.")
	}
	return uint32(n), nil
}

// plain reads a query that carries nothing but what every read accepts.
func (c *call) plain() error {
	q := c.query()
	q.consistency()
	return q.err()
}
