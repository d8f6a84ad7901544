package memory

import (
	"testing"

	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
)

// madeUp is a report of curves whose losses are given: of all FP32, and of every other way.
func madeUp(plain, others float64) *report.Report {
	var curves []training.Curve
	for range 2 {
		curves = append(curves, training.Curve{Losses: []float64{3, plain}, HeldOut: plain, Params: 100, MomentBytes: 800, Activations: nn.ActivationBytes{Float32: 400}})
		for range economies()[1:] {
			curves = append(curves, training.Curve{Losses: []float64{3, others}, HeldOut: others, Params: 100, MomentBytes: 210, Activations: nn.ActivationBytes{Float32: 100}})
		}
	}
	return newReport(curves, training.Setup{Batch: 1, Seq: 1}, 1)
}

// TestSentencesFollow feeds the report with runs of one outcome and of the opposite.
func TestSentencesFollow(t *testing.T) {
	labtest.Outcomes(t, madeUp(2, 2), madeUp(2, 2.5))
	labtest.NotSaid(t, madeUp(2, 2.5), "nothing changes", "are the noise")
}
