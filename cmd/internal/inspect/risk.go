package inspect

import (
	"cmp"
	"math"
	"slices"

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
	LowSQNR         Reason = "low SQNR"
	NoReason        Reason = ""
)

var reasons = []Reason{NonFinite, BecameNonFinite, Saturated, Flushed, LowSQNR, NoReason}

const (
	muchFlushed = 0.01 // share of the values that are not zero
	muchBelow   = 1    // decibels below the median SQNR
)

// assess gives each tensor the first reason that applies to it, as the judging recipe
// has it, and ranks them: by reason, then by the share of values that it is true of or
// the decibels below the median, and tensors for which that is the same by their place.
func assess(tensors []TensorReport, judge scaling.Profile, median float64) {
	order := make([]*TensorReport, len(tensors))
	for i := range tensors {
		order[i] = &tensors[i]
		order[i].Risk = riskOf(order[i], judge, median)
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

func riskOf(t *TensorReport, judge scaling.Profile, median float64) RiskReport {
	risk := func(why Reason, n, of int64) RiskReport {
		return RiskReport{Reason: why, amount: float64(n) / float64(of)}
	}
	if n := t.Values.nonFinite(); n > 0 {
		return risk(NonFinite, n, t.Values.Elements)
	}
	r := t.under(judge)
	if r == nil || t.Values.Amax == 0 {
		return RiskReport{Reason: NoReason, amount: math.Inf(-1)}
	}
	below := median - float64(r.SQNR)
	if below != below { // both are infinite
		below = 0
	}
	nonzero := t.Values.Elements - t.Values.Zeros
	switch {
	case r.BecameNonFinite > 0:
		return risk(BecameNonFinite, r.BecameNonFinite, t.Values.Elements)
	case r.Saturated > 0:
		return risk(Saturated, r.Saturated, nonzero)
	case float64(r.Flushed) >= muchFlushed*float64(nonzero):
		return risk(Flushed, r.Flushed, nonzero)
	case below >= muchBelow:
		return RiskReport{Reason: LowSQNR, amount: below}
	}
	return RiskReport{Reason: NoReason, amount: below}
}
