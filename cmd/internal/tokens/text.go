package tokens

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/octavo-fp8/octavo/cmd/internal/tokenizer"
)

// Text is a text that is continued: tokens of its beginning, and text of those that follow.
type Text struct {
	by     *tokenizer.Tokenizer
	stream *tokenizer.Stream
}

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
	t := &Text{by: by}
	t.stream, err = by.Stream(true)
	return t, err
}

// Begin returns the tokens of the beginning of a text, with those that begin texts.
func (t *Text) Begin(text string) ([]int32, error) {
	ids, err := t.by.Encode(text)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	if t.stream, err = t.by.Stream(len(ids) == 0); err != nil {
		return nil, err
	}
	return append(append([]int32{}, t.by.Prefix()...), ids...), nil
}

// Add returns the text that a token completes, and End what is left of it then.
func (t *Text) Add(token int32) string { return t.stream.Add(token) }

// End returns what is left of a character that is not complete.
func (t *Text) End() string { return t.stream.End() }
