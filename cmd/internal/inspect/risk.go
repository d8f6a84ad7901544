package inspect

import (
	"cmp"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/scaling"
)

// RiskReport says what is worst about a tensor, and its place among all.
type RiskReport struct {
	Rank   int    `json:"rank"` // 1 is the riskiest
	Reason Reason `json:"reason"`

	amount float64 // within the reason, most first
}

// Reason is what is worst about a tensor.
type Reason string

// The reasons, worst first.
const (
	NonFinite       Reason = "not finite" // there are NaN or infinite values
	BecameNonFinite Reason = "becomes NaN or infinite"
	Saturated       Reason = "saturated"
	Flushed         Reason = "flushed"
	StandsOut       Reason = "stands out" // an error or the crest is far above the median
	NotJudged       Reason = "not judged" // values were not read
	NoReason        Reason = ""
)

var reasons = []Reason{NonFinite, BecameNonFinite, Saturated, Flushed, StandsOut, NotJudged, NoReason}

const (
	muchFlushed = 0.01 // share of the values that are not zero
	farAbove    = 2    // times the median
)

// Medians are what the matrices of a report are compared with: the medians of each measure
// under the judging recipe. NaN stands for none.
type Medians struct{ SQNR, RowError, BlockError, Crest float64 }

func mediansOf(tensors []TensorReport, judge scaling.Profile) Medians {
	var all [4][]float64
	for i := range tensors {
		t := &tensors[i]
		r := t.under(judge)
		if r == nil || t.Values.Amax == 0 {
			continue
		}
		for k, x := range []jsonout.Number{r.SQNR, r.RowError, r.BlockError, t.Values.Crest} {
			if x == x {
				all[k] = append(all[k], float64(x))
			}
		}
	}
	return Medians{median(all[0]), median(all[1]), median(all[2]), median(all[3])}
}

// above is how many times the median a measure is: 1 where both are 0.
func above(x jsonout.Number, median float64) float64 {
	if float64(x) == median {
		return 1
	}
	if times := float64(x) / median; times == times {
		return times
	}
	return math.Inf(1) // a NaN among what values became
}

// assess gives each tensor the first reason that applies to it, as the judging recipe
// has it, and ranks them: by reason, then by the share of values that it is true of or
// by how far they stand out, and tensors for which that is the same by their place.
func assess(tensors []TensorReport, judge scaling.Profile, m Medians) {
	order := make([]*TensorReport, len(tensors))
	for i := range tensors {
		order[i] = &tensors[i]
		order[i].Risk = riskOf(order[i], judge, m)
	}
	slices.SortStableFunc(order, func(a, b *TensorReport) int {
		return cmp.Or(
			cmp.Compare(slices.Index(reasons, a.Risk.Reason), slices.Index(reasons, b.Risk.Reason)),
			cmp.Compare(b.Risk.amount, a.Risk.amount),
		)
	})
	for i, t := range order {
		t.Risk.Rank = i + 1
	}
}

func riskOf(t *TensorReport, judge scaling.Profile, m Medians) RiskReport {
	risk := func(why Reason, n, of int64) RiskReport {
		return RiskReport{Reason: why, amount: float64(n) / float64(of)}
	}
	if n := t.Values.nonFinite(); n > 0 {
		return risk(NonFinite, n, t.Values.Elements)
	}
	if t.NotJudged != "" {
		return RiskReport{Reason: NotJudged}
	}
	r := t.under(judge)
	if r == nil || t.Values.Amax == 0 {
		return RiskReport{Reason: NoReason, amount: math.Inf(-1)}
	}
	nonzero := t.Values.Elements - t.Values.Zeros
	out := max(above(r.RowError, m.RowError), above(r.BlockError, m.BlockError), above(t.Values.Crest, m.Crest))
	switch {
	case r.BecameNonFinite > 0:
		return risk(BecameNonFinite, r.BecameNonFinite, t.Values.Elements)
	case r.Saturated > 0:
		return risk(Saturated, r.Saturated, nonzero)
	case float64(r.Flushed) >= muchFlushed*float64(nonzero):
		return risk(Flushed, r.Flushed, nonzero)
	case out >= farAbove:
		return RiskReport{Reason: StandsOut, amount: out}
	}
	return RiskReport{Reason: NoReason, amount: out}
}
