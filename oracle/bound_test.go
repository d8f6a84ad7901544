package oracle

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// ones is a row of k ones in blocks of a width.
func ones(k, width int, scale float32) *tensor.Tensor {
	t := &tensor.Tensor{Name: "ones", Format: fp8.E4M3, Shape: []int{1, k}, Block: tensor.Block{Rows: 1, Cols: width}}
	for range k {
		t.Codes = append(t.Codes, 0x38)
	}
	_, cols := t.Grid()
	for range cols {
		t.Scales = append(t.Scales, scale)
	}
	return t
}

func boundOf[T gemm.Output](t *testing.T, a, b *tensor.Tensor, acc Accumulation, o Options) float64 {
	bound := make([]float64, 1)
	require.NoError(t, Bound(t.Context(), bound, make([]T, 1), a, b, acc, o))
	return bound[0]
}

// TestBoundByHand compares with formulas, so that a bound that is too loose fails.
func TestBoundByHand(t *testing.T) {
	const u = 0x1p-24
	near := func(want, got float64, name string) {
		t.Helper()
		require.GreaterOrEqual(t, got, want*(1-1e-12), name)
		require.LessOrEqual(t, got, want*(1+1e-4), name)
	}
	one := ones(1, 1, 1)
	near(2*u+u, boundOf[float32](t, one, one, Accumulation{}, Options{}), "one product: two scalings and the exact result")
	near(4*u+u, boundOf[float32](t, one, one, Accumulation{Truncated: true}, Options{}), "toward zero")
	near(3*u+u, boundOf[float32](t, one, one, Accumulation{Dequantized: true}, Options{}), "two scalings and a product")
	near(0x1p-8*2+2*u, boundOf[fp8.BFloat16](t, one, one, Accumulation{}, Options{}), "two roundings to bfloat16")
	near(0x1p-11*2+2*u, boundOf[float16.Float16](t, one, one, Accumulation{}, Options{}), "two roundings to float16")

	x := ones(256, 128, 1)
	t128 := 128 * 2.0
	near(t128*(127+3)*u+256*u, boundOf[float32](t, x, x, Accumulation{}, Options{}), "two blocks of 128")
	near(t128*(256+2)*u+256*u, boundOf[float32](t, x, x, Accumulation{Dequantized: true}, Options{}), "256 dequantized")
	bias := Options{Bias: []float32{-56}}
	near(256*127*u+(256+56)*4*u+200*u, boundOf[float32](t, x, x, Accumulation{}, bias), "a bias")
	near(256*127*u+256*4*u+256*u, boundOf[float32](t, x, x, Accumulation{}, Options{Accumulate: true}), "an old C of 0")

	// A priori inside models: numerics of one block of 128, per unit of magnitude.
	y := ones(128, 128, 1)
	for _, test := range []struct {
		kernel Kernel
		want   float64
	}{
		{Kernel{Model: HopperWGMMA()}, 4 * 34 * 0x1p-13},
		{Kernel{Model: AdaMMA()}, 8 * (17 + 1) * 0x1p-13},
		{Kernel{Model: BlackwellTCGen05()}, 4 * (33*0x1p-25 + 0x1p-23)},
		{Kernel{Model: HopperMMA()}, 8 * (17*0x1p-25 + 0x1p-23 + 0x1p-24)},
		{Kernel{Model: HopperWGMMA(), Promote: 64}, 2*34*0x1p-13 + u},
	} {
		near(128*test.want+128*3*u, boundOf[float32](t, y, y, Accumulation{Kernel: test.kernel}, Options{}), test.kernel.Model.Name)
	}
	// A subnormal counts as the least normal number.
	low := ones(32, 32, 1)
	low.Codes[0] = 1
	z := ones(32, 32, 1)
	for i := 1; i < 32; i++ {
		low.Codes[i] = 0
	}
	near(34*0x1p-13*0x1p-6+0x1p-6*2*u+0x1p-9*u, boundOf[float32](t, low, z, Accumulation{Kernel: Kernel{Model: HopperWGMMA()}}, Options{}), "subnormal")
}

