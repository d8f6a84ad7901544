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
	n, _, err := i.size()
	if err != nil {
		return -1
	}
	return n
}

// Bytes returns the size of the data in bytes, or -1 if no file can hold such a
// tensor: its DType is unknown, a dimension is negative, its size overflows, or its
// elements, of four or six bits, do not fill whole bytes.
// An Info that a [File] returned or [NewWriter] accepted never gives -1.
func (i Info) Bytes() int64 {
	_, bytes, err := i.size()
	if err != nil {
		return -1
	}
	return bytes
}

// size returns the elements, and the bytes of data, that type and shape ask for.
// Dimensions of 0 do not excuse the others from the overflow check, so that the answer
// does not depend on their order and strides computed from an accepted shape are safe.
func (i Info) size() (elements, bytes int64, err error) {
	unit := int64(i.DType.Bits())
	if unit == 0 {
		return 0, 0, fmt.Errorf("unknown dtype %q", i.DType)
	}
	most := math.MaxInt64 / max(unit/8, 1)
	elements = 1
	for d, n := range i.Shape {
		switch {
		case n < 0:
			return 0, 0, fmt.Errorf("shape[%d] is %d: negative", d, n)
		case n > 0 && elements > most/int64(n):
			return 0, 0, fmt.Errorf("the size of %s %v overflows 63 bits at shape[%d]", i.DType, i.Shape, d)
		case n > 0:
			elements *= int64(n)
		}
	}
	if slices.Contains(i.Shape, 0) {
		return 0, 0, nil
	}
	whole, rest := elements/8*unit, elements%8*unit
	if rest%8 != 0 {
		return 0, 0, fmt.Errorf("%s %v has %d elements of %d bits, which do not fill whole bytes", i.DType, i.Shape, elements, unit)
	}
	return elements, whole + rest/8, nil
}

// clone returns a copy that shares nothing with i.
func (i Info) clone() Info {
	i.Shape = slices.Clone(i.Shape)
	return i
}
