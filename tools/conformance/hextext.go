package conformance

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// maxFrameText bounds a frame spelled in a scenario; runs such as (00*66) make short texts long.
const maxFrameText = 128 << 20

// decodeHexText turns hex digits with runs such as (00*66) into bytes.
func decodeHexText(text string) ([]byte, error) {
	var out []byte
	for text != "" {
		if text[0] != '(' {
			plain := text
			if i := strings.IndexByte(text, '('); i >= 0 {
				plain = text[:i]
			}
			b, err := hex.DecodeString(plain)
			if err != nil {
				return nil, err
			}
			out, text = append(out, b...), text[len(plain):]
			continue
		}
		run, rest, ok := strings.Cut(text[1:], ")")
		digits, count, found := strings.Cut(run, "*")
		if !ok || !found {
			return nil, fmt.Errorf("run %q is not (HEX*COUNT)", run)
		}
		unit, err := hex.DecodeString(digits)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 || len(out)+n*len(unit) > maxFrameText {
			return nil, fmt.Errorf("run %q has a bad count", run)
		}
		for ; n > 0; n-- {
			out = append(out, unit...)
		}
		text = rest
	}
	return out, nil
}
