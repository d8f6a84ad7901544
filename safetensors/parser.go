package safetensors

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// parser reads the JSON of a header, which is UTF-8 without lone surrogates. It takes
// only what a header can have: package json would keep the last of several equal keys
// without a word, and needs ten times as long for a million tensors.
type parser struct {
	text   []byte
	pos    int
	keyEnd int // end of the last key

	span   []int64 // the last tensor's data_offsets
	dims   []int64 // the last tensor's shape
	shapes []int   // the last of the slices that shapes lie in
}

// object reads an object and calls member, which must read the value, after each key.
func (p *parser) object(member func(key string) error) error {
	if err := p.open('{', "an object"); err != nil {
		return err
	}
	for first := true; ; first = false {
		if done, err := p.next('}', first); done || err != nil {
			return err
		}
		if p.peek() != '"' {
			return p.unexpected("a key")
		}
		key, err := p.string()
		if err != nil {
			return err
		}
		p.keyEnd = p.pos
		if p.space(); p.peek() != ':' {
			return p.unexpected("a colon")
		}
		p.pos++
		if err := member(key); err != nil {
			return err
		}
	}
}

// twice is the error of a key that was there before.
func (p *parser) twice(key string) error {
	return fmt.Errorf("key %q appears twice, again before header byte %d", key, p.keyEnd)
}

// numbers appends an array of whole numbers from 0 to limit to list; what names it in
// errors.
func (p *parser) numbers(list []int64, what string, limit int64) ([]int64, error) {
	if err := p.open('[', what+" as an array"); err != nil {
		return list, err
	}
	for first := true; ; first = false {
		if done, err := p.next(']', first); done || err != nil {
			return list, err
		}
		begin := p.pos
		n, ok := p.whole()
		if !ok || n > uint64(limit) {
			p.pos = begin
			found, err := p.describe()
			if err != nil {
				return list, err
			}
			return list, fmt.Errorf("%s[%d] is %s: not a whole number from 0 to %d", what, len(list), found, limit)
		}
		list = append(list, int64(n))
	}
}

// whole reads a number that is all digits.
func (p *parser) whole() (n uint64, ok bool) {
	begin := p.pos
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		if n > (1<<64-10)/10 {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
		p.pos++
	}
	switch c := p.peek(); {
	case p.pos == begin, c == '.', c == 'e', c == 'E':
		return 0, false
	case p.text[begin] == '0' && p.pos > begin+1: // not JSON
		return 0, false
	}
	return n, true
}

// stringValue reads a string; what names it in errors.
func (p *parser) stringValue(what func() string) (string, error) {
	if rest := p.value(); len(rest) > 0 && rest[0] == '"' {
		return p.string()
	}
	found, err := p.describe()
	if err != nil {
		return "", err
	}
	return "", fmt.Errorf("%s is %s: not a string", what(), found)
}

// open reads the bracket that begins what.
func (p *parser) open(bracket byte, what string) error {
	if rest := p.value(); len(rest) > 0 && rest[0] == bracket {
		p.pos++
		return nil
	}
	found, err := p.describe()
	if err != nil {
		return err
	}
	return fmt.Errorf("expected %s, found %s before header byte %d", what, found, p.pos)
}

// next goes to the next item of an object or array, the first or a later one, or reads
// the bracket that ends it.
func (p *parser) next(bracket byte, first bool) (done bool, err error) {
	p.space()
	switch c := p.peek(); {
	case c == bracket && p.pos < len(p.text):
		p.pos++
		return true, nil
	case first:
		return false, nil
	case c != ',':
		return false, p.unexpected("a comma or " + string(bracket))
	}
	p.pos++
	p.space()
	if p.peek() == bracket {
		return false, p.unexpected("what a comma announces")
	}
	return false, nil
}

// value goes to the next value, and returns the text from there on.
func (p *parser) value() []byte {
	p.space()
	return p.text[p.pos:]
}

func (p *parser) space() {
	for {
		switch p.peek() {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.pos == len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

// string reads a string whose first quotation mark comes next.
func (p *parser) string() (string, error) {
	begin, escaped := p.pos, false
	for p.pos++; p.pos < len(p.text); p.pos++ {
		switch c := p.text[p.pos]; {
		case c == '"' && !escaped:
			p.pos++
			return known(p.text[begin+1 : p.pos-1]), nil
		case c == '"':
			p.pos++
			return p.unescape(p.text[begin:p.pos])
		case c == '\\':
			escaped = true
			p.pos++
		case c < ' ':
			return "", p.unexpected("an escape for it")
		}
	}
	p.pos = len(p.text)
	return "", p.unexpected("the end of a string")
}

// known returns text as a string, without allocating the keys that every tensor has.
func known(text []byte) string {
	switch string(text) {
	case "dtype":
		return "dtype"
	case "shape":
		return "shape"
	case "data_offsets":
		return "data_offsets"
	}
	return string(text)
}

// unescape returns what a string with escapes stands for.
func (p *parser) unescape(quoted []byte) (s string, err error) {
	if err = json.Unmarshal(quoted, &s); err != nil {
		err = fmt.Errorf("the header is not JSON before byte %d: %w", p.pos, err)
	}
	return s, err
}

// describe reads a value, or the bracket that it begins with, and returns it as an
// error names it.
func (p *parser) describe() (string, error) {
	p.space()
	switch c := p.peek(); c {
	case '{', '[':
		p.pos++
		return string(c), nil
	case '"':
		s, err := p.string()
		return strconv.Quote(s), err
	}
	begin := p.pos
	for p.pos < len(p.text) && isLiteral(p.text[p.pos]) {
		p.pos++
	}
	word := p.text[begin:p.pos]
	if !json.Valid(word) {
		if p.pos < len(p.text) || len(word) == 0 {
			p.pos = begin
		}
		return "", p.unexpected("a value")
	}
	return string(word), nil
}

// isLiteral reports whether numbers, true, false and null can have c.
func isLiteral(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '+' || c == '-' || c == '.'
}

// unexpected is the error of what comes next in place of what JSON wants.
func (p *parser) unexpected(want string) error {
	if p.pos >= len(p.text) {
		return fmt.Errorf("the header is not JSON at byte %d: %w in place of %s", p.pos, io.ErrUnexpectedEOF, want)
	}
	r, _ := utf8.DecodeRune(p.text[p.pos:])
	return fmt.Errorf("the header is not JSON at byte %d: %q in place of %s", p.pos, r, want)
}
