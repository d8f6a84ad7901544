// Package jsonout writes the JSON that commands print.
package jsonout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
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

// Print writes v, indented. Names in it are whole, since a program may look for them,
// but characters that are not printable are escaped, so that a terminal shows them
// rather than obeys them. Bytes that are not UTF-8, which JSON cannot have, become
// U+FFFD.
func Print(w io.Writer, v any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escape(text.Bytes()))
	return err
}

// escape escapes the characters of JSON that are not printable and not white space.
// They can only be in strings.
func escape(text []byte) []byte {
	escaped := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n' || unicode.IsPrint(r):
			escaped = append(escaped, text[:size]...)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
		text = text[size:]
	}
	return escaped
}
