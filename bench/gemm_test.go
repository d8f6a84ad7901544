package bench

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

type size struct{ m, n, k int }

func (s size) String() string { return fmt.Sprintf("m=%d,n=%d,k=%d", s.m, s.n, s.k) }

func (s size) report(b *testing.B) {
	flop := 2 * float64(s.m) * float64(s.n) * float64(s.k)
	b.ReportMetric(flop*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

var sizes = []size{{512, 512, 512}, {1024, 1024, 1024}, {16, 4096, 4096}}

// BenchmarkGEMM is the block-scaled product in float32.
func BenchmarkGEMM(b *testing.B) {
	for _, s := range sizes {
		x := quantized(b, s.m, s.k, scaling.Input)
		w := quantized(b, s.n, s.k, scaling.Weight)
		c := make([]float32, s.m*s.n)
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("a=e4m3/b=e4m3/scales=1x128,128x128/%v/workers=%d", s, workers), func(b *testing.B) {
				for b.Loop() {
					if err := gemm.Multiply(c, x, w, gemm.Options{Workers: workers}); err != nil {
						b.Fatal(err)
					}
				}
				s.report(b)
			})
		}
	}
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
