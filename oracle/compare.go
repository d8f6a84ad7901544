package oracle

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/tensor"
)

// CompareOptions says what is compared. Only Rows and Cols are required.
type CompareOptions struct {
	Rows, Cols int
	// At, unless nil, says that only some elements are compared, and which: their places
	// in C, row by row, in ascending order.
	At []int
	// A and B, the operands, let the comparison say what went into the first element
	// that diverges. Both or neither.
	A, B *tensor.Tensor
	// Progress, unless nil, hears how far the comparison is.
	Progress progress.Reporter
	Workers  int // goroutines at most; 0 means GOMAXPROCS
}

// Comparison is what [Compare] found. An element is outside if it is farther from the
// wanted one than its bound; two NaN agree whatever their bits.
type Comparison struct {
	Rows      int  `json:"rows"`
	Cols      int  `json:"cols"`
	Equal     bool `json:"equal"`     // all elements agree bit for bit, NaN aside
	Different int  `json:"different"` // elements that do not
	Outside   int  `json:"outside"`   // elements that are outside

	// The largest errors, in units in the last place of the wanted element and in
	// units of the bound. An element that is finite on one side only has an
	// infinite error. Nil where all errors are 0.
	MaxULP   *ElementError `json:"maxULP,omitempty"`
	MaxBound *ElementError `json:"maxBound,omitempty"`

	// First is the first element outside, row by row, or, where none is, the first
	// that differs.
	First *Divergence `json:"first,omitempty"`

	Clusters  []Cluster `json:"clusters,omitempty"` // of elements outside
	NonFinite NonFinite `json:"nonFinite"`          // on either side
}

// ElementError is an element and its error.
type ElementError struct {
	Row   int    `json:"row"`
	Col   int    `json:"col"`
	Got   Number `json:"got"`
	Want  Number `json:"want"`
	Bound Number `json:"bound"`
	Error Number `json:"error"`
}

// NonFinite counts what is not a number.
type NonFinite struct {
	GotNaN  int `json:"gotNaN"`
	WantNaN int `json:"wantNaN"`
	GotInf  int `json:"gotInf"`
	WantInf int `json:"wantInf"`
	// Swallowed are elements that should not be finite and are, Appeared those
	// that should be finite and are not.
	Swallowed int `json:"swallowed"`
	Appeared  int `json:"appeared"`
}

// Compare compares a kernel's result with the wanted one, both of shape [Rows,
// Cols] and dense: with that of [Exact] under the bounds of [Bound] or [Predict],
// or with that of Predict under no bounds, nil, which demands equal bits. Where o.At
// names some elements, got, want and bound are of those.
//
// It returns an error if A and B are given and do not make a product of that
// size, or one of them alone is, if got, want or bound are of another length
// ([gemm.ErrOperands]) or places not in ascending order, and when ctx ends. The comparison depends on nothing
// but the arguments, which are not kept. Safe for concurrent use.
func Compare[T gemm.Output](ctx context.Context, got, want []T, bound []float64, o CompareOptions) (Comparison, error) {
	err := o.checkLengths(len(got))
	if err == nil {
		err = sentinel.Length(gemm.ErrOperands, "want", len(want), len(got))
	}
	if err == nil && bound != nil {
		err = sentinel.Length(gemm.ErrOperands, "bound", len(bound), len(got))
	}
	if err != nil {
		return Comparison{}, fmt.Errorf("oracle: %w", err)
	}
	p, err := o.product()
	if err != nil {
		return Comparison{}, fmt.Errorf("oracle: %w", err)
	}
	c, err := compareAll(ctx, got, want, bound, o)
	if err != nil {
		return Comparison{}, fmt.Errorf("oracle: %w", err)
	}
	return c.finish(p), nil
}

