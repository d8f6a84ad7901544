package judge

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// Doubt says which elements were not judged: they differ from the exact result, and their
// bounds allow what any fault would do. One is enough for a result to be undecided, since
// such elements have extreme scales, and faults that have to do with those are in them.
// Where a sample has no element of C, Elements is 0.
type Doubt struct {
	Elements int `json:"elements"`
	// Infinite have no bound, since something may overflow in sums that the claim allows.
	Infinite int `json:"infinite"`
	// Wide have a bound that 0 is within although their products do not cancel: it is more
	// than the root of the sum of the squares of these, to which sums come whose signs are
	// random. Where errors were tested together none counts as wide.
	Wide int `json:"wide"`
	Row  int `json:"row"` // of the first
	Col  int `json:"col"`
	// Decide says what would decide it.
	Decide []string `json:"decide"`
}

// fillFinite bounds the elements that are finite and have a bound of +Inf, since some order
// of scales overflows, by the orders that do not.
func (w *wanted[T]) fillFinite(ctx context.Context, j *job, got, old []T) error {
	if w.bits {
		return nil
	}
	var at []int
	for i, x := range got {
		if v := number.Float64(x); math.IsInf(w.bound[i], 1) && number.IsFinite(v) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return nil
	}
	part := *j
	part.claim.Accumulation.Finite = true
	v, err := newWanted(ctx, &part, old, w.places(at))
	if err != nil {
		return err
	}
	for n, i := range at {
		w.bound[i] = v.bound[n]
	}
	return nil
}

// places returns where elements that are looked at are in C.
func (w *wanted[T]) places(at []int) []int {
	if w.at != nil {
		return gather(w.at, at)
	}
	return at
}

// doubt returns what was not judged of elements of which none is outside, or nil.
func (w *wanted[T]) doubt(v *Verdict, j *job, got []T) *Doubt {
	var d Doubt
	if v.unseen() {
		d.Decide = []string{"a sample with elements at random, or with rows, columns or tiles of C"}
		return &d
	}
	var all, perhaps []int
	for i, x := range got {
		g, want, bound := number.Float64(x), number.Float64(w.claimed[i]), w.bound[i]
		switch {
		case g == want || g != g && want != want:
		case !(bound < math.Inf(1)):
			d.Infinite++
			all = append(all, i)
		case bound-ulp(w.claimed[i]) > math.Abs(want) && v.Power.untested():
			perhaps = append(perhaps, i)
		}
	}
	lengths := j.lengths(w.places(perhaps))
	for n, i := range perhaps {
		if w.bound[i]-ulp(w.claimed[i]) > lengths[n] {
			d.Wide++
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return nil
	}
	d.Elements = len(all)
	first := w.places([]int{slices.Min(all)})[0]
	d.Row, d.Col = first/j.n, first%j.n
	if d.Infinite > 0 && j.anyOrder() {
		d.Decide = append(d.Decide, "a claim of the order in which the kernel applies scales, since with these scales some orders overflow")
	}
	if d.Wide > 0 && j.claim.Alarms == Ignore {
		d.Decide = append(d.Decide, "tests of all errors together, which the claim has left out with its alarms")
	}
	d.Decide = append(d.Decide, "a claim of bits, those of a model of a GPU or of octavo's product")
	if d.Infinite > 0 {
		d.Decide = append(d.Decide, "operands whose scales are less extreme")
	} else {
		d.Decide = append(d.Decide, "operands of fewer products")
	}
	return &d
}

// unseen reports whether C has elements and none was looked at.
func (v *Verdict) unseen() bool { return v.elements() == 0 && v.M > 0 && v.N > 0 }

// untested reports whether errors were not tested together.
func (p *Power) untested() bool { return p == nil || p.Result == nil }

// anyOrder reports whether nothing is claimed of the order of scales.
func (j *job) anyOrder() bool {
	a := j.claim.accumulation()
	return a.Scales == oracle.AnyOrder && a.Kernel.Scales == oracle.AnyOrder && !a.Dequantized
}

// lengths returns, of elements of C, the roots of the sums of squares of their products.
func (j *job) lengths(at []int) []float64 {
	lengths := make([]float64, len(at))
	rows := rowsOf(at, j.n)
	parallel.For(len(rows), 1, j.options.Workers, func(lo, hi int) {
		for _, r := range rows[lo:hi] {
			x := squares(j.a, r.row)
			for n := r.lo; n < r.hi; n++ {
				col, sum := at[n]%j.n, 0.0
				for k, y := range squares(j.b, col) {
					sum += float64(x[k] * y)
				}
				if j.options.Bias != nil {
					bias := float64(j.options.Bias[col])
					sum += float64(bias * bias)
				}
				lengths[n] = math.Sqrt(sum)
			}
		}
	})
	return lengths
}

// squares are those of the elements of row i of t; one that is not finite is 0.
func squares(t *tensor.Tensor, i int) []float64 {
	codes, outer, scale := t.Row(i), float64(t.Outer.Factor(i)), 0.0
	_, width := t.Block.Extents(t.Dims())
	all := make([]float64, len(codes))
	for k, c := range codes {
		if k%width == 0 {
			scale = float64(t.Scale(i, k)) * outer
		}
		if v := float64(t.Format.Float32(c)) * scale; number.IsFinite(v) {
			all[k] = float64(v * v)
		}
	}
	return all
}

// undecided says of which elements nothing was decided, or is "".
func (v *Verdict) undecided() string {
	if v.Doubt == nil {
		return ""
	}
	if v.unseen() {
		return fmt.Sprintf("none of C's %d elements was looked at", v.M*v.N)
	}
	why := "their bounds are so wide that 0 is within"
	if v.Doubt.Wide == 0 {
		why = "they have no bound, since what the claim allows may overflow"
	} else if v.Doubt.Infinite > 0 {
		why = "they have no bound, or one so wide that 0 is within"
	}
	return fmt.Sprintf("%d of %s, %.3g %%, differ from %s, and whether they may is not known: %s",
		v.Doubt.Elements, v.looked(), 100*float64(v.Doubt.Elements)/float64(v.elements()), v.what(), why)
}
