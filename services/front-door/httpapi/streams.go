package httpapi

import (
	"github.com/whippet-mq/whippet/libs/wire"
)

type streamJSON struct {
	ID            uint32              `json:"id"`
	CreatedAt     uint64              `json:"created_at"`
	Name          string              `json:"name"`
	Size          string              `json:"size"`
	MessagesCount uint64              `json:"messages_count"`
	TopicsCount   uint32              `json:"topics_count"`
	Options       map[string]struct{} `json:"options"`
}

type streamDetailsJSON struct {
	ID            uint32              `json:"id"`
	CreatedAt     uint64              `json:"created_at"`
	Name          string              `json:"name"`
	Size          string              `json:"size"`
	MessagesCount uint64              `json:"messages_count"`
	TopicsCount   uint32              `json:"topics_count"`
	Topics        []topicJSON         `json:"topics"`
	Options       map[string]struct{} `json:"options"`
}

// getStreams serves GET /streams.
func getStreams(c *call) error {
	if err := c.plain(); err != nil {
		return err
	}
	return c.read(wire.CmdGetStreams, nil, func(b []byte) error {
		streams, err := wire.DecodeStreams(b)
		if err != nil {
			return err
		}
		out := make([]streamJSON, len(streams))
		for i, s := range streams {
			out[i] = streamJSON{s.ID, s.CreatedAt, s.Name, wire.FormatSize(s.SizeBytes), s.MessagesCount, s.TopicsCount, none}
		}
		return c.json(out)
	})
}

// getStream serves GET /streams/{stream}.
func getStream(c *call) error {
	id, err := c.id(0)
	if err == nil {
		err = c.plain()
	}
	if err != nil {
		return err
	}
	return c.read(wire.CmdGetStream, wire.StreamTarget{Stream: id}.Append(nil), func(b []byte) error {
		if len(b) == 0 {
			return errMissing
		}
		return c.streamDetails(b)
	})
}

func (c *call) streamDetails(b []byte) error {
	s, err := wire.DecodeStreamDetails(b)
	if err != nil {
		return err
	}
	return c.json(streamDetailsJSON{
		s.ID, s.CreatedAt, s.Name, wire.FormatSize(s.SizeBytes), s.MessagesCount, s.TopicsCount, showTopics(s.Topics), none,
	})
}

// createStream serves POST /streams.
func createStream(c *call) error {
	name, err := c.one("name")
	if err != nil {
		return err
	}
	if !nameFits(name) {
		return refusal(wire.CodeInvalidStreamName)
	}
	return c.write(wire.OpCreateStream, wire.CreateStreamRequest{Name: name}.Append(nil), c.createdStream)
}

// createdStream answers with the new stream.
func (c *call) createdStream(b []byte) error {
	s, err := wire.DecodeStream(b)
	if err != nil {
		return err
	}
	return c.json(streamDetailsJSON{
		s.ID, s.CreatedAt, s.Name, wire.FormatSize(s.SizeBytes), s.MessagesCount, s.TopicsCount, []topicJSON{}, none,
	})
}

func nameFits(name []byte) bool { return len(name) >= 1 && len(name) <= wire.MaxName }

// updateStream serves PUT /streams/{stream}.
func updateStream(c *call) error {
	id, err := c.id(0)
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	q := wire.UpdateStreamRequest{Stream: id}
	b.record([]string{"name", "options"}, 1, func(i int) {
		if i == 0 {
			q.Name = b.str()
		} else {
			q.Options = b.options()
		}
	})
	if err := b.end(); err != nil {
		return err
	}
	if !nameFits(q.Name) {
		return refusal(wire.CodeInvalidStreamName)
	}
	return c.write(wire.OpUpdateStream, q.Append(nil), c.noContent)
}

// onStream serves an operation whose only argument is a stream.
func onStream(c *call, op wire.Operation) error {
	id, err := c.id(0)
	if err != nil {
		return err
	}
	return c.write(op, wire.StreamTarget{Stream: id}.Append(nil), c.noContent)
}

// deleteStream serves DELETE /streams/{stream}.
func deleteStream(c *call) error { return onStream(c, wire.OpDeleteStream) }

// purgeStream serves DELETE /streams/{stream}/purge.
func purgeStream(c *call) error { return onStream(c, wire.OpPurgeStream) }