// compareAll takes all elements in, on several goroutines.
func compareAll[T gemm.Output](ctx context.Context, got, want []T, bound []float64, o CompareOptions) (*comparer, error) {
	var m meter.Meter
	m.Start(ctx, o.Progress, "compare", int64(len(got)))
	all := newComparer(o, layoutOf[T]())
	if len(got) <= compareAtOnce {
		return all, compareRange(all, &m, got, want, bound, 0, len(got))
	}
	parts := make([]*comparer, (len(got)+compareAtOnce-1)/compareAtOnce) // by the first element of a range
	var mu sync.Mutex
	var first error
	parallel.For(len(got), compareAtOnce, o.Workers, func(lo, hi int) {
		c := newComparer(o, layoutOf[T]())
		err := compareRange(c, &m, got, want, bound, lo, hi)
		mu.Lock()
		defer mu.Unlock()
		parts[lo/compareAtOnce] = c
		if first == nil {
			first = err
		}
	})
	for _, c := range parts {
		if c != nil {
			all.merge(c)
		}
	}
	return all, first
}

// compareRange takes elements [lo, hi) in.
func compareRange[T gemm.Output](c *comparer, m *meter.Meter, got, want []T, bound []float64, lo, hi int) error {
	for from := lo; from < hi; from += compareAtOnce {
		to := min(from+compareAtOnce, hi)
		for i := from; i < to; i++ {
			g, w := bitsOf(got[i]), bitsOf(want[i])
			limit := 0.0
			if bound != nil {
				limit = bound[i]
			}
			c.element(i, g, w, number.Float64(got[i]), number.Float64(want[i]), limit)
		}
		if err := m.Add(int64(to - from)); err != nil {
			return err
		}
	}
	return nil
}

// compareAtOnce elements are compared between two looks at the context: a millisecond
// or so.
const compareAtOnce = 1 << 16

// checkLengths returns an error unless a result of the given sizes has n elements.
func (o *CompareOptions) checkLengths(n int) error {
	size, ok := area(o.Rows, o.Cols)
	if o.Rows < 0 || o.Cols < 0 || !ok {
		return sentinel.Errorf(gemm.ErrOperands, "got cannot be of shape [%d, %d]", o.Rows, o.Cols)
	}
	if o.At == nil {
		return sentinel.Length(gemm.ErrOperands, "got", n, size)
	}
	last := -1
	for _, at := range o.At {
		if at <= last || at >= size {
			return sentinel.Errorf(gemm.ErrOperands, "place %d of %d elements comes after place %d: they must be ascending", at, size, last)
		}
		last = at
	}
	return sentinel.Length(gemm.ErrOperands, "got", n, len(o.At))
}

// product returns the product of the operands, or nil where there are none.
func (o *CompareOptions) product() (*product, error) {
	if o.A == nil && o.B == nil {
		return nil, nil
	}
	p, err := newProduct(o.A, o.B)
	if err == nil && (p.m != o.Rows || p.n != o.Cols) {
		err = sentinel.Errorf(tensor.ErrShape, "tensor %q of %d rows and tensor %q of %d rows: the result is %dx%d",
			o.A.Name, p.m, o.B.Name, p.n, o.Rows, o.Cols)
	}
	return &p, err
}

// outside reports whether got is farther from want than bound allows. Two NaN
// agree, and so do equal infinities; anything is within a bound of +Inf.
func outside(got, want, bound float64) bool {
	if got == want || got != got && want != want || math.IsInf(bound, 1) {
		return false
	}
	return !(math.Abs(got-want) <= bound)
}

// comparer gathers a comparison.
type comparer struct {
	r      Comparison
	l      layout
	first  ElementError // outside, or, before there is one, different
	at     []int        // places of elements; nil: their own indices
	counts counts
}

func newComparer(o CompareOptions, l layout) *comparer {
	return &comparer{r: Comparison{Rows: o.Rows, Cols: o.Cols, Equal: true}, l: l, at: o.At, counts: newCounts(o.Rows, o.Cols)}
}

