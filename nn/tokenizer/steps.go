package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"golang.org/x/text/unicode/norm"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// part is a normalizer, a pre-tokenizer or a post-processor.
type part struct {
	Type string `json:"type"`

	Normalizers   []json.RawMessage `json:"normalizers"`
	PreTokenizers []json.RawMessage `json:"pretokenizers"`
	Processors    []json.RawMessage `json:"processors"`
	Decoders      []json.RawMessage `json:"decoders"`

	Prepend string   `json:"prepend"`
	Pattern *pattern `json:"pattern"`
	Content string   `json:"content"`

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
}

type pattern struct {
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

// ErrUnsupported is of what a tokenizer.json asks for and this package does not do, and of
// texts in which an expression backtracks for too long.
var ErrUnsupported = errors.New("tokenizer: not supported")

func unknown(what string, p *part) error {
	return sentinel.Errorf(ErrUnsupported, "%s is %.40q, which is not supported", what, p.Type)
}

// orTrue returns a flag that is true where it is absent.
func orTrue(b *bool) bool { return b == nil || *b }

// normalizers returns the steps of a normalizer, each of which makes one piece of one.
func normalizers(data json.RawMessage) (steps []step, err error) {
	const what = "normalizer"
	p, err := read(what, data)
	if p == nil || err != nil {
		return nil, err
	}
	one := func(f func(string) string) []step {
		return []step{func(p piece, _ time.Time) ([]piece, error) { return []piece{{f(p.text), p.first}}, nil }}
	}
	switch p.Type {
	case "Sequence":
		for _, n := range p.Normalizers {
			inner, err := normalizers(n)
			if err != nil {
				return nil, err
			}
			steps = append(steps, inner...)
		}
		return steps, nil
	case "Prepend":
		return one(func(s string) string {
			if s == "" {
				return s
			}
			return p.Prepend + s
		}), nil
	case "Replace":
		if p.Pattern == nil || p.Pattern.String == nil || *p.Pattern.String == "" {
			return nil, sentinel.Errorf(ErrUnsupported, "%s Replace has a regular expression, which is not supported", what)
		}
		old := *p.Pattern.String
		return one(func(s string) string { return strings.ReplaceAll(s, old, p.Content) }), nil
	case "NFC":
		return one(norm.NFC.String), nil
	case "NFD":
		return one(norm.NFD.String), nil
	case "NFKC":
		return one(norm.NFKC.String), nil
	case "NFKD":
		return one(norm.NFKD.String), nil
	}
	return nil, unknown(what, p)
}

// gpt2 is the pattern of ByteLevel.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// preTokenizers returns the steps of a pre-tokenizer, and whether one of them looks at
// characters, so that a text must be UTF-8.
func preTokenizers(data json.RawMessage) (steps []step, characters bool, err error) {
	const what = "pre_tokenizer"
	p, err := read(what, data)
	if p == nil || err != nil {
		return nil, p == nil, err // the model looks at characters then
	}
	switch p.Type {
	case "Sequence":
		for _, inner := range p.PreTokenizers {
			more, looks, err := preTokenizers(inner)
			if err != nil {
				return nil, false, err
			}
			steps, characters = append(steps, more...), characters || looks
		}
		return steps, characters, nil
	case "Split":
		s, err := splitAt(p)
		return []step{s}, true, err
	case "Digits":
		return []step{digits(p.Individual)}, true, nil
	case "Metaspace":
		return []step{metaspace(p)}, true, nil
	case "ByteLevel":
		if orTrue(p.AddPrefixSpace) {
			steps = append(steps, prefixSpace)
		}
		if orTrue(p.UseRegex) {
			steps = append(steps, isolate(regexp2.MustCompile(gpt2)))
		}
		return append(steps, byteRunes), orTrue(p.UseRegex), nil
	}
	return nil, false, unknown(what, p)
}

// splitAt isolates what matches a pattern.
func splitAt(p *part) (step, error) {
	if p.Behavior != "Isolated" || p.Invert || p.Pattern == nil {
		return nil, sentinel.Errorf(ErrUnsupported, "pre_tokenizer Split has behavior %.40q and invert %v: "+
			"only Isolated is supported", p.Behavior, p.Invert)
	}
	var expression string
	switch {
	case p.Pattern.Regex != nil:
		expression = *p.Pattern.Regex
	case p.Pattern.String != nil:
		expression = regexp2.Escape(*p.Pattern.String)
	}
	re, err := regexp2.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("pre_tokenizer Split: %w", err)
	}
	return isolate(re), nil
}

