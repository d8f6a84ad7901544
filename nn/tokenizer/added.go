package tokenizer

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// addedToken is a token that is found before any other.
type addedToken struct {
	id         int32
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // not beside letters
	Strip      bool   `json:"lstrip"`      // it takes the spaces in front
	StripRight bool   `json:"rstrip"`      // and behind
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"` // no part of the text
}

// vocabulary finds added tokens.
type vocabulary struct {
	tokens  map[string]*addedToken
	lengths [256][]int // of those that begin with a byte, the longest first
}

func (v *vocabulary) add(text string, a *addedToken) {
	if text == "" {
		return
	}
	if v.tokens == nil {
		v.tokens = map[string]*addedToken{}
	}
	v.tokens[text] = a
	at := &v.lengths[text[0]]
	if i, ok := slices.BinarySearchFunc(*at, len(text), func(a, b int) int { return cmp.Compare(b, a) }); !ok {
		*at = slices.Insert(*at, i, len(text))
	}
}

// at returns the longest added token that text begins with, or nil.
func (v *vocabulary) at(text string) (found *addedToken, n int) {
	for _, n := range v.lengths[text[0]] {
		if n <= len(text) {
			if a := v.tokens[text[:n]]; a != nil {
				return a, n
			}
		}
	}
	return nil, 0
}

// addTokens adds tokens that are found before any other. As in the original they have the IDs
// of the vocabulary, or the next behind it.
func (t *Tokenizer) addTokens(all []addedToken) error {
	ids, next := map[string]int32{}, int32(len(t.model.vocab))
	last := map[int32]*addedToken{} // of those with one text
	for i := range all {
		a := &all[i]
		if a.Content == "" {
			continue
		}
		id, ok := ids[a.Content]
		if !ok {
			if id, ok = t.model.vocab[a.Content]; !ok {
				id = next
				next++
			}
		}
		a.id, ids[a.Content], last[id] = id, id, a
		if a.Special {
			t.special[a.Content] = true
		}
	}
	for i := range all {
		a := &all[i]
		if last[a.id] != a {
			continue
		}
		text, v := a.Content, &t.raw
		if a.Normalized {
			var err error
			if text, err = t.normalized(new(matcher), text); err != nil {
				return err
			}
			v = &t.added
		}
		v.add(text, a)
		t.texts[a.id] = text
	}
	return nil
}

// cut gives added tokens in a piece to emit, and what lies between them to between.
func (v *vocabulary) cut(p piece, emit func(id int32), between func(piece) error) error {
	begin := 0
	for i := 0; v.tokens != nil && i < len(p.text); {
		a, n := v.at(p.text[i:])
		if a == nil {
			i++
			continue
		}
		from, to := i, i+n
		i = to
		if a.SingleWord && (endsWithWord(p.text[:from]) || beginsWithWord(p.text[to:])) {
			continue
		}
		if a.Strip {
			from = max(len(strings.TrimRightFunc(p.text[:from], isSpace)), begin)
		}
		if a.StripRight {
			to = len(p.text) - len(strings.TrimLeftFunc(p.text[to:], isSpace))
		}
		if begin < from {
			if err := between(piece{p.text[begin:from], p.first && begin == 0}); err != nil {
				return err
			}
		}
		if from < to { // else the one before took it
			emit(a.id)
		}
		begin = to
	}
	if begin == len(p.text) {
		return nil
	}
	return between(piece{p.text[begin:], p.first && begin == 0})
}

func isSpace(r rune) bool { return unicodeData().space.has(r) }

// isWord returns whether a character is a part of words for single_word.
func isWord(r rune) bool { return unicodeData().word.has(r) }

func endsWithWord(text string) bool {
	r, n := utf8.DecodeLastRuneInString(text)
	return n > 0 && isWord(r)
}

func beginsWithWord(text string) bool {
	r, n := utf8.DecodeRuneInString(text)
	return n > 0 && isWord(r)
}
