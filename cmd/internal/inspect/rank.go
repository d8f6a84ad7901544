package inspect

import (
	"cmp"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// RankedRecipe says what a recipe would do to all matrices.
type RankedRecipe struct {
	Profile         scaling.Profile `json:"profile"`
	Block           string          `json:"block"`
	ScaleBytes      int64           `json:"scaleBytes"`
	WorstSQNR       jsonout.Number  `json:"worstSQNRDecibels"` // of a matrix that is not all zeros; NaN if there is none
	WorstTensor     string          `json:"worstTensor"`
	MedianSQNR      jsonout.Number  `json:"medianSQNRDecibels"`
	Saturated       int64           `json:"saturated"`
	Flushed         int64           `json:"flushed"`
	BecameNonFinite int64           `json:"becameNonFinite"`
	Elements        int64           `json:"elements"`
}

// rank returns what each recipe would do to all matrices, the best first. One that makes
// finite values NaN or infinite comes after those that do not. Then the best loses the
// smallest share of values, saturated or flushed, to a tenth of a percent; where that is
// the same, it has the highest SQNR in its worst matrix, to a tenth of a decibel; then the
// highest median; then the fewest bytes of scales; and then it comes first in the list of
// recipes.
func rank(tensors []TensorReport, recipes []scaling.Recipe) []RankedRecipe {
	var all []RankedRecipe
	for i, r := range recipes {
		if of, ok := overMatrices(tensors, i, r); ok {
			all = append(all, of)
		}
	}
	slices.SortStableFunc(all, func(a, b RankedRecipe) int {
		return cmp.Or(
			cmp.Compare(min(a.BecameNonFinite, 1), min(b.BecameNonFinite, 1)),
			cmp.Compare(a.lost(), b.lost()),
			cmp.Compare(tenths(b.WorstSQNR), tenths(a.WorstSQNR)),
			cmp.Compare(tenths(b.MedianSQNR), tenths(a.MedianSQNR)),
			cmp.Compare(a.ScaleBytes, b.ScaleBytes),
		)
	})
	return all
}

// lost is the share of values lost in tenths of a percent.
func (r *RankedRecipe) lost() float64 {
	return math.Round(1000 * float64(r.Saturated+r.Flushed) / float64(r.Elements))
}

func tenths(sqnr jsonout.Number) float64 { return math.Round(10 * float64(sqnr)) }

// overMatrices sums up recipe i, if there is a matrix.
func overMatrices(tensors []TensorReport, i int, recipe scaling.Recipe) (of RankedRecipe, ok bool) {
	of = RankedRecipe{Profile: recipe.Profile, Block: recipe.Block.String(), WorstSQNR: jsonout.Number(math.NaN())}
	var sqnrs []float64
	for k := range tensors {
		t := &tensors[k]
		if len(t.Recipes) == 0 {
			continue
		}
		ok = true
		r := &t.Recipes[i]
		of.Elements += t.Values.Elements
		of.Saturated += r.Saturated
		of.Flushed += r.Flushed
		of.BecameNonFinite += r.BecameNonFinite
		rows, cols := (&tensor.Tensor{Shape: t.Shape, Block: recipe.Block}).Grid()
		of.ScaleBytes += int64(rows) * int64(cols) * int64(tensorfile.ScaleTypeOf(recipe.Profile.ScaleFormat()).Size())
		switch {
		case oneOuter(recipe):
			of.ScaleBytes += 4
		case recipe.Profile.Outer():
			of.ScaleBytes += 4 * int64(rows)
		}
		s := float64(r.SQNR)
		switch {
		case t.Values.Amax == 0: // nothing to lose
			continue
		case s != s: // a NaN among what values became
			s = math.Inf(-1)
		}
		if sqnrs = append(sqnrs, s); s < float64(of.WorstSQNR) || of.WorstSQNR != of.WorstSQNR {
			of.WorstSQNR, of.WorstTensor = jsonout.Number(s), t.Name
		}
	}
	of.MedianSQNR = jsonout.Number(median(sqnrs))
	return of, ok
}

// median is the middle, or the lower of both in the middle; NaN of nothing.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
