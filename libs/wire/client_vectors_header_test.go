package wire

import (
	"bytes"
	"testing"
)

func headerVectors() map[string]vectorCheck {
	return map[string]vectorCheck{
		"request_frame_create_stream": request(func(t *testing.T, h RequestHeader, rest []byte) {
			if h.Operation != OpCreateStream || h.Request != 1 || h.Session != 42 || h.RequestChecksum != Widened(rest) ||
				h.RequestChecksum.Lo != 0x923711c6113ecfad {
				t.Errorf("%+v", h)
			}
			if q, err := DecodeCreateStream(rest); err != nil || string(q.Name) != "test" {
				t.Errorf("%+v, %v", q, err)
			}
		}),
		"request_frame_ping": request(func(t *testing.T, h RequestHeader, rest []byte) {
			if h.Operation != OpNonReplicated || h.Code != CmdPing || h.Session != 0 || len(rest) != 0 {
				t.Errorf("%+v", h)
			}
		}),
		"request_frame_login": request(func(t *testing.T, h RequestHeader, rest []byte) {
			if h.Operation != OpRegister || !bytes.Equal(rest, vectorBytes(t, "login_register_body")) {
				t.Errorf("%+v", h)
			}
		}),
		"request_frame_poll": request(func(t *testing.T, h RequestHeader, rest []byte) {
			if h.Operation != OpNonReplicated || h.Code != CmdPollMessages {
				t.Errorf("%+v", h)
			}
			if q, err := DecodePollMessages(rest); err != nil || q.Count != 100 {
				t.Errorf("%+v, %v", q, err)
			}
		}),
		"request_header_golden": request(func(t *testing.T, h RequestHeader, rest []byte) {
			client := DecodeU128([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
			if h.Size != 260 || h.Client != client || h.Request != 2 || h.Operation != OpCreateStream || h.Session != 11 {
				t.Errorf("%+v", h)
			}
		}),

		"reply_frame_create_stream": reply(func(t *testing.T, h ReplyHeader, rest []byte) {
			if h.Op != 43 || h.Commit != 43 || h.Operation != OpCreateStream || h.Request != 1 || h.Status != 0 || h.Size != 301 {
				t.Errorf("%+v", h)
			}
			if payload, err := DecodeResult(rest); err != nil {
				t.Error(err)
			} else if s, err := DecodeStream(payload); err != nil || s.Name != "test" {
				t.Errorf("%+v, %v", s, err)
			}
		}),
		"reply_frame_ping": reply(func(t *testing.T, h ReplyHeader, rest []byte) {
			if h.Operation != OpNonReplicated || h.Commit != 7 || h.Status != 0 || len(rest) != 0 {
				t.Errorf("%+v", h)
			}
		}),
		"reply_frame_unauthenticated": reply(func(t *testing.T, h ReplyHeader, rest []byte) {
			if h.Operation != OpNonReplicated || h.Status != CodeUnauthenticated || len(rest) != 0 {
				t.Errorf("%+v", h)
			}
		}),

		"eviction_incompatible_protocol": eviction(14, ProtocolVersion, MinProtocolVersion),
		"eviction_no_session":            eviction(1, 0, 0),
		"eviction_malformed_login":       eviction(15, 0, 0),
		"eviction_stale_client":          eviction(13, 0, 0),
	}
}

func request(check func(*testing.T, RequestHeader, []byte)) vectorCheck {
	return func(t *testing.T, b []byte) {
		var h RequestHeader
		if err := h.Decode(b); err != nil || h.Validate() != nil {
			t.Fatal(err, h.Validate())
		}
		again := make([]byte, HeaderSize)
		h.Put(again)
		if !bytes.Equal(again, b[:HeaderSize]) {
			t.Errorf("encoded %x", again)
		}
		check(t, h, b[HeaderSize:])
	}
}

func reply(check func(*testing.T, ReplyHeader, []byte)) vectorCheck {
	return func(t *testing.T, b []byte) {
		var h ReplyHeader
		if err := h.Decode(b); err != nil {
			t.Fatal(err)
		}
		again := make([]byte, HeaderSize)
		h.Put(again)
		if !bytes.Equal(again, b[:HeaderSize]) {
			t.Errorf("encoded %x", again)
		}
		check(t, h, b[HeaderSize:])
	}
}

func eviction(reason EvictionReason, newest, oldest uint32) vectorCheck {
	return func(t *testing.T, b []byte) {
		var h EvictionHeader
		if err := h.Decode(b); err != nil || h.Reason != reason || h.VersionMax != newest || h.VersionMin != oldest {
			t.Errorf("%+v, %v", h, err)
		}
		again := make([]byte, HeaderSize)
		h.Put(again)
		if !bytes.Equal(again, b) {
			t.Errorf("encoded %x", again)
		}
	}
}
