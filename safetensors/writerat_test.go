package safetensors

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// memoryFile is a file in memory. It takes room bytes and then fails with err, or just
// takes less.
type memoryFile struct {
	mu   sync.Mutex
	data []byte
	room int
	err  error
}

func (m *memoryFile) WriteAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(len(p), m.room)
	m.room -= n
	if end := int(off) + n; end > len(m.data) {
		m.data = append(m.data, make([]byte, end-len(m.data))...)
	}
	copy(m.data[off:], p[:n])
	if n < len(p) {
		return n, m.err
	}
	return n, nil
}

var threeTensors = []Info{
	{Name: "a", DType: F32, Shape: []int{3}},
	{Name: "e", DType: U8, Shape: []int{0}},
	{Name: "b", DType: U8, Shape: []int{7}},
}

func newThree(t *testing.T, m *memoryFile) *WriterAt {
	w, err := NewWriterAt(m, threeTensors, map[string]string{"k": "v"})
	require.NoError(t, err)
	return w
}

// TestWriterAtBytes writes the bytes of a file in every order, several at once, and
// compares with Writer.
func TestWriterAtBytes(t *testing.T) {
	a, b := []byte("ABCDEFGHIJKL"), []byte("tuvwxyz")
	var want bytes.Buffer
	seq, err := NewWriter(&want, threeTensors, map[string]string{"k": "v"})
	require.NoError(t, err)
	for _, tensor := range []Tensor{{threeTensors[0], a}, {threeTensors[1], nil}, {threeTensors[2], b}} {
		require.NoError(t, seq.Next(tensor.Name))
		_, err := seq.Write(tensor.Data)
		require.NoError(t, err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		m := &memoryFile{room: math.MaxInt}
		w := newThree(t, m)
		var wait sync.WaitGroup
		for _, i := range r.Perm(len(a) + len(b)) {
			wait.Go(func() {
				name, data := "a", a
				if i >= len(a) {
					name, data, i = "b", b, i-len(a)
				}
				if err := w.WriteAt(name, data[i:i+1], int64(i)); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		require.NoError(t, w.Close())
		require.Equal(t, want.String(), string(m.data))
	}
}

func TestWriterAtRefusesDeclarations(t *testing.T) {
	m := &memoryFile{room: math.MaxInt}
	_, err := NewWriterAt(m, []Info{{Name: "a", DType: U8}, {Name: "a", DType: U8}}, nil)
	require.EqualError(t, err, `safetensors: tensor "a": the name is declared twice`)
	require.Empty(t, m.data)
}

func TestWriterAtRefusesMisuse(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		off  int64
		want string
	}{
		{"x", 1, 0, `tensor "x" was not declared`},
		{"b", 8, 0, `tensor "b": 8 bytes at 0 are not all among its 7`},
		{"b", 1, 7, `tensor "b": 1 bytes at 7 are not all among its 7`},
		{"b", 1, -1, `tensor "b": 1 bytes at -1 are not all among its 7`},
		{"b", 2, math.MaxInt64, `tensor "b": 2 bytes at 9223372036854775807 are not all among its 7`},
		{"e", 1, 0, `tensor "e": 1 bytes at 0 are not all among its 0`},
	} {
		m := &memoryFile{room: math.MaxInt}
		w := newThree(t, m)
		before := len(m.data)
		require.EqualError(t, w.WriteAt(c.name, make([]byte, c.n), c.off), "safetensors: "+c.want)
		require.EqualError(t, w.WriteAt("a", make([]byte, 12), 0), "safetensors: "+c.want, "it stays")
		require.EqualError(t, w.WriteAt("y", nil, 0), "safetensors: "+c.want, "the first one")
		require.EqualError(t, w.Close(), "safetensors: "+c.want)
		require.Len(t, m.data, before)
	}
}

func TestWriterAtRefusesIncomplete(t *testing.T) {
	w := newThree(t, &memoryFile{room: math.MaxInt})
	require.EqualError(t, w.Close(), `safetensors: tensor "a" has 12 bytes, but 0 were written`)
	require.NoError(t, w.WriteAt("a", make([]byte, 12), 0))
	require.NoError(t, w.WriteAt("e", nil, 0))
	require.NoError(t, w.WriteAt("b", make([]byte, 3), 4))
	require.EqualError(t, w.Close(), `safetensors: tensor "b" has 7 bytes, but 3 were written`)
	require.NoError(t, w.WriteAt("b", make([]byte, 4), 0))
	require.NoError(t, w.Close())
	require.NoError(t, w.WriteAt("b", make([]byte, 1), 0))
	require.EqualError(t, w.Close(), `safetensors: tensor "b" has 7 bytes, but 8 were written`)
}

func TestWriterAtReportsFailedWrites(t *testing.T) {
	full := errors.New("disk full")
	for want, err := range map[error]error{full: full, io.ErrShortWrite: nil} {
		_, got := NewWriterAt(&memoryFile{room: 5, err: err}, nil, nil)
		require.ErrorIs(t, got, want)
		require.ErrorContains(t, got, "safetensors: writing the header: ")

		m := &memoryFile{room: math.MaxInt, err: err}
		w := newThree(t, m)
		m.room = 3
		got = w.WriteAt("a", make([]byte, 12), 0)
		require.ErrorIs(t, got, want)
		require.ErrorContains(t, got, `safetensors: writing tensor "a": `)
		m.room = math.MaxInt
		require.ErrorIs(t, w.WriteAt("b", make([]byte, 7), 0), want)
		require.ErrorIs(t, w.Close(), want)
	}
}

func TestWriterAtKeepsNoArgument(t *testing.T) {
	tensors := []Info{{Name: "a", DType: U8, Shape: []int{2}}}
	w, err := NewWriterAt(&memoryFile{room: math.MaxInt}, tensors, nil)
	require.NoError(t, err)
	tensors[0].Shape[0] = 1
	require.NoError(t, w.WriteAt("a", []byte{1, 2}, 0))
	require.NoError(t, w.Close())
}

func TestWriteFileAtReplacesOrLeavesAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.safetensors")
	info := Info{Name: "a", DType: U8, Shape: []int{2}}
	write := func(data string) error {
		return WriteFileAtFunc(path, []Info{info}, nil, func(w *WriterAt) error {
			for i := len(data) - 1; i >= 0; i-- {
				if err := w.WriteAt("a", []byte{data[i]}, int64(i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, write("xy"))
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	failed := errors.New("failed")
	require.ErrorContains(t, write("x"), `tensor "a" has 2 bytes, but 1 were written`)
	require.ErrorContains(t, write("xyz"), "1 bytes at 2 are not all among its 2")
	require.Equal(t, failed, WriteFileAtFunc(path, []Info{info}, nil, func(*WriterAt) error { return failed }))
	require.ErrorContains(t, WriteFileAtFunc(path, []Info{info, info}, nil, func(*WriterAt) error { return nil }), "declared twice")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)

	require.NoError(t, write("zz"))
	f, err := Open(path)
	require.NoError(t, err)
	defer f.Close()
	data, err := f.Bytes("a")
	require.NoError(t, err)
	require.Equal(t, "zz", string(data))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}
