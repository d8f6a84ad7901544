package bench

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/octavo-fp8/octavo/nn"
)

// BenchmarkActivations is a step of training under a budget for activations, in turn with one
// that keeps all in FP32: what machines that are shared do to the one they do to the other.
// bytes-% is the memory of activations and operations-% those that are done again, both as
// planned, of a step that keeps all; all-ms and budget-ms are the medians of the times,
// ratio is the median of the ratios of neighbours, best that of the fastest steps. Where
// format=fp8-swiglu narrows what is kept, gradient-error is the norm of the gradients'
// difference from those of all in FP32, as a fraction of theirs; it is 0 elsewhere.
func BenchmarkActivations(b *testing.B) {
	const batch, seq = 8, 128
	tokens, targets := bytesOf(batch*seq, 1), bytesOf(batch*seq, 2)
	for _, layers := range []int{4, 12} {
		for _, format := range []string{"fp32", "fp8", "fp8-swiglu"} {
			for _, percent := range []int64{100, 70, 50, 40, 30, 25, 20} {
				b.Run(fmt.Sprintf("layers=%d/format=%s/budget=%d", layers, format, percent), func(b *testing.B) {
					all := nn.Config{Vocab: 256, Dim: 128, Layers: layers, Heads: 4, Hidden: 344, Context: seq}
					if format != "fp32" {
						recipes := nn.DefaultFP8()
						all.FP8 = &recipes
					}
					kept, err := all.PlanActivations(batch, seq)
					if err != nil {
						b.Fatal(err)
					}
					policy := all
					if format == "fp8-swiglu" {
						policy.Activations = nn.ActivationsFP8SwiGLU
					}
					plan, err := policy.SearchPolicies(batch, seq, kept.Total()*percent/100)
					if err != nil {
						b.Skip(err)
					}
					policy.Policies = plan.Policies
					pair := [2]*trainee{newTrainee(b, all, false), newTrainee(b, policy, false)}
					var times [2][]float64
					var difference float64
					for order := []int{0, 1}; b.Loop(); slices.Reverse(order) {
						for _, i := range order {
							start := time.Now()
							if err := pair[i].step(b.Context(), tokens, targets, batch, seq); err != nil {
								b.Fatal(err)
							}
							times[i] = append(times[i], time.Since(start).Seconds()*1e3)
						}
						if len(times[0]) == 1 { // before they drift apart
							difference = gradientDifference(pair[0].model, pair[1].model)
						}
					}
					reportTurns(b, "all-ms", "budget-ms", times[0], times[1])
					b.ReportMetric(100*float64(plan.Total())/float64(kept.Total()), "bytes-%")
					b.ReportMetric(100*float64(plan.Again)/float64(plan.Step), "operations-%")
					b.ReportMetric(difference, "gradient-error")
				})
			}
		}
	}
}

// gradientDifference is the norm of the difference of all gradients, as a fraction of that of
// the first model's.
func gradientDifference(a, b *nn.Llama) float64 {
	var difference, norm float64
	for i, p := range a.Params() {
		for j, g := range p.Grad {
			d := float64(g) - float64(b.Params()[i].Grad[j])
			difference, norm = difference+d*d, norm+float64(g)*float64(g)
		}
	}
	return math.Sqrt(difference / norm)
}
