// Package tokenizer turns text into the tokens of a model and back, as the tokenizer.json
// beside it says: byte pair encoding over bytes, as in GPT-2, Llama 3 and Qwen, or over characters that
// fall back to bytes, as in Llama 2 and Mistral. What a tokenizer.json asks for beyond that is
// an error that names it: wrong tokens would be worse.
//
// Sources: Hugging Face's tokenizers 0.22 (models/bpe, pre_tokenizers, normalizers,
// added_vocabulary) for what the fields of tokenizer.json mean.
package tokenizer

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// Tokenizer turns text into tokens and tokens into text. It is safe for concurrent use.
type Tokenizer struct {
	path      string
	raw       vocabulary // added tokens that are looked for in the text
	added     vocabulary // those that are looked for in what normalizers made of it
	normalize []step
	split     []step
	model     *bpe
	prefix    []int32
	bytes     bool // text need not be UTF-8

	decoder json.RawMessage // for text of tokens
	texts   map[int32]string
	special map[int32]bool
}

// piece is a part of a text.
type piece struct {
	text  string
	first bool // it begins the text
}

// step makes pieces of a piece. One that may take long is an error after the given time.
type step func(p piece, until time.Time) ([]piece, error)

// mostBytes is more than any tokenizer.json has.
const mostBytes = 1 << 28

// file is what of a tokenizer.json counts.
type file struct {
	Model         json.RawMessage `json:"model"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	AddedTokens   []addedToken    `json:"added_tokens"`
}

// Read reads a tokenizer.json. The error names the file, and what in it is of a kind that this
// package does not know, which is [ErrUnsupported].
func Read(path string) (*Tokenizer, error) {
	data, err := inputfile.ReadAll(path, mostBytes)
	if err != nil {
		return nil, err
	}
	t, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", textout.Name(path), err)
	}
	t.path = path
	return t, nil
}

func parse(data []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("want a tokenizer.json: %w", err)
	}
	t := new(Tokenizer)
	var err error
	if t.model, err = newBPE(f.Model); err != nil {
		return nil, err
	}
	if t.normalize, err = normalizers(f.Normalizer); err != nil {
		return nil, err
	}
	var regular bool
	if t.split, regular, err = preTokenizers(f.PreTokenizer); err != nil {
		return nil, err
	}
	t.bytes = len(t.normalize) == 0 && !regular
	if t.prefix, err = prefix(f.PostProcessor); err != nil {
		return nil, err
	}
	t.decoder = f.Decoder
	t.addTexts(f.AddedTokens)
	return t, t.addTokens(f.AddedTokens)
}

// Prefix returns the tokens that begin a text, such as <s>: none for many models.
func (t *Tokenizer) Prefix() []int32 { return t.prefix }

// Encode returns the tokens of a text, without the prefix. A text that is not UTF-8 is an
// error, but for tokenizers that take its bytes as they are; one in which an expression of the
// tokenizer backtracks for too long, seconds, is [ErrUnsupported].
func (t *Tokenizer) Encode(text string) (tokens []int32, err error) {
	if at := firstInvalid(text); at >= 0 && !t.bytes {
		return nil, fmt.Errorf("byte %d is %#02x, which is not UTF-8: %s takes UTF-8 only",
			at, text[at], textout.Name(t.path))
	}
	until := time.Now().Add(patience + time.Duration(len(text))*10*time.Microsecond)
	err = t.raw.cut(piece{text, true}, &tokens, func(p piece) error {
		normalized, err := apply([]piece{p}, t.normalize, until)
		if err != nil {
			return err
		}
		return t.added.cut(normalized[0], &tokens, func(p piece) error {
			words, err := apply([]piece{p}, t.split, until)
			if err != nil {
				return fmt.Errorf("%s: %w", textout.Name(t.path), err)
			}
			for _, word := range words {
				if tokens, err = t.model.encode(tokens, word.text); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return tokens, err
}

func apply(pieces []piece, steps []step, until time.Time) ([]piece, error) {
	for _, do := range steps {
		var next []piece
		for _, p := range pieces {
			made, err := do(p, until)
			if err != nil {
				return nil, err
			}
			next = append(next, made...)
		}
		pieces = next
	}
	return pieces, nil
}

// firstInvalid returns the place of the first byte that is not UTF-8, or -1.
func firstInvalid(text string) int {
	if utf8.ValidString(text) {
		return -1
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