// patience is how long an expression may look for one match, and how long a text may take
// besides 10 µs for each byte, tens of times what the expressions of models take: one that
// backtracks could take years.
var patience = 5 * time.Second

// isolate makes pieces of what matches and of what lies between.
func isolate(re *regexp2.Regexp) step {
	re.MatchTimeout = patience
	return func(p piece, until time.Time) (pieces []piece, err error) {
		at, late := 0, false
		add := func(end int) {
			if end > at {
				pieces = append(pieces, piece{p.text[at:end], p.first && at == 0})
				at = end
			}
		}
		text := []rune(p.text)
		runes, end := 0, 0 // what was counted: so many runes have so many bytes
		upTo := func(n int) int {
			for ; runes < n; runes++ {
				end += utf8.RuneLen(text[runes])
			}
			return end
		}
		err = re.FindRunesMatches(text, 0, func(m regexp2.MatchView) bool {
			begin, n, _ := m.GroupRange(0)
			add(upTo(begin))
			add(upTo(begin + n))
			late = time.Now().After(until)
			return !late
		})
		if err != nil || late {
			return nil, sentinel.Errorf(ErrUnsupported, "pre_tokenizer: the expression %.200q takes too long or too much memory in %.40q, where it backtracks",
				re.String(), p.text[at:])
		}
		add(len(p.text))
		return pieces, nil
	}
}

// digits isolates digits, each on its own or those that follow each other.
func digits(individual bool) step {
	return func(p piece, _ time.Time) (pieces []piece, _ error) {
		begin, before := 0, false
		for i, r := range p.text {
			digit := unicode.IsNumber(r)
			if i > begin && (digit != before || digit && individual) {
				pieces = append(pieces, piece{p.text[begin:i], p.first && begin == 0})
				begin = i
			}
			before = digit
		}
		return append(pieces, piece{p.text[begin:], p.first && begin == 0}), nil
	}
}

// metaspace makes spaces visible, and words of what they begin.
func metaspace(of *part) step {
	scheme := of.Scheme
	if scheme == "" {
		scheme = "always"
		if !orTrue(of.AddPrefixSpace) {
			scheme = "never"
		}
	}
	return func(p piece, _ time.Time) (pieces []piece, _ error) {
		text := strings.ReplaceAll(p.text, " ", of.Replacement)
		prepends := scheme == "always" || scheme == "first" && p.first
		if prepends && !strings.HasPrefix(text, of.Replacement) {
			text = of.Replacement + text
		}
		if !orTrue(of.Split) {
			return []piece{{text, p.first}}, nil
		}
		for text != "" {
			end := len(text)
			if next := strings.Index(text[1:], of.Replacement); next >= 0 {
				end = next + 1
			}
			pieces = append(pieces, piece{text[:end], p.first && len(pieces) == 0})
			text = text[end:]
		}
		return pieces, nil
	}
}

func prefixSpace(p piece, _ time.Time) ([]piece, error) {
	if !strings.HasPrefix(p.text, " ") {
		p.text = " " + p.text
	}
	return []piece{p}, nil
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

func byteRunes(p piece, _ time.Time) ([]piece, error) {
	var b strings.Builder
	for i := range len(p.text) {
		b.WriteString(runeOf[p.text[i]])
	}
	return []piece{{b.String(), p.first}}, nil
}

// prefix returns the tokens that a post-processor puts before a text.
func prefix(data json.RawMessage) (tokens []int32, err error) {
	const what = "post_processor"
	p, err := read(what, data)
	if p == nil || err != nil {
		return nil, err
	}
	switch p.Type {
	case "ByteLevel":
		return nil, nil
	case "Sequence":
		for _, inner := range p.Processors {
			more, err := prefix(inner)
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, more...)
		}
		return tokens, nil
	case "TemplateProcessing":
		for _, s := range p.Single {
			if s.SpecialToken == nil {
				break
			}
			tokens = append(tokens, p.Special[s.SpecialToken.ID].IDs...)
		}
		return tokens, nil
	}
	return nil, unknown(what, p)
}
