package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// encodeHeader returns everything that comes before the data.
func encodeHeader(tensors []Info, metadata map[string]string) ([]byte, error) {
	var e headerEncoder
	e.WriteString("{")
	if metadata != nil {
		if err := checkMetadata(metadata); err != nil {
			return nil, err
		}
		e.member(metadataKey, metadata)
	}
	var end int64
	seen := make(map[string]bool, len(tensors))
	for _, info := range tensors {
		size, err := checkDeclared(info, seen)
		if err == nil && size > math.MaxInt64-end {
			err = fmt.Errorf("%d bytes after %d others overflow 63 bits", size, end)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", info.Name, err)
		}
		e.tensor(info, end, end+size)
		end += size
	}
	e.WriteString("}")
	return e.finish()
}

// checkMetadata checks that metadata survives JSON unchanged.
func checkMetadata(metadata map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if !utf8.ValidString(key) || !utf8.ValidString(metadata[key]) {
			return fmt.Errorf("%s: %q: %q is not UTF-8", metadataKey, key, metadata[key])
		}
	}
	return nil
}

// checkDeclared returns the size of a tensor to be written, and adds it to seen.
func checkDeclared(info Info, seen map[string]bool) (int64, error) {
	switch {
	case info.Name == metadataKey:
		return 0, errors.New("the name is reserved")
	case !utf8.ValidString(info.Name):
		return 0, errors.New("the name is not UTF-8")
	case seen[info.Name]:
		return 0, errors.New("the name is declared twice")
	}
	seen[info.Name] = true
	_, size, err := info.size()
	return size, err
}

// headerEncoder builds the JSON object of the header. Its members are written one
// by one because their order matters and a map would lose it. What there may be a
// million of is written without package json.
type headerEncoder struct {
	bytes.Buffer
}

// tensor appends the member of a tensor.
func (e *headerEncoder) tensor(info Info, begin, end int64) {
	e.key(info.Name)
	b := e.AvailableBuffer()
	b = append(b, `{"dtype":"`...)
	b = append(b, info.DType...)
	b = append(b, `","shape":[`...)
	for i, d := range info.Shape {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(d), 10)
	}
	b = append(b, `],"data_offsets":[`...)
	b = strconv.AppendInt(b, begin, 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, end, 10)
	b = append(b, `]}`...)
	e.Write(b)
}

// key appends "key": and a comma before it unless it is the first.
func (e *headerEncoder) key(key string) {
	if e.Len() > 1 {
		e.WriteByte(',')
	}
	if isPlain(key) {
		e.WriteByte('"')
		e.WriteString(key)
		e.WriteByte('"')
	} else {
		e.json(key)
	}
	e.WriteByte(':')
}

// isPlain reports whether JSON has a text as it is.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// member appends "key":value. Neither can fail to encode.
func (e *headerEncoder) member(key string, value any) {
	e.key(key)
	e.json(value)
}

func (e *headerEncoder) json(value any) {
	enc := json.NewEncoder(e)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(err) // strings, integers and maps of strings always encode
	}
	e.Truncate(e.Len() - 1) // the newline that Encode adds
}

// finish pads the text to a multiple of 8 and puts its length before it.
func (e *headerEncoder) finish() ([]byte, error) {
	for e.Len()%8 != 0 {
		e.WriteByte(' ')
	}
	if e.Len() > maxHeader {
		return nil, kindError{fmt.Errorf("a header of %d bytes is over the limit of %d", e.Len(), maxHeader), ErrTooLarge}
	}
	head := binary.LittleEndian.AppendUint64(nil, uint64(e.Len()))
	return append(head, e.Bytes()...), nil
}
