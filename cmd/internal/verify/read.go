// Package verify reads what a kernel made of a product, and has it judged.
package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/cmd/internal/operand"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Inputs says what to read, a product and what a kernel made of it, and what is claimed
// of that.
type Inputs struct {
	operands.Product
	Claim   judge.Claim
	Options judge.Options // but for the bias
}

// Run reads everything and judges C. When ctx ends it returns an error.
func (i *Inputs) Run(ctx context.Context) (*judge.Verdict, error) {
	files, err := i.Open()
	if err != nil {
		return nil, err
	}
	defer files.Close()
	p := product{Inputs: i, files: files, options: i.Options}
	if p.a, p.b, err = operand.Read(&i.Product, files); err != nil {
		return nil, err
	}
	if p.got, err = files.Result(p.a, p.b); err != nil {
		return nil, i.hint(err)
	}
	n, _ := p.b.Dims()
	if p.options.Bias, err = files.Bias(n); err != nil {
		return nil, operand.Missing(&i.Product, err)
	}
	if err := p.checkMemory(); err != nil {
		return nil, err
	}
	switch p.got.DType {
	case safetensors.BF16:
		return check[fp8.BFloat16](ctx, &p)
	case safetensors.F16:
		return check[float16.Float16](ctx, &p)
	}
	return check[float32](ctx, &p)
}

// hint adds what to do about an error of C.
func (i *Inputs) hint(err error) error {
	switch {
	case errors.Is(err, operands.ErrName) && i.C == "":
		return fmt.Errorf("%w: name one with --c", err)
	case errors.Is(err, operands.ErrUint16):
		return fmt.Errorf("%w; --npy-bf16 says that <u2 is bfloat16", err)
	case errors.Is(err, operands.ErrName):
		return fmt.Errorf("%w: octavo inspect lists the tensors", err)
	}
	return err
}

// product is what was read, but for the values of C.
type product struct {
	*Inputs
	files   *operands.Files
	a, b    *tensor.Tensor
	got     operands.Tensor
	options judge.Options
}

// checkMemory returns an error where a C that is judged whole does not fit in memory with what
// it is compared with: the exact one, a claimed one, and a float64 for each bound.
func (p *product) checkMemory() error {
	if p.options.Sample != nil {
		return nil // reading C checks its size
	}
	copies := int64(2)
	if p.Accumulate != "" {
		copies++
	}
	if p.Claim.Want != judge.Exact {
		copies++
	}
	what := fmt.Sprintf("judging all of tensor %q of shape %v", p.got.Name, p.got.Shape)
	return memory.Check(p.got.Len(), copies*int64(p.got.DType.Size())+8, what, "look at a part of it with --sample")
}

// check reads C, and the old C if there is one, as the type that it has.
func check[T gemm.Output](ctx context.Context, p *product) (*judge.Verdict, error) {
	c, err := safetensors.Elements[T](p.got.File, p.got.Name)
	if err != nil {
		return nil, err
	}
	var old []T
	if p.Accumulate != "" {
		was, err := p.files.Old(p.a, p.b)
		if err != nil {
			return nil, operand.Missing(&p.Product, err)
		}
		if was.DType != p.got.DType {
			return nil, fmt.Errorf("tensor %q, the old C, is %s and tensor %q is %s: want the same type", was.Name, was.DType, p.got.Name, p.got.DType)
		}
		if old, err = safetensors.Elements[T](was.File, was.Name); err != nil {
			return nil, err
		}
	}
	return judge.Check(ctx, c, old, p.a, p.b, p.Claim, p.options)
}
