package gemm_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// ones is a tensor of ones with outer scales.
func ones(name string, rows, k int, o tensor.Outer) *tensor.Tensor {
	x := &tensor.Tensor{Name: name, Format: fp8.E2M1, Shape: []int{rows, k}, Scales: []float32{1}, Outer: o}
	for range rows * k {
		x.Codes = append(x.Codes, 2)
	}
	return x
}

// TestAlpha has products of outer scales that are no factors of results: an error before
// anything is written.
func TestAlpha(t *testing.T) {
	one := tensor.Outer{}
	tiny, huge := float32(math.SmallestNonzeroFloat32), float32(math.MaxFloat32)
	for name, c := range map[string]struct {
		a, b tensor.Outer
		want string
	}{
		"overflow": {tensor.Outer{Scales: []float32{3, huge}, Rows: 1}, tensor.Outer{Scales: []float32{2}},
			`gemm: tensor "a" and tensor "b": the product of outer scale 1, as a factor 3.4028235e+38, and outer scale 0, 2, is too large for a float32`},
		"underflow": {tensor.Outer{Scales: []float32{tiny}}, tensor.Outer{Scales: []float32{1, 0, 0.25}, Rows: 1},
			`gemm: tensor "a" and tensor "b": the product of outer scale 0, as a factor 1e-45, and outer scale 2, 0.25, is 0 in float32 though neither is`},
		"reciprocal": {tensor.Outer{Scales: []float32{tiny}, Divide: true}, one,
			`gemm: tensor "a" and tensor "b": the product of outer scale 0, as a factor +Inf, and outer scale 0, 1, is too large for a float32`},
		"reciprocal by zero": {tensor.Outer{Scales: []float32{tiny}, Divide: true}, tensor.Outer{Scales: []float32{0}},
			`gemm: tensor "a" and tensor "b": the product of outer scale 0, as a factor +Inf, and outer scale 0, 0, is too large for a float32`},
		"reciprocals": {tensor.Outer{Scales: []float32{huge}, Divide: true}, tensor.Outer{Scales: []float32{1, 2, huge}, Rows: 1, Divide: true},
			`gemm: tensor "a" and tensor "b": the product of outer scale 0, as a factor 2.938736e-39, and outer scale 2, 2.938736e-39, is 0 in float32 though neither is`},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := ones("a", 2, 16, c.a), ones("b", 3, 16, c.b)
			got := []float32{9, 9, 9, 9, 9, 9}
			err := gemm.Multiply(t.Context(), got, a, b, gemm.Options{})
			require.EqualError(t, err, c.want)
			require.ErrorIs(t, err, gemm.ErrOperands)
			require.Equal(t, []float32{9, 9, 9, 9, 9, 9}, got)
			w, err := gemm.Pack(b)
			require.NoError(t, err)
			require.EqualError(t, gemm.Multiply(t.Context(), got, a, w, gemm.Options{}), c.want)
			_, err = gemm.CheckOperands(a, b)
			require.EqualError(t, err, c.want[len("gemm: "):])
		})
	}
}

// TestAlphaOfNothing: an operand without elements gives +0 under any scales.
func TestAlphaOfNothing(t *testing.T) {
	tiny := tensor.Outer{Scales: []float32{1 / float32(math.MaxFloat32)}}
	got := []float32{9, 9, 9, 9, 9, 9}
	a, b := ones("a", 2, 0, tiny), ones("b", 3, 0, tiny)
	a.Scales, b.Scales = nil, nil
	require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{}))
	require.Equal(t, make([]float32, 6), got)
}

// TestAlphaZero has outer scales of 0, which are allowed, and results that they make
// canonical NaN of.
func TestAlphaZero(t *testing.T) {
	forLevels(t, func(t *testing.T) {
		a := ones("a", 2, 16, tensor.Outer{Scales: []float32{0, 2}, Rows: 1})
		b := ones("b", 3, 16, tensor.Outer{Scales: []float32{4}, Divide: true})
		got := make([]float32, 6)
		require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{}))
		require.Equal(t, []float32{0, 0, 0, 8, 8, 8}, got)
		b.Scales[0] = math.MaxFloat32
		require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{}))
		for i, x := range got {
			want := uint32(0x7FC00000)
			if i >= 3 {
				want = 0x7F800000
			}
			require.Equal(t, want, math.Float32bits(x))
		}
	})
}

// TestNaNScale has a NaN in an encoded scale, which is data: it makes its products NaN, and
// those are reported.
func TestNaNScale(t *testing.T) {
	forLevels(t, func(t *testing.T) {
		for _, f := range []fp8.Format{fp8.E2M1, fp8.E4M3} {
			a, b := ones("a", 3, 64, tensor.Outer{}), ones("b", 40, 64, tensor.Outer{})
			a.Format, b.Format = f, f
			a.Block, a.ScaleFormat, a.Scales = tensor.Block{Rows: 1, Cols: 32}, tensor.E8M0Scales, []float32{1, 1, 1, float32(math.NaN()), 1, 1}
			heard := &nonFinite{t: t}
			got := make([]float32, 120)
			require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{Reporter: heard, Name: "layer"}))
			for i, x := range got {
				require.Equal(t, i/40 == 1, x != x)
			}
			require.Len(t, heard.calls, 1)
			require.Equal(t, 40, heard.calls[0].index)
		}
	})
}

// TestAlphaByRow has outer scales of a few rows each, for more rows than are multiplied at
// a time, and than an area has.
func TestAlphaByRow(t *testing.T) {
	const m, n, k = 500, 140, 16
	scales := func(rows, each int) (o tensor.Outer) {
		o.Rows = each
		for i := range ceilDiv(rows, each) {
			o.Scales = append(o.Scales, float32(1+i))
		}
		return o
	}
	forLevels(t, func(t *testing.T) {
		for _, each := range []int{1, 7, 96, m} {
			a, b := ones("a", m, k, scales(m, each)), ones("b", n, k, scales(n, 5))
			got := make([]float32, m*n)
			require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{Workers: 2}))
			for at, x := range got {
				if want := float32(k * (1 + at/n/each) * (1 + at%n/5)); x != want {
					t.Fatalf("%d rows each, row %d, column %d: %v, want %v", each, at/n, at%n, x, want)
				}
			}
		}
	})
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
