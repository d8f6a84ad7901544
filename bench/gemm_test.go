package bench

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

type size struct{ m, n, k int }

func (s size) String() string { return fmt.Sprintf("m=%d,n=%d,k=%d", s.m, s.n, s.k) }

func (s size) flop() float64 { return 2 * float64(s.m) * float64(s.n) * float64(s.k) }

func (s size) report(b *testing.B) float64 {
	rate := s.flop() * float64(b.N) / b.Elapsed().Seconds() / 1e9
	b.ReportMetric(rate, "GFLOP/s")
	return rate
}

// reportAt adds what part of that is of what the level's workers can multiply now.
func (s size) reportAt(b *testing.B, l cpu.Level, workers int) {
	rate := s.report(b)
	if peak := peakMultiply(l, workers); peak > 0 {
		b.ReportMetric(100*rate/peak, "%peak")
	}
}

var sizes = []size{
	{512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096},
	{1, 4096, 4096}, {16, 4096, 4096}, {128, 4096, 4096}, {2048, 7168, 2048},
}

// forLevels runs f at each level of this machine, for one worker and for two.
func forLevels(b *testing.B, f func(b *testing.B, name string, l cpu.Level, workers int)) {
	for _, l := range cpu.Levels() {
		restore, err := cpu.Force(l)
		if err != nil {
			b.Fatal(err)
		}
		for _, workers := range []int{1, 2} {
			f(b, fmt.Sprintf("level=%v", l), l, workers)
		}
		restore()
	}
}

// BenchmarkGEMM is the block-scaled product in float32, of a tensor and of packed
// weights.
func BenchmarkGEMM(b *testing.B) {
	for _, s := range sizes {
		x := quantized(b, s.m, s.k, scaling.Input)
		w := quantized(b, s.n, s.k, scaling.Weight)
		packed, err := gemm.Pack(w)
		if err != nil {
			b.Fatal(err)
		}
		c := make([]float32, s.m*s.n)
		forLevels(b, func(b *testing.B, level string, l cpu.Level, workers int) {
			name := fmt.Sprintf("a=e4m3/b=e4m3/scales=1x128,128x128/%s/%v/workers=%d", level, s, workers)
			o := gemm.Options{Workers: workers}
			b.Run(name, func(b *testing.B) {
				s.measure(b, l, workers, func() error { return gemm.Multiply(c, x, w, o) })
			})
			b.Run(name+"/packed", func(b *testing.B) {
				s.measure(b, l, workers, func() error { return gemm.Multiply(c, x, packed, o) })
			})
		})
	}
}

// measure runs a product. Where A has a row or a few, reading B is what counts.
func (s size) measure(b *testing.B, l cpu.Level, workers int, multiply func() error) {
	for b.Loop() {
		if err := multiply(); err != nil {
			b.Fatal(err)
		}
	}
	s.reportAt(b, l, workers)
	if s.m <= 16 {
		rate := float64(s.n*s.k) * float64(b.N) / b.Elapsed().Seconds() / 1e9
		b.ReportMetric(rate, "GB/s")
		if most := peakRead(make([]byte, s.n*s.k), workers); most > 0 {
			b.ReportMetric(100*rate/most, "%read")
		}
	}
}

// BenchmarkGrouped is 64 experts of 32 rows each, and one product of the same
// work.
func BenchmarkGrouped(b *testing.B) {
	const experts, rows = 64, 32
	s := size{experts * rows, 2048, 1024}
	x := quantized(b, s.m, s.k, scaling.Input)
	var counts []int
	var tensors []*tensor.Tensor
	var packed []*gemm.Packed
	for range experts {
		w := quantized(b, s.n, s.k, scaling.Weight)
		p, err := gemm.Pack(w)
		if err != nil {
			b.Fatal(err)
		}
		counts, tensors, packed = append(counts, rows), append(tensors, w), append(packed, p)
	}
	c := make([]float32, s.m*s.n)
	forLevels(b, func(b *testing.B, level string, l cpu.Level, workers int) {
		o := gemm.Options{Workers: workers}
		for _, way := range []struct {
			name     string
			multiply func() error
		}{
			{"one", func() error { return gemm.Multiply(c, x, tensors[0], o) }},
			{"experts=64", func() error { return gemm.GroupedRows(c, x, tensors, counts, o) }},
			{"experts=64/packed", func() error { return gemm.GroupedRows(c, x, packed, counts, o) }},
		} {
			b.Run(fmt.Sprintf("a=e4m3/b=e4m3/scales=1x128,128x128/%s/%v/workers=%d/%s", level, s, workers, way.name), func(b *testing.B) {
				s.measure(b, l, workers, way.multiply)
			})
		}
	})
}

func quantized(b *testing.B, rows, cols int, role scaling.Role) *tensor.Tensor {
	t := &tensor.Tensor{Shape: []int{rows, cols}}
	if err := scaling.Quantize(t, normals(rows*cols), &scaling.Quantizer{Recipe: scaling.Default(role)}); err != nil {
		b.Fatal(err)
	}
	return t
}

// BenchmarkGonum is gonum's float32 product, on all processors.
func BenchmarkGonum(b *testing.B) {
	for _, s := range sizes {
		a := blas32.General{Rows: s.m, Cols: s.k, Stride: s.k, Data: normals(s.m * s.k)}
		w := blas32.General{Rows: s.n, Cols: s.k, Stride: s.k, Data: normals(s.n * s.k)}
		c := blas32.General{Rows: s.m, Cols: s.n, Stride: s.n, Data: make([]float32, s.m*s.n)}
		b.Run(s.String(), func(b *testing.B) {
			for b.Loop() {
				blas32.Gemm(blas.NoTrans, blas.Trans, 1, a, w, 0, c)
			}
			s.report(b)
		})
	}
}
