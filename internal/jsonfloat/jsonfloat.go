// Package jsonfloat writes floating-point numbers as JSON that read back to the bit, but
// for a NaN's payload. JSON has no NaN and no infinities: those are the strings "NaN",
// "+Inf" and "-Inf".
package jsonfloat

import (
	"fmt"
	"math"
	"strconv"
)

// Append appends the shortest text of x, which is of 32 or 64 bits.
func Append(b []byte, x float64, bits int) []byte {
	if x != x || math.IsInf(x, 0) {
		return strconv.AppendQuote(b, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return strconv.AppendFloat(b, x, 'g', -1, bits)
}

// Parse reads what Append wrote.
func Parse(text []byte, bits int) (float64, error) {
	switch s := string(text); s {
	case `"NaN"`:
		return math.NaN(), nil
	case `"+Inf"`:
		return math.Inf(1), nil
	case `"-Inf"`:
		return math.Inf(-1), nil
	default:
		x, err := strconv.ParseFloat(s, bits)
		if err != nil {
			const most = 40
			if len(s) > most {
				s = s[:most] + "..."
			}
			return 0, fmt.Errorf("%s is not a float%d", s, bits)
		}
		return x, nil
	}
}

// Number is a float64 in JSON.
type Number float64

// MarshalJSON implements [json.Marshaler].
func (n Number) MarshalJSON() ([]byte, error) { return Append(nil, float64(n), 64), nil }

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Number) UnmarshalJSON(text []byte) error {
	x, err := Parse(text, 64)
	if err == nil {
		*n = Number(x)
	}
	return err
}
