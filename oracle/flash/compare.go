package flash

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/oracle"
)

// Got is what a kernel under test returned.
type Got struct {
	Out []float32 // [Heads, Queries, ValueDim]
	LSE []float32 // [Heads, Queries]; nil where the kernel does not return it
}

// Comparison is what [Compare] found. An element is outside if it is farther from the wanted
// one than its bound; two NaN agree whatever their bits, and so do equal infinities.
type Comparison struct {
	Elements int `json:"elements"`
	Outside  int `json:"outside"` // elements of Out
	// Unbounded are the elements of Out and LSE that differ and have a bound of +Inf, which
	// says nothing of them.
	Unbounded int `json:"unbounded"`
	// Wide are the elements of rows of Out that are within their bounds although the row is
	// as far from the wanted one as zeros are: such bounds say nothing.
	Wide int `json:"wide"`
	Rows int `json:"rows"` // those with an element outside, in Out or LSE
	// Worst is the largest error in units of the bound, and +Inf where one side only is
	// finite or the bound is 0. Nil where all errors are 0.
	Worst *ElementError `json:"worst,omitempty"`

	// LSEOutside are rows whose log-sum-exp is outside; WorstLSE and MaxLSE the largest
	// errors, in units of the bound and absolute, infinities that agree aside.
	LSEOutside int           `json:"lseOutside"`
	WorstLSE   *ElementError `json:"worstLSE,omitempty"`
	MaxLSE     oracle.Number `json:"maxLSE"`

	RelL2  oracle.Number `json:"relL2"`  // |got-want|/|want|, of all of Out
	Cosine oracle.Number `json:"cosine"` // of got and want

	NonFinite int `json:"nonFinite"` // elements of Out that are finite on one side only

	Heads []HeadComparison `json:"heads"`
}

// HeadComparison is a query head's part of a [Comparison].
type HeadComparison struct {
	Outside    int           `json:"outside"`
	LSEOutside int           `json:"lseOutside"`
	Rows       []int         `json:"rows,omitempty"` // queries with something outside
	RelL2      oracle.Number `json:"relL2"`
	Cosine     oracle.Number `json:"cosine"`
	MaxLSE     oracle.Number `json:"maxLSE"`
	Worst      oracle.Number `json:"worst"` // in units of the bound
}

// ElementError is an element and its error. Column is -1 for a log-sum-exp.
type ElementError struct {
	Head   int           `json:"head"`
	Query  int           `json:"query"`
	Column int           `json:"column"`
	Got    oracle.Number `json:"got"`
	Want   oracle.Number `json:"want"`
	Bound  oracle.Number `json:"bound"`
	Ratio  oracle.Number `json:"ratio"` // error over bound
}

// OK reports whether nothing is outside; of what has no bound, see Unbounded, that says nothing.
func (r *Comparison) OK() bool { return r.Outside == 0 && r.LSEOutside == 0 }

// Compare compares a kernel's result with exact attention, that of [Exact] for all rows,
// under the bounds of [Bound]. It panics if they are not of one size.
func Compare(got Got, want *Result[float64], l *Limits, s attention.Sizes) Comparison {
	n := s.Heads * s.Queries
	if len(got.Out) != n*s.ValueDim || len(want.Out) != len(got.Out) || len(l.Out) != len(got.Out) ||
		len(want.LSE) != n || len(l.LSE) != n || got.LSE != nil && len(got.LSE) != n {
		panic("flash: result, answer and bounds are not of one problem")
	}
	r := Comparison{Elements: len(got.Out)}
	var all norms
	for h := range s.Heads {
		var head HeadComparison
		var sums norms
		for i := range s.Queries {
			at := h*s.Queries + i
			outside, before := 0, sums
			for c := range s.ValueDim {
				e := at*s.ValueDim + c
				g, w := float64(got.Out[e]), want.Out[e]
				sums.add(g, w)
				if number.IsFinite(g) != number.IsFinite(w) {
					r.NonFinite++
				}
				place := ElementError{Head: h, Query: i, Column: c}
				if place.weigh(g, w, l.Out[e]) {
					outside++
				}
				r.unbounded(g, w, l.Out[e])
				r.Worst = worse(r.Worst, place)
				head.Worst = max(head.Worst, place.Ratio)
			}
			if off, length := sums.off-before.off, sums.want-before.want; outside == 0 && off > 0 && off >= length {
				r.Wide += s.ValueDim
			}
			r.Outside += outside
			head.Outside += outside
			if got.LSE != nil && r.logSum(&head, ElementError{Head: h, Query: i, Column: -1}, float64(got.LSE[at]),
				want.LSE[at], l.LSE[at]) || outside > 0 {
				head.Rows = append(head.Rows, i)
			}
		}
		r.Rows += len(head.Rows)
		head.RelL2, head.Cosine = sums.relative(), sums.cosine()
		all.plus(sums)
		r.MaxLSE = max(r.MaxLSE, head.MaxLSE)
		r.LSEOutside += head.LSEOutside
		r.Heads = append(r.Heads, head)
	}
	r.RelL2, r.Cosine = all.relative(), all.cosine()
	return r
}

