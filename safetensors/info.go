package safetensors

import (
	"fmt"
	"math"
	"slices"
)

// Info describes one tensor.
type Info struct {
	Name  string
	DType DType
	Shape []int // outermost dimension first; empty for a scalar

	// Offset is where the tensor begins, in bytes from the start of the data.
	// Reading sets it; writing ignores it.
	Offset int64
}

// Len returns the number of elements, 1 for a scalar, or -1 where Bytes does.
func (i Info) Len() int64 {
	size, err := i.size()
	if err != nil {
		return -1
	}
	return size / int64(i.DType.Size())
}

// Bytes returns the size of the data in bytes, or -1 if no file can hold such a
// tensor: its DType is unknown, a dimension is negative, or its size overflows.
// An Info that a [File] returned or [NewWriter] accepted never gives -1.
func (i Info) Bytes() int64 {
	size, err := i.size()
	if err != nil {
		return -1
	}
	return size
}

// size returns the bytes of data that type and shape ask for. Dimensions of 0 do
// not excuse the others from the overflow check, so that the answer does not
// depend on their order and strides computed from an accepted shape are safe.
func (i Info) size() (int64, error) {
	unit := i.DType.Size()
	if unit == 0 {
		return 0, fmt.Errorf("unknown dtype %q", i.DType)
	}
	size := int64(unit)
	for d, n := range i.Shape {
		switch {
		case n < 0:
			return 0, fmt.Errorf("shape[%d] is %d: negative", d, n)
		case n > 0 && size > math.MaxInt64/int64(n):
			return 0, fmt.Errorf("the size of %s %v overflows 63 bits at shape[%d]", i.DType, i.Shape, d)
		case n > 0:
			size *= int64(n)
		}
	}
	if slices.Contains(i.Shape, 0) {
		return 0, nil
	}
	return size, nil
}

// clone returns a copy that shares nothing with i.
func (i Info) clone() Info {
	i.Shape = slices.Clone(i.Shape)
	return i
}
