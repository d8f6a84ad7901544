package verify

import (
	"context"
	"fmt"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/cmd/internal/operand"
	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Inputs says what to read: a product, what a kernel made of it and what was to come
// out.
type Inputs struct {
	In               string // safetensors file of the operands; "": they are .npy files
	Got              string // safetensors or .npy file of the kernel's C
	C                string // name of C in Got; "": c, or the only tensor
	A, B             operand.Operand
	Bias, Accumulate string // names of tensors; "": none
	BFloat16         bool   // arrays of type <u2 are bfloat16
	Demand           Demand
	Workers          int               // as in oracle.Options
	Progress         progress.Reporter // hears of the parts of the judgement in turn; nil: silent
}

// files are the files that are read.
type files struct{ in, got operand.Source }

func (f *files) close() {
	for _, s := range []*operand.Source{&f.in, &f.got} {
		if s.File != nil {
			s.File.Close()
		}
	}
}

// open opens the files.
func (i *Inputs) open() (*files, error) {
	source := operand.Source{NPY: true, BFloat16: i.BFloat16}
	f := &files{source, source}
	var err error
	if i.In != "" {
		if f.in.File, err = tensorfile.Open(i.In); err != nil {
			return nil, err
		}
	}
	if !operand.IsNPY(i.Got) {
		if f.got.File, err = tensorfile.Open(i.Got); err != nil {
			f.close()
			return nil, err
		}
	}
	return f, nil
}

// Run reads everything and judges C as [Run] does. When ctx ends it returns an error.
func (i *Inputs) Run(ctx context.Context) (*Result, error) {
	files, err := i.open()
	if err != nil {
		return nil, err
	}
	defer files.close()
	a, b, err := operand.ReadPair(&files.in, i.A, i.B)
	if err != nil {
		return nil, err
	}
	got, err := i.findC(&files.got)
	if err != nil {
		return nil, err
	}
	m, _ := a.Dims()
	n, _ := b.Dims()
	if err := checkShape(got.Info, m, n); err != nil {
		return nil, fmt.Errorf("%w, the product of tensors %q and %q", err, a.Name, b.Name)
	}
	job := Job{A: a, B: b, Demand: i.Demand, Options: oracle.Options{Workers: i.Workers, Progress: i.Progress, Accumulate: i.Accumulate != ""}}
	if i.Bias != "" {
		if job.Options.Bias, err = readBias(&files.in, i.Bias, n); err != nil {
			return nil, err
		}
	}
	switch got.DType {
	case safetensors.BF16:
		return judge[fp8.BFloat16](ctx, i, job, files, got)
	case safetensors.F16:
		return judge[float16.Float16](ctx, i, job, files, got)
	}
	return judge[float32](ctx, i, job, files, got)
}

// judge reads C, and the old C if there is one, as the type that it has.
func judge[T gemm.Output](ctx context.Context, i *Inputs, job Job, files *files, got operand.Tensor) (*Result, error) {
	c, err := safetensors.Elements[T](got.File, got.Name)
	if err != nil {
		return nil, err
	}
	var old []T
	if job.Options.Accumulate {
		info, err := files.in.Find(i.Accumulate)
		if err != nil {
			return nil, err
		}
		if info.DType != got.DType {
			return nil, fmt.Errorf("tensor %q, the old C, is %s and tensor %q is %s: want the same type", info.Name, info.DType, got.Name, got.DType)
		}
		m, _ := job.A.Dims()
		n, _ := job.B.Dims()
		if err := checkShape(info.Info, m, n); err != nil {
			return nil, err
		}
		if old, err = safetensors.Elements[T](info.File, info.Name); err != nil {
			return nil, err
		}
	}
	r, err := Run(ctx, job, c, old)
	if err == nil {
		r.Type = string(got.DType)
	}
	return r, err
}

// findC returns the description of C: the array of a .npy file, the tensor of the
// given name, c, or the only one.
func (i *Inputs) findC(s *operand.Source) (c operand.Tensor, err error) {
	name := i.C
	switch {
	case s.File == nil:
		name = i.Got
	case name == "" && len(s.File.Tensors()) == 1:
		name = s.File.Tensors()[0].Name
	case name == "" && !tensorfile.Has(s.File, "c"):
		return c, fmt.Errorf("%s has %d tensors and none is called c: name one with --c", i.Got, len(s.File.Tensors()))
	case name == "":
		name = "c"
	}
	if c, err = s.Find(name); err != nil {
		return c, err
	}
	switch c.DType {
	case safetensors.F32, safetensors.BF16, safetensors.F16:
		return c, nil
	case safetensors.U16:
		return c, fmt.Errorf("tensor %q is U16: C is F32, BF16 or F16; --npy-bf16 says that <u2 is bfloat16", c.Name)
	}
	return c, fmt.Errorf("tensor %q is %s: C is F32, BF16 or F16", c.Name, c.DType)
}

// checkShape refuses a C that is not a matrix of m x n.
func checkShape(c safetensors.Info, m, n int) error {
	rows, cols := (&tensor.Tensor{Shape: c.Shape}).Dims()
	if rows != m || cols != n {
		return fmt.Errorf("tensor %q of shape %v is not C: want %dx%d", c.Name, c.Shape, m, n)
	}
	return nil
}

// readBias reads a vector of n values.
func readBias(s *operand.Source, name string, n int) ([]float32, error) {
	bias, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	if bias.DType != safetensors.F32 || bias.Len() != int64(n) {
		return nil, fmt.Errorf("tensor %q, the bias, is %s of shape %v: want F32 and %d values", bias.Name, bias.DType, bias.Shape, n)
	}
	return bias.File.Float32s(bias.Name)
}
