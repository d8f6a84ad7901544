// Package audit reads or makes a product whose test is audited, and writes what an audit
// found.
package audit

import (
	"context"
	"fmt"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/cmd/internal/operand"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/audit"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Inputs says which product it is: one of files or, if Case is not "", that of a public
// case or, if Size is not zero, one that is made.
type Inputs struct {
	operands.Product
	Case string
	Size Size

	Type  fault.Type // of C; an old C says its own
	Claim judge.Claim
	Test  audit.Test
}

// Size says what is made: the shape of a product, and how its operands are drawn.
type Size struct {
	M, N, K int
	Pattern oracle.Pattern
	A, B    scaling.Recipe
	Seed    uint64
}

// Found is a report and the product that it is of.
type Found struct {
	*audit.Report
	Product fault.Product
}

// Run reads or makes the product and audits the test.
func (i *Inputs) Run(ctx context.Context, o audit.Options) (*Found, error) {
	if i.Case != "" {
		c, err := audit.CaseNamed(i.Case)
		if err != nil {
			return nil, err
		}
		r, err := c.Run(ctx, o)
		if err != nil {
			return nil, err
		}
		p, _, err := c.Product(ctx)
		return &Found{r, p}, err
	}
	p, err := i.product(ctx)
	if err != nil {
		return nil, err
	}
	p.Accumulation = i.Claim.Accumulation
	p.Kernel = i.Claim.Accumulation.Kernel
	if i.Claim.Want != judge.Exact {
		p.Kernel, p.Bits = i.Claim.Kernel, true
	}
	r, err := audit.RunType(ctx, i.Type, p, i.Test, o)
	return &Found{r, p}, err
}

// product reads or makes the operands.
func (i *Inputs) product(ctx context.Context) (p fault.Product, err error) {
	if i.Size != (Size{}) {
		if p.A, err = i.made(ctx, "a", i.Size.M, &i.A, i.Size.A, i.Size.Seed); err != nil {
			return p, err
		}
		p.B, err = i.made(ctx, "b", i.Size.N, &i.B, i.Size.B, i.Size.Seed+1)
		return p, err
	}
	files, err := i.Open()
	if err != nil {
		return p, err
	}
	defer files.Close()
	if p.A, p.B, err = operand.Read(&i.Product, files); err != nil {
		return p, err
	}
	n, _ := p.B.Dims()
	if p.Bias, err = files.Bias(n); err != nil {
		return p, operand.Missing(&i.Product, err)
	}
	if i.Accumulate != "" {
		p.Old, err = i.old(files, p.A, p.B)
	}
	return p, err
}

// made quantizes values that are drawn.
func (i *Inputs) made(ctx context.Context, name string, rows int, o *operands.Operand, recipe scaling.Recipe, seed uint64) (*tensor.Tensor, error) {
	if o.Block != nil {
		recipe.Block = *o.Block
	}
	if o.Format != nil {
		recipe.Format = *o.Format
	}
	values := oracle.Generator{Pattern: i.Size.Pattern, Rows: rows, Cols: i.Size.K, Block: recipe.Block, Format: recipe.Format, Seed: seed}.Values()
	t := &tensor.Tensor{Name: name, Shape: []int{rows, i.Size.K}}
	return t, scaling.Quantize(ctx, t, values, scaling.Quantizer{Recipe: recipe})
}

// old reads the old C, whose type is that of C.
func (i *Inputs) old(files *operands.Files, a, b *tensor.Tensor) ([]float32, error) {
	was, err := files.Old(a, b)
	if err != nil {
		return nil, operand.Missing(&i.Product, err)
	}
	switch was.DType {
	case safetensors.BF16:
		i.Type = fault.BFloat16
		return widened(safetensors.Elements[fp8.BFloat16](was.File, was.Name))
	case safetensors.F16:
		i.Type = fault.Float16
		return widened(safetensors.Elements[float16.Float16](was.File, was.Name))
	}
	i.Type = fault.Float32
	return safetensors.Elements[float32](was.File, was.Name)
}

func widened[T interface{ Float32() float32 }](c []T, err error) ([]float32, error) {
	if err != nil {
		return nil, err
	}
	v := make([]float32, len(c))
	for i, x := range c {
		v[i] = x.Float32()
	}
	return v, nil
}

// Parse reads the shape of a product, such as 256x256x4096: rows, columns and products of
// each element.
func (s *Size) Parse(text string) error {
	var m, n, k int
	if _, err := fmt.Sscanf(text, "%dx%dx%d", &m, &n, &k); err != nil || text != fmt.Sprintf("%dx%dx%d", m, n, k) {
		return fmt.Errorf("want rows, columns and K such as 256x256x4096")
	}
	for _, v := range []int{m, n, k} {
		if v < 1 || v > mostExtent {
			return fmt.Errorf("want extents from 1 to %d", mostExtent)
		}
	}
	if m*k > mostElements || n*k > mostElements || m*n > mostElements {
		return fmt.Errorf("want matrices of %d elements at most", mostElements)
	}
	s.M, s.N, s.K = m, n, k
	return nil
}

// Limits of what is made. A fault is put into all of C, and there are some hundred.
const (
	mostExtent   = 1 << 20
	mostElements = 1 << 26
)
