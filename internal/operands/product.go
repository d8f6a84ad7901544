package operands

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Product says where the operands of a product are, what is added to it, and what a
// kernel made of it.
type Product struct {
	// Files are safetensors files: one of A and one of B, or one of both, or none
	// where all names say files of their own.
	Files []string
	A, B  Operand
	// Bias and Accumulate name a vector that is added to every row and the old C that
	// the product is added to. They are looked for in B's file and then in A's. "": none.
	Bias, Accumulate string
	// Got is the file of the kernel's C: safetensors, or a name that says a file of its
	// own. C is the name of the tensor in a safetensors file; "": c, or the only one.
	// "": there is none.
	Got, C   string
	BFloat16 bool // arrays of type <u2 are bfloat16
}

// Files are the files of a product, open.
type Files struct {
	p         *Product
	a, b, got Source
	open      []*safetensors.File
}

// Open opens the files. It returns an error if one is not there or not a whole
// safetensors file. A name that says a file of its own is looked at when it is asked
// for.
func (p *Product) Open() (*Files, error) {
	if len(p.Files) > 2 {
		return nil, fmt.Errorf("operands: %d files: want two at most, of A and of B", len(p.Files))
	}
	f := &Files{p: p, a: Source{BFloat16: p.BFloat16}}
	for _, path := range p.Files {
		if _, err := f.openFile(path); err != nil {
			f.Close()
			return nil, err
		}
	}
	f.b, f.got = f.a, f.a
	if n := len(f.open); n > 0 {
		f.a.File, f.b.File = f.open[0], f.open[n-1]
		if n > 1 {
			f.a.Path, f.b.Path = p.Files[0], p.Files[n-1]
		}
	}
	if _, file := Path(p.Got); p.Got != "" && !file {
		var err error
		if f.got.File, err = f.openFile(p.Got); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// In returns the files of a product all of whose tensors, C included, are in one that is
// open, or in memory. Its names are looked up there, unless they say files of their own;
// p.Files and p.Got do not count.
func (p *Product) In(file *safetensors.File) *Files {
	in := Source{File: file, BFloat16: p.BFloat16}
	return &Files{p: p, a: in, b: in, got: in}
}

func (f *Files) openFile(path string) (*safetensors.File, error) {
	file, err := open(path)
	if err == nil {
		f.open = append(f.open, file)
	}
	return file, err
}

func open(path string) (*safetensors.File, error) {
	file, err := safetensors.Open(path)
	var system *fs.PathError
	switch {
	case errors.As(err, &system):
		return nil, fmt.Errorf("operands: %w: name a safetensors file", err)
	case err != nil:
		return nil, fmt.Errorf("operands: %w: want a complete safetensors file", err)
	}
	return file, nil
}

// Close closes the files that [Product.Open] opened.
func (f *Files) Close() {
	for _, file := range f.open {
		file.Close()
	}
}

// A reads A.
func (f *Files) A() (*tensor.Tensor, error) { return f.p.A.Read(&f.a) }

// B reads B.
func (f *Files) B() (*tensor.Tensor, error) { return f.p.B.Read(&f.b) }

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
		return nil, sentinel.Errorf(ErrResult, "operands: tensor %q, the bias, is %s of shape %v: want F32 and %d values", bias.Name, bias.DType, bias.Shape, n)
	}
	return bias.File.Float32s(bias.Name)
}

// Old finds the C that the product of a and b is added to, F32, BF16 or F16. There must
// be one.
func (f *Files) Old(a, b *tensor.Tensor) (Tensor, error) {
	old, err := f.find(f.p.Accumulate)
	if err != nil {
		return old, err
	}
	switch old.DType {
	case safetensors.F32, safetensors.BF16, safetensors.F16:
	default:
		return old, sentinel.Errorf(ErrResult, "operands: tensor %q, the old C, is %s: want F32, BF16 or F16", old.Name, old.DType)
	}
	return old, checkShape(old, a, b)
}

// Result finds the kernel's C, the product of a and b: F32, BF16 or F16.
func (f *Files) Result(a, b *tensor.Tensor) (Tensor, error) {
	name := f.p.C
	switch {
	case f.got.File == nil:
		name = f.p.Got
	case name == "" && len(f.got.File.Tensors()) == 1:
		name = f.got.File.Tensors()[0].Name
	case name == "" && !f.got.has("c"):
		return Tensor{}, sentinel.Errorf(ErrName, "operands: %s has %d tensors and none is called c", f.p.Got, len(f.got.File.Tensors()))
	case name == "":
		name = "c"
	}
	c, err := f.got.Find(name)
	if err != nil {
		return c, err
	}
	switch c.DType {
	case safetensors.F32, safetensors.BF16, safetensors.F16:
		return c, checkShape(c, a, b)
	case safetensors.U16:
		return c, sentinel.Errorf(ErrUint16, "operands: tensor %q is U16: C is F32, BF16 or F16", c.Name)
	}
	return c, sentinel.Errorf(ErrResult, "operands: tensor %q is %s: C is F32, BF16 or F16", c.Name, c.DType)
}

// find looks in B's file and then in A's. It fails as in B's.
func (f *Files) find(name string) (Tensor, error) {
	if f.a.File != nil && !f.b.has(name) && f.a.has(name) {
		return f.a.Find(name)
	}
	return f.b.Find(name)
}

// checkShape refuses a C that is not a matrix of the rows of a by those of b.
func checkShape(c Tensor, a, b *tensor.Tensor) error {
	m, _ := a.Dims()
	n, _ := b.Dims()
	rows, cols := (&tensor.Tensor{Shape: c.Shape}).Dims()
	if rows != m || cols != n {
		return sentinel.Errorf(ErrResult, "operands: tensor %q of shape %v is not C: want %dx%d, the product of tensors %q and %q", c.Name, c.Shape, m, n, a.Name, b.Name)
	}
	return nil
}
