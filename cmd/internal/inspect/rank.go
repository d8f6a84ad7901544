package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// RankedRecipe says what a recipe would do to all matrices.
type RankedRecipe struct {
	Profile    scaling.Profile `json:"profile"`
	Block      string          `json:"block"`
	ScaleBytes int64           `json:"scaleBytes"`

	TiedWith scaling.Profile `json:"tiedWith,omitempty"` // the best recipe within tieDecibels

	// Each of the matrix that is worst by it, or of the median matrix. Those of zeros do not
	// count; NaN if there are no others.
	WorstLost        jsonout.Number `json:"worstLost"` // share of what is not zero that is saturated, flushed or made NaN
	WorstRowError    jsonout.Number `json:"worstRowError"`
	WorstBlockError  jsonout.Number `json:"worstBlockError"`
	MedianBlockError jsonout.Number `json:"medianBlockError"`
	WorstSQNR        jsonout.Number `json:"worstSQNRDecibels"`
	WorstTensor      string         `json:"worstTensor"` // by SQNR
	MedianSQNR       jsonout.Number `json:"medianSQNRDecibels"`

	Saturated       int64 `json:"saturated"`
	Flushed         int64 `json:"flushed"`
	BecameNonFinite int64 `json:"becameNonFinite"`
	Elements        int64 `json:"elements"`
}

// rank returns what each recipe would do to all matrices, the best first. One that makes
// finite values NaN or infinite comes after those that do not. Then the best loses the
// smallest share of values, saturated or flushed, of the matrix of which it loses most, to a
// tenth of a percent; where that is the same, the error of its worst row is the smallest, to
// a percent; then the mean error of blocks of its worst matrix, to a tenth of a percent; then
// that of the median matrix; then the fewest bytes of scales; and then it comes first in the
// list of recipes.
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
			cmp.Compare(rounded(1000, a.WorstLost), rounded(1000, b.WorstLost)),
			cmp.Compare(rounded(100, a.WorstRowError), rounded(100, b.WorstRowError)),
			cmp.Compare(rounded(1000, a.WorstBlockError), rounded(1000, b.WorstBlockError)),
			cmp.Compare(rounded(1000, a.MedianBlockError), rounded(1000, b.MedianBlockError)),
			cmp.Compare(a.ScaleBytes, b.ScaleBytes),
		)
	})
	tie(all)
	return all
}

const (
	tieDecibels = 0.1  // the difference up to which errors are not told apart
	smallError  = 1e-4 // below which none is
)

// tie says of each recipe which better one it is tied with: by every error, as decibels, and by
// the share of values that is lost, to a tenth of a percent.
func tie(all []RankedRecipe) {
	for i := range all {
		for k := range i {
			if all[k].TiedWith == "" && all[k].like(&all[i]) {
				all[i].TiedWith = all[k].Profile
				break
			}
		}
	}
}

func (of *RankedRecipe) like(o *RankedRecipe) bool {
	a, b := of.decibels(), o.decibels()
	for i := range a {
		if a[i] != b[i] && !(math.Abs(a[i]-b[i]) <= tieDecibels) {
			return false
		}
	}
	return min(of.BecameNonFinite, 1) == min(o.BecameNonFinite, 1) && rounded(1000, of.WorstLost) == rounded(1000, o.WorstLost)
}

// decibels are all errors of a recipe as ratios of the values to them; NaN counts as infinite.
func (of *RankedRecipe) decibels() (all [5]float64) {
	for i, e := range []jsonout.Number{of.WorstRowError, of.WorstBlockError, of.MedianBlockError} {
		all[i] = -20 * math.Log10(max(orInf(e), smallError))
	}
	for i, s := range []jsonout.Number{of.WorstSQNR, of.MedianSQNR} {
		all[3+i] = min(-orInf(-s), -20*math.Log10(smallError))
	}
	return all
}

// tied is a row of recipes that are not told apart: the best, and the others.
type tied struct {
	RankedRecipe
	others []RankedRecipe
}

// rows returns the ranking with one row for recipes that are tied.
func (r *Report) rows() (all []tied) {
	for _, of := range r.Ranking {
		i := slices.IndexFunc(all, func(t tied) bool { return t.Profile == of.TiedWith })
		if i < 0 {
			all = append(all, tied{RankedRecipe: of})
		} else {
			all[i].others = append(all[i].others, of)
		}
	}
	return all
}

// said names the others, with their blocks.
func (t tied) said() string {
	var names []string
	for i, o := range t.others {
		name := string(o.Profile)
		if i+1 == len(t.others) || t.others[i+1].Block != o.Block {
			name += " (" + o.Block + ")"
		}
		names = append(names, name)
	}
	return fmt.Sprintf("tied within %v dB: ", tieDecibels) + strings.Join(names, ", ")
}

// rounded is a share or an error in parts of 1.
func rounded(parts float64, x jsonout.Number) float64 { return math.Round(parts * float64(x)) }

// overMatrices sums up recipe i, if there is a matrix.
func overMatrices(tensors []TensorReport, i int, recipe scaling.Recipe) (of RankedRecipe, ok bool) {
	of = RankedRecipe{Profile: recipe.Profile, Block: recipe.Block.String(), WorstSQNR: jsonout.Number(math.NaN())}
	var sqnrs, lost, rows, blocks []float64
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
		down, across := (&tensor.Tensor{Shape: t.weightShape, Block: recipe.Block}).Grid()
		of.ScaleBytes += int64(down) * int64(across) * int64(tensorfile.ScaleTypeOf(recipe.Profile.ScaleFormat()).Size())
		switch {
		case oneOuter(recipe):
			of.ScaleBytes += 4
		case recipe.Profile.Outer():
			of.ScaleBytes += 4 * int64(down)
		}
		s := float64(r.SQNR)
		switch {
		case t.Values.Amax == 0: // nothing to lose
			continue
		case s != s: // a NaN among what values became
			s = math.Inf(-1)
		}
		lost = append(lost, t.lost(r))
		rows, blocks = append(rows, orInf(r.RowError)), append(blocks, orInf(r.BlockError))
		if sqnrs = append(sqnrs, s); s < float64(of.WorstSQNR) || of.WorstSQNR != of.WorstSQNR {
			of.WorstSQNR, of.WorstTensor = jsonout.Number(s), t.Name
		}
	}
	of.MedianSQNR = jsonout.Number(median(sqnrs))
	of.WorstLost, of.WorstRowError, of.WorstBlockError = largest(lost), largest(rows), largest(blocks)
	of.MedianBlockError = jsonout.Number(median(blocks))
	return of, ok
}

// orInf is an error, infinite where a NaN is among what values became.
func orInf(x jsonout.Number) float64 {
	if x != x {
		return math.Inf(1)
	}
	return float64(x)
}

// largest is NaN of nothing.
func largest(values []float64) jsonout.Number {
	if len(values) == 0 {
		return jsonout.Number(math.NaN())
	}
	return jsonout.Number(slices.Max(values))
}

// median is the middle, or the lower of both in the middle; NaN of nothing.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
