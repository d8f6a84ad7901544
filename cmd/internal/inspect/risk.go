package inspect

import (
	"cmp"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/scaling"
)

// RiskReport says what is worst about a tensor, and its place among all.
type RiskReport struct {
	Rank   int    `json:"rank"` // 1 is the riskiest
	Reason Reason `json:"reason"`
	Keep   string `json:"keep,omitempty"` // why a matrix should stay as it is; see Advice

	amount float64 // within the reason, most first
}

// Reason is what is worst about a tensor.
type Reason string

// The reasons, worst first.
const (
	NonFinite       Reason = "not finite" // there are NaN or infinite values
	BecameNonFinite Reason = "becomes NaN or infinite"
	LosesMuch       Reason = "loses much" // more than half a step, of which rounding moves a value at most
	Saturated       Reason = "saturated"
	StandsOut       Reason = "stands out" // an error or the crest is far above the median
	NotJudged       Reason = "not judged" // values were not read
	NoReason        Reason = ""
)

var reasons = []Reason{NonFinite, BecameNonFinite, LosesMuch, Saturated, StandsOut, NotJudged, NoReason}

const farAbove = 2 // times the median

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
// has it, and ranks them: by reason, then those that should stay as they are, then by the share
// of values that the reason is true of, by what is lost or by how far they stand out, and tensors
// for which that is the same by their place.
func assess(tensors []TensorReport, judge scaling.Profile, m Medians, halfStep float64) {
	order := make([]*TensorReport, len(tensors))
	for i := range tensors {
		order[i] = &tensors[i]
		order[i].Risk = riskOf(order[i], judge, m, halfStep)
	}
	slices.SortStableFunc(order, func(a, b *TensorReport) int {
		return cmp.Or(
			cmp.Compare(slices.Index(reasons, a.Risk.Reason), slices.Index(reasons, b.Risk.Reason)),
			-cmp.Compare(min(len(a.Risk.Keep), 1), min(len(b.Risk.Keep), 1)),
			cmp.Compare(b.Risk.amount, a.Risk.amount),
		)
	})
	for i, t := range order {
		t.Risk.Rank = i + 1
	}
}

// halfStepOf returns how far rounding within the range of a format moves a value at most, as a share
// of it. MXINT8, whose steps are all alike, has that of E4M3.
func halfStepOf(f fp8.Format) float64 {
	mantissa := f.Mantissa()
	if f == fp8.MXINT8 {
		mantissa = fp8.E4M3.Mantissa()
	}
	return math.Ldexp(1, -mantissa-1)
}

func riskOf(t *TensorReport, judge scaling.Profile, m Medians, halfStep float64) RiskReport {
	if n := t.Values.nonFinite(); n > 0 {
		return RiskReport{Reason: NonFinite, amount: float64(n) / float64(t.Values.Elements)}
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
	risk := RiskReport{Reason: NoReason, amount: out}
	why := t.keeping(r, halfStep)
	if t.Scheme == "" && t.part == nil { // codes have been encoded, and parts stay anyway
		risk.Keep = why
	}
	because := func(why Reason, n int64) RiskReport {
		risk.Reason, risk.amount = why, float64(n)/float64(nonzero)
		return risk
	}
	switch {
	case r.BecameNonFinite > 0:
		return because(BecameNonFinite, r.BecameNonFinite)
	case why != "":
		risk.Reason, risk.amount = LosesMuch, max(t.lost(r), float64(r.RowError), float64(r.BlockError))
	case r.Saturated > 0:
		return because(Saturated, r.Saturated)
	case out >= farAbove:
		risk.Reason = StandsOut
	}
	return risk
}
