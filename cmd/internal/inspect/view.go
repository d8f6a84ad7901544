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

// Sorts returns all orders.
func Sorts() []Sort { return []Sort{ByRisk, ByName, BySize, ByAmax, ByRange, BySQNR, ByFile} }

// view returns the tensors to show, in their order.
func (r *Report) view(v View) []*TensorReport {
	tensors := make([]*TensorReport, len(r.Tensors))
	for i := range r.Tensors {
		tensors[i] = &r.Tensors[i]
	}
	slices.SortStableFunc(tensors, r.order(v.Sort))
	if v.Top > 0 {
		tensors = tensors[:min(v.Top, len(tensors))]
	}
	return tensors
}

func (r *Report) order(s Sort) func(a, b *TensorReport) int {
	switch s {
	case ByRisk:
		return by(func(t *TensorReport) float64 { return -float64(t.Risk.Rank) })
	case ByName:
		return func(a, b *TensorReport) int { return cmp.Compare(a.Name, b.Name) }
	case BySize:
		return by(func(t *TensorReport) float64 { return float64(t.Bytes) })
	case ByAmax:
		return by(func(t *TensorReport) float64 { return t.values().amax })
	case ByRange:
		return by(func(t *TensorReport) float64 { return t.values().bits })
	case BySQNR:
		return by(func(t *TensorReport) float64 { return -r.sqnr(t) })
	}
	return func(a, b *TensorReport) int { return cmp.Compare(a.place, b.place) }
}

// by orders by a number, largest first and NaN last.
func by(number func(*TensorReport) float64) func(a, b *TensorReport) int {
	return func(a, b *TensorReport) int { return cmp.Compare(number(b), number(a)) } // NaN is the least
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
