package flash

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/attention"
)

// Run is a kernel under test. An error that is [errors.ErrUnsupported] leaves the problem
// out.
type Run func(ctx context.Context, p *attention.Problem) (Got, error)

// CheckOptions say what [CheckKernel] asks. The zero value is D = DV = 64.
type CheckOptions struct {
	Dim, ValueDim int    // D and DV; 0 is 64
	Seed          uint64 // of the operands
	Workers       int
}

// KernelResult is the verdict on a kernel.
type KernelResult struct {
	Cases []CaseResult `json:"cases"`
	// Faults are those that explain results, and that of most cases first. They are the same
	// in all cases in which the kernel is wrong if it has one fault.
	Faults []Fault `json:"faults,omitempty"`
}

// CaseResult is what came of one problem.
type CaseResult struct {
	Name  string `json:"name"`
	Shows string `json:"shows"` // what faults it shows
	// Unsupported: the kernel does not compute such a problem. Nothing else is known then.
	Unsupported bool         `json:"unsupported,omitempty"`
	Comparison  Comparison   `json:"report"`
	Explanation *Explanation `json:"explanation,omitempty"` // nil where nothing is wrong
	// Relations are what should hold between this result and those of other problems that
	// have the same answer, and does not.
	Relations []string `json:"relations,omitempty"`
}

// OK reports whether nothing is wrong with the result.
func (c *CaseResult) OK() bool {
	return c.Unsupported || c.Comparison.OK() && len(c.Relations) == 0 &&
		(c.Explanation == nil || len(c.Explanation.Findings) == 0)
}

// OK reports whether nothing is wrong.
func (a *KernelResult) OK() bool {
	return !slices.ContainsFunc(a.Cases, func(c CaseResult) bool { return !c.OK() })
}

// CheckKernel gives the verdict on a kernel that is claimed to be k: it computes problems that
// show the faults of the table, compares with exact attention under the bounds of the
// claim, and looks for the fault that explains what is wrong. k need not give the
// kernel's bits: what it claims is the format of P and its lift, tiles, threshold and splits,
// and how sums are made.
//
// Without any reference it asks that keys in another order, with the same masks, change
// nothing beyond the bounds, and that all keys twice add ln 2 to log-sum-exps.
//
// Errors are those of [Kernel.Check] and [Predict] of k, those of run that are not
// [errors.ErrUnsupported], a result of another size, and that of ctx.
func CheckKernel(ctx context.Context, run Run, k Kernel, o CheckOptions) (*KernelResult, error) {
	if err := k.Check(); err != nil {
		return nil, err
	}
	a := &KernelResult{}
	dim, valueDim, tile := 64, 64, 64
	if o.Dim > 0 {
		dim = o.Dim
	}
	if o.ValueDim > 0 {
		valueDim = o.ValueDim
	}
	if k.Tile > 0 {
		tile = k.Tile
	}
	for n, c := range kernelCases {
		p := c.shape.problem(tile, dim, valueDim, o.Seed+uint64(n))
		r, err := checkCase(ctx, run, p, k, o.Workers)
		if err != nil {
			return nil, fmt.Errorf("flash: kernel check, %s: %w", c.name, err)
		}
		r.Name, r.Shows = c.name, c.shows
		a.Cases = append(a.Cases, *r)
	}
	a.name()
	return a, nil
}

