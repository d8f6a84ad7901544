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

// TestParagraph: lines are as wide as a screen, and not wider than 80: each is broken once.
func TestParagraph(t *testing.T) {
	text := strings.Repeat("some words of several lengths ", 20)
	for columns, most := range map[int]int{0: 80, 60: 60, 80: 80, 120: 80} {
		s := &screen{columns: columns}
		require.NoError(t, Paragraph(s, text, "  "))
		lines := strings.Split(strings.TrimSuffix(s.String(), "\n"), "\n")
		for i, line := range lines {
			require.LessOrEqual(t, len(line), most)
			if i > 0 {
				word, _, _ := strings.Cut(strings.TrimPrefix(line, "  "), " ")
				require.Greater(t, len(lines[i-1]+" "+word), most)
			}
		}
		require.Equal(t, strings.Fields(text), strings.Fields(s.String()))
	}
}

func TestHanging(t *testing.T) {
	hanging := func(lead, text string, spaces, columns int) string {
		s := &screen{columns: columns}
		Hanging(s, lead, text, spaces)
		return strings.TrimSuffix(s.String(), "\n")
	}
	require.Equal(t, "name: short", hanging("name: ", "short", 2, 0))
	words := strings.Repeat("seven·s ", 12) + "end"
	require.Equal(t, "name: "+strings.TrimSpace(strings.Repeat("seven·s ", 9))+"\n  "+strings.Repeat("seven·s ", 3)+"end", hanging("name: ", words, 2, 0))
	require.Equal(t, "name: seven·s seven·s\n  seven·s seven·s end", hanging("name: ", "seven·s seven·s seven·s seven·s end", 2, 24))
	for _, lead := range []string{"", "  ", "a lead of some words  "} {
		for spaces := range 30 {
			for i, line := range strings.Split(hanging(lead, words, spaces, 0), "\n") {
				require.LessOrEqual(t, utf8.RuneCountInString(line), 80)
				require.True(t, i == 0 || strings.HasPrefix(line, strings.Repeat(" ", spaces)+"s") || strings.HasPrefix(line, strings.Repeat(" ", spaces)+"e"), "%q", line)
			}
		}
	}
}
