package fault

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/oracle/explain"
)

// writing returns 0 for a fault of what is written to C that holds in a part of it, as
// such faults do more often than others, and otherwise 1.
func (c *candidate) writing() int {
	if c.Contradicted > 0 && c.component == written {
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
	case c.Contradicted > 0, c.Kind == scalesStale:
		return 1
	}
	return 0
}

// scatters reports whether a kernel would have the fault in elements here and there: not
// if it reads or computes another thing, but if it does or leaves out something more.
func (c *candidate) scatters() bool {
	return (c.component == sumOverK || c.component == written) && !c.change.fitted && c.change.rounded == Float32
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
		if c.Kind == scalesStale && len(class) > 1 {
			return slices.ContainsFunc(class, func(o *candidate) bool {
				return o.Kind == kFactor || o.Kind.component() == ofScales && o.Kind != scalesStale
			})
		}
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
	f.Seen = f.Fault.reports()
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

// ofOneLine reports whether a candidate is of single products, and holds in the only row or
// column of C that has wrong elements.
func (x *explainer[T]) ofOneLine(c *candidate) bool {
	switch c.Kind {
	case kLost, kDoubled:
		if c.To != c.From+1 {
			return false
		}
	case codePair, nibblePair:
	default:
		return false
	}
	r := c.Where
	return c.Missed == 0 && (r == Region{FromRow: r.FromRow, ToRow: r.FromRow + 1} || r == Region{FromCol: r.FromCol, ToCol: r.FromCol + 1} ||
		r == Region{FromRow: x.p.m - 1} || r == Region{FromCol: x.p.n - 1})
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
		if a.outcomes[n] == explain.Fits && x.elements[n].got-x.elements[n].got != 0 {
			continue // as long as it is not finite in both
		}
		if g.value != h.value && !(math.Abs(g.value-h.value) <= g.tolerance+h.tolerance) && !(g.value != g.value && h.value != h.value) {
			return false
		}
	}
	return true
}
