package tokenizer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// Stream turns tokens into text as they come. What does not end a character of UTF-8 as yet is
// held back.
type Stream struct {
	tokenizer *Tokenizer
	decode    *decoder
	begun     bool   // there was a token before
	held      []byte // the beginning of a character
}

// decoder says how the texts of tokens become that of all.
type decoder struct {
	bytes    bool                  // characters stand for bytes, as in GPT-2
	fallback bool                  // "<0x0A>" is a byte
	replace  []func(string) string // of the text of a token
	space    string                // a token that begins the text loses it in front; "": nothing
}

// Stream returns what turns tokens into text: those that begin a text, or those that follow
// others. The error, of a decoder that this package does not know, is [ErrUnsupported]. A
// Stream is for one goroutine.
func (t *Tokenizer) Stream(begins bool) (*Stream, error) {
	d, err := newDecoder(t.decoder)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", textout.Name(t.path), err)
	}
	return &Stream{tokenizer: t, decode: d, begun: !begins}, nil
}

// Decode returns the text of tokens that begin one. Special tokens, and those that the
// vocabulary lacks, have none. The error is [ErrUnsupported].
func (t *Tokenizer) Decode(tokens []int32) (string, error) {
	s, err := t.Stream(true)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, token := range tokens {
		text.WriteString(s.Add(token))
	}
	return text.String() + s.End(), nil
}

// Add returns the text that a token completes. Special tokens, such as those that end a text,
// and tokens that the vocabulary lacks have none.
func (s *Stream) Add(token int32) string {
	t := s.tokenizer
	text, ok := t.texts[token]
	if !ok || t.special[token] {
		return ""
	}
	s.held = append(s.held, s.decode.of(text, !s.begun)...)
	s.begun = true
	return s.complete(false)
}

// End returns what was held back: a replacement character for the beginning of one.
func (s *Stream) End() string { return s.complete(true) }

// complete returns what is held of whole characters, or all of it. What is not UTF-8 becomes
// U+FFFD, one for each longest part that could begin a character, as Unicode recommends.
func (s *Stream) complete(all bool) string {
	var text strings.Builder
	for len(s.held) > 0 {
		if !all && !utf8.FullRune(s.held) {
			break
		}
		r, size := utf8.DecodeRune(s.held)
		if r == utf8.RuneError && size <= 1 {
			for size = min(3, len(s.held)); size > 1 && utf8.FullRune(s.held[:size]); size-- {
			}
		}
		text.WriteRune(r)
		s.held = s.held[size:]
	}
	return text.String()
}

// of returns the bytes of a token's text.
func (d *decoder) of(text string, first bool) string {
	if d.bytes {
		return unmapped(text)
	}
	if d.fallback && len(text) == 6 && strings.HasPrefix(text, "<0x") && text[5] == '>' {
		if b, err := strconv.ParseUint(text[3:5], 16, 8); err == nil {
			return string([]byte{byte(b)})
		}
	}
	for _, f := range d.replace {
		text = f(text)
	}
	if first {
		text = strings.TrimPrefix(text, d.space)
	}
	return text
}

// byteOf are the bytes that characters stand for.
var byteOf = func() map[rune]byte {
	m := make(map[rune]byte, len(runeOf))
	for b, text := range runeOf {
		r, _ := utf8.DecodeRuneInString(text)
		m[r] = byte(b)
	}
	return m
}()

// unmapped returns the bytes that a text's characters stand for, or the text if not all do.
func unmapped(text string) string {
	var b strings.Builder
	for _, r := range text {
		c, ok := byteOf[r]
		if !ok {
			return text
		}
		b.WriteByte(c)
	}
	return b.String()
}

// newDecoder reads a decoder.
func newDecoder(data json.RawMessage) (*decoder, error) {
	const what = "decoder"
	p, err := read(what, data)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, sentinel.Errorf(ErrUnsupported, "there is no %s, which says how tokens become text", what)
	}
	d := new(decoder)
	return d, d.add(p)
}

// add adds what a part of a decoder does.
func (d *decoder) add(p *part) error {
	switch p.Type {
	case "Sequence":
		for _, data := range p.Decoders {
			inner, err := read("decoder", data)
			if err != nil {
				return err
			}
			if inner == nil {
				continue
			}
			if err := d.add(inner); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel":
		d.bytes = true
		return nil
	case "ByteFallback":
		d.fallback = true
		return nil
	case "Fuse":
		return nil
	case "Replace":
		if p.Pattern == nil || p.Pattern.String == nil || *p.Pattern.String == "" {
			return sentinel.Errorf(ErrUnsupported, "decoder Replace has a regular expression, which is not supported")
		}
		old, content := *p.Pattern.String, p.Content
		d.replace = append(d.replace, func(s string) string { return strings.ReplaceAll(s, old, content) })
		return nil
	case "Metaspace":
		d.replace = append(d.replace, func(s string) string { return strings.ReplaceAll(s, p.Replacement, " ") })
		if p.Scheme != "never" && (p.Scheme != "" || orTrue(p.AddPrefixSpace)) {
			d.space = " "
		}
		return nil
	case "Strip":
		if p.Start > 1 || p.Stop != 0 {
			return sentinel.Errorf(ErrUnsupported, "decoder Strip takes %d characters in front and %d behind: "+
				"only one in front is supported", p.Start, p.Stop)
		}
		if p.Start == 1 {
			d.space = p.Content
		}
		return nil
	}
	return sentinel.Errorf(ErrUnsupported, "decoder is %.40q, which is not supported", p.Type)
}
