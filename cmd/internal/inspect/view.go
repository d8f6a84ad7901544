package inspect

import (
	"cmp"
	"math"
	"slices"
)

// View says what of a report to show.
type View struct {
	Sort   Sort
	Top    int  // tensors; 0: all
	Detail bool // every recipe of every tensor
	Wide   bool // names are not shortened
}

// Sort is an order of tensors.
type Sort string

// The orders. Those by a number have the tensors without one last; tensors for which it
// is the same stay in the order of their files.
const (
	ByRisk  Sort = "risk"
	ByName  Sort = "name"
	BySize  Sort = "size"  // largest first
	ByAmax  Sort = "amax"  // largest first
	ByRange Sort = "range" // widest first
	BySQNR  Sort = "sqnr"  // worst first, under the judging recipe
	ByFile  Sort = "file"
)

// sorts are all orders, what they are called, and how they compare.
var sorts = []struct {
	Sort
	said    string
	compare func(r *Report, a, b *TensorReport) int
}{
	{ByRisk, "the riskiest first", func(_ *Report, a, b *TensorReport) int { return cmp.Compare(a.Risk.Rank, b.Risk.Rank) }},
	{ByName, "by name", func(_ *Report, a, b *TensorReport) int { return cmp.Compare(a.Name, b.Name) }},
	{BySize, "the largest first", func(_ *Report, a, b *TensorReport) int { return cmp.Compare(b.Bytes, a.Bytes) }},
	{ByAmax, "the largest amax first", func(_ *Report, a, b *TensorReport) int { return cmp.Compare(b.values().amax, a.values().amax) }},
	{ByRange, "the widest range first", func(_ *Report, a, b *TensorReport) int { return cmp.Compare(b.values().bits, a.values().bits) }},
	{BySQNR, "the lowest SQNR first", func(r *Report, a, b *TensorReport) int { return cmp.Compare(-r.sqnr(b), -r.sqnr(a)) }},
	{ByFile, "in the order of the file", func(_ *Report, a, b *TensorReport) int { return cmp.Compare(a.place, b.place) }},
}

// Sorts returns all orders.
func Sorts() (all []Sort) {
	for _, s := range sorts {
		all = append(all, s.Sort)
	}
	return all
}

// place is that of an order in sorts: without a name, of the first.
func (s Sort) place() int { return max(slices.Index(Sorts(), s), 0) }

// said says in words what the order is.
func (s Sort) said() string { return sorts[s.place()].said }

// view returns the tensors to show, in their order.
func (r *Report) view(v View) []*TensorReport {
	tensors := make([]*TensorReport, len(r.Tensors))
	for i := range r.Tensors {
		tensors[i] = &r.Tensors[i]
	}
	compare := sorts[v.Sort.place()].compare
	slices.SortStableFunc(tensors, func(a, b *TensorReport) int { return compare(r, a, b) })
	if v.Top > 0 {
		tensors = tensors[:min(v.Top, len(tensors))]
	}
	return tensors
}

// sqnr is that of a tensor under the judging recipe, or NaN.
func (r *Report) sqnr(t *TensorReport) float64 {
	if of := t.under(r.Judge); of != nil {
		return float64(of.SQNR)
	}
	return math.NaN()
}

type extent struct{ amax, bits float64 }

// values is the extent of a tensor's values; NaN where there are none but zeros.
func (t *TensorReport) values() extent {
	if t.Values == nil || t.Values.Amax == 0 {
		return extent{math.NaN(), math.NaN()}
	}
	return extent{float64(t.Values.Amax), float64(t.Values.Range)}
}
