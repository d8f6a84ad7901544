package elementary

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// ulps returns how far got is from want in units of the last place of a float32
// of want's size. The reference is a float64, good to 1e-7 of such a unit.
func ulps(got float32, want float64) float64 {
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

// worst returns the largest error of f over every stride-th float32 from which
// ok does not keep it; fewer in short tests.
func worst(f func(float32) float32, want func(float64) float64, ok func(float64) bool) (ulp float64, at float32) {
	stride := uint64(997)
	if testing.Short() {
		stride = 19937
	}
	for bits := uint64(0); bits < 1<<32; bits += stride {
		x := math.Float32frombits(uint32(bits))
		if !ok(float64(x)) {
			continue
		}
		if e := ulps(f(x), want(float64(x))); e > ulp {
			ulp, at = e, x
		}
	}
	return ulp, at
}

func TestErrorIsHalfAnUlp(t *testing.T) {
	positive := func(x float64) bool { return x > 0 && x <= math.MaxFloat32 }
	inExpRange := func(x float64) bool { return x > -110 && x < 88.72 }
	wantSigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for _, test := range []struct {
		name string
		f    func(float32) float32
		want func(float64) float64
		ok   func(float64) bool
	}{
		{"Exp", Exp, math.Exp, inExpRange},
		{"Exp2", Exp2, math.Exp2, func(x float64) bool { return x > -155 && x < 128 }},
		{"Log", Log, math.Log, positive},
		{"Log2", Log2, math.Log2, positive},
		{"Sigmoid", Sigmoid, wantSigmoid, inExpRange},
		{"Tanh", Tanh, math.Tanh, func(x float64) bool { return math.Abs(x) > 0x1p-1022 && math.Abs(x) < 700 }},
		{"GELU", GELU, gelu, func(x float64) bool { return x > -13 && x < 1e30 }},
		{"GELUTanh", GELUTanh, geluTanh, func(x float64) bool { return x > -4 && x < 1e30 }},
		{"GELUTanh, by the sigmoid", GELUTanh, geluSigmoid, func(x float64) bool { return x > -9 && x < 1e30 }},
		{"GELUGrad", GELUGrad, geluGrad, func(x float64) bool { return x > -13 && x < 1e30 && math.Abs(x+0.7518) > 1e-3 }},
		{"SiLU", SiLU, func(x float64) float64 { return x * wantSigmoid(x) }, inExpRange},
	} {
		ulp, at := worst(test.f, test.want, test.ok)
		require.LessOrEqual(t, ulp, 0.501, "%s(%v)", test.name, at)
	}
}

func gelu(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }

func geluGrad(x float64) float64 {
	return math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}

// geluSigmoid is geluTanh without its cancellation: (1 + tanh(z))/2 = 1/(1 + e**-2z).
func geluSigmoid(x float64) float64 {
	return x / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// TestNormal compares the normal distribution with package math's complementary error
// function, in the tails too.
func TestNormal(t *testing.T) {
	worst := 0.0
	for x := -normalLimit + 0.0; x <= normalLimit; x += 0.0137 {
		want := math.Erfc(-x/math.Sqrt2) / 2
		worst = max(worst, math.Abs(normal(x)/want-1))
	}
	t.Logf("relative error %.2g", worst)
	require.Less(t, worst, 1e-12)
}

// geluTanh loses digits where the hyperbolic tangent is near -1.
func geluTanh(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// TestGELUExtremes: limits, NaN, and derivatives against differences.
func TestGELUExtremes(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, f := range []struct {
		value, slope func(float32) float32
		want         func(float64) float64
	}{{GELU, GELUGrad, gelu}, {GELUTanh, GELUTanhGrad, geluTanh}} {
		require.Equal(t, inf, f.value(inf))
		require.Equal(t, uint32(1<<31), math.Float32bits(f.value(-inf)))
		require.Equal(t, float32(math.MaxFloat32), f.value(math.MaxFloat32))
		require.Equal(t, uint32(1<<31), math.Float32bits(f.value(-math.MaxFloat32)))
		require.Equal(t, float32(1), f.slope(inf))
		require.Zero(t, f.slope(-inf))
		require.Equal(t, uint32(0x7FC00000), math.Float32bits(f.value(float32(math.NaN()))))
		require.Equal(t, uint32(0x7FC00000), math.Float32bits(f.slope(float32(math.NaN()))))
		const h = 1e-5
		for x := -30.0; x < 30; x += 0.37 {
			at := float64(float32(x))
			require.InDelta(t, (f.want(at+h)-f.want(at-h))/(2*h), float64(f.slope(float32(x))), 1e-7, "x = %v", x)
		}
	}
}

func TestSiLUGradMatchesDifferences(t *testing.T) {
	silu := func(x float64) float64 { return x / (1 + math.Exp(-x)) }
	const h = 1e-5
	for x := -30.0; x < 30; x += 0.37 {
		at := float64(float32(x))
		require.InDelta(t, (silu(at+h)-silu(at-h))/(2*h), float64(SiLUGrad(float32(x))), 1e-7, "x = %v", x)
	}
}

// TestSinCosReduction compares with a reduction at 200 bits: that of package
// math is the same to a few parts in 1e17 and would share a wrong constant.
func TestSinCosReduction(t *testing.T) {
	pi, _, err := big.ParseFloat("3.14159265358979323846264338327950288419716939937510582097494", 10, 200, big.ToNearestEven)
	require.NoError(t, err)
	twoPi := new(big.Float).Mul(pi, big.NewFloat(2))
	for x := 1e-3; x < SinCosLimit; x *= 1.013 {
		turns := new(big.Float).Quo(big.NewFloat(x).SetPrec(200), twoPi)
		whole, _ := turns.Int(nil)
		rest := new(big.Float).Sub(turns, new(big.Float).SetInt(whole))
		r, _ := rest.Mul(rest, twoPi).Float64()
		sin, cos := SinCos(x)
		wantSin, wantCos := math.Sincos(r)
		require.InDelta(t, wantSin, sin, 1e-15, "sin %v", x)
		require.InDelta(t, wantCos, cos, 1e-15, "cos %v", x)
		negSin, negCos := SinCos(-x)
		require.InDelta(t, -wantSin, negSin, 1e-15)
		require.InDelta(t, wantCos, negCos, 1e-15)
	}
}

func TestPow(t *testing.T) {
	for _, x := range []float64{1e-3, 0.5, 1, 2, 1e4, 5e5} {
		for y := -8.0; y <= 8; y += 0.125 {
			require.InEpsilon(t, math.Pow(x, y), Pow(x, y), 1e-13, "%v**%v", x, y)
		}
	}
	require.Equal(t, 1.0, Pow(1e4, 0))
	require.True(t, math.IsNaN(Pow(-1, 2)))
	require.True(t, math.IsNaN(Pow(0, 2)))
}

func TestSpecialValues(t *testing.T) {
	inf := float32(math.Inf(1))
	smallest := float32(math.SmallestNonzeroFloat32)
	negZero := math.Float32frombits(1 << 31)
	for _, test := range []struct {
		name string
		f    func(float32) float32
		x    float32
		want float32
	}{
		{"Exp", Exp, inf, inf},
		{"Exp", Exp, -inf, 0},
		{"Exp", Exp, 0, 1},
		{"Exp", Exp, negZero, 1},
		{"Exp", Exp, math.MaxFloat32, inf},
		{"Exp", Exp, -math.MaxFloat32, 0},
		{"Exp", Exp, 88.72284, inf},
		{"Exp", Exp, -103.97208, smallest}, // the last that rounds up from 2**-150
		{"Exp", Exp, -103.97209, 0},
		{"Exp2", Exp2, inf, inf},
		{"Exp2", Exp2, -inf, 0},
		{"Exp2", Exp2, negZero, 1},
		{"Exp2", Exp2, 8, 256},
		{"Exp2", Exp2, -126, 0x1p-126},
		{"Exp2", Exp2, -149, smallest},
		{"Exp2", Exp2, -150, 0}, // half the smallest, to even
		{"Exp2", Exp2, math.Nextafter32(-150, 0), smallest},
		{"Exp2", Exp2, 128, inf},
		{"Exp2", Exp2, math.MaxFloat32, inf},
		{"Exp2", Exp2, -math.MaxFloat32, 0},
		{"Log2", Log2, 0, -inf},
		{"Log2", Log2, negZero, -inf},
		{"Log2", Log2, inf, inf},
		{"Log2", Log2, 1, 0},
		{"Log2", Log2, smallest, -149},
		{"Log2", Log2, 0x1p127, 127},
		{"Log2", Log2, -1, nan32},
		{"Log", Log, 0, -inf},
		{"Log", Log, negZero, -inf},
		{"Log", Log, inf, inf},
		{"Log", Log, 1, 0},
		{"Log", Log, -1, nan32},
		{"Log", Log, -inf, nan32},
		{"Sigmoid", Sigmoid, inf, 1},
		{"Sigmoid", Sigmoid, -inf, 0},
		{"Sigmoid", Sigmoid, 0, 0.5},
		{"Tanh", Tanh, inf, 1},
		{"Tanh", Tanh, -inf, -1},
		{"Tanh", Tanh, math.MaxFloat32, 1},
		{"Tanh", Tanh, 0, 0},
		{"Tanh", Tanh, negZero, negZero},
		{"Tanh", Tanh, smallest, smallest},
		{"SiLU", SiLU, inf, inf},
		{"SiLU", SiLU, -inf, negZero},
		{"SiLU", SiLU, 0, 0},
		{"SiLUGrad", SiLUGrad, inf, 1},
		{"SiLUGrad", SiLUGrad, 0, 0.5},
	} {
		require.Equal(t, math.Float32bits(test.want), math.Float32bits(test.f(test.x)), "%s(%v)", test.name, test.x)
	}
	for _, f := range []func(float32) float32{Exp, Exp2, Log, Log2, Sigmoid, SiLU, SiLUGrad, Tanh} {
		require.Equal(t, math.Float32bits(nan32), math.Float32bits(f(float32(math.NaN()))))
	}
	require.Zero(t, SiLUGrad(-inf))
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1.1e6} {
		sin, cos := SinCos(x)
		require.True(t, math.IsNaN(sin) && math.IsNaN(cos), "%v", x)
	}
}
