package textout

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Wrap breaks text at spaces into lines of at most width characters that begin with
// indent. Paragraphs, which an empty line separates, stay apart. A word that is longer
// than a line has one of its own. There is no line end after the last line.
func Wrap(text string, width int, indent string) string {
	var paragraphs []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		paragraphs = append(paragraphs, wrapWords(strings.Fields(paragraph), width, indent))
	}
	return strings.Join(paragraphs, "\n\n")
}

// Paragraph writes text in lines that Wrap breaks, and ends the last one. They are no wider than
// [Width].
func Paragraph(w io.Writer, text, indent string) error {
	_, err := fmt.Fprintln(w, Wrap(text, Width(w), indent))
	return err
}

// Hanging writes text after a lead, broken at words into lines of [Width], of which those
// after the first begin with some spaces.
func Hanging(w io.Writer, lead, text string, spaces int) {
	indent, width := strings.Repeat(" ", spaces), Width(w)
	if utf8.RuneCountInString(lead+text) <= width {
		fmt.Fprintln(w, lead+text)
		return
	}
	// What stands in for the lead is as long and has no space to break at.
	stand := strings.Repeat("x", max(utf8.RuneCountInString(lead)-spaces, 0))
	wrapped := strings.TrimPrefix(Wrap(stand+text, width, indent), indent+stand)
	fmt.Fprintln(w, lead+wrapped)
}

// Width is how many characters lines of text have at most: 80, and on a [Screen] that is narrower
// as many as that.
func Width(w io.Writer) int {
	const most = 80
	if s, ok := w.(Screen); ok {
		if columns, _ := s.Screen(); columns > 0 {
			return min(most, columns)
		}
	}
	return most
}

func wrapWords(words []string, width int, indent string) string {
	var b strings.Builder
	column := 0
	for i, word := range words {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			b.WriteString(indent)
			column = utf8.RuneCountInString(indent)
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = utf8.RuneCountInString(indent)
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
