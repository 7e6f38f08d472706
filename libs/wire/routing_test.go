package wire

import "testing"

// The codes of the small enumerations are all that decode.
func TestRoutingKinds(t *testing.T) {
	for kind := range 256 {
		r := reader{rest: Strategy{StrategyKind(kind), 7}.Append(nil)}
		if r.strategy(); (r.err() == nil) != (kind >= 1 && kind <= 5) {
			t.Errorf("strategy %d: %v", kind, r.err())
		}
		r = reader{rest: []byte{byte(kind)}}
		if r.ack(); (r.err() == nil) != (kind <= 1) {
			t.Errorf("ack %d: %v", kind, r.err())
		}
		r = reader{rest: NumericID(1).Append([]byte{byte(kind)})}
		if r.consumer(); (r.err() == nil) != (kind == 1 || kind == 2) {
			t.Errorf("consumer %d: %v", kind, r.err())
		}
		for size, key := range []string{"", "k", "kk", "kkk", "kkkk"} {
			r = reader{rest: appendStr8([]byte{byte(kind)}, key)}
			want := kind == 1 && size == 0 || kind == 2 && size == 4 || kind == 3 && size > 0
			if r.partitioning(); (r.err() == nil) != want {
				t.Errorf("partitioning %d of %d bytes: %v", kind, size, r.err())
			}
		}
		if _, err := DecodeDescribeOptions([]byte{byte(kind)}); (err == nil) != (kind >= 1 && kind <= 3) {
			t.Errorf("scope %d: %v", kind, err)
		}
		if _, err := DecodeGetSnapshot([]byte{byte(kind), 0}); (err == nil) != (kind >= 1 && kind <= 6) {
			t.Errorf("snapshot compression %d: %v", kind, err)
		}
	}
}
