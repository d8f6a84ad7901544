package safetensors

import (
	"bytes"
	"encoding/binary"
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
	index    map[string]int    // of the tensors by name
	metadata map[string]string // nil when the file has none
}

// readHeaderText returns the header text of a file of size bytes.
func readHeaderText(r io.ReaderAt, size int64) ([]byte, error) {
	if size < prefixSize {
		return nil, malformed(fmt.Errorf("a file of %d bytes has no room for the header length, which takes %d", size, prefixSize))
	}
	var prefix [prefixSize]byte
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, prefixSize), prefix[:]); err != nil {
		return nil, fmt.Errorf("reading the header length: %w", err)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > maxHeader {
		return nil, malformed(fmt.Errorf("header length %d is over the limit of %d: it is no safetensors file", n, maxHeader))
	}
	if rest := size - prefixSize; int64(n) > rest {
		return nil, malformed(fmt.Errorf("header length %d runs past the end of the file: %d bytes are left", n, rest))
	}
	// The last byte first: no memory is to be allocated for what a false size claims.
	section := io.NewSectionReader(r, prefixSize, int64(n))
	text := make([]byte, 0)
	if n > 0 {
		var last [1]byte
		if k, err := section.ReadAt(last[:], int64(n)-1); k < 1 {
			return nil, fmt.Errorf("reading the header of %d bytes: %w", n, unexpected(err))
		}
		text = make([]byte, n)
	}
	if k, err := io.ReadFull(section, text); err != nil {
		return nil, fmt.Errorf("reading the header: %d of %d bytes: %w", k, n, unexpected(err))
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
	p := parser{text: text}
	h.index = map[string]int{}
	if err := p.object(func(key string) error { return p.member(&h, key) }); err != nil {
		return h, err
	}
	end := p.pos
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
		next := bytes.IndexByte(text[i:], '\\')
		if next < 0 {
			break
		}
		i += next
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

// escaped returns what \u and four hexadecimal digits, with which text begins, stand
// for, or -1 if text begins otherwise.
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

// member reads the value of one key of the header into h.
func (p *parser) member(h *header, key string) (err error) {
	if key == metadataKey {
		if h.metadata != nil {
			return p.twice(key)
		}
		h.metadata, err = p.metadata()
		return err
	}
	if _, ok := h.index[key]; ok {
		return p.twice(key)
	}
	h.index[key] = len(h.tensors)
	info, err := p.tensor(key)
	h.tensors = append(h.tensors, info)
	return err
}

// metadata reads the value of the metadata key.
func (p *parser) metadata() (map[string]string, error) {
	m := map[string]string{}
	err := p.object(func(key string) (err error) {
		if _, ok := m[key]; ok {
			return p.twice(key)
		}
		m[key], err = p.stringValue(func() string { return strconv.Quote(key) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", metadataKey, err)
	}
	return m, nil
}

// tensor reads the value of the key name, which is a tensor.
func (p *parser) tensor(name string) (Info, error) {
	info := Info{Name: name}
	var hasType, hasSpan bool
	err := p.object(func(key string) (err error) {
		switch {
		case key == "dtype" && !hasType:
			hasType = true
			info.DType, err = p.dtype()
		case key == "shape" && info.Shape == nil:
			info.Shape, err = p.shape()
		case key == "data_offsets" && !hasSpan:
			hasSpan = true
			p.span, err = p.numbers(p.span[:0], key, math.MaxInt64)
		case key == "dtype" || key == "shape" || key == "data_offsets":
			err = p.twice(key)
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		return err
	})
	if err == nil {
		err = checkEntry(info, p.span, hasSpan)
	}
	if err != nil {
		return info, fmt.Errorf("tensor %q: %w", name, err)
	}
	info.Offset = p.span[0]
	return info, nil
}

// dtype reads a type. Those that are known need no memory.
func (p *parser) dtype() (DType, error) {
	if rest := p.value(); len(rest) > 0 && rest[0] == '"' {
		if end := bytes.IndexByte(rest[1:], '"'); end >= 0 {
			if d, ok := dtypes[string(rest[1:1+end])]; ok {
				p.pos += end + 2
				return d, nil
			}
		}
	}
	s, err := p.stringValue(func() string { return "dtype" })
	return DType(s), err
}

// shape reads an array of dimensions. Shapes lie together in slices that many of them
// share.
func (p *parser) shape() ([]int, error) {
	dims, err := p.numbers(p.dims[:0], "shape", math.MaxInt)
	p.dims = dims
	if err != nil {
		return nil, err
	}
	if p.shapes == nil || len(dims) > cap(p.shapes)-len(p.shapes) {
		p.shapes = make([]int, 0, max(len(dims), min(2*cap(p.shapes), 4096), 8))
	}
	begin := len(p.shapes)
	for _, d := range dims {
		p.shapes = append(p.shapes, int(d))
	}
	return p.shapes[begin:len(p.shapes):len(p.shapes)], nil
}

// checkEntry checks that info and span are there and agree with each other.
func checkEntry(info Info, span []int64, hasSpan bool) error {
	switch {
	case info.DType == "":
		return errors.New("dtype is missing or empty")
	case info.Shape == nil:
		return errors.New("shape is missing")
	case !hasSpan:
		return errors.New("data_offsets is missing")
	}
	_, size, err := info.size()
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