func checkCase(ctx context.Context, run Run, p *attention.Problem, k Kernel,
	workers int) (*CaseResult, error) {
	r := &CaseResult{}
	got, err := run(ctx, p)
	if errors.Is(err, errors.ErrUnsupported) {
		r.Unsupported = true
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	s, o := p.Sizes(), Options{Workers: workers}
	if n := s.Heads * s.Queries; len(got.Out) != n*s.ValueDim || got.LSE != nil && len(got.LSE) != n {
		return nil, fmt.Errorf("%d outputs and %d log-sum-exps for %d heads, %d queries and %d columns",
			len(got.Out), len(got.LSE), s.Heads, s.Queries, s.ValueDim)
	}
	want, err := Exact[float64](ctx, p, o)
	if err != nil {
		return nil, err
	}
	want.LSE = inBase(want.LSE, k.Base2)
	limits, err := Bound(ctx, p, k.Numerics(), o)
	if err != nil {
		return nil, err
	}
	r.Comparison = Compare(got, want, limits, s)
	e, err := Explain(ctx, p, got, k, o)
	if err != nil {
		return nil, err
	}
	if !r.Comparison.OK() || len(e.Findings) > 0 {
		r.Explanation = e
	}
	r.Relations, err = relations(ctx, run, p, got, limits, k.Base2)
	return r, err
}

// relations returns what does not hold of the kernel's own results.
func relations(ctx context.Context, run Run, p *attention.Problem, got Got, l *Limits,
	base2 bool) (broken []string, err error) {
	if p.Mask != (attention.Mask{}) || p.Keys != 0 {
		return nil, nil // keys have places
	}
	s := p.Sizes()
	reversed, doubled := *p, *p
	back := func(h, t int) (int, int) { row := h*s.Keys + s.Keys - 1 - t; return row, row }
	reversed.K = rebuilt(p.K, s.KVHeads, s.Keys, back, nil)
	reversed.V = rebuilt(p.V, s.KVHeads, s.Keys, back, nil)
	again := func(h, t int) (int, int) { row := h*s.Keys + t%s.Keys; return row, row }
	doubled.K = rebuilt(p.K, s.KVHeads, 2*s.Keys, again, nil)
	doubled.V = rebuilt(p.V, s.KVHeads, 2*s.Keys, again, nil)
	if p.Sinks != nil { // twice as much, too
		doubled.Sinks = nil
		for _, x := range p.Sinks {
			doubled.Sinks = append(doubled.Sinks, x+float32(math.Ln2))
		}
	}
	more := math.Ln2
	if base2 {
		more = 1
	}
	for _, other := range []struct {
		p    *attention.Problem
		more float64
		text string
	}{
		{&reversed, 0, "keys in reverse change the result beyond its bounds"},
		{&doubled, more, "all keys twice change the output, or log-sum-exps by another number than ln " +
			"2, beyond their bounds"},
	} {
		r, err := run(ctx, other.p)
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return nil, err
		}
		if err == nil && !related(got, r, l, other.more) {
			broken = append(broken, other.text)
		}
	}
	return broken, nil
}

// related reports whether results agree but for what is added to log-sum-exps, each being
// within its bound. Those of twice the keys have bounds that are little larger.
func related(a, b Got, l *Limits, more float64) bool {
	const both = 2.5
	if len(a.Out) != len(b.Out) || len(a.LSE) != len(b.LSE) {
		return false
	}
	for i, x := range a.Out {
		if !agrees(float64(b.Out[i]), float64(x), both*l.Out[i]) {
			return false
		}
	}
	for i, x := range a.LSE {
		if !agrees(float64(b.LSE[i]), float64(x)+more, both*l.LSE[i]+roundoff*(math.Abs(float64(x))+1)) {
			return false
		}
	}
	return true
}

// name gathers the faults that were found.
func (a *KernelResult) name() {
	counts := map[Fault]int{}
	for i := range a.Cases {
		if e := a.Cases[i].Explanation; e != nil {
			for _, f := range e.Findings {
				for _, each := range append([]Fault{f.Fault}, f.Same...) {
					if counts[each] == 0 {
						a.Faults = append(a.Faults, each)
					}
					counts[each]++
				}
			}
		}
	}
	slices.SortStableFunc(a.Faults, func(x, y Fault) int { return counts[y] - counts[x] })
}

// String returns the verdict in words, a few lines for each case in which something is
// wrong.
func (a *KernelResult) String() string {
	var b strings.Builder
	if a.OK() {
		fmt.Fprintf(&b, "nothing is wrong in %d problems\n", len(a.Cases))
	} else if len(a.Faults) > 0 {
		fmt.Fprintf(&b, "wrong: %s\n", a.Faults[0])
	} else {
		b.WriteString("wrong, and no known fault explains it\n")
	}
	for i := range a.Cases {
		c := &a.Cases[i]
		switch {
		case c.Unsupported:
			fmt.Fprintf(&b, "%s: not supported\n", c.Name)
		case !c.OK():
			fmt.Fprintf(&b, "%s: %s", c.Name, &c.Comparison)
			if c.Explanation != nil {
				fmt.Fprintln(&b, c.Explanation)
			}
			for _, r := range c.Relations {
				fmt.Fprintln(&b, r)
			}
		}
	}
	return b.String()
}
