package train

import (
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/safetensors"
)

// array is a tensor of a checkpoint: memory that is written, or to be filled.
type array struct {
	safetensors.Info
	elements
	valid validity
}

func newArray(name string, d safetensors.DType, shape []int, e elements, valid validity) array {
	return array{safetensors.Info{Name: name, DType: d, Shape: shape}, e, valid}
}

// validity is what values may be.
type validity struct {
	want string
	ok   func(v float64) bool
}

var (
	finite      = validity{"a finite number", isFinite}
	notNegative = validity{"a finite number that is not negative", func(v float64) bool { return isFinite(v) && !math.Signbit(v) }}
	positive    = validity{"a finite number above 0", func(v float64) bool { return isFinite(v) && v > 0 }}
)

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// check returns an error that names the first value that is not valid.
func (a array) check() error {
	for i := range a.len() {
		if v := a.value(i); !a.valid.ok(v) {
			return fmt.Errorf("tensor %q: element %d is %v: want %s", a.Name, i, v, a.valid.want)
		}
	}
	return nil
}

// chunkElements is the number of elements that are converted at a time.
const chunkElements = 8192

// WriteTo writes the data as it is stored.
func (a array) WriteTo(w io.Writer) (n int64, err error) {
	unit := a.DType.Size()
	buf := make([]byte, chunkElements*unit)
	for lo := 0; lo < a.len(); lo += chunkElements {
		hi := min(lo+chunkElements, a.len())
		a.put(buf, lo, hi)
		m, err := w.Write(buf[:(hi-lo)*unit])
		n += int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// checksum returns the CRC-32C of the data.
func (a array) checksum() string {
	h := crc32.New(castagnoli)
	a.WriteTo(h) // a hash gives no error
	return checksumText(h.Sum32())
}

// read fills the array from the tensor of its name, which must have the checksum.
func (a array) read(f *safetensors.File, checksum string) error {
	info, _ := f.Info(a.Name)
	if info.DType != a.DType || !slices.Equal(info.Shape, a.Shape) {
		return fmt.Errorf("tensor %q is %s %v: the model's is %s %v", a.Name, info.DType, info.Shape, a.DType, a.Shape)
	}
	unit := a.DType.Size()
	buf := make([]byte, chunkElements*unit)
	for lo := 0; lo < a.len(); lo += chunkElements {
		hi := min(lo+chunkElements, a.len())
		part := buf[:(hi-lo)*unit]
		if err := f.ReadBytes(a.Name, int64(lo*unit), part); err != nil {
			return err
		}
		a.set(part, lo, hi)
	}
	if got := a.checksum(); got != checksum {
		return fmt.Errorf("tensor %q is damaged: its CRC-32C is %s and not %q", a.Name, got, checksum)
	}
	return a.check()
}

// writeArrays writes a file, as [SaveCheckpoint] says.
func writeArrays(path string, arrays []array, metadata map[string]string) error {
	infos := make([]safetensors.Info, len(arrays))
	for i, a := range arrays {
		infos[i] = a.Info
	}
	return safetensors.WriteFileFunc(path, infos, metadata, func(w *safetensors.Writer) error {
		for _, a := range arrays {
			if err := w.Next(a.Name); err != nil {
				return err
			}
			if _, err := a.WriteTo(w); err != nil {
				return err
			}
		}
		return nil
	})
}
