package oracle

import (
	"fmt"
	"math"
	"strconv"
)

// Number is a float64 in a [Report]. JSON has no NaN and no infinity: those are
// the strings "NaN", "+Inf" and "-Inf", as in package telemetry.
type Number float64

// MarshalJSON implements [encoding/json.Marshaler].
func (n Number) MarshalJSON() ([]byte, error) {
	x := float64(n)
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if x != x || math.IsInf(x, 0) {
		return strconv.AppendQuote(nil, text), nil
	}
	return []byte(text), nil
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (n *Number) UnmarshalJSON(b []byte) error {
	switch s := string(b); s {
	case `"NaN"`:
		*n = Number(math.NaN())
	case `"+Inf"`:
		*n = Number(math.Inf(1))
	case `"-Inf"`:
		*n = Number(math.Inf(-1))
	default:
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("oracle: %s is not a float64", s)
		}
		*n = Number(x)
	}
	return nil
}
