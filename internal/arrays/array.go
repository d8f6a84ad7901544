// Package arrays writes memory as tensors of a safetensors file, and fills it from
// them: parameters and moments in a checkpoint, each with a checksum.
package arrays

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Array is a tensor of a checkpoint: memory that is written, or to be filled.
type Array struct {
	safetensors.Info
	Elements
	Valid Validity
	First int // number of the first element, where the array is a part of a tensor
}

// New returns an array of the given name and shape whose memory is e.
func New(name string, shape []int, e Elements, valid Validity) Array {
	return Array{Info: safetensors.Info{Name: name, DType: e.Type(), Shape: shape}, Elements: e, Valid: valid}
}

// Validity is what values may be: finite, and if it says so below 0, or 0.
type Validity struct {
	want           string
	negative, zero bool // -0 is negative
}

var (
	Finite      = Validity{"a finite number", true, true}
	NotNegative = Validity{"a finite number that is not negative", false, true}
	Positive    = Validity{"a finite number above 0", false, false}
)

func (v Validity) ok(x float64) bool {
	return number.IsFinite(x) && (v.negative || !math.Signbit(x)) && (v.zero || x != 0)
}

// okAll is ok of many values, without saying which is not.
func (v Validity) okAll(x []float32) bool {
	const infinity = 0xff << 23
	good, signs := true, uint32(0)
	for _, f := range x {
		b := math.Float32bits(f)
		signs |= b
		good = good && b&infinity != infinity && (v.zero || b<<1 != 0)
	}
	return good && (v.negative || signs>>31 == 0)
}

// chunkElements is the number of elements that are converted at a time.
const chunkElements = 8192

func (a Array) buffer() []byte { return make([]byte, chunkElements*a.DType.Size()) }

// WriteTo writes the data as it is stored.
func (a Array) WriteTo(w io.Writer) (n int64, err error) {
	unit := a.DType.Size()
	buf := a.buffer()
	for lo := 0; lo < a.Count(); lo += chunkElements {
		hi := min(lo+chunkElements, a.Count())
		a.Put(buf, lo, hi)
		m, err := w.Write(buf[:(hi-lo)*unit])
		n += int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of data, as text.
func Checksum(data []byte) string { return text(crc32.Checksum(data, castagnoli)) }

func text(sum uint32) string { return fmt.Sprintf("%08x", sum) }

// ErrDamaged is data that is not what was written, or has a value that is not valid.
var ErrDamaged = errors.New("arrays: damaged")

// inspection is the checksum of an array's data and the first value that is not valid,
// as far as the array has been passed through.
type inspection struct {
	sum uint32
	err error
}

// add passes through elements [lo, hi) of a, which are stored as data.
func (s *inspection) add(a Array, data []byte, lo, hi int) {
	s.sum = crc32.Update(s.sum, castagnoli, data)
	if x, ok := a.Elements.(Floats); ok && a.Valid.okAll(x[lo:hi]) {
		return // nearly always, and several times as fast
	}
	for i := lo; i < hi && s.err == nil; i++ {
		if v := a.Value(i); !a.Valid.ok(v) {
			s.err = sentinel.Errorf(ErrDamaged, "tensor %q: element %d is %v: want %s", a.Name, a.First+i, v, a.Valid.want)
		}
	}
}

// Checksum returns the CRC-32C of the data as it is stored, or an error that names the
// first value that is not valid ([ErrDamaged]). It counts the bytes as done, and ends
// with the context of done.
func (a Array) Checksum(done *meter.Meter) (string, error) {
	var s inspection
	buf := a.buffer()
	for lo := 0; lo < a.Count() && s.err == nil; lo += chunkElements {
		hi := min(lo+chunkElements, a.Count())
		part := buf[:(hi-lo)*a.DType.Size()]
		a.Put(part, lo, hi)
		s.add(a, part, lo, hi)
		if err := done.Add(int64(len(part))); err != nil {
			return "", err
		}
	}
	return text(s.sum), s.err
}

// Fits returns an error unless the tensor of the array's name has its type and shape.
func (a Array) Fits(f *safetensors.File) error {
	info, _ := f.Info(a.Name)
	if info.DType != a.DType || !slices.Equal(info.Shape, a.Shape) {
		return fmt.Errorf("tensor %q is %s %v: the model's is %s %v", a.Name, info.DType, info.Shape, a.DType, a.Shape)
	}
	return nil
}

// Bytes is the size of the data as it is stored.
func (a Array) Bytes() int64 { return int64(a.Count()) * int64(a.DType.Size()) }

// Read fills the array from the tensor of its name, which must fit and have the
// checksum and no value that is not valid ([ErrDamaged]). It counts the bytes as done,
// and ends with the context of done.
func (a Array) Read(done *meter.Meter, f *safetensors.File, checksum string) error {
	if err := a.Fits(f); err != nil {
		return err
	}
	unit := a.DType.Size()
	buf := a.buffer()
	var s inspection
	for lo := 0; lo < a.Count(); lo += chunkElements {
		hi := min(lo+chunkElements, a.Count())
		part := buf[:(hi-lo)*unit]
		if err := f.ReadBytes(a.Name, int64(lo*unit), part); err != nil {
			return err
		}
		a.Set(part, lo, hi)
		s.add(a, part, lo, hi)
		if err := done.Add(int64(len(part))); err != nil {
			return err
		}
	}
	if got := text(s.sum); got != checksum {
		return sentinel.Errorf(ErrDamaged, "tensor %q is damaged: its CRC-32C is %s and not %.40q", a.Name, got, checksum)
	}
	return s.err
}

// Write writes a safetensors file at path: the old file, if there is one, is replaced
// once the new one is whole, and not at all if the context of done ends before. The
// bytes of the arrays are counted as done.
func Write(done *meter.Meter, path string, all []Array, metadata map[string]string) error {
	infos := make([]safetensors.Info, len(all))
	for i, a := range all {
		infos[i] = a.Info
	}
	return safetensors.WriteFileFunc(path, infos, metadata, func(w *safetensors.Writer) error {
		for _, a := range all {
			if err := w.Next(a.Name); err != nil {
				return err
			}
			if _, err := a.WriteTo(counted{done, w}); err != nil {
				return err
			}
		}
		return nil
	})
}

// counted is a writer that counts what it wrote, and fails once the context of done
// has ended.
type counted struct {
	done *meter.Meter
	w    io.Writer
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if err != nil {
		return n, err
	}
	return n, c.done.Add(int64(n))
}
