package textout

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"layers.0.w":         "layers.0.w",
		"größe × 権":          "größe × 権",
		`a "b"`:              `a "b"`,
		"":                   `""`,
		"a\nb":               `"a\nb"`,
		"\x1b[2J":            `"\x1b[2J"`,
		"\u009b2J":           `"\u009b2J"`, // the same in one character
		"a\u202eb":           `"a\u202eb"`, // turns what follows around
		"a\x7f\t":            `"a\x7f\t"`,
		"\xff\xfe":           `"\xff\xfe"`,
		"a\ufffdb":           "a\ufffdb",
		"\xf0\x9f\x98\x80\n": `"😀\n"`,
	} {
		require.Equal(t, want, Name(name))
	}
	require.Equal(t, `"a b"`, Quoted("a b"))
}

func TestLongNames(t *testing.T) {
	exact := strings.Repeat("é", 200)
	require.Equal(t, exact, Name(exact))
	long := "begin" + strings.Repeat("é", 1<<20) + "end"
	got := Name(long)
	require.Equal(t, `"begin`+strings.Repeat("é", 95)+"... (1048384 characters) ..."+strings.Repeat("é", 97)+`end"`, got)
	require.Less(t, len(Name(strings.Repeat("\x00", 1<<20))), 1000)
	require.Less(t, len(Name(strings.Repeat("\xff", 1<<20))), 1000)
}

// TestLine checks that anything becomes one printable line of bounded length, and that
// an ordinary line stays.
func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		`tensor "a": it's wrong`: `tensor "a": it's wrong`,
		"open a\nb: no":          `open a\nb: no`,
		"\x1b]0;title\a":         `\x1b]0;title\a`,
		"'\x00'":                 `'\x00'`,
		"a\xffb\u202e":           `a\xffb\u202e`,
		"\ufffd\n":               "\ufffd" + `\n`,
	} {
		require.Equal(t, want, Line(text))
	}
	for _, piece := range []string{"x", "\n", "\xff", "é", "\U0010ffff", "\\"} {
		line := Line("first " + strings.Repeat(piece, 1<<20) + " last")
		require.Less(t, utf8.RuneCountInString(line), 12*mostLine)
		require.True(t, utf8.ValidString(line))
		require.NotContains(t, strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return 'p'
			}
			return 'x'
		}, line), "x")
		require.True(t, strings.HasPrefix(line, "first ") && strings.HasSuffix(line, " last"))
	}
}

func TestJSON(t *testing.T) {
	require.Equal(t, "absent", JSON(nil))
	require.Equal(t, "[1,\"a b\"]", JSON([]byte("[\n  1,\n\t\"a b\"\r\n]")))
	require.Equal(t, "[1", JSON([]byte("[1")), "what is no JSON is as it is")
	require.Equal(t, strings.Repeat("7", 60)+"…", JSON([]byte(strings.Repeat("7", 61))))
}