// TestBoundExtremes has scales at which only some orders survive.
func TestBoundExtremes(t *testing.T) {
	inf := math.Inf(1)
	huge, tiny := ones(1, 1, 0x1p100), ones(1, 1, 0x1p-100)
	of := func(a, b *tensor.Tensor, s ScaleOrder) float64 {
		return boundOf[float32](t, a, b, Accumulation{Scales: s}, Options{})
	}
	require.Equal(t, inf, of(huge, huge, AThenB))
	require.Less(t, of(huge, tiny, AnyOrder), 1e-6)
	big := ones(1, 1, 0x1p127)
	big.Codes[0] = 0x7E
	low := ones(1, 1, 0x1p-60)
	require.Equal(t, inf, of(big, low, AThenB), "448·2^127 overflows")
	require.Equal(t, inf, of(big, low, AnyOrder))
	require.Less(t, of(big, low, BThenA), 1e20)
	require.Less(t, of(big, low, ProductThenFMA), 1e20)
	require.Equal(t, inf, boundOf[float32](t, big, low, Accumulation{Kernel: Kernel{Model: HopperWGMMA(), Scales: AThenB}, Scales: BThenA}, Options{}))
	// Underflow: 2^-100·2^-100 is lost, and with it up to 2^-149 of anything.
	lost := of(tiny, tiny, AnyOrder)
	require.Greater(t, lost, 0x1p-150)
	require.Less(t, lost, 0x1p-140)
	// float16 ends at 65504.
	full := ones(1, 1, 65504)
	require.Equal(t, inf, boundOf[float16.Float16](t, full, ones(1, 1, 1.0003), Accumulation{}, Options{}))
	require.Less(t, boundOf[fp8.BFloat16](t, full, ones(1, 1, 1), Accumulation{}, Options{}), 600.0)
	// What is not finite must be so on both sides.
	full.Codes[0] = 0x7F
	require.Zero(t, boundOf[float32](t, full, full, Accumulation{}, Options{}))
	require.InEpsilon(t, layout32.leastHalf(), of(ones(1, 1, 0), big, AThenB), 1e-12)
	require.Zero(t, boundOf[float32](t, tiny, tiny, Accumulation{}, Options{Bias: []float32{float32(inf)}}))
	e5 := ones(1, 1, 0x1p-100)
	e5.Format, e5.Codes[0] = fp8.E5M2, 0x7C
	require.Equal(t, inf, of(e5, tiny, AnyOrder), "0 times infinity after an underflow")
	require.Zero(t, of(e5, tiny, AThenB))
	require.True(t, math.IsInf(gamma(1<<24, 0x1p-24), 1))
	// Nothing to add.
	empty := ones(0, 1, 1)
	require.InEpsilon(t, layout32.leastHalf(), boundOf[float32](t, empty, empty, Accumulation{}, Options{}), 1e-12)
}

// TestPosteriorByHand has one term cut, and one rounding.
func TestPosteriorByHand(t *testing.T) {
	of := func(a, b []float32, scale float32, k Kernel) (c float32, bound float64) {
		x := codes(fp8.E4M3, nil, []float32{scale})
		x.Shape, x.Block, x.Codes = []int{1, len(a)}, tensor.Block{}, encode(fp8.E4M3, a...)
		y := *x
		y.Codes, y.Scales = encode(fp8.E4M3, b...), []float32{1}
		got, limit := make([]float32, 1), make([]float64, 1)
		require.NoError(t, Predict(t.Context(), got, limit, x, &y, k, Options{}))
		return got[0], limit[0]
	}
	hopper := Kernel{Model: HopperWGMMA()}
	c, bound := of([]float32{128, 1, -128}, []float32{128, 1, 128}, 1, hopper)
	require.Zero(t, c)
	require.InEpsilon(t, 2*(1+0x1p-24), bound, 1e-9, "one term lost less than 2^(14-13)")
	c, bound = of([]float32{1, 2, 3}, []float32{4, 5, 6}, 1, hopper)
	require.Equal(t, float32(32), c)
	require.Zero(t, bound, "nothing was rounded")
	_, bound = of([]float32{128, 1}, []float32{128, 0.5}, 1, hopper)
	require.InEpsilon(t, 2+float64(128*128+2)*0x1p-24, bound, 1e-9, "cut in the alignment")
	_, bound = of([]float32{128, 2}, []float32{127, 0.5}, 1.1, hopper)
	require.Less(t, bound, 4.0)
	require.Greater(t, bound, 1e-4)
	// The second instruction cuts c, 1+2^-13, below 2^(5-13).
	a, b := make([]float32, 33), make([]float32, 33)
	a[0], b[0], a[1], b[1], a[32], b[32] = 1, 1, 0x1p-9, 0x1p-4, 32, 1
	c, bound = of(a, b, 1, hopper)
	require.Equal(t, float32(33), c)
	require.InEpsilon(t, 0x1p-8+33*0x1p-24, bound, 1e-6, "c lost something")
	// So does CDNA3 below 2^(10-24), of which a sum has 31 bits.
	sum := addMatrixCore(fused{value: 1 << 24, unit: -14}, fused{unit: -14}, 24, addend{value: 1 + 0x1p-20})
	require.Equal(t, fused{value: 1<<31 + 1<<21, unit: -21, cut: 1 << 7}, sum)
	// A kernel that overflows need not have.
	_, bound = of([]float32{448}, []float32{0.001953125}, math.MaxFloat32, Kernel{Model: HopperWGMMA(), Scales: AThenB})
	require.Less(t, bound, 1e33)
	_, bound = of([]float32{448}, []float32{448}, math.MaxFloat32, hopper)
	require.Equal(t, math.Inf(1), bound)
	// An infinite code times scales whose product vanishes is NaN, and need not be.
	x := ones(1, 1, 0x1p-100)
	x.Format, x.Codes[0] = fp8.E5M2, 0x7C
	got, limit := make([]float32, 1), make([]float64, 1)
	require.NoError(t, Predict(t.Context(), got, limit, x, ones(1, 1, 0x1p-100), Kernel{Model: HopperWGMMA(), Scales: ProductThenFMA}, Options{}))
	require.True(t, got[0] != got[0] && math.IsInf(limit[0], 1))
	require.NoError(t, Predict(t.Context(), got, limit, x, ones(1, 1, 0x1p-100), hopper, Options{}))
	require.True(t, math.IsInf(float64(got[0]), 1) && limit[0] == 0)
	half := running{value: 65519, err: 1}
	require.Equal(t, math.Inf(1), half.bound(layout16, 65504, 1))
	require.Equal(t, math.Inf(1), half.bound(layout16, float32(math.Inf(1)), 1))
}

