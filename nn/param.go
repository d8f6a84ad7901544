package nn

import "github.com/octavo-fp8/octavo/internal/random"

// Param is a matrix that is trained: its FP32 master values and their gradient,
// both [Rows, Cols] and never nil. A vector has one row.
type Param struct {
	Name       string // such as "model.norm.weight"; unique in a model
	Rows, Cols int
	Value      []float32
	Grad       []float32

	// Decay says whether weight decay applies: [NewParam] sets it. A Param without it
	// that has one row is kept as a vector by a checkpoint.
	Decay bool
}

// NewParam returns a matrix of zeros, whose gradient is zero. The error is
// [ErrConfig] if a size is not positive or the matrix would be too large.
func NewParam(name string, rows, cols int) (*Param, error) {
	if err := checkMatrix(name, rows, cols); err != nil {
		return nil, err
	}
	return newParam(name, rows, cols), nil
}

// newParam is NewParam for sizes that were checked.
func newParam(name string, rows, cols int) *Param {
	return &Param{
		Name: name, Rows: rows, Cols: cols,
		Value: make([]float32, rows*cols),
		Grad:  make([]float32, rows*cols),
		Decay: true,
	}
}

// newGain returns a vector of ones without weight decay.
func newGain(name string, n int) *Param {
	p := newParam(name, 1, n)
	p.Decay = false
	for i := range p.Value {
		p.Value[i] = 1
	}
	return p
}

// newMatrix returns a matrix of zeros for sizes that were checked.
func (s *Shared) newMatrix(name string, rows, cols int) *Param {
	if s.zeros == nil || rows == 1 {
		return newParam(name, rows, cols)
	}
	zeros := s.zeros[: rows*cols : rows*cols]
	return &Param{Name: name, Rows: rows, Cols: cols, Value: zeros, Grad: zeros, Decay: true}
}

// Randomize draws the values from a normal distribution of mean 0. They depend on
// seed, stream and deviation alone; parameters with different streams are
// independent.
func (p *Param) Randomize(seed, stream uint64, deviation float32) {
	for i := range p.Value {
		p.Value[i] = random.Normal(seed, stream, uint64(i)) * deviation
	}
}

// ZeroGrad sets the gradients of params to zero.
func ZeroGrad(params []*Param) {
	for _, p := range params {
		clear(p.Grad)
	}
}
