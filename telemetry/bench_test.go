package telemetry_test

import (
	"fmt"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
)

func BenchmarkBlock(b *testing.B) {
	var rec telemetry.Recorder
	st := fp8.Stats{Elements: 128, Amax: 3, Smallest: 1}
	tensor := "model.layers.0.mlp.experts.17.gate_proj.weight"
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		rec.Block("quantize", tensor, i>>10, i&1023, 1, &st)
	}
}

func BenchmarkStep(b *testing.B) {
	var rec telemetry.Recorder
	st := fp8.Stats{Elements: 128, Amax: 3, Smallest: 1}
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("layers.%d.weight", i))
	}
	for i := int64(0); b.Loop(); i++ {
		for _, name := range names {
			rec.Block("quantize", name, 0, 0, 1, &st)
		}
		if err := rec.Step(i); err != nil {
			b.Fatal(err)
		}
	}
}
