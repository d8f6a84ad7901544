// Package npy reads arrays that NumPy saved: the types that FP8 codes, scales, results and
// tokens come in, in C order.
//
// The format is that of numpy.lib.format, versions 1 to 3. Nothing in a file is
// trusted: what is allocated is bounded by the size of the file.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/memory"
)

// Type is the type of an array's elements, spelt as in the file. All types are
// little-endian.
type Type string

// The types that this package reads.
const (
	Uint8   Type = "|u1"
	Uint16  Type = "<u2"
	Float16 Type = "<f2"
	Float32 Type = "<f4"
	Int32   Type = "<i4"
	Int64   Type = "<i8"
)

// size returns the size of an element, or 0 for a type that is not read.
func (t Type) size() int64 {
	switch t {
	case Uint8:
		return 1
	case Uint16, Float16:
		return 2
	case Float32, Int32:
		return 4
	case Int64:
		return 8
	}
	return 0
}

// Array is an array in memory.
type Array struct {
	Type  Type
	Shape []int  // outermost dimension first; empty for a scalar
	Data  []byte // row-major, little-endian
}

// ReadFile reads the regular file at path. An error names it.
func ReadFile(path string) (*Array, error) {
	file, size, err := inputfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	defer file.Close()
	a, err := Read(file, size)
	if err != nil {
		return nil, fmt.Errorf("npy: %s: %w", path, err)
	}
	return a, nil
}

const (
	magic = "\x93NUMPY"
	// maxHeader is far more than NumPy, whose limit is 10000, reads by itself.
	maxHeader = 1 << 16
)

var errShort = errors.New("the file ends within its header: want a complete .npy file")

// Read reads an array from r, which has size bytes.
func Read(r io.Reader, size int64) (*Array, error) {
	header, used, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	a, err := parseHeader(header)
	if err != nil {
		return nil, err
	}
	want, ok := a.bytes()
	if !ok || want != size-used {
		return nil, fmt.Errorf("shape %v of type %s does not fit the %d bytes of data: want a complete .npy file with one array",
			a.Shape, a.Type, size-used)
	}
	if err := memory.Check(want, 1, fmt.Sprintf("shape %v of type %s", a.Shape, a.Type), "take a smaller array"); err != nil {
		return nil, err
	}
	a.Data = make([]byte, want)
	if _, err := io.ReadFull(r, a.Data); err != nil {
		return nil, fmt.Errorf("reading data: %w", err)
	}
	return a, nil
}

// readHeader returns the text that describes the array, and how many bytes lead
// to its end.
func readHeader(r io.Reader) (text []byte, used int64, err error) {
	var start [len(magic) + 2]byte
	if _, err := io.ReadFull(r, start[:]); err != nil || string(start[:len(magic)]) != magic {
		return nil, 0, errors.New("it does not begin as a .npy file does: save it with numpy.save")
	}
	width := 4
	switch version := start[len(magic)]; version {
	case 1:
		width = 2
	case 2, 3:
	default:
		return nil, 0, fmt.Errorf("version %d of the format: want 1, 2 or 3", version)
	}
	var length [4]byte
	if _, err := io.ReadFull(r, length[:width]); err != nil {
		return nil, 0, errShort
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxHeader {
		return nil, 0, fmt.Errorf("a header of %d bytes: want at most %d", n, maxHeader)
	}
	text = make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, 0, errShort
	}
	return text, int64(len(start)+width) + int64(n), nil
}

// bytes returns the size of the data; ok is false where it cannot be that of a
// file.
func (a *Array) bytes() (n int64, ok bool) {
	n = a.Type.size()
	for _, d := range a.Shape {
		if d == 0 {
			return 0, true
		}
	}
	for _, d := range a.Shape {
		if n > math.MaxInt/int64(d) {
			return 0, false
		}
		n *= int64(d)
	}
	return n, true
}
