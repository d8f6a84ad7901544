package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

var allDTypes = []DType{
	F4, F6E2M3, F6E3M2, C64,
	F8E4M3, F8E5M2, F8E8M0, F8E4M3FNUZ, F8E5M2FNUZ, BF16, F16, F32, F64,
	I8, I16, I32, I64, U8, U16, U32, U64, Bool,
}

// rewrite writes what f holds as a new file.
func rewrite(f *File) ([]byte, error) {
	var file bytes.Buffer
	w, err := NewWriter(&file, f.Tensors(), f.Metadata())
	if err != nil {
		return nil, err
	}
	for _, info := range f.Tensors() {
		section, err := f.Section(info.Name)
		if err != nil {
			return nil, err
		}
		if err := w.Next(info.Name); err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, section); err != nil {
			return nil, err
		}
	}
	return file.Bytes(), w.Close()
}

// requireRoundTrip checks that f, written and read again, is the same.
func requireRoundTrip(t *testing.T, f *File) {
	file, err := rewrite(f)
	require.NoError(t, err)
	g, err := read(file)
	require.NoError(t, err)
	require.Equal(t, f.Tensors(), g.Tensors())
	require.Equal(t, f.Metadata(), g.Metadata())
	for _, info := range f.Tensors() {
		want, err := f.Bytes(info.Name)
		require.NoError(t, err)
		got, err := g.Bytes(info.Name)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), info.Name)
	}
}

func TestRoundTripValidFiles(t *testing.T) {
	for name, file := range validFiles {
		t.Run(name, func(t *testing.T) {
			f, err := read(file)
			require.NoError(t, err)
			requireRoundTrip(t, f)
		})
	}
}

func TestRoundTripEveryDType(t *testing.T) {
	var tensors []Tensor
	for i, d := range allDTypes {
		info := Info{Name: "t." + string(d), DType: d, Shape: []int{4, i % 4}}
		data := bytes.Repeat([]byte{byte(i)}, int(info.Bytes()))
		tensors = append(tensors, Tensor{info, data})
	}
	path := filepath.Join(t.TempDir(), "m.safetensors")
	require.NoError(t, WriteFile(path, tensors, map[string]string{"k": "v"}))

	f, err := Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.Len(t, f.Tensors(), len(tensors))
	require.Equal(t, map[string]string{"k": "v"}, f.Metadata())
	for i, info := range f.Tensors() {
		require.Equal(t, tensors[i].Name, info.Name)
		require.Equal(t, tensors[i].DType, info.DType)
		require.Equal(t, tensors[i].Shape, info.Shape)
		data, err := f.Bytes(info.Name)
		require.NoError(t, err)
		require.Equal(t, tensors[i].Data, data)
	}
}

func TestWriterBytes(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, []Info{
		{Name: "b<", DType: F8E4M3, Shape: []int{3}, Offset: 99},
		{Name: "a", DType: U8},
	}, map[string]string{"z": "1", "y": "2"})
	require.NoError(t, err)
	require.NoError(t, w.Next("b<"))
	for _, piece := range []string{"x", "", "yz"} {
		n, err := io.WriteString(w, piece)
		require.NoError(t, err)
		require.Equal(t, len(piece), n)
	}
	require.NoError(t, w.Next("a"))
	_, err = w.Write([]byte{'s'})
	require.NoError(t, err)
	require.NoError(t, w.Close())

	header := `{"__metadata__":{"y":"2","z":"1"},` +
		`"b<":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3]},` +
		`"a":{"dtype":"U8","shape":[],"data_offsets":[3,4]}}`
	for len(header)%8 != 0 {
		header += " "
	}
	want := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	want = append(want, header+"xyzs"...)
	require.Equal(t, string(want), file.String())
}

func TestWriterAlignsData(t *testing.T) {
	for n := range 17 {
		var file bytes.Buffer
		_, err := NewWriter(&file, nil, map[string]string{"k": string(bytes.Repeat([]byte{'v'}, n))})
		require.NoError(t, err)
		require.Zero(t, file.Len()%8)
	}
}

