package bench

import (
	"github.com/viterin/vek/vek32"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// floats are the operands of a product in float32.
type floats struct {
	shape   Shape
	a, b, c []float32
}

func newFloats(s Shape) *floats {
	return &floats{s, normals(s.M * s.K), normals(s.N * s.K), make([]float32, s.M*s.N)}
}

// peers are other libraries' products in float32. They are pure Go and assembly,
// as octavo is, and need no experiment of the compiler.
var peers = []struct {
	name     string
	multiply func(*floats)
}{
	{"gonum", (*floats).gonum},
	{"vek", (*floats).vek},
}

// Peers returns the names of the libraries that are measured beside octavo:
//
//   - gonum: gonum.org/v1/gonum/blas/blas32.Gemm
//   - vek: github.com/viterin/vek/vek32.MatMul_Into, which has kernels for AVX2
func Peers() (names []string) {
	for _, p := range peers {
		names = append(names, p.name)
	}
	return names
}

// gonum has B as [N, K], as octavo does.
func (f *floats) gonum() {
	a := blas32.General{Rows: f.shape.M, Cols: f.shape.K, Stride: f.shape.K, Data: f.a}
	b := blas32.General{Rows: f.shape.N, Cols: f.shape.K, Stride: f.shape.K, Data: f.b}
	c := blas32.General{Rows: f.shape.M, Cols: f.shape.N, Stride: f.shape.N, Data: f.c}
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, a, b, 0, c)
}

// vek has B as [K, N], the only way that it takes it.
func (f *floats) vek() { vek32.MatMul_Into(f.c, f.a, f.b, f.shape.K) }

// peerCases returns the peers' products of a shape, of which none is grouped.
func peerCases(s Shape, workers int) (cases []Case) {
	if s.Experts > 1 {
		return nil
	}
	f := newFloats(s)
	for _, p := range peers {
		run := func() error { p.multiply(f); return nil }
		cases = append(cases, Case{Name: s.String(), By: p.name, Workers: workers, Run: run})
	}
	return cases
}
