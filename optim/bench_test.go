package optim

import (
	"fmt"
	"testing"

	"github.com/octavo-fp8/octavo/nn"
)

// BenchmarkAdamW is the update of a million parameters.
func BenchmarkAdamW(b *testing.B) {
	const n = 1 << 20
	for _, format := range MomentFormats() {
		for _, stochastic := range []bool{false, true} {
			b.Run(fmt.Sprintf("moments=%v/stochastic=%v", format, stochastic), func(b *testing.B) {
				p := zeros("p", 1, n)
				copy(p.Grad, randoms(1, n))
				o := AdamW{Moments: Moments{Format: format, Stochastic: stochastic}}
				b.SetBytes(n)
				for b.Loop() {
					if _, err := o.Step(b.Context(), []*nn.Param{p}, 1e-3); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(o.MomentBytes())/n, "B/param")
			})
		}
	}
}