func TestWriterRefusesDeclarations(t *testing.T) {
	for _, c := range []struct {
		name     string
		tensors  []Info
		metadata map[string]string
		want     string
	}{
		{"twice", []Info{{Name: "a", DType: U8}, {Name: "a", DType: U8}}, nil, `tensor "a": the name is declared twice`},
		{"reserved", []Info{{Name: "__metadata__", DType: U8}}, nil, `tensor "__metadata__": the name is reserved`},
		{"name not UTF-8", []Info{{Name: "\xff", DType: U8}}, nil, `tensor "\xff": the name is not UTF-8`},
		{"no dtype", []Info{{Name: "a"}}, nil, `tensor "a": unknown dtype ""`},
		{"unknown dtype", []Info{{Name: "a", DType: "F2"}}, nil, `tensor "a": unknown dtype "F2"`},
		{"odd number of nibbles", []Info{{Name: "a", DType: F4, Shape: []int{3, 5}}}, nil, `tensor "a": F4 [3 5] has 15 elements of 4 bits, which do not fill whole bytes`},
		{"negative", []Info{{Name: "a", DType: U8, Shape: []int{1, -1}}}, nil, `tensor "a": shape[1] is -1: negative`},
		{"overflow", []Info{{Name: "a", DType: F64, Shape: []int{1 << 30, 1 << 30}}}, nil,
			`tensor "a": the size of F64 [1073741824 1073741824] overflows 63 bits at shape[1]`},
		{"overflow in sum", []Info{
			{Name: "a", DType: U8, Shape: []int{math.MaxInt32, math.MaxInt32, 2}},
			{Name: "b", DType: U8, Shape: []int{math.MaxInt32, 16}},
		}, nil, `tensor "b": 34359738352 bytes after 9223372028264841218 others overflow 63 bits`},
		{"metadata key", nil, map[string]string{"\xff": ""}, `__metadata__: "\xff": "" is not UTF-8`},
		{"metadata value", nil, map[string]string{"k": "\xff"}, `__metadata__: "k": "\xff" is not UTF-8`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var file bytes.Buffer
			w, err := NewWriter(&file, c.tensors, c.metadata)
			require.EqualError(t, err, "safetensors: "+c.want)
			require.Nil(t, w)
			require.Zero(t, file.Len())
		})
	}
}

func TestWriterRefusesHeaderOverLimit(t *testing.T) {
	var e headerEncoder
	e.Write(make([]byte, maxHeader+1))
	_, err := e.finish()
	require.EqualError(t, err, "a header of 100000008 bytes is over the limit of 100000000")
}

// twoTensors returns a Writer for a of 4 bytes, empty e, and b of 2 bytes.
func twoTensors(t *testing.T, w io.Writer) *Writer {
	writer, err := NewWriter(w, []Info{
		{Name: "a", DType: U8, Shape: []int{4}},
		{Name: "e", DType: U8, Shape: []int{0}},
		{Name: "b", DType: U8, Shape: []int{2}},
	}, nil)
	require.NoError(t, err)
	return writer
}

func TestWriterRefusesMisuse(t *testing.T) {
	write := func(w *Writer, n int) error {
		_, err := w.Write(make([]byte, n))
		return err
	}
	t.Run("missing", func(t *testing.T) {
		require.EqualError(t, twoTensors(t, io.Discard).Close(), `safetensors: tensor "a" was not written`)
	})
	t.Run("missing at the end", func(t *testing.T) {
		w := twoTensors(t, io.Discard)
		require.NoError(t, w.Next("a"))
		require.NoError(t, write(w, 4))
		require.NoError(t, w.Next("e"))
		require.EqualError(t, w.Close(), `safetensors: tensor "b" was not written`)
	})
	t.Run("short", func(t *testing.T) {
		w := twoTensors(t, io.Discard)
		require.NoError(t, w.Next("a"))
		require.NoError(t, write(w, 3))
		require.EqualError(t, w.Next("e"), `safetensors: tensor "a" is short: 3 of 4 bytes were written`)
		require.EqualError(t, w.Close(), `safetensors: tensor "a" is short: 3 of 4 bytes were written`)
		require.NoError(t, write(w, 1), "a refused Next changes nothing")
		require.NoError(t, w.Next("e"))
	})
	t.Run("long", func(t *testing.T) {
		var file bytes.Buffer
		w := twoTensors(t, &file)
		before := file.Len()
		require.NoError(t, w.Next("a"))
		require.NoError(t, write(w, 3))
		want := `safetensors: tensor "a" is too long: 2 bytes at 3 of 4`
		require.EqualError(t, write(w, 2), want)
		require.Equal(t, before+3, file.Len())
		require.EqualError(t, write(w, 1), want)
		require.EqualError(t, w.Next("e"), want)
		require.EqualError(t, w.Close(), want)
	})
	t.Run("out of order", func(t *testing.T) {
		w := twoTensors(t, io.Discard)
		require.EqualError(t, w.Next("b"), `safetensors: tensor "b" is out of order: "a" comes next`)
		require.EqualError(t, w.Next("x"), `safetensors: tensor "x" is out of order: "a" comes next`)
		require.NoError(t, w.Next("a"), "a refused Next changes nothing")
	})
	t.Run("too many", func(t *testing.T) {
		w, err := NewWriter(io.Discard, nil, nil)
		require.NoError(t, err)
		require.EqualError(t, w.Next("x"), `safetensors: tensor "x" follows the last one declared`)
		require.NoError(t, w.Close())
	})
	t.Run("data first", func(t *testing.T) {
		w := twoTensors(t, io.Discard)
		require.NoError(t, write(w, 0))
		require.EqualError(t, write(w, 1), `safetensors: 1 bytes of data before the first tensor was begun`)
	})
}

