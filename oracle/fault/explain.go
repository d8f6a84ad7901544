package fault

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/explain"
)

// Explain says which faults of the table give the result got, of shape [M, N] and dense,
// where a correct kernel was asked for p.
//
// It looks at up to some hundred elements that are wrong and as many that are right,
// spread over the whole of C: an element is wrong if it is beyond the bound of
// [oracle.Bound] for p.Accumulation or, where p.Bits says so, if its bits are not those
// of p.Kernel. A fault explains a wrong element if that is as near to what the faulty
// kernel should give as its bound allows or, where a model of tensor cores is demanded,
// if it gives the element's bits. A fault is reported if it explains all but a few wrong
// elements, and is so much nearer than the right result that chance would not do it. If
// it would make elements wrong that are right, the finding says where the fault holds.
//
// Nothing is looked at where there is no product: at K = 0, a C that is not the bias and
// the old C is not explained.
//
// It returns an error if the operands make no product, if got, the bias or the old C is
// not of the right length or an element of o.Wrong is none of C ([gemm.ErrOperands]), and
// ctx's error if that ends. Safe for concurrent use.
func Explain[T gemm.Output](ctx context.Context, got []T, p Product, o Options) (*Explanation, error) {
	q, err := newProblem(p, len(got))
	if err != nil {
		return nil, err
	}
	if o.Workers < 0 {
		return nil, fmt.Errorf("fault: %d workers: want 0 or more", o.Workers)
	}
	for _, at := range o.Wrong {
		if at < 0 || at >= len(got) {
			return nil, sentinel.Errorf(gemm.ErrOperands, "fault: element %d is none of C, which has %d", at, len(got))
		}
	}
	q.out, q.explaining = typeOf[T](), true
	if !q.hasModel() && !q.Bits {
		q.Kernel = q.Accumulation.Kernel
	}
	if q.empty() {
		return &Explanation{Tried: []Kind{}}, meter.Err(ctx)
	}
	s, err := newSample(ctx, q, got, o)
	if err != nil {
		return nil, fmt.Errorf("fault: %w", err)
	}
	e := &Explanation{Sampled: len(s.elements), Wrong: s.wrong, Tried: []Kind{}}
	e.Rows, e.Cols = s.lines(s.elements[:s.wrong])
	if s.wrong == 0 {
		return e, nil
	}
	x := &explainer[T]{sample: s, workers: o.Workers}
	rows, err := x.otherRows(ctx)
	if err != nil {
		return nil, fmt.Errorf("fault: %w", err)
	}
	faults := slices.Concat(q.list(false), x.fitted(), rows, x.otherLines(), x.staleRow())
	products := x.products()
	e.Findings, err = x.explain(ctx, slices.Concat(faults, products))
	if err == nil && x.ordered(e.Findings) {
		if orders := x.orders(); len(orders) > 0 {
			faults = append(faults, orders...)
			e.Findings, err = x.explain(ctx, slices.Concat(faults, products))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("fault: %w", err)
	}
	for _, f := range slices.Concat(faults, products) {
		e.Tried = append(e.Tried, f.Kind)
	}
	slices.SortFunc(e.Tried, table.Compare)
	e.Tried = slices.Compact(e.Tried)
	return e, nil
}

// lines counts the rows and the columns of elements.
func (s *sample) lines(elements []element) (rows, cols int) {
	r, c := map[int]bool{}, map[int]bool{}
	for i := range elements {
		r[elements[i].i], c[elements[i].j] = true, true
	}
	return len(r), len(c)
}

// ordered reports whether another order of blocks may explain what such findings do, or what
// none does: to look for one takes longer than all else.
func (x *explainer[T]) ordered(findings []Finding) bool {
	return len(findings) == 0 || findings[0].Fault.Kind.component() == ofScales || findings[0].Fault.Kind.component() == ofCodes
}

// explainer lets faults compete.
type explainer[T gemm.Output] struct {
	*sample
	workers int
	tried   int // faults that were tried before they compete
}

const (
	// A right element that a fault would make wrong counts against it, in bits, and all of
	// them up to partial: what it takes to say where a fault holds.
	contradicted, partial = 4, 40
	// fitted is what a fault whose factor was taken from the result has to make up for.
	fitted = 24
	// A fault that right elements contradict holds in some part of C only, which is easily
	// found for what has no cause: each element must say so much for it, in bits.
	convincing = 6
	// enough of the wrong elements must be explained, and likely of those of a part of the
	// sample.
	enough, likely = 0.98, 0.8
)

// explain returns the findings. Bounds of tensor cores that keep few bits leave room for
// much: the bits that such a kernel gives come first and, in case it is none, float32.
func (x *explainer[T]) explain(ctx context.Context, faults []Fault) ([]Finding, error) {
	modeled := x.p.Accumulation.Kernel.Model != oracle.Model{}
	var all []*candidate
	var err error
	if modeled || x.p.Bits {
		all, err = x.compete(ctx, faults, x.weighBits)
	}
	claimed := x.coefficient
	if err == nil && len(all) == 0 && modeled {
		if x.coefficient, err = x.p.relative(ctx, oracle.Accumulation{}); err == nil {
			all, err = x.compete(ctx, faults, x.weigh)
		}
	}
	if err == nil && len(all) == 0 {
		x.coefficient = claimed
		all, err = x.compete(ctx, faults, x.weigh)
	}
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return x.report(ctx, all)
}

// compete weighs all faults, first on a part of the sample, and returns those that
// explain it, the best first. Those that hold in a part of C and would not convince alone
// are behind them.
func (x *explainer[T]) compete(ctx context.Context, faults []Fault, weigh func(context.Context, Fault, []element, float64) (*candidate, error)) ([]*candidate, error) {
	part := x.part()
	candidates, err := explain.Compete(faults, x.workers, func(f Fault, whole bool) (c *candidate, fits bool, err error) {
		if !whole {
			c, err = weigh(ctx, f, part, likely)
			return c, c != nil && c.Explains(likely), err
		}
		c, err = weigh(ctx, f, x.elements, enough)
		return c, c != nil && c.Convinces(enough, len(faults)+x.tried), err
	})
	if err != nil {
		return nil, err
	}
	var all, others []*candidate
	for n, c := range candidates {
		c.number, c.Where = n, x.region(c)
		if c.Contradicted == 0 || c.Evidence >= float64(convincing*c.Explained) || x.ofOneRow(c) || x.ofOneLine(c) {
			all = append(all, c)
		} else {
			others = append(others, c)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.Evidence, a.Evidence), a.writing()-b.writing())
	})
	return append(all, others...), nil
}

// part returns some wrong elements and some right ones.
func (x *explainer[T]) part() []element {
	const most = 40
	var part []element
	for _, of := range [][]element{x.elements[:x.wrong], x.elements[x.wrong:]} {
		for _, n := range explain.Spread(len(of), most) {
			part = append(part, of[n])
		}
	}
	return part
}
