package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
)

// FuzzReader checks that the reader never panics, and that a file it accepts
// holds the same tensors after it is written again.
func FuzzReader(f *testing.F) {
	for _, file := range validFiles {
		f.Add(file)
	}
	for _, c := range malformedFiles {
		f.Add(c.file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		first, err := read(file)
		if err != nil {
			if !errors.Is(err, ErrFile) {
				t.Fatalf("%v is not ErrFile", err)
			}
			return
		}
		checkHeader(t, first, file)
		written, err := rewrite(first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := read(written)
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, first, second)
		again, err := rewrite(second)
		if err != nil || !bytes.Equal(written, again) {
			t.Fatalf("writing twice differs, error %v:\n%q\n%q", err, written, again)
		}
	})
}

// checkHeader compares what the parser found with what package json finds.
func checkHeader(t *testing.T, f *File, file []byte) {
	var header map[string]struct {
		DType   DType   `json:"dtype"`
		Shape   []int   `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	var metadata struct {
		Metadata map[string]string `json:"__metadata__"`
	}
	text := file[8 : 8+binary.LittleEndian.Uint64(file)]
	if err := errors.Join(json.Unmarshal(text, &metadata), json.Unmarshal(text, &header)); err != nil {
		t.Fatalf("package json does not read %q: %v", text, err)
	}
	if _, ok := header[metadataKey]; ok != (f.Metadata() != nil) || !maps.Equal(metadata.Metadata, f.Metadata()) {
		t.Fatalf("metadata %q, and %q of package json", f.Metadata(), metadata.Metadata)
	}
	delete(header, metadataKey)
	if len(header) != len(f.Tensors()) {
		t.Fatalf("%d tensors, and %d of package json", len(f.Tensors()), len(header))
	}
	for _, info := range f.Tensors() {
		h := header[info.Name]
		if h.DType != info.DType || !slices.Equal(h.Shape, info.Shape) || h.Offsets[0] != info.Offset {
			t.Fatalf("tensor %v, and %v of package json", info, h)
		}
	}
}

func checkSame(t *testing.T, a, b *File) {
	if !maps.Equal(a.Metadata(), b.Metadata()) || (a.Metadata() == nil) != (b.Metadata() == nil) {
		t.Fatalf("metadata differs: %q and %q", a.Metadata(), b.Metadata())
	}
	if !reflect.DeepEqual(a.Tensors(), b.Tensors()) {
		t.Fatalf("tensors differ: %v and %v", a.Tensors(), b.Tensors())
	}
	for _, info := range a.Tensors() {
		da, errA := a.Bytes(info.Name)
		db, errB := b.Bytes(info.Name)
		if errA != nil || errB != nil || int64(len(da)) != info.Bytes() || !bytes.Equal(da, db) {
			t.Fatalf("tensor %q differs: %x, %v and %x, %v", info.Name, da, errA, db, errB)
		}
		if read := elementBytes(a, info); !bytes.Equal(da, read) {
			t.Fatalf("tensor %q: its elements are %x, its bytes %x", info.Name, read, da)
		}
		values, err := a.Float32s(info.Name)
		if err == nil && int64(len(values)) != info.Len() {
			t.Fatalf("tensor %q has %d elements, read %d", info.Name, info.Len(), len(values))
		}
	}
}

// elementBytes returns a tensor's data as its elements give it, in two parts.
func elementBytes(f *File, info Info) []byte {
	switch info.DType.Size() {
	case 0: // it has no elements of whole bytes
		data := make([]byte, info.Bytes())
		if half := len(data) / 2; f.ReadBytes(info.Name, int64(half), data[half:]) != nil || f.ReadBytes(info.Name, 0, data[:half]) != nil {
			return nil
		}
		return data
	case 1:
		return inTwoParts[uint8](f, info)
	case 2:
		return inTwoParts[uint16](f, info)
	case 4:
		return inTwoParts[float32](f, info)
	}
	if info.DType == C64 {
		return inTwoParts[complex64](f, info)
	}
	return inTwoParts[float64](f, info)
}

func inTwoParts[T Element](f *File, info Info) []byte {
	values := make([]T, info.Len())
	half := len(values) / 2
	if ReadElements(f, info.Name, int64(half), values[half:]) != nil || ReadElements(f, info.Name, 0, values[:half]) != nil {
		return nil
	}
	data := slices.Clone(bytesOf(values))
	if bigEndian {
		reverseEach(data, info.DType.part())
	}
	return data
}