// failingWriter takes room bytes and then fails with err, or just takes less.
type failingWriter struct {
	room int
	err  error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.room)
	w.room -= n
	if n < len(p) {
		return n, w.err
	}
	return n, nil
}

func TestWriterReportsFailedWrites(t *testing.T) {
	full := errors.New("disk full")
	for want, err := range map[error]error{full: full, io.ErrShortWrite: nil} {
		_, got := NewWriter(&failingWriter{5, err}, nil, nil)
		require.ErrorIs(t, got, want)
		require.ErrorContains(t, got, "safetensors: writing the header: ")

		var header bytes.Buffer
		twoTensors(t, &header)
		w := twoTensors(t, &failingWriter{header.Len() + 1, err})
		require.NoError(t, w.Next("a"))
		n, got := w.Write(make([]byte, 4))
		require.Equal(t, 1, n)
		require.ErrorIs(t, got, want)
		require.ErrorContains(t, got, `safetensors: writing tensor "a": `)
		require.ErrorIs(t, w.Next("e"), want)
		require.ErrorIs(t, w.Close(), want)
	}
}

func TestWriterKeepsNoArgument(t *testing.T) {
	tensors := []Info{{Name: "a", DType: U8, Shape: []int{2}}}
	w, err := NewWriter(io.Discard, tensors, nil)
	require.NoError(t, err)
	tensors[0].Name = "b"
	tensors[0].Shape[0] = 3
	require.NoError(t, w.Next("a"))
	_, err = w.Write([]byte{1, 2})
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

func TestEncode(t *testing.T) {
	tensors := []Tensor{
		{Info{Name: "a", DType: U16, Shape: []int{2}}, []byte{1, 2, 3, 4}},
		{Info{Name: "b", DType: U8, Shape: []int{3}}, []byte{5, 6, 7}},
	}
	metadata := map[string]string{"k": "v"}
	path := filepath.Join(t.TempDir(), "m.safetensors")
	require.NoError(t, WriteFile(path, tensors, metadata))
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	got, err := Encode(tensors, metadata)
	require.NoError(t, err)
	require.Equal(t, want, got)
	f, err := read(got)
	require.NoError(t, err)
	require.Equal(t, metadata, f.Metadata())
	for _, tensor := range tensors {
		data, err := f.Bytes(tensor.Name)
		require.NoError(t, err)
		require.Equal(t, tensor.Data, data)
	}

	for _, c := range []struct {
		data  []byte
		error string
	}{{[]byte{5}, `tensor "b" is short`}, {[]byte{5, 6, 7, 8}, `tensor "b" is too long`}} {
		tensors[1].Data = c.data
		got, err := Encode(tensors, nil)
		require.ErrorContains(t, err, c.error)
		require.Nil(t, got)
	}
	_, err = Encode([]Tensor{tensors[0], tensors[0]}, nil)
	require.ErrorContains(t, err, "declared twice")
}

func TestWriteFileReplacesOrLeavesAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.safetensors")
	one := Tensor{Info{Name: "a", DType: U8, Shape: []int{2}}, []byte{1, 2}}
	require.NoError(t, WriteFile(path, []Tensor{one}, nil))
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	failed := errors.New("failed")
	short := Tensor{one.Info, []byte{1}}
	long := Tensor{one.Info, []byte{1, 2, 3}}
	require.ErrorContains(t, WriteFile(path, []Tensor{short}, nil), `tensor "a" is short`)
	require.ErrorContains(t, WriteFile(path, []Tensor{short, {Info{Name: "b", DType: U8}, []byte{1}}}, nil), `tensor "a" is short`)
	require.ErrorContains(t, WriteFile(path, []Tensor{long}, nil), `tensor "a" is too long`)
	require.ErrorContains(t, WriteFile(path, []Tensor{one, one}, nil), "declared twice")
	require.Equal(t, failed, WriteFileFunc(path, []Info{one.Info}, nil, func(*Writer) error { return failed }))
	require.Panics(t, func() {
		_ = WriteFileFunc(path, []Info{one.Info}, nil, func(*Writer) error { panic(failed) })
	})
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)

	one.Data = []byte{3, 4}
	require.NoError(t, WriteFile(path, []Tensor{one}, nil))
	after, err = os.ReadFile(path)
	require.NoError(t, err)
	require.NotEqual(t, before, after)

	absent := filepath.Join(dir, "absent", "m")
	err = WriteFile(absent, nil, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "safetensors: open "+absent+": ")
	require.EqualError(t, WriteFile(dir, []Tensor{one}, nil), "safetensors: replace "+dir+": it is not a regular file")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left beside the file")
}

