package tensor

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/octavo-fp8/octavo/internal/meter"
)

// Matrix returns t as a gonum matrix without copying: its elements are decoded
// when they are read, as float64 and thus exactly. t must not be empty, since
// gonum has no empty matrices to read, and must not change meanwhile. It panics if t
// does not pass its Check.
func (t *Tensor) Matrix() mat.Matrix {
	t.mustBeWhole()
	return view{t}
}

type view struct{ t *Tensor }

func (v view) Dims() (rows, cols int) { return v.t.Dims() }

func (v view) At(i, j int) float64 {
	rows, cols := v.t.Dims()
	if i < 0 || i >= rows {
		panic(mat.ErrRowAccess)
	}
	if j < 0 || j >= cols {
		panic(mat.ErrColAccess)
	}
	return at[float64](v.t, i, j)
}

func (v view) T() mat.Matrix { return mat.Transpose{Matrix: v} }

// QuantizeMatrix is [Quantize] of a gonum matrix; t's Shape becomes its size. It
// returns an error, and changes nothing, if m is nil.
func QuantizeMatrix(ctx context.Context, t *Tensor, m mat.Matrix, q Quantizer) error {
	switch {
	case t == nil:
		return errNil
	case m == nil:
		return fmt.Errorf("tensor %q: the matrix is nil", t.Name)
	}
	v := *t
	rows, cols := m.Dims()
	v.Shape = []int{rows, cols}
	if err := v.CheckShape(); err != nil {
		return err
	}
	values := make([]float64, 0, rows*cols)
	for i := range rows {
		if err := meter.Err(ctx); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		for j := range cols {
			values = append(values, m.At(i, j))
		}
	}
	if err := Quantize(ctx, &v, values, q); err != nil {
		return err
	}
	*t = v
	return nil
}
