package operand

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Product says where the operands of a product are, and what is added to it.
type Product struct {
	// Files are safetensors files: one of A and one of B, or one of both, or none
	// where all tensors are .npy files.
	Files []string
	A, B  Operand
	// Bias and Accumulate name a vector that is added to every row and the old C that
	// the product is added to. They are looked for in B's file and then in A's. "": none.
	Bias, Accumulate string
	BFloat16         bool // arrays of type <u2 are bfloat16
}

// Files are the files of a product, open.
type Files struct {
	p    *Product
	a, b Source
	open []*safetensors.File
}

// Open opens the files.
func (p *Product) Open() (*Files, error) {
	f := &Files{p: p, a: Source{BFloat16: p.BFloat16}}
	for _, path := range p.Files {
		file, err := tensorfile.Open(path)
		if err != nil {
			f.Close()
			return nil, err
		}
		f.open = append(f.open, file)
	}
	f.b = f.a
	if n := len(f.open); n > 0 {
		f.a.File, f.b.File = f.open[0], f.open[n-1]
		if n > 1 {
			f.a.Path, f.b.Path = p.Files[0], p.Files[n-1]
		}
	}
	return f, nil
}

// Close closes the files.
func (f *Files) Close() {
	for _, file := range f.open {
		file.Close()
	}
}

// Operands reads A and B.
func (f *Files) Operands() (a, b *tensor.Tensor, err error) {
	return ReadPair(&f.a, &f.b, f.p.A, f.p.B)
}

// Bias reads the vector of n values that is added to every row, or returns nil where
// there is none.
func (f *Files) Bias(n int) ([]float32, error) {
	if f.p.Bias == "" {
		return nil, nil
	}
	bias, err := f.find(f.p.Bias)
	if err != nil {
		return nil, err
	}
	if bias.DType != safetensors.F32 || bias.Len() != int64(n) {
		return nil, fmt.Errorf("tensor %q, the bias, is %s of shape %v: want F32 and %d values", bias.Name, bias.DType, bias.Shape, n)
	}
	return bias.File.Float32s(bias.Name)
}

// Old finds the C that the product is added to, a matrix of m x n. There must be one.
func (f *Files) Old(m, n int) (Tensor, error) {
	old, err := f.find(f.p.Accumulate)
	if err != nil {
		return old, err
	}
	switch old.DType {
	case safetensors.F32, safetensors.BF16, safetensors.F16:
	default:
		return old, fmt.Errorf("tensor %q, the old C, is %s: want F32, BF16 or F16", old.Name, old.DType)
	}
	return old, CheckC(old.Info, m, n)
}

// find looks in B's file and then in A's. It fails as in B's.
func (f *Files) find(name string) (Tensor, error) {
	if f.a.File != nil && !tensorfile.Has(f.b.File, name) && tensorfile.Has(f.a.File, name) {
		return f.a.Find(name)
	}
	return f.b.Find(name)
}

// CheckC refuses a C that is not a matrix of m x n.
func CheckC(c safetensors.Info, m, n int) error {
	rows, cols := (&tensor.Tensor{Shape: c.Shape}).Dims()
	if rows != m || cols != n {
		return fmt.Errorf("tensor %q of shape %v is not C: want %dx%d", c.Name, c.Shape, m, n)
	}
	return nil
}
