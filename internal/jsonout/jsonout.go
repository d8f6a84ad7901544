// Package jsonout writes the JSON that commands print.
package jsonout

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
)

// Number is a float64 in JSON, which has no NaN and no infinity: those are the
// strings "NaN", "+Inf" and "-Inf".
type Number = jsonfloat.Number

// Print writes v, indented. Names in it are whole, since a program may look for them,
// but characters that are not printable are escaped, so that a terminal shows them
// rather than obeys them. Bytes that are not UTF-8, which JSON cannot have, become
// U+FFFD.
func Print(w io.Writer, v any) error {
	var text bytes.Buffer
	if err := encode(&text, v, ""); err != nil {
		return err
	}
	return writeEscaped(w, text.Bytes())
}

// PrintList is Print of an object with one member more at its end, a list under the
// given key. Its items are what each calls item with, one after another: they need not
// be in memory at once. Nothing is written if there is an error.
func PrintList(w io.Writer, object any, key string, each func(item func(v any) error) error) error {
	var text bytes.Buffer
	if err := encode(&text, object, ""); err != nil {
		return err
	}
	text.Truncate(bytes.LastIndexByte(text.Bytes(), '}') - 1) // and the line end before it
	fmt.Fprintf(&text, ",\n  %q: [", key)
	begin := text.Len()
	err := each(func(v any) error {
		if text.Len() > begin {
			text.WriteByte(',')
		}
		text.WriteString("\n    ")
		if err := encode(&text, v, "    "); err != nil {
			return err
		}
		text.Truncate(text.Len() - 1) // the line end
		return nil
	})
	if err != nil {
		return err
	}
	if text.Len() > begin {
		text.WriteString("\n  ")
	}
	text.WriteString("]\n}\n")
	return writeEscaped(w, text.Bytes())
}

// encode appends v, whose further lines begin with prefix.
func encode(text *bytes.Buffer, v any, prefix string) error {
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, "  ")
	return encoder.Encode(v)
}

// writeEscaped writes JSON with the characters escaped that are not printable and not
// line ends. They can only be in strings.
func writeEscaped(stdout io.Writer, text []byte) error {
	w := bufio.NewWriter(stdout)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n' || unicode.IsPrint(r):
			w.Write(text[:size]) // an error stays until Flush
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(w, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(w, `\u%04x`, r)
		}
		text = text[size:]
	}
	return w.Flush()
}
