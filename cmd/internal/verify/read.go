// Package verify reads what a kernel made of a product, and has it judged.
package verify

import (
	"context"
	"fmt"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/cmd/internal/operand"
	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Inputs says what to read: a product, what a kernel made of it and what was to come
// out.
type Inputs struct {
	Operands operand.Product
	Got      string // safetensors or .npy file of the kernel's C
	C        string // name of C in Got; "": c, or the only tensor
	Claim    judge.Claim
	Workers  int               // as in oracle.Options
	Progress progress.Reporter // hears of the parts of the judgement in turn; nil: silent
}

// openGot opens the file of the kernel's C, unless it is a .npy file.
func (i *Inputs) openGot() (*operand.Source, error) {
	got := &operand.Source{BFloat16: i.Operands.BFloat16}
	if operand.IsNPY(i.Got) {
		return got, nil
	}
	var err error
	got.File, err = tensorfile.Open(i.Got)
	return got, err
}

// Run reads everything and judges C. When ctx ends it returns an error.
func (i *Inputs) Run(ctx context.Context) (*judge.Verdict, error) {
	files, err := i.Operands.Open()
	if err != nil {
		return nil, err
	}
	defer files.Close()
	source, err := i.openGot()
	if err != nil {
		return nil, err
	}
	if source.File != nil {
		defer source.File.Close()
	}
	a, b, err := files.Operands()
	if err != nil {
		return nil, err
	}
	got, err := i.findC(source)
	if err != nil {
		return nil, err
	}
	m, _ := a.Dims()
	n, _ := b.Dims()
	if err := operand.CheckC(got.Info, m, n); err != nil {
		return nil, fmt.Errorf("%w, the product of tensors %q and %q", err, a.Name, b.Name)
	}
	p := product{i, files, a, b, got, judge.Options{Workers: i.Workers, Progress: i.Progress}}
	if p.options.Bias, err = files.Bias(n); err != nil {
		return nil, err
	}
	switch got.DType {
	case safetensors.BF16:
		return check[fp8.BFloat16](ctx, &p)
	case safetensors.F16:
		return check[float16.Float16](ctx, &p)
	}
	return check[float32](ctx, &p)
}

// product is what was read, but for the values of C.
type product struct {
	*Inputs
	files   *operand.Files
	a, b    *tensor.Tensor
	got     operand.Tensor
	options judge.Options
}

// check reads C, and the old C if there is one, as the type that it has.
func check[T gemm.Output](ctx context.Context, p *product) (*judge.Verdict, error) {
	c, err := safetensors.Elements[T](p.got.File, p.got.Name)
	if err != nil {
		return nil, err
	}
	var old []T
	if p.Operands.Accumulate != "" {
		m, _ := p.a.Dims()
		n, _ := p.b.Dims()
		info, err := p.files.Old(m, n)
		if err != nil {
			return nil, err
		}
		if info.DType != p.got.DType {
			return nil, fmt.Errorf("tensor %q, the old C, is %s and tensor %q is %s: want the same type", info.Name, info.DType, p.got.Name, p.got.DType)
		}
		if old, err = safetensors.Elements[T](info.File, info.Name); err != nil {
			return nil, err
		}
	}
	return judge.Check(ctx, c, old, p.a, p.b, p.Claim, p.options)
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
