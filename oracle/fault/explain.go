package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/tensor"
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
	faults := append(append(q.list(false), x.fitted()...), rows...)
	for _, f := range faults {
		e.Tried = append(e.Tried, f.Kind)
	}
	slices.SortFunc(e.Tried, table.Compare)
	e.Tried = slices.Compact(e.Tried)
	if e.Findings, err = x.explain(ctx, faults); err != nil {
		return nil, fmt.Errorf("fault: %w", err)
	}
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

// candidate is a fault and how it fits elements of the sample.
type candidate struct {
	Fault
	explain.Tally
	part     part // of the kernel
	number   int  // in the list of those that compete
	change   *change
	guesses  []guess
	outcomes []explain.Outcome

	// Wrong elements of which a scale was taken for something are not explained unless
	// nearly all of them are, and others too: then it is what the kernel reads.
	taken, notTaken int
	takenEvidence   float64
}

// candidate returns fault f before elements are weighed, or nil if the product cannot have
// it.
func (x *explainer[T]) candidate(ctx context.Context, f Fault) (*candidate, error) {
	if err := meter.Err(ctx); err != nil {
		return nil, err
	}
	h, err := newChange(x.p, f)
	if err != nil {
		return nil, nil
	}
	return &candidate{Fault: f, part: f.Kind.part(), change: h}, nil
}

// count takes in a guess of the next element and how it fits.
func (c *candidate) count(e *element, g guess, o explain.Outcome, evidence float64) {
	c.guesses = append(c.guesses, g)
	c.outcomes = append(c.outcomes, o)
	if e.wrong && g.partly {
		if o == explain.Fits {
			c.taken++
			c.takenEvidence += evidence
		} else {
			c.notTaken++
		}
	}
	c.Count(e.wrong, o, evidence)
}

// finish takes in what counts against the fault as a whole.
func (c *candidate) finish() {
	if 10*c.notTaken > c.taken || c.taken == c.Explained {
		c.Explained -= c.taken
		c.Open += c.taken
		c.Evidence -= c.takenEvidence
	}
	c.Evidence -= min(float64(contradicted*c.Contradicted), partial)
	if c.change.fitted {
		c.Evidence -= fitted
	}
}

// weigh weighs a fault by how near its guesses are.
func (x *explainer[T]) weigh(ctx context.Context, f Fault, elements []element) (*candidate, error) {
	c, err := x.candidate(ctx, f)
	if c == nil {
		return nil, err
	}
	var w scratch
	spared := 0
	for n := range elements {
		e := &elements[n]
		g, o, evidence, err := x.try(ctx, c.change, e, &w)
		if err != nil {
			return nil, orNone(err)
		}
		if f.Kind == edgeGarbage {
			// What is in the edge should be wrong, or nearly all of it, and nothing else.
			switch {
			case e.wrong && g.unknown:
				o, evidence = explain.Fits, x.edgeEvidence(f)
			case e.wrong:
				o, evidence = explain.Refuted, 0
			case g.unknown:
				spared++
			}
		}
		c.count(e, g, o, evidence)
	}
	if f.Kind == edgeGarbage && (10*spared > c.Explained || !x.covers(f, elements)) {
		return nil, nil
	}
	c.finish()
	return c, nil
}

// covers reports whether wrong elements were seen in nearly all lines of the edge, up to
// mostLines of them.
func (x *explainer[T]) covers(f Fault, elements []element) bool {
	const mostLines = 32
	lines := map[int]bool{}
	for n := range elements {
		e := &elements[n]
		at := e.i
		if f.Of == B {
			at = e.j
		}
		if e.wrong && at >= x.p.edge(f) {
			lines[at] = true
		}
	}
	return 10*len(lines) >= 9*min(x.p.extent(f.Of)-x.p.edge(f), mostLines)
}

// try guesses an element. Where scales are not known it tries what they may be.
func (x *explainer[T]) try(ctx context.Context, h *change, e *element, w *scratch) (guess, explain.Outcome, float64, error) {
	g, err := x.guess(ctx, h, e, w)
	if err != nil {
		return g, explain.Open, 0, err
	}
	o, evidence := x.fit(h, g, e)
	if o != explain.Open || !g.partly {
		return g, o, evidence, nil
	}
	was := h.beyond
	defer func() { h.beyond = was }()
	for _, h.beyond = range []beyond{wrapped, clamped} {
		other, err := x.guess(ctx, h, e, w)
		if err != nil {
			return g, explain.Open, 0, err
		}
		if o, evidence := x.fit(h, other, e); o == explain.Fits {
			other.partly = true
			return other, o, min(evidence, guessed), nil
		}
	}
	return g, explain.Open, 0, nil
}

