// Package tokenizer turns text into the tokens of a model and back, as the tokenizer.json
// beside it says: byte pair encoding over bytes, as in GPT-2, Llama 3, Qwen, DeepSeek and
// gpt-oss, or over characters that fall back to bytes, as in Llama 2, Mistral and Gemma. Tokens
// and texts are those of Hugging Face's tokenizers. What a tokenizer.json asks for beyond that
// is an error that names it: wrong tokens would be worse. Its truncation and padding are left
// out, as transformers leaves them out unless it is told otherwise.
//
// Supported are the normalizers NFC, NFD, NFKC, NFKD, Replace, Prepend, Strip and ByteLevel; the
// pre-tokenizers Split, ByteLevel, Metaspace, Digits, Punctuation, Whitespace and
// WhitespaceSplit; the post-processors TemplateProcessing, ByteLevel, BertProcessing and
// RobertaProcessing; the decoders ByteLevel, ByteFallback, Metaspace, Replace, Strip and Fuse;
// sequences of them; and all options of added tokens. Regular expressions are those of Oniguruma
// without lookbehind, references and word boundaries.
//
// Sources: Hugging Face's tokenizers 0.23 (models/bpe, pre_tokenizers, normalizers,
// added_vocabulary, decoders) for what the fields of tokenizer.json mean; unicode.txt says which
// versions of Unicode they have.
package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// Tokenizer turns text into tokens and tokens into text. It is safe for concurrent use.
type Tokenizer struct {
	path      string
	raw       vocabulary // added tokens that are looked for in the text
	added     vocabulary // those that are looked for in what normalizers made of it
	normalize []normalizer
	split     []step
	model     *bpe
	prefix    []int32
	suffix    []int32
	anyBytes  bool // text need not be UTF-8

	decoder   decoder
	decodeErr error
	texts     map[int32]string
	special   map[string]bool // texts
}

// mostBytes is more than any tokenizer.json has.
const mostBytes = 1 << 28

// file is what of a tokenizer.json counts.
type file struct {
	Version       string          `json:"version"`
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
	if f.Version != "" && f.Version != "1.0" {
		return nil, sentinel.Errorf(ErrUnsupported, "version is %.40q, which is not supported", f.Version)
	}
	model, err := newBPE(f.Model)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{model: model, texts: make(map[int32]string, len(model.vocab)), special: map[string]bool{}}
	for text, id := range model.vocab {
		if other, ok := t.texts[id]; ok {
			return nil, fmt.Errorf("model: %.40q and %.40q both are token %d", min(text, other), max(text, other), id)
		}
		if id < 0 {
			return nil, fmt.Errorf("model: %.40q is token %d", text, id)
		}
		t.texts[id] = text
	}
	for _, of := range []struct {
		what string
		data json.RawMessage
		add  func(*part) error
	}{
		{"normalizer", f.Normalizer, t.normalizers},
		{"pre_tokenizer", f.PreTokenizer, t.preTokenizers},
		{"post_processor", f.PostProcessor, t.postProcessors},
	} {
		if err := walk(of.what, of.data, 0, of.add); err != nil {
			return nil, err
		}
	}
	model.complete()
	t.decoder, t.decodeErr = newDecoder(f.Decoder) // who only encodes needs none
	return t, t.addTokens(f.AddedTokens)
}

// Prefix returns the tokens that begin a text, such as <s>: none for many models.
func (t *Tokenizer) Prefix() []int32 { return t.prefix }

// EncodeSpecial is Encode with the tokens that begin and end a text.
func (t *Tokenizer) EncodeSpecial(text string) ([]int32, error) {
	tokens, err := t.Encode(text)
	if err != nil {
		return nil, err
	}
	return slices.Concat(t.prefix, tokens, t.suffix), nil
}

// Encode returns the tokens of a text, without those that begin and end it: Hugging Face's
// encode with add_special_tokens=False. Special tokens that the text spells are found. Characters
// that the vocabulary lacks are its unk_token, or left out if it has none. A text that is not
// UTF-8 is an error, but for tokenizers that take its bytes as they are; one in which an
// expression of the tokenizer backtracks for too long, seconds, is [ErrUnsupported].
func (t *Tokenizer) Encode(text string) ([]int32, error) {
	if at := firstInvalid(text); at >= 0 && !t.anyBytes {
		return nil, fmt.Errorf("byte %d is %#02x, which is not UTF-8: %s takes UTF-8 only",
			at, text[at], textout.Name(t.path))
	}
	var m matcher
	j := joiner{model: t.model}
	do := func(p piece) error { return j.encode(p.text) }
	for i := len(t.split) - 1; i >= 0; i-- {
		step, next := t.split[i], do
		do = func(p piece) error { return step(&m, p, next) }
	}
	emit := func(id int32) { j.tokens = append(j.tokens, id) }
	err := t.raw.cut(piece{text, true}, emit, func(p piece) (err error) {
		if p.text, err = t.normalized(&m, p.text); err != nil {
			return err
		}
		return t.added.cut(p, emit, do)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", textout.Name(t.path), err)
	}
	return j.tokens, nil
}

// normalized returns what the normalizers make of a text.
func (t *Tokenizer) normalized(m *matcher, text string) (_ string, err error) {
	for _, f := range t.normalize {
		if text, err = f(m, text); err != nil {
			break
		}
	}
	return text, err
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
