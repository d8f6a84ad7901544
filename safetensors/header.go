package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	prefixSize  = 8           // bytes of the header length
	maxHeader   = 100_000_000 // bytes of header text, as in the reference implementation
	metadataKey = "__metadata__"
)

// header is what the header text says, tensors in the order it names them.
type header struct {
	tensors  []Info
	metadata map[string]string // nil when the file has none
}

// readHeaderText returns the header text of a file of size bytes.
func readHeaderText(r io.ReaderAt, size int64) ([]byte, error) {
	if size < prefixSize {
		return nil, fmt.Errorf("a file of %d bytes has no room for the header length, which takes %d", size, prefixSize)
	}
	var prefix [prefixSize]byte
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, prefixSize), prefix[:]); err != nil {
		return nil, fmt.Errorf("reading the header length: %w", err)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > maxHeader {
		return nil, fmt.Errorf("header length %d is over the limit of %d", n, maxHeader)
	}
	if rest := size - prefixSize; int64(n) > rest {
		return nil, fmt.Errorf("header length %d runs past the end of the file: %d bytes are left", n, rest)
	}
	// ReadAll grows with what arrives, so a false size costs no memory.
	text, err := io.ReadAll(io.NewSectionReader(r, prefixSize, int64(n)))
	if err == nil && len(text) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("reading the header: %d of %d bytes: %w", len(text), n, err)
	}
	return text, nil
}

// parseHeader checks everything about the header that does not depend on the
// data: its syntax, and each tensor by itself.
func parseHeader(text []byte) (header, error) {
	var h header
	if !bytes.HasPrefix(text, []byte("{")) {
		return h, fmt.Errorf("the header is not a JSON object: it begins with %q", text[:min(8, len(text))])
	}
	// The JSON decoder would replace bad bytes, and so rename tensors.
	if !utf8.Valid(text) {
		return h, errors.New("the header is not UTF-8")
	}
	if i := loneSurrogate(text); i >= 0 {
		return h, fmt.Errorf("%s at header byte %d is half of a surrogate pair, and the other half is missing", text[i:i+6], i)
	}
	p := parser{json.NewDecoder(bytes.NewReader(text))}
	p.dec.UseNumber()
	if err := p.object(func(key string) error { return p.member(&h, key) }); err != nil {
		return h, err
	}
	end := p.dec.InputOffset()
	if rest := bytes.TrimLeft(text[end:], " "); len(rest) > 0 {
		return h, fmt.Errorf("the JSON object ends at header byte %d and something other than spaces follows: %q",
			end, rest[:min(8, len(rest))])
	}
	return h, nil
}

// loneSurrogate returns where in JSON text there is an escape such as \ud800 that
// is no character, or -1.
func loneSurrogate(text []byte) int {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		switch r := escaped(text[i:]); {
		case !utf16.IsSurrogate(r):
			i++ // what is escaped may be a backslash
		case utf16.DecodeRune(r, escaped(text[i+6:])) == utf8.RuneError:
			return i
		default:
			i += 11
		}
	}
	return -1
}

// escaped returns what the escape \uXXXX that text begins with stands for, or -1
// if text begins otherwise.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	r, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(r)
}

// parser reads the header token by token: decoding into maps or structs would
// silently keep the last of several equal keys.
type parser struct {
	dec *json.Decoder
}

// member reads the value of one key of the header into h.
func (p parser) member(h *header, key string) (err error) {
	if key == metadataKey {
		h.metadata, err = p.metadata()
		return err
	}
	info, err := p.tensor(key)
	h.tensors = append(h.tensors, info)
	return err
}

