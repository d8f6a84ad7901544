package tensor

import "gonum.org/v1/gonum/mat"

// Matrix returns t as a gonum matrix without copying: its elements are decoded
// when they are read, as float64 and thus exactly. t must not be empty, since
// gonum has no empty matrices to read, and must not change meanwhile.
func (t *Tensor) Matrix() mat.Matrix { return view{t} }

type view struct{ t *Tensor }

func (v view) Dims() (rows, cols int) { return v.t.Dims() }

func (v view) At(i, j int) float64 {
	rows, cols := v.t.Dims()
	if uint(i) >= uint(rows) {
		panic(mat.ErrRowAccess)
	}
	if uint(j) >= uint(cols) {
		panic(mat.ErrColAccess)
	}
	return at[float64](v.t, i, j)
}

func (v view) T() mat.Matrix { return mat.Transpose{Matrix: v} }

// QuantizeMatrix is [Quantize] of a gonum matrix; t's Shape becomes its size.
func QuantizeMatrix(t *Tensor, m mat.Matrix, q Quantization) error {
	rows, cols := m.Dims()
	values := make([]float64, 0, rows*cols)
	for i := range rows {
		for j := range cols {
			values = append(values, m.At(i, j))
		}
	}
	shape := t.Shape
	t.Shape = []int{rows, cols}
	err := Quantize(t, values, q)
	if err != nil {
		t.Shape = shape
	}
	return err
}
