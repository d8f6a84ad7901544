package textout

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct{ text, indent, want string }{
		{"", "  ", ""},
		{"one", "  ", "  one"},
		{"one two three four", "", "one two\nthree four"},
		{"one two three four", "  ", "  one two\n  three\n  four"},
		{"one  two\nthree", "", "one two\nthree"},
		{"a\n\nb c", " ", " a\n\n b c"},
		{"a incomprehensible b", "", "a\nincomprehensible\nb"},
		{"größe mäßig", "", "größe\nmäßig"},
		{"ää öö üü ß", "", "ää öö üü ß"},
	} {
		require.Equal(t, c.want, Wrap(c.text, 10, c.indent))
	}
	for line := range strings.SplitSeq(Wrap(strings.Repeat("word ", 90), 80, "  "), "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80)
		require.Greater(t, utf8.RuneCountInString(line), 74)
	}
}