// equals reports whether the kernel of a change gives every bit of an element, whatever it
// may read where there are no scales.
func (x *explainer[T]) equals(ctx context.Context, h *change, e *element) (equal bool, err error) {
	was := h.beyond
	defer func() { h.beyond = was }()
	for _, h.beyond = range []beyond{unknown, zeroed, wrapped, clamped} {
		equal, err = bits[T](ctx, h, e)
		if equal || h.beyond == unknown && !errors.Is(err, ErrNotHere) {
			return equal, err
		}
	}
	return equal, err
}

// orNone returns nil for an error of a kernel that cannot multiply the changed operands.
func orNone(err error) error {
	if errors.Is(err, ErrNotHere) || errors.Is(err, oracle.ErrModel) || errors.Is(err, gemm.ErrBlocks) || errors.Is(err, gemm.ErrOperands) || errors.Is(err, tensor.ErrScale) {
		return nil
	}
	return err
}

// edgeEvidence is how unlikely it is that an element is in the edge by chance.
func (x *explainer[T]) edgeEvidence(f Fault) float64 {
	of := x.p.extent(f.Of)
	return min(math.Log2(float64(of)/float64(of-x.p.edge(f))), 2)
}

// weighBits weighs a fault by whether its kernel gives the bits of C.
func (x *explainer[T]) weighBits(ctx context.Context, f Fault, elements []element) (*candidate, error) {
	c, err := x.candidate(ctx, f)
	if c == nil || f.Kind == edgeGarbage || c.change.fitted {
		return nil, err
	}
	if far, err := x.far(ctx, c.change, elements); far || err != nil {
		return nil, err
	}
	for n := range elements {
		e := &elements[n]
		equal, err := x.equals(ctx, c.change, e)
		if err != nil {
			return nil, orNone(err)
		}
		o, evidence := explain.Refuted, 0.0
		if equal {
			// Of the results that are as far off, or nearer, this is one.
			o, evidence = explain.Fits, min(1+math.Log2(1+e.distance/x.p.out.place(e.want)), mostEvidence)
			if math.IsInf(e.distance, 0) {
				evidence = nonFinite
			}
		}
		g := guess{value: e.got}
		if !equal {
			g.value = math.NaN()
		}
		c.count(e, g, o, evidence)
		if c.Missed >= 4 && c.Missed > c.Explained {
			return nil, nil
		}
	}
	if c.Contradicted == 0 && c.Explained > 0 {
		// It also says which elements are wrong.
		c.Evidence += float64(c.Explained) * math.Log2(float64(len(elements))/float64(c.Explained+c.Missed))
	}
	c.finish()
	return c, nil
}