// metadata reads the value of the metadata key.
func (p parser) metadata() (map[string]string, error) {
	m := map[string]string{}
	err := p.object(func(key string) (err error) {
		m[key], err = p.string(strconv.Quote(key))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", metadataKey, err)
	}
	return m, nil
}

// tensor reads the value of the key name, which is a tensor.
func (p parser) tensor(name string) (Info, error) {
	info := Info{Name: name}
	var span []int64
	err := p.object(func(key string) (err error) {
		switch key {
		case "dtype":
			var s string
			s, err = p.string("dtype")
			info.DType = DType(s)
		case "shape":
			info.Shape, err = p.shape()
		case "data_offsets":
			span, err = p.numbers("data_offsets", math.MaxInt64)
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		return err
	})
	if err == nil {
		err = checkSpan(info, span)
	}
	if err != nil {
		return info, fmt.Errorf("tensor %q: %w", name, err)
	}
	info.Offset = span[0]
	return info, nil
}

// checkSpan checks that info and span are there and agree with each other.
func checkSpan(info Info, span []int64) error {
	switch {
	case info.DType == "":
		return errors.New("dtype is missing or empty")
	case info.Shape == nil:
		return errors.New("shape is missing")
	case span == nil:
		return errors.New("data_offsets is missing")
	}
	size, err := info.size()
	if err != nil {
		return err
	}
	switch {
	case len(span) != 2:
		return fmt.Errorf("data_offsets has %d numbers instead of 2", len(span))
	case span[0] > span[1]:
		return fmt.Errorf("data_offsets %v run backwards", span)
	case span[1]-span[0] != size:
		return fmt.Errorf("%s %v takes %d bytes but data_offsets %v span %d",
			info.DType, info.Shape, size, span, span[1]-span[0])
	}
	return nil
}

// object reads an object and calls member, which must read the value, after each
// key. A key that appears twice is an error.
func (p parser) object(member func(key string) error) error {
	if err := p.expect('{', "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		key, err := p.string("key")
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("key %q appears twice, again before header byte %d", key, p.dec.InputOffset())
		}
		seen[key] = true
		if err := member(key); err != nil {
			return err
		}
	}
	_, err := p.next()
	return err
}

// shape reads an array of dimensions.
func (p parser) shape() ([]int, error) {
	dims, err := p.numbers("shape", math.MaxInt)
	if err != nil {
		return nil, err
	}
	shape := make([]int, len(dims))
	for i, d := range dims {
		shape[i] = int(d)
	}
	return shape, nil
}

// numbers reads an array of whole numbers from 0 to limit; what names it in
// errors. The result is not nil unless there is an error.
func (p parser) numbers(what string, limit int64) ([]int64, error) {
	if err := p.expect('[', what+" as an array"); err != nil {
		return nil, err
	}
	list := []int64{}
	for p.dec.More() {
		tok, err := p.next()
		if err != nil {
			return nil, err
		}
		text, _ := tok.(json.Number)
		n, err := strconv.ParseUint(string(text), 10, 64)
		if err != nil || n > uint64(limit) {
			return nil, fmt.Errorf("%s[%d] is %s: not a whole number from 0 to %d", what, len(list), describe(tok), limit)
		}
		list = append(list, int64(n))
	}
	_, err := p.next()
	return list, err
}

// string reads a string; what names it in errors.
func (p parser) string(what string) (string, error) {
	tok, err := p.next()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", fmt.Errorf("%s is %s: not a string", what, describe(tok))
	}
	return s, nil
}

// expect reads the token that opens what.
func (p parser) expect(open json.Delim, what string) error {
	tok, err := p.next()
	if err == nil && tok != open {
		err = fmt.Errorf("expected %s, found %s before header byte %d", what, describe(tok), p.dec.InputOffset())
	}
	return err
}

// next returns the next token of the header.
func (p parser) next() (json.Token, error) {
	tok, err := p.dec.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("the header is not JSON at byte %d: %w", p.dec.InputOffset(), err)
	}
	return tok, nil
}

// describe returns a token as it would stand in the header.
func describe(tok json.Token) string {
	switch tok := tok.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(tok)
	}
	return fmt.Sprint(tok)
}
