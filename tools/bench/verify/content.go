package verify

import (
	"bytes"
	"math/rand/v2"

	"github.com/whippet-mq/whippet/libs/wire"
)

// MaxPayload is the largest payload of a recorded message, 8 MiB.
const MaxPayload = 8 << 20

// content is what the messages of one run hold: windows into one random text.
type content struct {
	run  uint64
	text []byte
}

func newContent(run uint64) *content {
	random := rand.NewChaCha8([32]byte{byte(run), byte(run >> 8), byte(run >> 16), byte(run >> 24), byte(run >> 32)})
	c := &content{run: run, text: make([]byte, 2*MaxPayload)}
	_, _ = random.Read(c.text) // never fails
	return c
}

// payload is what message number holds when it is size bytes long. It must not be changed.
func (c *content) payload(number uint64, size int) []byte {
	at := number * 0x9e3779b97f4a7c15 >> 41 // 23 bits: an offset below 8 MiB
	return c.text[at : at+uint64(size)]
}

// id is the id of message number.
func (c *content) id(number uint64) wire.U128 { return wire.U128{Lo: number, Hi: c.run} }

// is reports whether a payload is the one of message number.
func (c *content) is(number uint64, payload []byte) bool {
	return len(payload) <= MaxPayload && bytes.Equal(payload, c.payload(number, len(payload)))
}