// TestBoundBits pins bounds of both kinds, which every machine must have.
func TestBoundBits(t *testing.T) {
	r := source(80)
	hash := fnv.New64a()
	for range 40 {
		a := randomTensor(r, "a", fp8.E4M3, tensor.Block{Rows: 1, Cols: 32}, kind{}, 2, 200)
		b := randomTensor(r, "b", fp8.E5M2, tensor.Block{Rows: 1, Cols: 32}, kind{}, 3, 200)
		bound := make([]float64, 6)
		for _, f := range []func() error{
			func() error { return Bound[float32](t.Context(), bound, nil, a, b, Accumulation{}, Options{}) },
			func() error {
				return Bound[fp8.BFloat16](t.Context(), bound, nil, a, b, Accumulation{Dequantized: true}, Options{})
			},
			func() error {
				return Bound[float32](t.Context(), bound, nil, a, b, Accumulation{Kernel: Kernel{Model: HopperMMA(), Promote: 16}}, Options{})
			},
			func() error {
				k := Kernel{Model: HopperWGMMA(), Scales: ProductThenFMA}
				return Predict(t.Context(), make([]float32, 6), bound, a, b, k, Options{})
			},
			func() error {
				return Predict(t.Context(), make([]float16.Float16, 6), bound, a, b, Kernel{Model: HopperMMA()}, Options{})
			},
		} {
			require.NoError(t, f())
			for _, x := range bound {
				require.NoError(t, binary.Write(hash, binary.LittleEndian, x))
			}
		}
	}
	require.Equal(t, uint64(0xF5F6FC99900037FC), hash.Sum64(), "%#x", hash.Sum64())
}

func TestBoundRefuses(t *testing.T) {
	a := ones(4, 4, 1)
	b := ones(5, 5, 1)
	require.ErrorContains(t, Bound[float32](t.Context(), make([]float64, 1), nil, a, b, Accumulation{}, Options{}), "oracle: tensor")
	require.ErrorContains(t, Bound[float32](t.Context(), make([]float64, 1), nil, a, a, Accumulation{Kernel: Kernel{Model: CDNA3MFMA()}}, Options{}), "no operands")
	require.ErrorIs(t, Bound[float32](t.Context(), nil, nil, a, a, Accumulation{}, Options{}), gemm.ErrOperands)
	err := Bound[float32](t.Context(), make([]float64, 1), nil, a, a, Accumulation{}, Options{Accumulate: true})
	require.ErrorIs(t, err, gemm.ErrOperands)
	require.EqualError(t, err, "oracle: the old C has 0 elements: it must have 1")
	none := &tensor.Tensor{Name: "none", Shape: []int{0, 4}, Scales: nil}
	require.NoError(t, Exact[float32](t.Context(), nil, none, a, Options{}))
	require.NoError(t, Bound[float32](t.Context(), nil, nil, none, a, Accumulation{}, Options{}))
}
