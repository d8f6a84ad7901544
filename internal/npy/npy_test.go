package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// file returns a file as numpy.save writes it.
func file(version byte, header string, data ...byte) []byte {
	b := append([]byte(magic), version, 0)
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	}
	return append(append(b, header...), data...)
}

func dict(descr, order, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }       \n", descr, order, shape)
}

func read(b []byte) (*Array, error) { return Read(bytes.NewReader(b), int64(len(b))) }

func TestRead(t *testing.T) {
	for _, test := range []struct {
		version     byte
		descr, text string
		shape       []int
		bytes       int
	}{
		{1, "|u1", "(2, 3)", []int{2, 3}, 6},
		{2, "<f4", "(2,)", []int{2}, 8},
		{3, "<f2", "()", []int{}, 2},
		{1, "<u2", "(0, 7)", []int{0, 7}, 0},
		{1, "|u1", "(1,2,3)", []int{1, 2, 3}, 6},
		{1, "<i4", "(2,)", []int{2}, 8},
		{2, "<i8", "(1,)", []int{1}, 8},
	} {
		data := bytes.Repeat([]byte{7, 8}, 4)[:test.bytes]
		a, err := read(file(test.version, dict(test.descr, "False", test.text), data...))
		require.NoError(t, err, test)
		require.Equal(t, &Array{Type(test.descr), test.shape, append([]byte{}, data...)}, a)
	}
	a, err := read(file(1, `{"shape":(2,),"fortran_order":False,"descr":"|u1"}`, 1, 2))
	require.NoError(t, err)
	require.Equal(t, []int{2}, a.Shape)
}

func TestRefuse(t *testing.T) {
	good := dict("|u1", "False", "(2, 3)")
	for _, test := range []struct {
		text string
		data []byte
	}{
		{"save it with numpy.save", nil},
		{"save it with numpy.save", []byte("PK\x03\x04 an .npz file")},
		{"version 4 of the format", file(4, good)},
		{"version 0 of the format", file(0, good)},
		{"ends within its header", file(1, good)[:20]},
		{"ends within its header", file(1, good)[:9]},
		{"a header of 4294967295 bytes", append([]byte(magic), 2, 0, 255, 255, 255, 255)},
		{"Fortran order: save numpy.ascontiguousarray(x)", file(1, dict("|u1", "True", "(2, 3)"), 1, 2, 3, 4, 5, 6)},
		{`type ">f4": want |u1, <u2, <f2, <f4, <i4 or <i8`, file(1, dict(">f4", "False", "(1,)"), 1, 2, 3, 4)},
		{`type "|V1"`, file(1, dict("|V1", "False", "(1,)"), 1)},
		{"shape [2 3] of type |u1 does not fit the 5 bytes", file(1, good, 1, 2, 3, 4, 5)},
		{"shape [2 3] of type |u1 does not fit the 7 bytes", file(1, good, 1, 2, 3, 4, 5, 6, 7)},
		{"does not fit the 0 bytes", file(1, dict("<f4", "False", "(1073741824, 1073741824, 1073741824)"))},
		{"the header", file(1, dict("|u1", "False", "(99999999999999999999,)"))},
		{"the header", file(1, dict("|u1", "False", "(-1,)"))},
		{"the header", file(1, dict("|u1", "False", "(1 2)"))},
		{"the header", file(1, dict("|u1", "Maybe", "(1,)"), 1)},
		{"the header", file(1, strings.Replace(good, ",", "", 1), 1, 2, 3, 4, 5, 6)},
		{"the header", file(1, strings.Replace(good, "'shape'", "'size'", 1), 1, 2, 3, 4, 5, 6)},
		{"the header", file(1, strings.Replace(good, "'shape'", "'descr'", 1), 1, 2, 3, 4, 5, 6)},
		{"the header", file(1, "{'descr': '|u1', 'fortran_order': False, }", 1)},
		{"the header", file(1, "{'descr': '|u1', 'descr': '|u1', 'shape': (1,), }", 1)},
		{"the header", file(1, "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,), }", 1)},
		{"the header", file(1, good+"x", 1, 2, 3, 4, 5, 6)},
		{"the header", file(1, "{'descr': '|u1", 1)},
		{"the header", file(1, "{'descr'", 1)},
		{"the header", file(1, dict("|u1", "False", "("+strings.Repeat("1,", 65)+")"), 1)},
	} {
		_, err := read(test.data)
		require.ErrorContains(t, err, test.text, "%q", test.data)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.npy")
	require.NoError(t, os.WriteFile(path, file(1, dict("|u1", "False", "(2,)"), 5, 6), 0o666))
	a, err := ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, []byte{5, 6}, a.Data)
	_, err = ReadFile(dir)
	require.ErrorContains(t, err, "not a regular file")
	_, err = ReadFile(filepath.Join(dir, "none.npy"))
	require.ErrorContains(t, err, "none.npy: no such file")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o666))
	_, err = ReadFile(path)
	require.ErrorContains(t, err, path+": it does not begin as a .npy file does")
}

// FuzzRead demands that whatever is accepted is whole, and survives being written
// and read again.
func FuzzRead(f *testing.F) {
	f.Add(file(1, dict("|u1", "False", "(2, 3)"), 1, 2, 3, 4, 5, 6))
	f.Add(file(2, dict("<f4", "False", "()"), 1, 2, 3, 4))
	f.Add(file(3, dict("<f2", "True", "(0,)")))
	f.Add(file(1, `{"shape":(0,9999999999),"fortran_order":False,"descr":"<u2"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := read(data)
		if err != nil {
			return
		}
		elements := int64(1)
		for _, d := range a.Shape {
			elements *= int64(d)
		}
		if elements*a.Type.size() != int64(len(a.Data)) || !bytes.HasSuffix(data, a.Data) {
			t.Fatalf("%v of %s has %d bytes", a.Shape, a.Type, len(a.Data))
		}
		shape := "("
		for _, d := range a.Shape {
			shape += fmt.Sprintf("%d, ", d)
		}
		b, err := read(file(2, dict(string(a.Type), "False", shape+")"), a.Data...))
		if err != nil || fmt.Sprint(b.Shape) != fmt.Sprint(a.Shape) || b.Type != a.Type {
			t.Fatalf("%v became %v: %v", a.Shape, b, err)
		}
	})
}
