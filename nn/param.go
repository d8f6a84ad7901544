package nn

import "github.com/octavo-fp8/octavo/internal/random"

// Param is a matrix that is trained: its FP32 master values and their gradient,
// both [Rows, Cols] and never nil. A vector has one row.
type Param struct {
	Name       string // as in a Llama checkpoint
	Rows, Cols int
	Value      []float32
	Grad       []float32
	Decay      bool // weight decay applies: true for matrices, false for norms
}

// NewParam returns a matrix of zeros, whose gradient is zero.
func NewParam(name string, rows, cols int) *Param {
	return &Param{
		Name: name, Rows: rows, Cols: cols,
		Value: make([]float32, rows*cols),
		Grad:  make([]float32, rows*cols),
		Decay: true,
	}
}

// newGain returns a vector of ones without weight decay.
func newGain(name string, n int) *Param {
	p := NewParam(name, 1, n)
	p.Decay = false
	for i := range p.Value {
		p.Value[i] = 1
	}
	return p
}

// randomize draws the values from a normal distribution.
func (p *Param) randomize(seed, stream uint64, deviation float32) {
	for i := range p.Value {
		p.Value[i] = random.Normal(seed, stream, uint64(i)) * deviation
	}
}
