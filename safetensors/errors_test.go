package safetensors

import (
	"bytes"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// TestErrorsCanBeToldApart looks for what a program acts on.
func TestErrorsCanBeToldApart(t *testing.T) {
	for _, c := range malformedFiles {
		_, err := read(c.file)
		require.ErrorIs(t, err, ErrFile, c.name)
		require.NotErrorIs(t, err, ErrTooLarge)
	}
	path := filepath.Join(t.TempDir(), "f")
	_, err := Open(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorIs(t, err, ErrFile)
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o666))
	_, err = Open(path)
	require.ErrorIs(t, err, ErrFile)

	var e headerEncoder
	e.Write(make([]byte, maxHeader+1))
	_, err = e.finish()
	require.ErrorIs(t, err, ErrTooLarge)
}

// TestSparseFiles claims a terabyte that takes no room on disk: as a file without a
// header, and as one tensor of several types.
func TestSparseFiles(t *testing.T) {
	const size = 1 << 40
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, nil, 0o666))
	if err := os.Truncate(path, size); err != nil {
		testutil.Lacking(t, "%v", err)
	}
	_, err := Open(path)
	require.EqualError(t, err, "safetensors: "+path+": the header is not a JSON object: it begins with \"\"")
	require.ErrorIs(t, err, ErrFile)

	for d, shape := range map[DType]string{F4: "2199023255552", U8: "1099511627776", BF16: "549755813888", F32: "262144,1048576", F64: "137438953472"} {
		header := `{"a":{"dtype":"` + string(d) + `","shape":[` + shape + `],"data_offsets":[0,1099511627776]}}`
		file := assemble(header, 0)
		require.NoError(t, os.WriteFile(path, file, 0o666))
		require.NoError(t, os.Truncate(path, int64(len(file))+size))
		f, err := Open(path)
		if bits.UintSize == 32 && err != nil {
			require.ErrorIs(t, err, ErrFile, "no int holds a dimension")
			continue
		}
		require.NoError(t, err)
		tooLarge := func(err error) {
			t.Helper()
			require.ErrorIs(t, err, ErrTooLarge)
			require.ErrorContains(t, err, `tensor "a": `+string(d)+` [`+strings.ReplaceAll(shape, ",", " ")+`] does not fit in memory`)
		}
		_, err = f.Bytes("a")
		tooLarge(err)
		switch d {
		case F4: // has no elements of whole bytes
		case U8:
			_, err = Elements[uint8](f, "a")
		case BF16:
			_, err = Elements[uint16](f, "a")
		case F32:
			_, err = Elements[float32](f, "a")
		case F64:
			_, err = Elements[float64](f, "a")
		}
		tooLarge(err)
		if d != U8 && d != F4 {
			_, err = f.Float32s("a")
			tooLarge(err)
		}
		part := make([]byte, 8)
		require.NoError(t, f.ReadBytes("a", size-8, part), "a part of it can be read")
		require.NoError(t, f.Close())
	}
}

// TestMisuse calls everything with arguments that make no sense. The answer is an
// error or nothing, never a panic.
func TestMisuse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write := []Info{{Name: "a", DType: U8, Shape: []int{2}}}
	whole, err := read(assemble(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 2))
	require.NoError(t, err)
	fails := map[string]func() error{
		"Open nothing":            func() error { _, err := Open(""); return err },
		"Open NUL":                func() error { _, err := Open("\x00"); return err },
		"NewReader nil":           func() error { _, err := NewReader(nil, 10); return err },
		"NewReader negative":      func() error { _, err := NewReader(bytes.NewReader(nil), -1); return err },
		"NewReader most negative": func() error { _, err := NewReader(bytes.NewReader(nil), math.MinInt64); return err },
		"NewReader too long":      func() error { _, err := NewReader(bytes.NewReader([]byte("0123456789")), math.MaxInt64); return err },
		"NewWriter nil":           func() error { _, err := NewWriter(nil, write, nil); return err },
		"NewWriterAt nil":         func() error { _, err := NewWriterAt(nil, write, nil); return err },
		"WriteFile nothing":       func() error { return WriteFile("", nil, nil) },
		"WriteFile without data":  func() error { return WriteFile(path, []Tensor{{Info: write[0]}}, nil) },
		"WriteFileFunc nil":       func() error { return WriteFileFunc(path, write, nil, nil) },
		"WriteFileAtFunc nil":     func() error { return WriteFileAtFunc(path, write, nil, nil) },
		"Elements of nil":         func() error { _, err := Elements[uint8](nil, "a"); return err },
		"ReadElements of nil":     func() error { return ReadElements[uint8](nil, "a", 0, nil) },
		"ReadElements far":        func() error { return ReadElements(whole, "a", math.MaxInt64, make([]uint8, 2)) },
		"ReadElements before":     func() error { return ReadElements(whole, "a", math.MinInt64, make([]uint8, 2)) },
		"ReadBytes far":           func() error { return whole.ReadBytes("a", math.MaxInt64, make([]byte, 2)) },
		"ReadBytes before":        func() error { return whole.ReadBytes("a", math.MinInt64, nil) },
	}
	for name, f := range map[string]*File{"nil": nil, "zero": {}} {
		require.Empty(t, f.Tensors())
		require.Empty(t, f.Metadata())
		require.NoError(t, f.Close())
		_, ok := f.Info("a")
		require.False(t, ok)
		fails["Section of "+name] = func() error { _, err := f.Section("a"); return err }
		fails["Bytes of "+name] = func() error { _, err := f.Bytes("a"); return err }
		fails["Float32s of "+name] = func() error { _, err := f.Float32s("a"); return err }
		fails["ReadBytes of "+name] = func() error { return f.ReadBytes("a", 0, nil) }
		fails["Elements of "+name] = func() error { _, err := Elements[float64](f, "a"); return err }
	}
	for name, w := range map[string]*Writer{"nil": nil, "zero": {}} {
		fails["Next of "+name] = func() error { return w.Next("a") }
		fails["Write of "+name] = func() error { _, err := w.Write([]byte{1}); return err }
	}
	for name, w := range map[string]*WriterAt{"nil": nil, "zero": {}} {
		fails["WriteAt of "+name] = func() error { return w.WriteAt("a", nil, 0) }
	}
	fails["Close of nil Writer"] = (*Writer)(nil).Close
	fails["Close of nil WriterAt"] = (*WriterAt)(nil).Close
	for name, call := range fails {
		t.Run(name, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, call(), "safetensors: ") })
		})
	}
	require.NoError(t, new(Writer).Close())
	require.NoError(t, new(WriterAt).Close())
	for _, info := range []Info{{}, {DType: "?"}, {DType: U8, Shape: []int{-1}}, {DType: F64, Shape: []int{math.MaxInt, math.MaxInt}}, {DType: U8, Shape: []int{math.MinInt}}} {
		require.EqualValues(t, -1, info.Len())
		require.EqualValues(t, -1, info.Bytes())
		_, err := NewWriter(io.Discard, []Info{info}, nil)
		require.Error(t, err)
	}
}
