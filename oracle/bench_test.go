package oracle

import (
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

func blockScaled(m, n, k int) (a, b *tensor.Tensor) {
	r := source(9)
	return randomTensor(r, "a", fp8.E4M3, tensor.Block{Rows: 1, Cols: 128}, kind{}, m, k),
		randomTensor(r, "b", fp8.E4M3, tensor.Block{Rows: 128, Cols: 128}, kind{}, n, k)
}

func BenchmarkExact(b *testing.B) {
	x, y := blockScaled(1024, 1024, 1024)
	c := make([]float32, 1024*1024)
	for b.Loop() {
		if err := Exact(b.Context(), c, x, y, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPredictHopper(b *testing.B) {
	x, y := blockScaled(256, 256, 4096)
	c := make([]float32, 256*256)
	bound := make([]float64, len(c))
	k := Kernel{Model: HopperWGMMA(), Promote: 128, Scales: ProductThenFMA}
	for b.Loop() {
		if err := Predict(b.Context(), c, bound, x, y, k, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBound(b *testing.B) {
	x, y := blockScaled(1024, 1024, 1024)
	bound := make([]float64, 1024*1024)
	for b.Loop() {
		if err := Bound[float32](b.Context(), bound, nil, x, y, Accumulation{}, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