// logSum takes a row's log-sum-exp in, and reports whether it is outside.
func (r *Comparison) logSum(head *HeadComparison, place ElementError, got, want, bound float64) bool {
	outside := place.weigh(got, want, bound)
	if outside {
		head.LSEOutside++
	}
	if off := math.Abs(got - want); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
		if math.IsNaN(off) {
			off = math.Inf(1)
		}
		head.MaxLSE = max(head.MaxLSE, oracle.Number(off))
	}
	r.WorstLSE = worse(r.WorstLSE, place)
	r.unbounded(got, want, bound)
	return outside
}

// unbounded counts an element that differs and has no bound.
func (r *Comparison) unbounded(got, want, bound float64) {
	if got != want && (got == got || want == want) && math.IsInf(bound, 1) {
		r.Unbounded++
	}
}

// weigh fills in an element and its error, and reports whether it is outside.
func (w *ElementError) weigh(got, want, bound float64) bool {
	w.Got, w.Want, w.Bound = oracle.Number(got), oracle.Number(want), oracle.Number(bound)
	off := math.Abs(got - want)
	switch {
	case got == want || math.IsNaN(got) && math.IsNaN(want) || math.IsInf(bound, 1):
		return false
	case math.IsNaN(off) || math.IsInf(off, 0):
		w.Ratio = oracle.Number(math.Inf(1))
	default:
		w.Ratio = oracle.Number(off / bound)
	}
	return !(w.Ratio <= 1)
}

// worse returns the one of the larger error, the first of two equal.
func worse(old *ElementError, w ElementError) *ElementError {
	if !(w.Ratio > 0) || old != nil && !(w.Ratio > old.Ratio) {
		return old
	}
	return &w
}

// norms are sums of squares and of products.
type norms struct{ off, got, want, both float64 }

func (n *norms) add(got, want float64) {
	n.off += float64((got - want) * (got - want))
	n.got += float64(got * got)
	n.want += float64(want * want)
	n.both += float64(got * want)
}

func (n *norms) plus(o norms) {
	n.off, n.got, n.want, n.both = n.off+o.off, n.got+o.got, n.want+o.want, n.both+o.both
}

// relative is 0 where there is neither error nor anything wanted.
func (n *norms) relative() oracle.Number {
	if n.off == 0 {
		return 0
	}
	return oracle.Number(math.Sqrt(n.off / n.want))
}

// cosine is 1 where both are 0.
func (n *norms) cosine() oracle.Number {
	if n.got == 0 && n.want == 0 {
		return 1
	}
	return oracle.Number(n.both / math.Sqrt(float64(n.got*n.want)))
}

// String returns the comparison in a few lines.
func (r *Comparison) String() string {
	var b strings.Builder
	switch {
	case r.OK() && r.Unbounded > 0:
		fmt.Fprintf(&b, "%d of %d elements and log-sum-exps differ and have no bound", r.Unbounded, r.Elements)
	case r.OK():
		fmt.Fprintf(&b, "all %d elements are within their bounds", r.Elements)
	default:
		fmt.Fprintf(&b, "%d of %d elements and %d log-sum-exps are outside of their bounds, in %d rows",
			r.Outside, r.Elements, r.LSEOutside, r.Rows)
	}
	fmt.Fprintf(&b, "; relative L2 error %.3g, cosine %.6f, largest error of a log-sum-exp %.3g\n",
		float64(r.RelL2), float64(r.Cosine), float64(r.MaxLSE))
	if r.NonFinite > 0 {
		fmt.Fprintf(&b, "%d elements are finite on one side only\n", r.NonFinite)
	}
	for _, w := range []*ElementError{r.Worst, r.WorstLSE} {
		if w != nil {
			fmt.Fprintln(&b, w)
		}
	}
	for h, head := range r.Heads {
		if len(head.Rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "head %d: %d elements and %d log-sum-exps outside, queries %s; relative L2 "+
			"%.3g, cosine %.6f\n",
			h, head.Outside, head.LSEOutside, textout.Ranges(head.Rows),
			float64(head.RelL2), float64(head.Cosine))
	}
	return b.String()
}

// String returns a line such as "worst: head 0, query 3, column 5: 1.5 for 1.25, 2.1 times
// the bound 0.119".
func (w *ElementError) String() string {
	place := fmt.Sprintf("worst: head %d, query %d, column %d", w.Head, w.Query, w.Column)
	if w.Column < 0 {
		place = fmt.Sprintf("worst log-sum-exp: head %d, query %d", w.Head, w.Query)
	}
	return fmt.Sprintf("%s: %.6g for %.6g, %.3g times the bound %.3g", place, float64(w.Got),
		float64(w.Want), float64(w.Ratio), float64(w.Bound))
}

// inBase returns natural log-sum-exps, in base 2 where two says so.
func inBase(lse []float64, two bool) []float64 {
	if !two {
		return lse
	}
	r := make([]float64, len(lse))
	for i, x := range lse {
		r[i] = x * math.Log2E
	}
	return r
}
