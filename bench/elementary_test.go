package bench

import (
	"testing"

	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/swiglu"
)

// BenchmarkExp is the exponentials of a softmax, and of a cross entropy's gradient.
func BenchmarkExp(b *testing.B) {
	src, dst := normals(mebi), make([]float32, mebi)
	atLevels(b, "task=softmax", func(b *testing.B) {
		for b.Loop() {
			elementary.ExpTo(dst, src, 4, 0.125, 1)
		}
	})
}

// BenchmarkSwiGLU is both directions, plain and with a scale for each channel.
func BenchmarkSwiGLU(b *testing.B) {
	u, g, dz := normals(mebi), normals(mebi), normals(mebi)
	z, du, dg := make([]float32, mebi), make([]float32, mebi), make([]float32, mebi)
	var smoother swiglu.Smoother
	for _, smoothing := range []struct {
		name   string
		scales swiglu.Scales
	}{{"none", swiglu.Scales{}}, {"channel", smoother.Scales(u, 1024)}} {
		atLevels(b, "pass=forward/smoothing="+smoothing.name, func(b *testing.B) {
			for b.Loop() {
				swiglu.Forward(z, u, g, smoothing.scales)
			}
		})
		atLevels(b, "pass=backward/smoothing="+smoothing.name, func(b *testing.B) {
			for b.Loop() {
				swiglu.Backward(du, dg, dz, u, g, smoothing.scales)
			}
		})
	}
}
