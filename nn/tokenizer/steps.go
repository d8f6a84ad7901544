package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// part is a normalizer, a pre-tokenizer, a post-processor or a decoder.
type part struct {
	Type string `json:"type"`

	Normalizers   []json.RawMessage `json:"normalizers"`
	PreTokenizers []json.RawMessage `json:"pretokenizers"`
	Processors    []json.RawMessage `json:"processors"`
	Decoders      []json.RawMessage `json:"decoders"`

	Prepend string       `json:"prepend"`
	Pattern *patternText `json:"pattern"`
	Content string       `json:"content"`
	Left    bool         `json:"strip_left"`
	Right   bool         `json:"strip_right"`

	Behavior string `json:"behavior"`
	Invert   bool   `json:"invert"`

	AddPrefixSpace *bool  `json:"add_prefix_space"`
	UseRegex       *bool  `json:"use_regex"`
	Individual     bool   `json:"individual_digits"`
	Replacement    string `json:"replacement"`
	Scheme         string `json:"prepend_scheme"`
	Split          *bool  `json:"split"`

	Start int `json:"start"`
	Stop  int `json:"stop"`

	Single  []templatePiece         `json:"single"`
	Special map[string]specialToken `json:"special_tokens"`
	CLS     *namedToken             `json:"cls"`
	Sep     *namedToken             `json:"sep"`
}

type patternText struct {
	String *string
	Regex  *string
}

type templatePiece struct {
	SpecialToken *struct{ ID string }
	Sequence     *struct{ ID string }
}

type specialToken struct {
	IDs []int32 `json:"ids"`
}

// namedToken is a text and an ID.
type namedToken struct{ id int32 }

// UnmarshalJSON implements [json.Unmarshaler].
func (n *namedToken) UnmarshalJSON(data []byte) error {
	var text string
	return json.Unmarshal(data, &[]any{&text, &n.id})
}

// read reads a part; nil is none.
func read(what string, data json.RawMessage) (*part, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	p := new(part)
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return p, nil
}

// mostSequences are more in each other than any file has.
const mostSequences = 8

// walk calls add for a part, or for those of a Sequence.
func walk(what string, data json.RawMessage, depth int, add func(*part) error) error {
	p, err := read(what, data)
	if p == nil || err != nil {
		return err
	}
	if p.Type != "Sequence" {
		return add(p)
	}
	if depth == mostSequences {
		return sentinel.Errorf(ErrUnsupported, "%s has more than %d sequences in each other, which is not supported", what, depth)
	}
	for _, inner := range slices.Concat(p.Normalizers, p.PreTokenizers, p.Processors, p.Decoders) {
		if err := walk(what, inner, depth+1, add); err != nil {
			return err
		}
	}
	return nil
}

// ErrUnsupported is of what a tokenizer.json asks for and this package does not do, and of
// texts in which an expression backtracks too often.
var ErrUnsupported = errors.New("tokenizer: not supported")

func unknown(what string, p *part) error {
	return sentinel.Errorf(ErrUnsupported, "%s is %.40q, which is not supported", what, p.Type)
}

// orTrue returns a flag that is true where it is absent.
func orTrue(b *bool) bool { return b == nil || *b }

// normalizer makes a text of a text.
type normalizer func(m *matcher, text string) (string, error)

// normalizers appends what a normalizer does.
func (t *Tokenizer) normalizers(p *part) error {
	const what = "normalizer"
	plain := func(f func(string) string) {
		t.normalize = append(t.normalize, func(_ *matcher, text string) (string, error) { return f(text), nil })
	}
	switch p.Type {
	case "Prepend":
		plain(func(s string) string {
			if s == "" {
				return s
			}
			return p.Prepend + s
		})
	case "Replace":
		at, err := p.pattern(what)
		t.normalize = append(t.normalize, func(m *matcher, text string) (string, error) {
			return m.replace(at, text, p.Content)
		})
		return err
	case "NFC", "NFD", "NFKC", "NFKD":
		plain(func(s string) string { return normalForm(s, p.Type[len(p.Type)-1] == 'C', p.Type[2] == 'K') })
	case "Strip":
		plain(func(s string) string {
			if p.Left {
				s = strings.TrimLeftFunc(s, isSpace)
			}
			if p.Right {
				s = strings.TrimRightFunc(s, isSpace)
			}
			return s
		})
	case "ByteLevel":
		plain(byteRunes)
	default:
		return unknown(what, p)
	}
	return nil
}

// gpt2 is the pattern of ByteLevel.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// What words and punctuation are where the original does not use Oniguruma.
const (
	rustWord        = `[\p{Word}\x{200C}\x{200D}]`
	rustPunctuation = "[\\p{P}$+<=>^`|~\\x{166D}\\x{111C9}&&[^\\p{New_Punctuation}]]"
)

