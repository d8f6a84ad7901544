package tokenizer

import (
	"fmt"
	"strings"
	"time"
)

// addedToken is a token that is found before any other.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Strip      bool   `json:"lstrip"`
	StripRight bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"` // no part of the text
}

// vocabulary finds added tokens, by their first byte.
type vocabulary [256][]addedToken

// addTokens adds tokens that are found before any other.
func (t *Tokenizer) addTokens(all []addedToken) error {
	for _, a := range all {
		if a.Content == "" {
			continue
		}
		v := &t.raw
		if a.Normalized {
			pieces, err := apply([]piece{{a.Content, true}}, t.normalize, time.Time{})
			if err != nil {
				return err
			}
			a.Content, v = pieces[0].text, &t.added
		}
		v[a.Content[0]] = append(v[a.Content[0]], a)
	}
	return nil
}

// addTexts says what tokens stand for.
func (t *Tokenizer) addTexts(all []addedToken) {
	t.texts, t.special = make(map[int32]string, len(t.model.vocab)), map[int32]bool{}
	for text, id := range t.model.vocab {
		t.texts[id] = text
	}
	for _, a := range all {
		t.texts[a.ID] = a.Content
		t.special[a.ID] = a.Special
	}
}

// at returns the longest added token that text begins with, or nil.
func (v *vocabulary) at(text string) (found *addedToken) {
	for i, a := range v[text[0]] {
		if strings.HasPrefix(text, a.Content) && (found == nil || len(a.Content) > len(found.Content)) {
			found = &v[text[0]][i]
		}
	}
	return found
}

// cut appends added tokens in a piece, and calls between for what lies between them.
func (v *vocabulary) cut(p piece, tokens *[]int32, between func(piece) error) error {
	begin := 0
	for i := 0; i < len(p.text); {
		a := v.at(p.text[i:])
		if a == nil {
			i++
			continue
		}
		if a.SingleWord || a.Strip || a.StripRight {
			return fmt.Errorf("the text has %q, a token that takes what is around it into account "+
				"(single_word, lstrip or rstrip): remove it", a.Content)
		}
		if i > begin {
			if err := between(piece{p.text[begin:i], p.first && begin == 0}); err != nil {
				return err
			}
		}
		*tokens = append(*tokens, a.ID)
		i += len(a.Content)
		begin = i
	}
	if begin == len(p.text) {
		return nil
	}
	return between(piece{p.text[begin:], p.first && begin == 0})
}
