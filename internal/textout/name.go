// Package textout formats what commands print for people: names that come from files
// and command lines, which may hold anything, and counts.
package textout

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	mostName = 200  // characters of a name
	mostLine = 2000 // characters of a line
)

// Name returns a name as it is if it is printable and not too long, and otherwise as
// [Quoted] does.
func Name(name string) string {
	if name != "" && IsPrintable(name) && utf8.RuneCountInString(name) <= mostName {
		return name
	}
	return Quoted(name)
}

// Quoted returns a name in quotation marks, with everything escaped that is not
// printable, which might have a line end or a terminal do something. The middle of a
// long one is left out.
func Quoted(name string) string { return strconv.Quote(shorten(name, mostName)) }

// Line returns text as one line: with everything escaped that is not printable, and
// without its middle if it is long.
func Line(text string) string {
	text = shorten(text, mostLine)
	if IsPrintable(text) {
		return text
	}
	var line strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if char := text[:size]; IsPrintable(char) {
			line.WriteString(char)
		} else {
			quoted := strconv.QuoteRune(r)
			if r == utf8.RuneError { // a byte that is no character
				quoted = strconv.Quote(char)
			}
			line.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return line.String()
}

// IsPrintable reports whether text is UTF-8 without control characters and others that
// cannot be seen.
func IsPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// shorten leaves out the middle of a text of more than most characters. The end stays
// since errors say there what is wrong and what to do.
func shorten(text string, most int) string {
	if len(text) <= most { // bytes are characters at least
		return text
	}
	n := utf8.RuneCountInString(text)
	if n <= most {
		return text
	}
	head, tail := text, text
	for range most / 2 {
		_, size := utf8.DecodeRuneInString(head)
		head = head[size:]
		_, size = utf8.DecodeLastRuneInString(tail)
		tail = tail[:len(tail)-size]
	}
	left := n - most/2*2
	return text[:len(text)-len(head)] + "... (" + strconv.Itoa(left) + " characters) ..." + text[len(tail):]
}
