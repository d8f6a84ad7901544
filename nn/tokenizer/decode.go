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
// held back. It is for one goroutine.
type Stream struct {
	tokenizer *Tokenizer
	special   bool // special tokens have texts too
	chain     sink
	text      strings.Builder
}

// sink takes the texts of tokens one by one.
type sink struct {
	add func(text string)
	end func()
}

// decoder is how the texts of tokens become that of all: a stage makes a sink that gives to the
// next. One that is eager gives what can be said already; one that continues follows other tokens.
type decoder struct {
	stages []func(next sink, o streaming) sink
	fused  bool // what comes from the last stage is parts of one text
}

type streaming struct{ eager, continues bool }

// Stream returns what turns tokens into text: those that begin a text, or those that follow
// others. Together what it returns is what [Tokenizer.Decode] returns, but where tokens of
// bytes, such as <0xE4>, are no UTF-8: Decode replaces each of those that follow each other, a
// stream those that it has not given yet. The error, of a decoder that this package does not
// know, is [ErrUnsupported].
func (t *Tokenizer) Stream(begins bool) (*Stream, error) {
	return t.stream(false, streaming{eager: true, continues: !begins})
}

func (t *Tokenizer) stream(special bool, o streaming) (*Stream, error) {
	if t.decodeErr != nil {
		return nil, fmt.Errorf("%s: %w", textout.Name(t.path), t.decodeErr)
	}
	s := &Stream{tokenizer: t, special: special}
	s.chain = sink{func(text string) { s.text.WriteString(text) }, func() {}}
	for i := len(t.decoder.stages) - 1; i >= 0; i-- {
		s.chain = t.decoder.stages[i](s.chain, o)
	}
	return s, nil
}

// Decode returns the text of tokens that begin one, as Hugging Face's decode does. Special
// tokens, and those that the vocabulary lacks, have none. The error is [ErrUnsupported].
func (t *Tokenizer) Decode(tokens []int32) (string, error) { return t.decode(tokens, false) }

// DecodeSpecial is Decode with the texts of special tokens.
func (t *Tokenizer) DecodeSpecial(tokens []int32) (string, error) { return t.decode(tokens, true) }

func (t *Tokenizer) decode(tokens []int32, special bool) (string, error) {
	s, err := t.stream(special, streaming{})
	if err != nil {
		return "", err
	}
	for _, token := range tokens {
		s.add(token)
	}
	return s.End(), nil
}

// Add returns the text that a token completes. Special tokens, such as those that end a text,
// and tokens that the vocabulary lacks have none.
func (s *Stream) Add(token int32) string {
	s.add(token)
	return s.take()
}

func (s *Stream) add(token int32) {
	if text, ok := s.tokenizer.texts[token]; ok && (s.special || !s.tokenizer.special[text]) {
		s.chain.add(text)
	}
}

// End returns what was held back: a replacement character for the beginning of one.
func (s *Stream) End() string {
	s.chain.end()
	return s.take()
}

func (s *Stream) take() string {
	text := s.text.String()
	s.text.Reset()
	return text
}

// wholes returns how many bytes of b are of whole characters, or of what is none.
func wholes(b []byte) int {
	for n := max(0, len(b)-utf8.UTFMax+1); n < len(b); n++ {
		if utf8.RuneStart(b[n]) && !utf8.FullRune(b[n:]) {
			return n
		}
	}
	return len(b)
}

// valid returns a text with U+FFFD for each longest part that could begin a character and is
// none, as Unicode recommends.
func valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var text strings.Builder
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size <= 1 {
			for size = min(3, len(b)); size > 1 && utf8.FullRune(b[:size]); size-- {
			}
		}
		text.WriteRune(r)
		b = b[size:]
	}
	return text.String()
}

// byteLevel makes bytes of characters, and text of all bytes.
func byteLevel(next sink, o streaming) sink {
	var held []byte
	give := func(n int) {
		if n > 0 {
			next.add(valid(held[:n]))
			held = append(held[:0], held[n:]...)
		}
	}
	return sink{
		func(text string) {
			if raw, ok := unmapped(text); ok {
				held = append(held, raw...)
			} else {
				held = append(held, text...)
			}
			if o.eager {
				give(wholes(held))
			}
		},
		func() { give(len(held)); next.end() },
	}
}