// preTokenizers appends what a pre-tokenizer does.
func (t *Tokenizer) preTokenizers(p *part) error {
	const what = "pre_tokenizer"
	if t.model.bytes { // a step comes behind ByteLevel, which sees characters of bytes
		t.model.bytes, t.anyBytes = false, false
		t.split = append(t.split, func(_ *matcher, p piece, emit func(piece) error) error {
			return emit(piece{byteRunes(p.text), p.first})
		})
	}
	split := func(expression, do string, invert bool) error {
		at, err := compile(expression)
		t.split = append(t.split, (&splitter{at, behaviors[do], invert}).step)
		return err
	}
	switch p.Type {
	case "Split":
		do, ok := behaviors[p.Behavior]
		if !ok {
			return sentinel.Errorf(ErrUnsupported, "%s Split has behavior %.40q, which is not supported", what, p.Behavior)
		}
		at, err := p.pattern(what)
		t.split = append(t.split, (&splitter{at, do, p.Invert}).step)
		return err
	case "Digits":
		if p.Individual {
			return split(`\p{N}`, "Isolated", false)
		}
		return split(`\p{N}`, "Contiguous", false)
	case "Punctuation":
		if p.Behavior == "" {
			p.Behavior = "Isolated"
		}
		if _, ok := behaviors[p.Behavior]; !ok {
			return sentinel.Errorf(ErrUnsupported, "%s Punctuation has behavior %.40q, which is not supported", what, p.Behavior)
		}
		return split(rustPunctuation, p.Behavior, false)
	case "Whitespace":
		return split(rustWord+`+|[^\s`+rustWord+`]+`, "Removed", true)
	case "WhitespaceSplit":
		return split(`\s`, "Removed", false)
	case "Metaspace":
		return t.metaspace(p)
	case "ByteLevel":
		t.anyBytes = len(t.normalize) == 0 && len(t.split) == 0 && !orTrue(p.UseRegex)
		if orTrue(p.AddPrefixSpace) {
			t.split = append(t.split, prefixSpace)
		}
		t.model.bytes = true
		if orTrue(p.UseRegex) {
			return split(gpt2, "Isolated", false)
		}
	default:
		return unknown(what, p)
	}
	return nil
}

// metaspace makes spaces visible, and words of what they begin.
func (t *Tokenizer) metaspace(p *part) error {
	scheme, err := p.scheme("pre_tokenizer")
	if err != nil {
		return err
	}
	words := &splitter{at: literal(p.Replacement), do: withNext}
	t.split = append(t.split, func(m *matcher, of piece, emit func(piece) error) error {
		of.text = strings.ReplaceAll(of.text, " ", p.Replacement)
		if scheme == "always" || scheme == "first" && of.first {
			if !strings.HasPrefix(of.text, p.Replacement) {
				of.text = p.Replacement + of.text
			}
		}
		if !orTrue(p.Split) {
			return emit(of)
		}
		return words.step(m, of, emit)
	})
	return nil
}

// scheme returns when a Metaspace puts its replacement in front: always, first or never.
func (p *part) scheme(what string) (scheme string, err error) {
	scheme = p.Scheme
	if scheme == "" {
		scheme = "always"
		if !orTrue(p.AddPrefixSpace) {
			scheme = "never"
		}
	}
	switch {
	case !slices.Contains([]string{"always", "first", "never"}, scheme):
		err = sentinel.Errorf(ErrUnsupported, "%s Metaspace has prepend_scheme %.40q, which is not supported", what, scheme)
	case utf8.RuneCountInString(p.Replacement) != 1:
		err = sentinel.Errorf(ErrUnsupported, "%s Metaspace has replacement %.40q, which is not one character", what, p.Replacement)
	}
	return scheme, err
}

func prefixSpace(_ *matcher, p piece, emit func(piece) error) error {
	if !strings.HasPrefix(p.text, " ") {
		p.text = " " + p.text
	}
	return emit(p)
}

// runeOf are the characters that stand for bytes in byte-level vocabularies: those of Latin-1
// that can be seen stand for themselves, and the others are the next from U+0100 on.
var runeOf = func() (runes [256]string) {
	next := rune(256)
	for b := range runes {
		r := rune(b)
		if seen := '!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r && r <= 'ÿ'; !seen {
			r, next = next, next+1
		}
		runes[b] = string(r)
	}
	return runes
}()

func byteRunes(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteString(runeOf[text[i]])
	}
	return b.String()
}

// postProcessors reads the tokens that a post-processor puts around a text.
func (t *Tokenizer) postProcessors(p *part) error {
	const what = "post_processor"
	if p.Type == "ByteLevel" {
		return nil
	}
	if t.prefix != nil || t.suffix != nil {
		return sentinel.Errorf(ErrUnsupported, "%s has more than one part that adds tokens, which is not supported", what)
	}
	switch p.Type {
	case "TemplateProcessing":
		sequences := 0
		for _, s := range p.Single {
			switch {
			case s.Sequence != nil && s.Sequence.ID == "A":
				sequences++
			case s.SpecialToken == nil:
				return sentinel.Errorf(ErrUnsupported, "%s TemplateProcessing has something else in single than special tokens and $A", what)
			default:
				of, ok := p.Special[s.SpecialToken.ID]
				if !ok {
					return fmt.Errorf("%s TemplateProcessing: special_tokens lacks %.40q", what, s.SpecialToken.ID)
				}
				if sequences == 0 {
					t.prefix = append(t.prefix, of.IDs...)
				} else {
					t.suffix = append(t.suffix, of.IDs...)
				}
			}
		}
		if sequences != 1 {
			return sentinel.Errorf(ErrUnsupported, "%s TemplateProcessing has the text %d times in single, not once", what, sequences)
		}
	case "BertProcessing", "RobertaProcessing":
		if p.CLS == nil || p.Sep == nil {
			return fmt.Errorf("%s %s: there is no cls or sep", what, p.Type)
		}
		t.prefix, t.suffix = []int32{p.CLS.id}, []int32{p.Sep.id}
	default:
		return unknown(what, p)
	}
	return nil
}
