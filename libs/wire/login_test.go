package wire

import "testing"

// The same bytes are tried as both shapes. A token with an empty context never reads as a password,
// one with a context may, so a server falls back also after failed credentials.
func TestLoginShapes(t *testing.T) {
	token := TokenLoginRequest{Token: []byte("some-token")}
	if q, err := DecodeLogin(token.Append(nil)); err == nil {
		t.Errorf("token without context reads as password: %+v", q)
	}
	for _, context := range []string{"", "c", "some context of a client"} {
		token.Context = []byte(context)
		b := token.Append(nil)
		if got, err := DecodeTokenLogin(b); err != nil || string(got.Token) != "some-token" || string(got.Context) != context {
			t.Errorf("context %q: %+v, %v", context, got, err)
		}
	}
	ambiguous := TokenLoginRequest{Token: []byte("some-token"), Context: make([]byte, 256)}
	if _, err := DecodeTokenLogin(ambiguous.Append(nil)); err != nil {
		t.Error(err)
	}
	if _, err := DecodeLogin(ambiguous.Append(nil)); err != nil {
		t.Errorf("expected an accidental password shape: %v", err)
	}
	invalid := LoginRequest{Username: []byte("iggy"), Password: []byte("iggy"), Context: []byte{0xff}}
	if _, err := DecodeLogin(invalid.Append(nil)); err == nil {
		t.Error("context that is not UTF-8 accepted")
	}
}

// A reply that SDKs refuse: no session, or cut.
func TestDecodeLoginReplyRefuses(t *testing.T) {
	none := vectorLogin
	none.Session = 0
	if got, err := DecodeLoginReply(none.Append(AppendSuccess(nil))); err != CodeInvalidSession {
		t.Errorf("session 0: %+v, %v", got, err)
	}
	if _, err := DecodeLoginReply(AppendRejection(nil, CodeTransientNotAccepted)); err != CodeTransientNotAccepted {
		t.Errorf("rejection: %v", err)
	}
}

// A framed reply without a whole section, or with a refusal that names no code, is unusable.
func TestDecodeResultRefuses(t *testing.T) {
	for _, body := range [][]byte{nil, {0, 0, 0}, {1, 0, 0, 0}, AppendRejection(nil, 0)} {
		if payload, err := DecodeResult(body); err != CodeInvalidCommand {
			t.Errorf("%x: %x, %v", body, payload, err)
		}
	}
}

func TestLoginPolicy(t *testing.T) {
	long := make([]byte, 255)
	for _, row := range []struct {
		name, password int
		want           bool
	}{{3, 3, true}, {2, 3, false}, {3, 2, false}, {50, 100, true}, {51, 100, false}, {50, 101, false}, {3, 0, false}} {
		q := LoginRequest{Username: long[:row.name], Password: long[:row.password]}
		if got := q.WithinPolicy(); got != row.want {
			t.Errorf("name of %d, password of %d: %v", row.name, row.password, got)
		}
	}
}

func TestAcceptsVersion(t *testing.T) {
	for _, row := range []struct {
		major, minor, patch uint32
		want                bool
	}{{0, 11, 0, true}, {0, 11, 1, true}, {0, 11, 1023, true}, {0, 10, 9, false}, {0, 12, 0, false}, {0, 12, 2, false}, {1, 0, 0, false}, {0, 0, 0, false}} {
		word := PackVersion(row.major, row.minor, row.patch)
		if got := AcceptsVersion(word); got != row.want {
			t.Errorf("%d.%d.%d: %v", row.major, row.minor, row.patch, got)
		}
		if a, b, c := UnpackVersion(word); a != row.major || b != row.minor || c != row.patch {
			t.Errorf("%d unpacks to %d.%d.%d", word, a, b, c)
		}
	}
}

func TestIdentifySDK(t *testing.T) {
	released := SDK{NumbersWrites: true, Generation: GenerationReleased, Routes: true}
	for _, row := range []struct {
		name, version string
		want          SDK
	}{
		{"rust-sdk", "0.11.0-edge.4", SDK{}},
		{"rust-sdk", "0.11.0-edge.6", SDK{}},
		{"rust-sdk", "0.11.0-edge.7", SDK{NumbersWrites: true}},
		{"rust-sdk", "0.11.0-edge.8", SDK{NumbersWrites: true, Generation: GenerationReleased}},
		{"rust-sdk", "0.11.0-edge.10", SDK{NumbersWrites: true, Generation: GenerationReleased}},
		{"rust-sdk", "0.11.0", released},
		{"rust-sdk", "0.11.0+build.7", released},
		{"rust-sdk", "0.11.1-edge.1", released},
		{"rust-sdk", "1.0.0", released},
		{"rust-sdk", "0.10.9", SDK{}},
		{"rust-sdk", "0.11", SDK{}},
		{"rust-sdk", "0.11.0-", SDK{}},
		{"rust-sdk", "latest", SDK{}},
		{"rust-sdk", "", SDK{}},
		{"go-sdk", "0.11.0", SDK{}},
		{"java-sdk", "2.0.0", SDK{}},
	} {
		if got := IdentifySDK([]byte(row.name), []byte(row.version)); got != row.want {
			t.Errorf("%s %s: %+v, want %+v", row.name, row.version, got, row.want)
		}
	}
}
