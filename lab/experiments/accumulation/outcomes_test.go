package accumulation

import (
	"testing"

	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
)

// madeUp is a report on given deviations, by adder and K; operands make no difference.
func madeUp(of func(adder string, k int) deviation) *report.Report {
	a := newAccumulations()
	lengths := []int{128, 4096}
	for _, kind := range []operandKind{bell, uniform} {
		for _, way := range adders() {
			for _, k := range lengths {
				a.found[place{kind.name, way.name, k}] = []deviation{of(way.name, k), of(way.name, k)}
			}
		}
	}
	return a.report(1, 32, lengths)
}

// TestSentencesFollow feeds the report with deviations of one outcome and of the opposite.
func TestSentencesFollow(t *testing.T) {
	shrinking := madeUp(func(_ string, k int) deviation { return deviation{median: 1 / float64(k), bias: 1 / float64(k)} })
	growing := madeUp(func(adder string, k int) deviation {
		if adder == "Hopper, every 128" {
			k = 128
		}
		return deviation{median: float64(k), bias: -float64(k)}
	})
	flipping := madeUp(func(adder string, k int) deviation {
		if adder == "Hopper, every 128" {
			return deviation{median: 1, bias: 1}
		}
		return deviation{median: 1 / float64(k), bias: -1}
	})
	labtest.Outcomes(t, growing, shrinking, flipping)
	labtest.NotSaid(t, shrinking, "grows with K", "does not fall below", "near 2 % is what a few dozen results show")
}
