package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"slices"
	"unsafe"
)

// Element is a Go type that can hold an element of a file, bit for bit: any with
// its size, so that F16 and BF16 may go to a uint16 or to a type made of one. C64 goes
// to complex64 and nothing else does. Elements of less than a byte go to none: they are
// read as bytes ([File.Bytes]), which hold several.
type Element interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~complex64
}

// Elements reads the named tensor into memory. Beyond the errors of [File.Bytes],
// it is one if T cannot hold the tensor's elements.
func Elements[T Element](f *File, name string) ([]T, error) {
	values, err := elements[T](f, name)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return values, nil
}

func elements[T Element](f *File, name string) ([]T, error) {
	info, section, err := lookupElements[T](f, name)
	if err != nil {
		return nil, err
	}
	if err := checkLoadable(info, section, info.Len(), int64(sizeOf[T]())); err != nil {
		return nil, err
	}
	values := make([]T, info.Len())
	return values, readElements(info, section, 0, values)
}

// ReadElements fills dst with consecutive elements of the named tensor, in
// row-major order, from element first on. They go straight into dst and nothing is
// kept, so goroutines may read parts of one tensor at once. It is an error if there
// is no such tensor, if T cannot hold its elements, if it ends before dst is full, or
// if reading fails; dst may then hold anything.
func ReadElements[T Element](f *File, name string, first int64, dst []T) error {
	info, section, err := lookupElements[T](f, name)
	if err == nil {
		err = readElements(info, section, first, dst)
	}
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

// lookupElements is lookup of a tensor whose elements T can hold.
func lookupElements[T Element](f *File, name string) (Info, *io.SectionReader, error) {
	info, section, err := f.lookup(name)
	switch {
	case err != nil:
	case info.DType.Size() != sizeOf[T]():
		err = fmt.Errorf("tensor %q is %s: its elements do not have %d bytes", name, info.DType, sizeOf[T]())
	case (info.DType == C64) != isComplex[T]():
		err = fmt.Errorf("tensor %q is %s: complex64 holds elements of C64 and no others", name, info.DType)
	}
	return info, section, err
}

func readElements[T Element](info Info, section *io.SectionReader, first int64, dst []T) error {
	unit, n := sizeOf[T](), int64(len(dst))
	if first < 0 || first > info.Len()-n {
		return fmt.Errorf("tensor %q: elements [%d, %d) are not all among its %d", info.Name, first, first+n, info.Len())
	}
	data := bytesOf(dst)
	if err := readPart(info, section, first*int64(unit), data); err != nil {
		return err
	}
	if bigEndian {
		reverseEach(data, info.DType.part())
	}
	return nil
}

func isComplex[T Element]() bool {
	var zero T
	return reflect.TypeOf(zero).Kind() == reflect.Complex64
}

func sizeOf[T Element]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// bytesOf returns the memory of values. Bytes may lie anywhere, so that this way
// round no alignment has to be checked.
func bytesOf[T Element](values []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*sizeOf[T]())
}

// bigEndian is whether memory has the bytes of an element in the other order than
// a file.
var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// reverseEach reverses each unit bytes of data.
func reverseEach(data []byte, unit int) {
	for ; len(data) >= unit; data = data[unit:] {
		slices.Reverse(data[:unit])
	}
}
