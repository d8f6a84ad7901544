package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/oracle/flash"
	judged "github.com/octavo-fp8/octavo/oracle/judge/attention"
	"github.com/octavo-fp8/octavo/tensor"
)

// Example says which problem of attention to make up, and with which fault to compute it.
type Example struct {
	Fault flash.Kind // None is an honest kernel
	Seed  uint64
	Scale float32
	Mask  attention.Mask // the zero Mask: one that shows the fault
}

// Run makes up a problem, computes it by the claimed kernel with the fault, and judges the
// result as if it were a kernel's. Of several problems it takes the first in which the
// fault is named, or else can be.
func (e *Example) Run(ctx context.Context, c judged.Claim, o judged.Options) (*judged.Verdict, error) {
	problems, err := e.problems(ctx)
	if err != nil {
		return nil, err
	}
	var possible *judged.Verdict
	for _, claim := range variants(c) {
		for _, p := range problems {
			v, err := e.try(ctx, p, claim, o)
			switch {
			case err != nil:
				return nil, err
			case v == nil:
			case e.Fault == flash.None || names(v, e.Fault):
				return v, nil
			case possible == nil:
				possible = v
			}
		}
	}
	if possible == nil {
		return nil, fmt.Errorf("no problem that is made up shows the fault %v of this kernel: leave out flags of the kernel and the mask", e.Fault)
	}
	return possible, nil
}

// problems are those that show faults best, under the wanted scale and mask.
func (e *Example) problems(ctx context.Context) (all []*attention.Problem, err error) {
	take := func(_ context.Context, p *attention.Problem) (flash.Got, error) {
		p.Scale = e.Scale
		if e.Mask != (attention.Mask{}) {
			p.Mask = e.Mask
		}
		all = append(all, p)
		return flash.Got{}, errors.ErrUnsupported
	}
	_, err = flash.CheckKernel(ctx, take, flash.Kernel{Tile: 64}, flash.CheckOptions{ValueDim: 32, Seed: e.Seed})
	if len(all) > 0 {
		p := *all[0]
		p.K, p.V = byToken(p.K), byToken(p.V)
		all = append(all, &p)
	}
	return all, err
}

// byToken gives each token a scale of its own.
func byToken(o attention.Operand) attention.Operand {
	if o.Codes == nil {
		return o
	}
	t, scales := *o.Codes, []float32(nil)
	rows, _ := t.Dims()
	for row := range rows {
		scales = append(scales, t.Scale(row, 0)*(1+float32(row%7)/8))
	}
	t.Block, t.Scales, t.ScaleStride, t.ScaleFormat = tensor.Block{Rows: 1}, scales, 0, tensor.Float32Scales
	return attention.Operand{Codes: &t}
}

// variants are a claim, and those of a kernel with splits or with scaled weights where nothing
// is claimed of them: some faults are of such kernels only.
func variants(c judged.Claim) []judged.Claim {
	all, splits, scale := []judged.Claim{c}, 3, float32(448)
	if c.Splits == nil {
		c.Splits = &splits
		all = append(all, c)
	}
	if c.Kernel == nil && c.PScale == nil && c.Offset == nil {
		c.PScale = &scale
		all = append(all, c)
	}
	return all
}

// names reports whether a kind of fault is among those that explain the results.
func names(v *judged.Verdict, kind flash.Kind) bool {
	f := v.Fault()
	return f != nil && (f.Fault.Kind == kind || slices.ContainsFunc(f.Same, func(f flash.Fault) bool { return f.Kind == kind }))
}

// try returns nil if the kernel cannot have the fault of a problem.
func (e *Example) try(ctx context.Context, p *attention.Problem, c judged.Claim, o judged.Options) (*judged.Verdict, error) {
	k, err := c.KernelOf(p, flash.Float32)
	if err != nil {
		return nil, err
	}
	f := flash.Fault{}
	if e.Fault != flash.None {
		all := flash.Faults(p, k)
		i := slices.IndexFunc(all, func(f flash.Fault) bool { return f.Kind == e.Fault })
		if i < 0 {
			return nil, nil
		}
		f = all[i]
	}
	r, err := flash.Inject(ctx, p, k, f, flash.Options{Workers: o.Workers})
	if err != nil {
		return nil, err
	}
	v, err := judged.Check(ctx, []judged.Result[float32]{{Problem: p, Out: r.Out, LSE: r.LSE}}, c, o)
	if err == nil {
		v.Injected = &f
	}
	return v, err
}
