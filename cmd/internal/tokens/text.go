package tokens

import (
	"os"
	"path/filepath"

	"github.com/octavo-fp8/octavo/nn/tokenizer"
)

// Text makes tokens of the beginnings of texts, and text of the tokens that follow.
type Text struct{ by *tokenizer.Tokenizer }

// NewText reads the tokenizer.json in the directory of a model.
func NewText(dir string) (*Text, error) {
	file := filepath.Join(dir, "tokenizer.json")
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	by, err := tokenizer.Read(file)
	if err != nil {
		return nil, err
	}
	t := &Text{by}
	_, err = t.Stream(true)
	return t, err
}

// Begin returns the tokens of the beginning of a text, with those that begin texts, and what
// makes text of those that follow.
func (t *Text) Begin(text string) ([]int32, *tokenizer.Stream, error) {
	ids, err := t.by.Encode(text)
	if err != nil {
		return nil, nil, err
	}
	stream, err := t.Stream(len(ids) == 0)
	return append(append([]int32{}, t.by.Prefix()...), ids...), stream, err
}

// Stream returns what makes text of tokens, of those that begin one or of those that follow
// others.
func (t *Text) Stream(begins bool) (*tokenizer.Stream, error) { return t.by.Stream(begins) }
