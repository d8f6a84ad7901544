package gemm

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/microkernel/dotstest"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestDots compares products whose instruction is emulated with plain Go: every format, blocks
// that are no quads, few rows and many, weights in rows and packed.
func TestDots(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	operand := func(rows, depth, block int, f fp8.Format) *tensor.Tensor {
		x := &tensor.Tensor{Format: f, Shape: []int{rows, depth}, Block: tensor.Block{Rows: 1, Cols: block}}
		for range rows * depth {
			code := byte(r.Uint32())
			for f.Bits() == 8 && r.IntN(50) > 0 && (f.IsNaN(code) || f.IsInf(code, 0)) {
				code = byte(r.Uint32())
			}
			x.Codes = append(x.Codes, code&byte(1<<f.Bits()-1))
		}
		for range rows * ceilDiv(depth, block) {
			x.Scales = append(x.Scales, float32(r.ExpFloat64()))
		}
		return x
	}
	kinds := map[reflect.Type]bool{}
	for i, s := range []struct{ m, n, k, block int }{
		{9, 45, 150, 64}, {5, 33, 131, 33}, {37, 70, 600, 600}, {16, 140, 900, 128}, {31, 67, 1030, 1030}, {4, 40, 66, 2},
		{16, 128, 34, 34}, {64, 64, 257, 16}, {1, 31, 40, 8}, {13, 72, 4200, 4200}, {6, 6, 3, 3},
	} {
		for _, f := range fp8.Formats() {
			if f == fp8.MXINT8 || testing.Short() && s.m*s.n*s.k > 1<<20 && int(f)%2 == i%2 {
				continue
			}
			a, b := operand(s.m, s.k, s.block, fp8.Formats()[(i+int(f))%len(fp8.Formats())]), operand(s.n, s.k, s.block, f)
			if a.Format == fp8.MXINT8 {
				continue
			}
			p, err := newProduct(a, b)
			require.NoError(t, err)
			w, err := Pack(b)
			require.NoError(t, err)
			packed, err := newProduct(a, w)
			require.NoError(t, err)
			want := make([]float32, s.m*s.n)
			computeWith(t, want, p, genericBackend{})
			for _, p := range []product{p, packed} {
				got, backend := make([]float32, s.m*s.n), p.chooseVectors(vectorBackend{&dotstest.Kernels})
				kinds[reflect.TypeOf(backend)] = true
				computeWith(t, got, p, backend)
				for j := range want {
					require.Equal(t, math.Float32bits(want[j]), math.Float32bits(got[j]), "%+v, %v with %v, packed %t: element %d: %v, want %v", s, a.Format, f, p.b.packed, j, got[j], want[j])
				}
			}
		}
	}
	require.Len(t, kinds, 2, "few rows and many")
}

// computeWith computes a product with a backend.
func computeWith(t *testing.T, c []float32, p product, b backend) {
	t.Helper()
	r := newRun()
	r.add(p, 0)
	r.parts[0].backend = b
	r.out = newResult(c, Options{})
	require.NoError(t, r.compute(t.Context(), Options{Workers: 2}))
}
