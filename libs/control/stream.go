package control

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// StreamPath is where an ops endpoint shows what its process says: server-sent events, named for the subject,
// with a message as data.
const StreamPath = "/control"

const (
	// streams is how many listeners an ops endpoint has at once.
	streams = 16
	// streamQuiet is the longest time without a line: both sides notice that the other is gone.
	streamQuiet = 10 * time.Second
	streamWrite = 10 * time.Second
	streamLine  = 1 << 20 // bytes
)

// Stream serves what is published on a bus, to each listener until it goes away or the bus is closed.
func Stream(b *Local) http.Handler {
	room := make(chan struct{}, streams)
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		default:
			http.Error(w, "too many listeners", http.StatusServiceUnavailable)
			return
		}
		sub, err := b.Subscribe(All(""))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer sub.Close()
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		out := http.NewResponseController(w)
		say := func(text string) bool {
			_ = out.SetWriteDeadline(time.Now().Add(streamWrite))
			_, err := w.Write([]byte(text))
			return err == nil && out.Flush() == nil
		}
		quiet := time.NewTicker(streamQuiet / 2)
		defer quiet.Stop()
		for ok := say(": control plane of one process\n\n"); ok; {
			select {
			case d, open := <-sub.C:
				ok = open && say("event: "+d.Subject+"\ndata: "+string(d.Payload)+"\n\n")
			case <-quiet.C:
				ok = say(":\n\n")
			case <-q.Context().Done():
				ok = false
			}
		}
	})
}

// Listen hands on what the process with that ops endpoint (host:port) says, until ctx is done or the connection
// ends; the error says why. up is called once it listens.
func Listen(ctx context.Context, ops string, up func(), deliver func(Delivery)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(streamQuiet, func() { cancel(fmt.Errorf("control: %s says nothing", ops)) })
	defer silence.Stop()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ops+StreamPath, nil)
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true} // no proxy on the way
	r, err := (&http.Client{Transport: transport}).Do(q)
	if err != nil {
		return fmt.Errorf("control: %w", cause(ctx, err))
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("control: %s answers %s: is it an ops endpoint of this version?", ops, r.Status)
	}
	up()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, streamLine)
	subject := ""
	for lines.Scan() {
		silence.Reset(streamQuiet)
		line := lines.Bytes()
		if name, ok := strings.CutPrefix(string(line), "event: "); ok {
			subject = name
		} else if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			deliver(Delivery{subject, bytes.Clone(data)})
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("control: %w", cause(ctx, err))
	}
	return fmt.Errorf("control: %s ended the stream", ops)
}

// cause prefers the reason for which a context was ended to what came of it.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	return err
}
