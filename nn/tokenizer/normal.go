package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Syllables of Hangul are computed (Unicode, section 3.12).
const (
	hangulL, hangulV, hangulT, hangulS = 0x1100, 0x1161, 0x11A7, 0xAC00
	hangulVs, hangulTs                 = 21, 28
	hangulLs, hangulSs                 = 19, 19 * hangulVs * hangulTs
)

// normalForm returns a text in a normal form of Unicode.
func normalForm(text string, composed, compat bool) string {
	plain := rune(utf8.RuneSelf) // from here on characters may change, or those before them
	if composed && !compat {
		plain = 0x300
	}
	var b strings.Builder
	done := 0 // of text
	var runes []rune
	for i := 0; i < len(text); {
		// A character below plain and one that is not are of a group; it ends before the next below.
		r, n := utf8.DecodeRuneInString(text[i:])
		begin := i
		i += n
		for i < len(text) {
			next, n := utf8.DecodeRuneInString(text[i:])
			if next < plain {
				break
			}
			i += n
		}
		if r < plain && i == begin+n {
			continue
		}
		b.WriteString(text[done:begin])
		done = i
		runes = decompose(runes[:0], text[begin:i], compat)
		if composed {
			runes = compose(runes)
		}
		for _, r := range runes {
			b.WriteRune(r)
		}
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// decompose appends the characters of a text, decomposed and in canonical order.
func decompose(runes []rune, text string, compat bool) []rune {
	c := unicodeData()
	for _, r := range text {
		d, ok := c.compat[r]
		if !ok || !compat {
			d, ok = c.canonical[r]
		}
		switch s := r - hangulS; {
		case ok:
			runes = append(runes, d...)
		case 0 <= s && s < hangulSs:
			runes = append(runes, hangulL+s/(hangulVs*hangulTs), hangulV+s/hangulTs%hangulVs)
			if t := s % hangulTs; t > 0 {
				runes = append(runes, hangulT+t)
			}
		default:
			runes = append(runes, r)
		}
	}
	for i := 0; i < len(runes); i++ {
		begin := i
		for i < len(runes) && c.combining[runes[i]] > 0 {
			i++
		}
		slices.SortStableFunc(runes[begin:i], func(a, b rune) int { return int(c.combining[a]) - int(c.combining[b]) })
	}
	return runes
}

// compose joins characters to composed ones, in place.
func compose(runes []rune) []rune {
	c := unicodeData()
	out := runes[:0]
	starter, before := -1, uint8(0) // its place in out, and the class of the last character behind it
	for _, r := range runes {
		class := c.combining[r]
		if starter >= 0 && (before < class || before == 0 && len(out) == starter+1) {
			if joined, ok := c.join(out[starter], r); ok {
				out[starter] = joined
				continue
			}
		}
		if before = class; class == 0 {
			starter = len(out)
		}
		out = append(out, r)
	}
	return out
}

// join returns what two characters become.
func (c *characters) join(a, b rune) (rune, bool) {
	if l, v := a-hangulL, b-hangulV; 0 <= l && l < hangulLs && 0 <= v && v < hangulVs {
		return hangulS + (l*hangulVs+v)*hangulTs, true
	}
	if s, t := a-hangulS, b-hangulT; 0 <= s && s < hangulSs && s%hangulTs == 0 && 0 < t && t < hangulTs {
		return a + t, true
	}
	joined, ok := c.composite[[2]rune{a, b}]
	return joined, ok
}
