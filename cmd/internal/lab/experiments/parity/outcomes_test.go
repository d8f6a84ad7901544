package parity

import (
	"testing"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/labtest"
)

// TestSentencesFollow feeds the report with runs of one outcome and of the opposite.
func TestSentencesFollow(t *testing.T) {
	alike := madeUp([3]float64{2, 2, 2.001}, [3]float64{2, 2, 2.001})
	apart := madeUp([3]float64{2, 2, 2.02}, [3]float64{2, 2, 1.98})
	labtest.Outcomes(t, alike.report(), apart.report())
	labtest.NotSaid(t, alike.report(), "one run's gap says little")
}
