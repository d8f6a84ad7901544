// Package telemetrytext writes what a [telemetry.Recorder] held as text for Prometheus. It is what package
// telemetry/prometheus writes, for programs that serve no page and shall not link net/http.
package telemetrytext

import (
	"io"

	"github.com/octavo-fp8/octavo/internal/promtext"
	"github.com/octavo-fp8/octavo/telemetry"
)

// Write is [github.com/octavo-fp8/octavo/telemetry/prometheus.Write].
func Write(w io.Writer, s telemetry.Snapshot) error {
	families := []promtext.Family{stepFamily(s.Step), firstNonFinite(s.First)}
	for _, m := range metrics {
		families = append(families, m.family(s.Totals))
	}
	return promtext.Write(w, families...)
}

func stepFamily(step int64) promtext.Family {
	f := promtext.Family{Name: "octavo_fp8_step", Type: promtext.Gauge, Help: "Current step."}
	f.Add(float64(step))
	return f
}

// firstNonFinite has no sample if there was no such value.
func firstNonFinite(n telemetry.NonFinite) promtext.Family {
	f := promtext.Family{
		Name: "octavo_fp8_first_nonfinite_step", Type: promtext.Gauge,
		Help: "Step of the first value that was NaN or infinite, and where it was.",
	}
	if n != (telemetry.NonFinite{}) {
		f.Add(float64(n.Step), place(n.Tensor, n.Op)...)
	}
	return f
}

// place returns the labels that all metrics of a tensor and operation have.
func place(tensor, op string) []promtext.Label {
	return []promtext.Label{{Name: "tensor", Value: tensor}, {Name: "op", Value: op}}
}