// byteFallback makes text of tokens of bytes that follow each other, or U+FFFD of each.
func byteFallback(next sink, o streaming) sink {
	var held []byte
	give := func(n int) {
		switch {
		case n == 0:
			return
		case utf8.Valid(held[:n]):
			next.add(string(held[:n]))
		default:
			for range n {
				next.add("\ufffd")
			}
		}
		held = append(held[:0], held[n:]...)
	}
	return sink{
		func(text string) {
			if len(text) == 6 && text[:3] == "<0x" && text[5] == '>' {
				if b, err := strconv.ParseUint(text[3:5], 16, 8); err == nil {
					held = append(held, byte(b))
					if o.eager && utf8.Valid(held) {
						give(len(held))
					}
					return
				}
			}
			give(len(held))
			next.add(text)
		},
		func() { give(len(held)); next.end() },
	}
}

// unmapped returns the bytes that a text's characters stand for; ok is false if not all do.
func unmapped(text string) (raw []byte, ok bool) {
	for _, r := range text {
		c, ok := byteOf[r]
		if !ok {
			return nil, false
		}
		raw = append(raw, c)
	}
	return raw, true
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

// newDecoder reads a decoder. Without one texts are apart by spaces.
func newDecoder(data json.RawMessage) (d decoder, err error) {
	if err = walk("decoder", data, 0, d.add); err == nil && (len(data) == 0 || string(data) == "null") {
		d.each(func(first bool, text string) string {
			if first {
				return text
			}
			return " " + text
		})
	}
	return d, err
}

// each adds a stage that looks at tokens one by one.
func (d *decoder) each(f func(first bool, text string) string) {
	d.stages = append(d.stages, func(next sink, o streaming) sink {
		first := !o.continues
		return sink{func(text string) {
			next.add(f(first, text))
			first = false
		}, next.end}
	})
}

// add adds what a part of a decoder does.
func (d *decoder) add(p *part) error {
	const what = "decoder"
	if d.fused && p.Type != "Fuse" && p.Type != "Strip" {
		return sentinel.Errorf(ErrUnsupported, "%s is %.40q behind Fuse or ByteLevel, which is not supported", what, p.Type)
	}
	switch p.Type {
	case "ByteLevel":
		d.stages, d.fused = append(d.stages, byteLevel), true
	case "ByteFallback":
		d.stages = append(d.stages, byteFallback)
	case "Fuse":
		d.fused = true
	case "Replace":
		at, err := p.pattern(what)
		if err != nil {
			return err
		}
		d.each(func(_ bool, text string) string {
			replaced, err := new(matcher).replace(at, text, p.Content)
			if err != nil {
				return text
			}
			return replaced
		})
	case "Metaspace":
		scheme, err := p.scheme(what)
		if err != nil {
			return err
		}
		d.each(func(first bool, text string) string {
			if first && scheme != "never" {
				return strings.ReplaceAll(text, p.Replacement, "")
			}
			return strings.ReplaceAll(text, p.Replacement, " ")
		})
	case "Strip":
		switch {
		case utf8.RuneCountInString(p.Content) != 1 || p.Start < 0 || p.Stop < 0:
			return fmt.Errorf("%s Strip has content %.40q, start %d and stop %d: want a character and counts", what, p.Content, p.Start, p.Stop)
		case d.fused && p.Stop > 0:
			return sentinel.Errorf(ErrUnsupported, "%s Strip behind Fuse or ByteLevel takes characters from the end, which is not supported", what)
		case d.fused:
			d.stages = append(d.stages, p.stripText)
		default:
			d.each(func(_ bool, text string) string {
				for i := 0; i < p.Start && strings.HasPrefix(text, p.Content); i++ {
					text = text[len(p.Content):]
				}
				for i := 0; i < p.Stop && strings.HasSuffix(text, p.Content); i++ {
					text = text[:len(text)-len(p.Content)]
				}
				return text
			})
		}
	default:
		return unknown(what, p)
	}
	return nil
}

// stripText takes characters from the beginning of all.
func (p *part) stripText(next sink, o streaming) sink {
	left := p.Start
	if o.continues {
		left = 0
	}
	return sink{func(text string) {
		for ; left > 0 && strings.HasPrefix(text, p.Content); left-- {
			text = text[len(p.Content):]
		}
		if text != "" {
			left = 0
		}
		next.add(text)
	}, next.end}
}
