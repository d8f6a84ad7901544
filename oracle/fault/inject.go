package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/tensor"
)

// Options of [Inject] and [Explain].
type Options struct {
	// Wrong, for Explain, are elements that are known to be wrong, as indexes of C: any
	// number of them, in any order. Explain looks at a selection of those. If there are
	// none, it looks for some.
	Wrong []int

	// Progress, unless nil, hears how far it is.
	Progress progress.Reporter
	Workers  int // goroutines at most; 0 means GOMAXPROCS, and negative is an error
}

// All lists the faults that the product could have where C is of type t, each sort of
// parameters once: what is worth injecting. [Inject] may still refuse one with
// [ErrNotHere]. It returns nil for operands that make no product.
func All(t Type, p Product) []Fault {
	q, err := newProblem(p, sizeOf(p))
	if err != nil || q.empty() {
		return nil
	}
	q.out = t
	return q.list(true)
}

func sizeOf(p Product) int {
	size, err := gemm.CheckOperands(p.A, p.B)
	if err != nil {
		return 0
	}
	return size.M * size.N
}

// list lists the faults of the table that can be applied.
func (p *problem) list(few bool) (all []Fault) {
	for _, k := range table.Kinds() {
		row, _ := table.Row(k)
		for _, f := range row.faults(p, few) {
			if _, err := newChange(p, f); err == nil {
				all = append(all, f)
			}
		}
	}
	return all
}

// Inject writes to c, of shape [M, N] and dense, what a kernel with fault f makes of the
// product. What c holds before does not matter: an old C to be added to is p.Old.
//
// Where the fault is confined to a region, the other elements are those of an honest
// kernel; a Region that only counts tiles, or is scattered, is an error.
//
// It returns an error if the operands make no product or c, the bias or the old C is not
// of the right length ([gemm.ErrOperands]), an [ErrNotHere] if they cannot have the
// fault, and ctx's error if that ends. Safe for concurrent use on distinct c.
func Inject[T gemm.Output](ctx context.Context, c []T, f Fault, p Product, o Options) error {
	q, err := newProblem(p, len(c))
	if err != nil {
		return err
	}
	if o.Workers < 0 {
		return fmt.Errorf("fault: %d workers: want 0 or more", o.Workers)
	}
	if f.Where.Tile > 0 || f.Where.Scattered {
		return notHere("a region that says not which elements")
	}
	q.out = typeOf[T]()
	where := f.Where
	f.Where = Region{}
	if where != (Region{}) {
		if err := inject(ctx, c, Fault{}, Region{}, q, o); err != nil {
			return err
		}
	}
	return inject(ctx, c, f, where, q, o)
}

// inject writes the elements of a region.
func inject[T gemm.Output](ctx context.Context, c []T, f Fault, where Region, p *problem, o Options) error {
	h, err := newChange(p, f)
	if err != nil {
		return err
	}
	product, err := h.product(ctx, o)
	switch {
	case errors.Is(err, oracle.ErrModel), errors.Is(err, gemm.ErrBlocks), errors.Is(err, gemm.ErrOperands), errors.Is(err, tensor.ErrScale):
		return sentinel.Errorf(ErrNotHere, "fault: %w", err)
	case err != nil:
		return fmt.Errorf("fault: %w", err)
	}
	width := h.b.rows
	at := func(i, j int) float32 { return product[i*width+j] }
	for i := range p.m {
		if err := meter.Err(ctx); err != nil {
			return fmt.Errorf("fault: %w", err)
		}
		for j := range p.n {
			if where.Has(i, j) {
				c[i*p.n+j] = number.From[T](number.Canonical(h.finish(h.element(i, j, at), i, j)))
			}
		}
	}
	return nil
}

// product computes the whole product, without addends.
func (c *change) product(ctx context.Context, o Options) ([]float32, error) {
	product := make([]float32, c.a.rows*c.b.rows)
	if c.dot != nil {
		var m meter.Meter
		m.Start(ctx, o.Progress, "inject", int64(c.a.rows))
		parallel.For(c.a.rows, 1, o.Workers, func(lo, hi int) {
			for i := lo; i < hi && m.Err() == nil; i++ {
				for j := range c.b.rows {
					product[i*c.b.rows+j] = c.dot(c, i, j)
				}
				m.Add(1) // the context is looked at above
			}
		})
		return product, meter.Err(ctx)
	}
	a, err := c.a.all()
	if err != nil {
		return nil, err
	}
	b, err := c.b.all()
	if err != nil {
		return nil, err
	}
	return product, multiply(ctx, product, a, b, &c.kernel, o.Workers)
}

func typeOf[T gemm.Output]() Type {
	return map[number.Format]Type{number.BF16: BFloat16, number.FP16: Float16}[number.Of[T]()]
}
