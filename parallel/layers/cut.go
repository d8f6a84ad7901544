package layers

import (
	"strings"

	"github.com/octavo-fp8/octavo/nn"
)

// cut is a parameter of a slice as part of the whole one: rows from Row and columns from Col
// on.
type cut struct {
	*nn.Param
	Of       string // the name of the whole
	Row, Col int
}

// newCut returns the cut of a parameter of a slice, whose name is that of the whole but for
// ".slice." and a number.
func newCut(p *nn.Param, row, col int) cut {
	before, after, ok := strings.Cut(p.Name, ".slice.")
	if !ok {
		return cut{p, p.Name, row, col}
	}
	_, rest, _ := strings.Cut(after, ".")
	return cut{p, before + "." + rest, row, col}
}

// Load takes the values from the whole.
func (c cut) Load(whole *nn.Param) error {
	return c.each(whole, func(at, n int, row int) { copy(c.Value[row*c.Cols:][:n], whole.Value[at:]) })
}

// Store writes values, which are as many as those of the parameter, to those of the whole:
// its Value, its Grad, or others of as many.
func (c cut) Store(dst []float32, whole *nn.Param, values []float32) error {
	if len(values) != c.Rows*c.Cols || len(dst) != len(whole.Value) {
		return inputError("%q: %d values of a cut of %d to %d of a whole of %d",
			c.Name, len(values), c.Rows*c.Cols, len(dst), len(whole.Value))
	}
	return c.each(whole, func(at, n int, row int) { copy(dst[at:], values[row*c.Cols:][:n]) })
}

// each calls f for each row: where it begins in the whole and how long it is.
func (c cut) each(whole *nn.Param, f func(at, n, row int)) error {
	if whole == nil || c.Row+c.Rows > whole.Rows || c.Col+c.Cols > whole.Cols {
		return inputError("%q: a cut of [%d, %d] from row %d and column %d on is not in the whole, %q",
			c.Name, c.Rows, c.Cols, c.Row, c.Col, c.Of)
	}
	for row := range c.Rows {
		f((c.Row+row)*whole.Cols+c.Col, c.Cols, row)
	}
	return nil
}

// at returns where the cut is.
func (c cut) at() [3]any { return [3]any{c.Of, c.Row, c.Col} }
