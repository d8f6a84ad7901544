package fault

import (
	"context"
	"errors"
	"math"
	"sort"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/tensor"
)

// candidate is a fault and how it fits elements of the sample.
type candidate struct {
	Fault
	explain.Tally
	component component // of the kernel
	number    int       // in the list of those that compete
	change    *change
	guesses   []guess
	outcomes  []explain.Outcome

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
	return &candidate{Fault: f, component: f.Kind.component(), change: h}, nil
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
	c.Evidence -= c.change.freedom
}

// weigh weighs a fault by how near its guesses are, until it cannot explain the share of the
// wrong elements, which come first. It returns nil where the fault cannot be it.
func (x *explainer[T]) weigh(ctx context.Context, f Fault, elements []element, share float64) (*candidate, error) {
	c, err := x.candidate(ctx, f)
	if c == nil {
		return nil, err
	}
	var w scratch
	spared, wrong := 0, wrongIn(elements)
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
		if c.Hopeless(share, wrong) {
			return nil, nil
		}
	}
	if f.Kind == edgeGarbage && (10*spared > c.Explained || !x.covers(f, elements)) {
		return nil, nil
	}
	c.finish()
	return c, nil
}

// wrongIn counts wrong elements, which come before others.
func wrongIn(elements []element) int {
	return sort.Search(len(elements), func(n int) bool { return !elements[n].wrong })
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
func (x *explainer[T]) weighBits(ctx context.Context, f Fault, elements []element, share float64) (*candidate, error) {
	c, err := x.candidate(ctx, f)
	if c == nil || f.Kind == edgeGarbage || c.change.fitted {
		return nil, err
	}
	if far, err := x.far(ctx, c.change, elements); far || err != nil {
		return nil, err
	}
	wrong := wrongIn(elements)
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
		if c.Missed >= 4 && c.Missed > c.Explained || c.Hopeless(share, wrong) {
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
