package attention

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// Operand is Q, K or V: a stack of matrices [heads, tokens, dim], either of codes with
// scales or of values. The zero Operand is none.
type Operand struct {
	// Codes are FP8 or narrower, of shape [heads, tokens, dim]. Its grid of scales is that
	// of the matrix of heads·tokens rows: blocks of tokens rows are one scale for each
	// head, blocks of one row one for each token of each head.
	Codes *tensor.Tensor

	// BFloat16 or Float32 are values, row-major, of the given shape, where Codes is nil.
	BFloat16 []fp8.BFloat16
	Float32  []float32
	Shape    [3]int
}

// Dims returns the numbers of heads, tokens and elements of a token's row. They are 0 for
// codes that are not of three dimensions.
func (o Operand) Dims() (heads, tokens, dim int) {
	if o.Codes == nil {
		return o.Shape[0], o.Shape[1], o.Shape[2]
	}
	if s := o.Codes.Shape; len(s) == 3 {
		return s[0], s[1], s[2]
	}
	return 0, 0, 0
}

// check reports what is wrong with the operand by itself.
func (o Operand) check(name string) error {
	if o.Codes == nil {
		return o.checkValues(name)
	}
	if n := len(o.Codes.Shape); n != 3 {
		return fmt.Errorf("%w: %s has %d dimensions: it must be [heads, tokens, dim]",
			ErrShape, name, n)
	}
	if err := o.Codes.CheckScales(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (o Operand) checkValues(name string) error {
	n := 1
	for _, extent := range o.Shape {
		if extent < 0 || extent > 0 && n > maxElements/extent {
			return fmt.Errorf("%w: %s has shape %v", ErrShape, name, o.Shape)
		}
		n *= extent
	}
	if o.BFloat16 != nil && o.Float32 != nil {
		return fmt.Errorf("%w: %s has values of bfloat16 and of float32", ErrShape, name)
	}
	if have := len(o.BFloat16) + len(o.Float32); n != have {
		return fmt.Errorf("%w: %s has %d values for shape %v", ErrShape, name, have, o.Shape)
	}
	return nil
}

// maxElements keeps products of extents within an int of every machine.
const maxElements = 1<<31 - 1