// element takes element i in, with its bits and values.
func (c *comparer) element(i int, g, w uint64, got, want, bound float64) {
	if got != got || want != want || math.IsInf(got, 0) || math.IsInf(want, 0) {
		c.r.NonFinite.count(got, want)
	}
	if g == w || got != got && want != want {
		return
	}
	c.r.Different++
	c.r.Equal = false
	if c.at != nil {
		i = c.at[i]
	}
	place := ElementError{Row: i / c.r.Cols, Col: i % c.r.Cols, Got: Number(got), Want: Number(want), Bound: Number(bound)}
	err := math.Abs(got - want)
	if err != err {
		err = math.Inf(1)
	}
	c.r.MaxULP = larger(c.r.MaxULP, place, err/c.l.ulp(want))
	if bound > 0 {
		c.r.MaxBound = larger(c.r.MaxBound, place, orZero(err/bound))
	} else if err > 0 {
		c.r.MaxBound = larger(c.r.MaxBound, place, math.Inf(1))
	}
	place.Error = Number(err)
	// Without a bound to speak of, zeros of different sign count as well.
	if !outside(got, want, bound) && !(bound == 0 && got == want) {
		if c.r.Different == 1 {
			c.first = place
		}
		return
	}
	if c.r.Outside == 0 {
		c.first = place
	}
	c.r.Outside++
	c.counts.add(place.Row, place.Col)
}

// merge takes in what another comparer found in later elements.
func (c *comparer) merge(later *comparer) {
	if c.r.Outside == 0 && (later.r.Outside > 0 || c.r.Different == 0) {
		c.first = later.first
	}
	c.r.Equal = c.r.Equal && later.r.Equal
	c.r.Different += later.r.Different
	c.r.Outside += later.r.Outside
	c.r.MaxULP = largerPlace(c.r.MaxULP, later.r.MaxULP)
	c.r.MaxBound = largerPlace(c.r.MaxBound, later.r.MaxBound)
	c.r.NonFinite.add(later.r.NonFinite)
	c.counts.plus(&later.counts)
}

// largerPlace returns the one of the larger error, the first of two equal.
func largerPlace(p, later *ElementError) *ElementError {
	if p == nil || later != nil && later.Error > p.Error {
		return later
	}
	return p
}

func (n *NonFinite) add(o NonFinite) {
	n.GotNaN += o.GotNaN
	n.WantNaN += o.WantNaN
	n.GotInf += o.GotInf
	n.WantInf += o.WantInf
	n.Swallowed += o.Swallowed
	n.Appeared += o.Appeared
}

// orZero returns x, or 0 for infinity over infinity: anything is within +Inf.
func orZero(x float64) float64 {
	if x != x {
		return 0
	}
	return x
}

// larger returns the place of the larger error, the earlier one of two equal.
func larger(old *ElementError, p ElementError, err float64) *ElementError {
	if !(err > 0) || old != nil && !(err > float64(old.Error)) {
		return old
	}
	if old == nil {
		old = new(ElementError)
	}
	*old = p
	old.Error = Number(err)
	return old
}

// ulp is the distance from a number of the magnitude of x to the next.
func (l layout) ulp(x float64) float64 {
	if x == 0 || x != x || math.IsInf(x, 0) {
		return power2(l.minExponent() - l.fraction)
	}
	_, e := math.Frexp(x)
	return power2(max(e-1, l.minExponent()) - l.fraction)
}

func (n *NonFinite) count(got, want float64) {
	isInf := func(x float64) bool { return math.IsInf(x, 0) }
	isFinite := func(x float64) bool { return x == x && !isInf(x) }
	for _, c := range []struct {
		is bool
		n  *int
	}{
		{got != got, &n.GotNaN}, {want != want, &n.WantNaN}, {isInf(got), &n.GotInf}, {isInf(want), &n.WantInf},
		{isFinite(got), &n.Swallowed}, {isFinite(want), &n.Appeared},
	} {
		if c.is {
			*c.n++
		}
	}
}

// finish completes the comparison; p is the product, if known.
func (c *comparer) finish(p *product) Comparison {
	if c.r.Different == 0 {
		return c.r
	}
	c.r.Clusters = c.counts.clusters(c.at)
	c.r.First = newDivergence(p, c.first)
	return c.r
}
