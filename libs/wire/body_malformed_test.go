package wire

import (
	"bytes"
	"runtime"
	"testing"
)

// A body cut anywhere is refused, unless what is left is itself a body: an options block cut between
// entries, a list between records.
func TestBodiesCutAtEachByte(t *testing.T) {
	for _, s := range bodySamples(t) {
		if again, err := s.decode(s.bytes); err != nil || !bytes.Equal(again, s.bytes) {
			t.Errorf("%s: whole body: %v, encoded %x, want %x", s.name, err, again, s.bytes)
		}
		for n := range s.bytes {
			cut := s.bytes[:n:n]
			if again, err := s.decode(cut); err == nil && !bytes.Equal(again, cut) {
				t.Errorf("%s cut to %d bytes reads as %x", s.name, n, again)
			}
		}
	}
}

// A body whose length and count fields lie is refused without memory to match the lie.
func TestBodiesWithHugeFields(t *testing.T) {
	for _, s := range bodySamples(t) {
		for at := range s.bytes {
			for width := 1; width <= 8 && at+width <= len(s.bytes); width *= 2 {
				b := bytes.Clone(s.bytes)
				for i := range width {
					b[at+i] = 0xff
				}
				again, err := s.decode(b)
				checkStable(t, s, again, err)
				spent, allowed := uint64(0), 4096+64*uint64(len(b))
				for range 5 { // the runtime itself allocates now and then
					before := allocated()
					_, _ = s.decode(b) // judged above
					if spent = allocated() - before; spent <= allowed {
						break
					}
				}
				if spent > allowed {
					t.Errorf("%s with %d bytes ff at %d: %d bytes allocated for a body of %d", s.name, width, at, spent, len(b))
				}
			}
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// checkStable checks that what a decoder accepted encodes to bytes it accepts and encodes the same.
func checkStable(t *testing.T, s bodySample, again []byte, err error) {
	t.Helper()
	if err != nil {
		return
	}
	twice, err := s.decode(again)
	if err != nil || !bytes.Equal(again, twice) {
		t.Errorf("%s: %x encodes to %x, %v", s.name, again, twice, err)
	}
}

// Bodies of one shape ignore what follows; all others must be used up.
func TestBodiesWithTrailingBytes(t *testing.T) {
	ignored := map[string]bool{}
	for _, name := range []string{
		"StreamTarget", "TopicTarget", "Partitions", "DeleteSegments", "GroupTarget", "CreateGroup", "UserTarget",
		"UpdatePermissions", "ChangePassword", "CreateToken", "DeleteToken", "PollMessages", "OffsetTarget", "StoreOffset",
		"DeleteOffset", "Flush", "DescribeOptions", "GetClient", "GetSnapshot", "AttachSession", "PollRouting", "Login",
		"TokenLogin", "LoginPrefix", "LoginReply", "Result", "Stats",
		"SendMessages", "Poll", // the rest is the batches
	} {
		ignored[name] = true
	}
	for _, s := range bodySamples(t) {
		_, err := s.decode(append(bytes.Clone(s.bytes), 0))
		if (err == nil) != ignored[s.name] {
			t.Errorf("%s with a byte behind it: %v", s.name, err)
		}
	}
}
