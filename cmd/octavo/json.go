package main

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
)

// number is a float64 in JSON, which has no NaN and no infinity: those are the
// strings "NaN", "+Inf" and "-Inf".
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	x := float64(n)
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		text = strconv.Quote(text)
	}
	return []byte(text), nil
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
