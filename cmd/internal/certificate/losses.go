package certificate

import (
	"cmp"
	"slices"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// total is how many weights were one thing and became another.
type total struct {
	From, To string
	Weights  int
	Elements int64
}

// totals counts weights by what they were and became, those with most elements first.
func totals(c *checkpoint.Certificate) []total {
	type kind struct{ from, to string }
	counts := map[kind]*total{}
	for _, t := range c.Tensors {
		k := kind{t.From, t.To}
		if t.Copied {
			k.to = "copied"
		}
		if counts[k] == nil {
			counts[k] = &total{From: k.from, To: k.to}
		}
		counts[k].Weights++
		counts[k].Elements += t.Elements
	}
	var all []total
	for _, t := range counts {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b total) int {
		return cmp.Or(cmp.Compare(b.Elements, a.Elements), cmp.Compare(a.From+a.To, b.From+b.To))
	})
	return all
}

// losers returns the weights that lost anything, those that lost most first.
func losers(c *checkpoint.Certificate) []checkpoint.WeightLoss {
	exact := func(t checkpoint.WeightLoss) bool { return t.Exact }
	tensors := slices.DeleteFunc(slices.Clone(c.Tensors), exact)
	slices.SortStableFunc(tensors, func(a, b checkpoint.WeightLoss) int {
		return cmp.Compare(textout.LossOrder(a.BecameNonFinite, float64(a.SQNR)),
			textout.LossOrder(b.BecameNonFinite, float64(b.SQNR)))
	})
	return tensors
}