// far reports whether a fault of some products of K, of which there are many, changes
// elements in another way than they are wrong: it spares computing their bits. If it is
// the cause, a regression of errors on changes, in the part of C that is wrong, has a slope
// of about 1.
func (x *explainer[T]) far(ctx context.Context, h *change, elements []element) (bool, error) {
	if h.extra == 0 {
		return false, nil
	}
	var product, square float64
	var w scratch
	for n := range elements {
		e := &elements[n]
		off := e.got - e.want
		if !e.wrong || off != off || math.IsInf(off, 0) {
			continue
		}
		g, err := x.guess(ctx, h, e, &w)
		if err != nil {
			return false, err
		}
		right := e.all.value
		h.addends(e.i, e.j, func(v float32) { right += float64(v) })
		change := g.value - right
		if scale := e.all.total; change == change && scale > 0 { // all elements count alike
			product += float64(off / scale * (change / scale))
			square += float64(change / scale * (change / scale))
		}
	}
	return square > 0 && math.Abs(product-square) > 0.5*square, nil
}

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
func (x *explainer[T]) compete(ctx context.Context, faults []Fault, weigh func(context.Context, Fault, []element) (*candidate, error)) ([]*candidate, error) {
	part := x.part()
	candidates, err := explain.Compete(faults, x.workers, func(f Fault, whole bool) (c *candidate, fits bool, err error) {
		if !whole {
			c, err = weigh(ctx, f, part)
			return c, c != nil && c.Explains(likely), err
		}
		c, err = weigh(ctx, f, x.elements)
		return c, c != nil && c.Convinces(enough, len(faults)+x.tried), err
	})
	if err != nil {
		return nil, err
	}
	var all, others []*candidate
	for n, c := range candidates {
		c.number, c.Where = n, x.region(c)
		if c.Contradicted == 0 || c.Evidence >= float64(convincing*c.Explained) || x.ofOneRow(c) {
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

// writing returns 0 for a fault of what is written to C that holds in a part of it, as
// such faults do more often than others, and otherwise 1.
func (c *candidate) writing() int {
	if c.Contradicted > 0 && c.part == written {
		return 0
	}
	return 1
}

// plainness is 0 for results that were never written, and 1 for all others.
func (c *candidate) plainness() int {
	if c.Kind == unwritten || c.Kind == oldKept {
		return 0
	}
	return 1
}

// rank says which candidates come first: what holds everywhere, then what holds
// somewhere, then what does not say what elements are.
func (c *candidate) rank() int {
	switch {
	case c.Kind == edgeGarbage:
		return 2
	case c.Contradicted > 0:
		return 1
	}
	return 0
}

// scatters reports whether a kernel would have the fault in elements here and there: not
// if it reads or computes another thing, but if it does or leaves out something more.
func (c *candidate) scatters() bool {
	return (c.part == sumOverK || c.part == written) && !c.change.fitted && c.change.rounded == Float32
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

// report makes a finding of the best candidate and of those that cannot be told from it,
// each in the part of C in which it holds.
//
// What leaves no trace of the operands is likelier than what makes them look so, and what
// holds in all of C than what holds in a part. Of what holds in a part, where that is all
// that one row of a grid of scales is for, one wrong scale is likelier than that row's being
// read from another place, and this than a factor that was fitted and all other faults; in any other part, a layout of
// scales and a factor are the least likely. Otherwise what comes first in the table is.
func (x *explainer[T]) report(ctx context.Context, all []*candidate) ([]Finding, error) {
	var class []*candidate
	for _, c := range all {
		if x.same(all[0], c) {
			class = append(class, c)
		}
	}
	row0 := slices.ContainsFunc(class, func(c *candidate) bool { return c.Kind == scalesOfRow && c.By == 0 })
	class = slices.DeleteFunc(class, func(c *candidate) bool { // of what another fault says more plainly
		return c.Kind == kFactor && c.To-c.From == x.p.k && !x.ofOneRow(c) || c.Kind == scalesFirstRow && row0
	})
	if len(class) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(class, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.plainness(), b.plainness()), cmp.Compare(a.rank(), b.rank()), cmp.Compare(x.prior(a), x.prior(b)), cmp.Compare(a.number, b.number))
	})
	best := class[0]
	if best.Where.Scattered {
		at := slices.IndexFunc(class, (*candidate).scatters)
		if at < 0 {
			return nil, nil
		}
		best = class[at]
		class = slices.Insert(slices.Delete(class, at, at+1), 0, best)
	}
	f := Finding{Fault: best.Fault, Explained: best.Explained, Of: best.Explained + best.Missed}
	f.Text = f.Fault.String()
	for _, c := range class[1:] {
		// A factor is what any fault comes to, and some elements are what any comes to there.
		if (best.change.fitted || !c.change.fitted) && (best.Where.Scattered || !c.Where.Scattered) {
			f.Same = append(f.Same, c.Fault)
		}
	}
	rows, known := map[int]bool{}, map[int]bool{}
	for n := range x.elements[:x.wrong] {
		e := &x.elements[n]
		if best.outcomes[n] == explain.Open {
			continue
		}
		known[e.i] = true
		if best.outcomes[n] != explain.Fits {
			continue
		}
		rows[e.i] = true
		if x.p.Bits && best.Kind != edgeGarbage {
			equal, err := x.equals(ctx, best.change, e)
			if orNone(err) != nil {
				return nil, err
			}
			if equal {
				f.Bits++
			}
		}
	}
	f.Rows, f.OfRows = len(rows), len(known)
	return []Finding{f}, nil
}

// prior orders candidates that give the same result in the parts of C in which they hold,
// the likelier first: see report.
func (x *explainer[T]) prior(c *candidate) int {
	switch one := x.ofOneRow(c); {
	case one && c.Kind == kFactor && c.Factor != 0 && !c.change.fitted:
		return 0
	case one && c.Kind == scalesOfRow:
		return 1
	case one && c.Kind == kFactor && c.Factor != 0:
		return 2
	case c.Kind == kFactor, c.Kind == scalesLayout && c.Where != Region{}:
		return 4
	}
	return 3
}

// ofOneRow reports whether a candidate is of scales of one row of a grid, and holds where
// those are for: then it is no wonder that it holds in that part of C only.
func (x *explainer[T]) ofOneRow(c *candidate) bool {
	return (c.Kind == kFactor || c.Kind == scalesOfRow) && x.p.ofScaleRow(c.Of, c.Where)
}

// same reports whether candidates cannot be told apart where they hold: both explain the
// same wrong elements, and give the same result there. On right elements they may differ
// where neither holds.
func (x *explainer[T]) same(a, b *candidate) bool {
	for n := range x.elements {
		g, h := a.guesses[n], b.guesses[n]
		if g.unknown || h.unknown || a.outcomes[n] == explain.Open || b.outcomes[n] == explain.Open {
			continue
		}
		if !x.elements[n].wrong && (a.Contradicted > 0 && a.outcomes[n] != explain.Fits || b.Contradicted > 0 && b.outcomes[n] != explain.Fits) {
			continue
		}
		if (a.outcomes[n] == explain.Fits) != (b.outcomes[n] == explain.Fits) {
			return false
		}
		if g.value != h.value && !(math.Abs(g.value-h.value) <= g.tolerance+h.tolerance) && !(g.value != g.value && h.value != h.value) {
			return false
		}
	}
	return true
}

// otherRows lists faults that read a row of a grid of scales for the only one that wrong
// elements are of, and counts those that do not fit.
func (x *explainer[T]) otherRows(ctx context.Context) (all []Fault, err error) {
	const first = 8
	wrong := make([]*element, x.wrong)
	for n := range wrong {
		wrong[n] = &x.elements[n]
	}
	var w scratch
	for _, side := range []Side{A, B} {
		g := &x.p.operand(side).grid
		in := x.p.scaleRow(side, wrong)
		if in == (Region{}) || g.rows > mostBy {
			continue
		}
		for r := range g.rows {
			f := Fault{Kind: scalesOfRow, Of: side, By: r}
			h, err := newChange(x.p, f)
			if r == max(in.FromRow, in.FromCol)/g.height || err != nil {
				continue
			}
			x.tried++
			fit := true
			for _, n := range explain.Spread(len(wrong), first) {
				_, o, _, err := x.try(ctx, h, wrong[n], &w)
				if err != nil {
					return nil, err
				}
				if fit = o != explain.Refuted; !fit {
					break
				}
			}
			if fit {
				all = append(all, f)
			}
		}
	}
	x.tried -= len(all)
	return all, nil
}

// fitted lists faults with a factor that is taken from the result: all of C, or a block of
// K, times a factor.
func (x *explainer[T]) fitted() (all []Fault) {
	var ratios []float64
	for n := range x.elements[:x.wrong] {
		e := &x.elements[n]
		if r := e.got / e.want; r == r && !math.IsInf(r, 0) && r != 0 {
			ratios = append(ratios, r)
		}
	}
	if len(ratios) > 0 {
		slices.Sort(ratios)
		all = append(all, Fault{Kind: scaledResults, Factor: ratios[len(ratios)/2]})
	}
	for _, side := range []Side{A, B} {
		width := x.p.a.width
		if side == B {
			width = x.p.b.width
		}
		for lo := 0; lo < x.p.k && x.p.k/width <= mostRanges; lo += width {
			f := Fault{Kind: kFactor, Of: side, From: lo, To: min(lo+width, x.p.k)}
			var ok bool
			if f.Factor, ok = x.factor(f.From, f.To); ok {
				all = append(all, f)
			}
		}
	}
	return all
}

// factor returns by what the contribution of products [from, to) of K would have to be
// multiplied: as the element has it to which they contribute the most. As far as that is
// uncertain, it is a power of two or 0.
func (x *explainer[T]) factor(from, to int) (factor float64, ok bool) {
	lo, okLo := slices.BinarySearch(x.cuts, from)
	hi, okHi := slices.BinarySearch(x.cuts, to)
	if !okLo || !okHi {
		return 0, false
	}
	most, off, uncertain := 0.0, 0.0, 0.0
	for n := range x.elements[:x.wrong] {
		e := &x.elements[n]
		part := e.between(lo, hi).value
		if d := e.got - e.want; math.Abs(part) > most && !math.IsInf(part, 0) && d == d && !math.IsInf(d, 0) {
			most, off = math.Abs(part), d/part
			uncertain = (x.p.out.place(e.got) + float64(x.coefficient*e.all.total)) / most
		}
	}
	factor = 1 + off
	if math.Abs(factor) <= uncertain {
		return 0, most > 0
	}
	if power := math.Exp2(math.Round(math.Log2(factor))); math.Abs(factor-power) <= min(uncertain, power/16) {
		factor = power
	}
	return factor, most > 0 && factor > 1e-6 && math.Abs(factor-1) > 1e-6
}
