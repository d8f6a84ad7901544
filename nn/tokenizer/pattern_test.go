package tokenizer

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// expression returns one at random that package regexp and this one read alike.
func expression(r *rand.Rand, depth int) string {
	atoms := []string{"a", "b", "c", "é", "你", ".", "[ab]", "[^a]", "[b-é]", `\n`, "[^a-c你]", `\x{4f60}`, `\[`}
	var text strings.Builder
	for range 1 + r.IntN(3) {
		if depth > 0 && r.IntN(3) == 0 {
			text.WriteString("(?:" + expression(r, depth-1) + ")")
		} else {
			text.WriteString(atoms[r.IntN(len(atoms))])
		}
		text.WriteString([]string{"", "", "", "?", "*", "+", "??", "*?", "+?", "{2}", "{1,2}", "{0,2}", "{2,}", "{1,3}?"}[r.IntN(14)])
	}
	if depth > 0 && r.IntN(3) == 0 {
		text.WriteString("|" + expression(r, depth-1))
	}
	return text.String()
}

// TestExpressions compares all matches with those of package regexp.
func TestExpressions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for range 20_000 {
		e := expression(r, 3)
		p, err := compile(e)
		if err != nil {
			require.ErrorIs(t, err, ErrUnsupported, e)
			require.Contains(t, err.Error(), "a repeat of what may be empty", e)
			continue
		}
		want := regexp.MustCompile(e)
		for range 3 {
			var text strings.Builder
			for range r.IntN(12) {
				text.WriteString([]string{"a", "b", "c", "é", "你", "\n", "[", "d"}[r.IntN(8)])
			}
			if text.Len() == 0 {
				continue // has no matches here
			}
			var got [][]int
			require.NoError(t, new(matcher).each(p, text.String(), func(begin, end int) error {
				got = append(got, []int{begin, end})
				return nil
			}))
			require.Equal(t, want.FindAllStringIndex(text.String(), -1), got, "%q in %q", e, text.String())
			compared++
		}
	}
	require.Greater(t, compared, 20_000)
}

// TestOniguruma has what regexp does not: matches as tokenizers 0.23.2 finds them.
func TestOniguruma(t *testing.T) {
	for _, c := range []struct {
		expression, text string
		want             []string
	}{
		{`(?i:'s|'t|'re|'ve|'m|'ll|'d)`, "a'ſ 'S 'K 'Ll", []string{"'ſ", "'S", "'Ll"}},
		{`(?i:k)`, "K k \u212a", []string{"K", "k", "\u212a"}},
		{`a(?i)s|t`, "as aS at aT t", []string{"as", "aS", "at", "aT"}},
		{`\p{N}{1,3}`, "12345678", []string{"123", "456", "78"}},
		{`\p{N}{1,3}+`, "12345678", []string{"12345678"}},
		{`\p{N}{3}?`, "1234567", []string{"123", "456", ""}},
		{`a++b`, "aaab", []string{"aaab"}},
		{`a++ab`, "aaab", nil},
		{`(?>x|xy)z?`, "xyz xz", []string{"x", "xz"}},
		{`\s+(?!\S)|\s+`, "a   b  ", []string{"  ", " ", "  "}},
		{`a(?=c|$)`, "ac ab a\na", []string{"a", "a", "a"}},
		{`[\p{L}&&[^\p{Han}]]+`, "ab你c", []string{"ab", "c"}},
		{`[a-c&&b-z]+`, "abcd", []string{"bc"}},
		{` ?[^(\s|[.,!?…。，、।۔،])]+`, " a, b|c", []string{" a", " b", "c"}},
		{`^.`, "ab\ncd", []string{"a", "c"}},
		{`\A.|.\z`, "ab\ncd", []string{"a", "d"}},
		{`a{,2}b`, "aaab", []string{"aab"}},
		{`a{b}`, "a{b}", []string{"a{b}"}},
		{`\w+`, "a\u200db c_9²", []string{"a", "b", "c_9²"}},
		{`\h+`, "az09G", []string{"a", "09"}},
		{`\s`, "\u0085\u00a0\u2028\u200b\u180e\x1c", []string{"\u0085", "\u00a0", "\u2028"}},
		{`\u0041\x42`, "AB", []string{"AB"}},
		{`\p{^Lu}\P{L}`, "a1B2", []string{"a1"}},
	} {
		p, err := compile(c.expression)
		require.NoError(t, err, c.expression)
		var got []string
		require.NoError(t, new(matcher).each(p, c.text, func(begin, end int) error {
			got = append(got, c.text[begin:end])
			return nil
		}))
		require.Equal(t, c.want, got, "%s in %q", c.expression, c.text)
	}
}