func TestWriteFileFollowsLinks(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	file, link, chain := filepath.Join(elsewhere, "m"), filepath.Join(dir, "link"), filepath.Join(dir, "chain")
	if err := os.Symlink(file, link); err != nil {
		testutil.Lacking(t, "%v", err)
	}
	require.NoError(t, os.Symlink("link", chain))
	for range 2 { // there is no file, and there is one
		require.NoError(t, WriteFile(chain, nil, nil))
	}
	for _, path := range []string{link, chain} {
		stat, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, os.ModeSymlink, stat.Mode().Type())
	}
	stat, err := os.Lstat(file)
	require.NoError(t, err)
	require.True(t, stat.Mode().IsRegular())
	f, err := Open(chain)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for path, n := range map[string]int{dir: 2, elsewhere: 1} {
		entries, err := os.ReadDir(path)
		require.NoError(t, err)
		require.Len(t, entries, n)
	}
}

func TestInfoSizes(t *testing.T) {
	for _, c := range []struct {
		info       Info
		len, bytes int64
	}{
		{Info{DType: F32}, 1, 4},
		{Info{DType: F16, Shape: []int{2, 3}}, 6, 12},
		{Info{DType: F64, Shape: []int{2, 0, 3}}, 0, 0},
		{Info{DType: U8, Shape: []int{1 << 30, 1 << 30}}, 1 << 60, 1 << 60},
		{Info{DType: F64, Shape: []int{1 << 30, 1 << 30}}, -1, -1},
		{Info{DType: U8, Shape: []int{-1, -1}}, -1, -1},
		{Info{DType: F4}, -1, -1},
		{Info{DType: F4, Shape: []int{3, 6}}, 18, 9},
		{Info{DType: F4, Shape: []int{3, 5}}, -1, -1},
		{Info{DType: F4, Shape: []int{3, 5, 0}}, 0, 0},
		{Info{DType: F4, Shape: []int{1 << 30, 1 << 30, 4}}, 1 << 62, 1 << 61},
		{Info{DType: F6E2M3, Shape: []int{1 << 30, 1 << 30, 4}}, 1 << 62, 3 << 60},
		{Info{DType: F4, Shape: []int{1 << 30, 1 << 30, 8}}, -1, -1},
		{Info{DType: C64, Shape: []int{2, 3}}, 6, 48},
		{Info{Shape: []int{1}}, -1, -1},
	} {
		require.Equal(t, c.len, c.info.Len(), c.info)
		require.Equal(t, c.bytes, c.info.Bytes(), c.info)
	}
	for d, n := range map[DType]int{"": 0, "F2": 0, "f4": 0, F4: 4, F6E2M3: 6, F6E3M2: 6, F8E8M0: 8, BF16: 16, F32: 32, C64: 64} {
		require.Equal(t, n, d.Bits(), d)
		require.Equal(t, n/8, d.Size(), d)
	}
	for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12} {
		four, six := int64(-1), int64(-1)
		if n%2 == 0 {
			four = int64(n / 2)
		}
		if n%4 == 0 {
			six = int64(n / 4 * 3)
		}
		require.Equal(t, four, Info{DType: F4, Shape: []int{n}}.Bytes())
		require.Equal(t, six, Info{DType: F6E2M3, Shape: []int{1, n}}.Bytes())
		require.Equal(t, six, Info{DType: F6E3M2, Shape: []int{n, 1}}.Bytes())
	}
}
