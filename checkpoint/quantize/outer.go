package quantize

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// outerScales are scales above those of blocks, as a recipe has them.
type outerScales struct {
	byRow   bool // one for each row; otherwise one for the matrix
	divisor bool
}

// newOuterScales returns those of a recipe, or nil if it has none.
func newOuterScales(r scaling.Recipe) (*outerScales, error) {
	if !r.Profile.Outer() {
		return nil, nil
	}
	// What quantizing one value gives is what any matrix gets.
	t := tensor.Tensor{Shape: []int{1, 1}}
	if err := scaling.Quantize(context.Background(), &t, []float32{1}, scaling.Quantizer{Recipe: r}); err != nil {
		return nil, err
	}
	return &outerScales{byRow: t.Outer.Rows == 1, divisor: t.Outer.Divide}, nil
}

// suffix is what is added to the name of codes.
func (o *outerScales) suffix() string {
	if o.divisor {
		return operands.OuterDivisorSuffix
	}
	return operands.OuterSuffix
}

// count returns how many a matrix of so many rows has.
func (o *outerScales) count(rows int) int {
	if o.byRow {
		return rows
	}
	return 1
}

// outerName is what the metadata say of a recipe.
func outerName(r scaling.Recipe) string {
	switch o, err := newOuterScales(r); {
	case o == nil || err != nil:
		return operands.NoOuter
	case o.divisor:
		return operands.OuterDivisors
	}
	return operands.OuterFactor
}
