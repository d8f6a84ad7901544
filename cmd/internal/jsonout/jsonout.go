// Package jsonout writes the JSON that commands print.
package jsonout

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
)

// Number is a float64 in JSON, which has no NaN and no infinity: those are the
// strings "NaN", "+Inf" and "-Inf".
type Number float64

// MarshalJSON implements [json.Marshaler].
func (n Number) MarshalJSON() ([]byte, error) {
	x := float64(n)
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		text = strconv.Quote(text)
	}
	return []byte(text), nil
}

// Print writes v, indented.
func Print(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
