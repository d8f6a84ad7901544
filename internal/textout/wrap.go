package textout

import (
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
