package link

import (
	"reflect"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

func TestClaims(t *testing.T) {
	for _, c := range []Claims{
		{Door: 7},
		{Door: 1, Sequence: 2, Held: []Claim{{wire.U128{Lo: 3, Hi: 4}, 5}, {wire.U128{Lo: 6}, 7}}, Dropped: []Claim{{wire.U128{Hi: 8}, 9}}},
	} {
		b := c.Append(nil)
		if got, ok := DecodeClaims(b); !ok || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v %v, want %+v", got, ok, c)
		}
		for cut := range b {
			if _, ok := DecodeClaims(b[:cut]); ok {
				t.Errorf("%d of %d bytes decode", cut, len(b))
			}
		}
		if _, ok := DecodeClaims(append(b, 0)); ok {
			t.Error("a longer body decodes")
		}
	}
	huge := (&Claims{}).Append(nil)
	huge[16], huge[17], huge[18], huge[19] = 0xff, 0xff, 0xff, 0xff
	if _, ok := DecodeClaims(huge); ok {
		t.Error("a count beyond the bytes decodes")
	}
}
