package oracle

import (
	"context"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/tensor"
)

var floatFormats = []Float{BF16, FP16, TF32}

// randomNumber is a number of f: any, where spread is 0, or one within so many powers of
// two of 1.
func randomNumber(r *rand.Rand, f Float, spread int) float32 {
	l := f.layout()
	fraction := r.Uint32() & (1<<l.fraction - 1)
	field := r.IntN(2*l.bias + 1) // 0 is of subnormals
	if spread > 0 {
		field = l.bias + r.IntN(2*spread+1) - spread
	}
	if r.IntN(12) == 0 {
		field, fraction = 0, 0
	}
	v := math.Ldexp(float64(fraction), max(field, 1)-l.bias-l.fraction)
	if field > 0 {
		v += math.Ldexp(1, field-l.bias)
	}
	if r.IntN(2) == 0 {
		v = -v
	}
	return float32(v)
}

func randomFloats(r *rand.Rand, name string, f Float, rows, k, spread int) *Floats {
	m := &Floats{Name: name, Format: f, Rows: rows, K: k, Values: make([]float32, rows*k)}
	for i := range m.Values {
		m.Values[i] = randomNumber(r, f, spread)
	}
	return m
}

// TestFloatHas compares with lists of all numbers.
func TestFloatHas(t *testing.T) {
	numbers := map[Float]map[uint32]bool{BF16: {}, FP16: {}}
	for b := range 1 << 16 {
		numbers[BF16][math.Float32bits(fp8.BFloat16(b).Float32())] = true
		numbers[FP16][math.Float32bits(float16.Frombits(uint16(b)).Float32())] = true
	}
	r := source(71)
	for range rounds(200000) {
		b := r.Uint32() &^ (1<<r.IntN(32) - 1)
		x := math.Float32frombits(b)
		if x != x {
			continue
		}
		require.Equal(t, numbers[BF16][b], BF16.Has(x), "%x", b)
		require.Equal(t, numbers[FP16][b], FP16.Has(x), "%x", b)
		require.Equal(t, b&(1<<13-1) == 0 || math.IsInf(float64(x), 0), TF32.Has(x), "%x", b)
		require.False(t, NoFloat.Has(x))
		require.False(t, Float(9).Has(x))
	}
	for _, f := range floatFormats {
		require.True(t, f.Has(float32(math.NaN())))
		require.True(t, f.Has(float32(math.Inf(-1))))
		require.True(t, f.Has(float32(math.Copysign(0, -1))))
	}
}

// slowFloats is a model's fused step in exact arithmetic.
func slowFloats(m Model, a, b []float32, c float32) float32 {
	least := m.Float.layout().minExponent()
	exponent := func(x float32, least int) int { return max(math.Ilogb(float64(x)), least) }
	type exact struct {
		v *big.Float
		e int
	}
	big64 := func(x float32) *big.Float { return bigFloat().SetFloat64(float64(x)) }
	terms := []exact{{big64(c), max(exponent(c, -126), -126)}}
	if c == 0 {
		terms[0].e = -126
	}
	for i := range a {
		if a[i] != 0 && b[i] != 0 {
			terms = append(terms, exact{bigFloat().Mul(big64(a[i]), big64(b[i])), exponent(a[i], least) + exponent(b[i], least)})
		}
	}
	top := -100000
	for _, x := range terms {
		top = max(top, x.e)
	}
	sum := new(big.Int)
	for _, x := range terms {
		part, _ := bigFloat().SetMantExp(x.v, m.F-top).Int(nil) // toward zero
		sum.Add(sum, part)
	}
	if sum.Sign() == 0 {
		return 0
	}
	v := bigFloat().SetMantExp(bigFloat().SetInt(sum), top-m.F)
	precision := uint(m.Keep + 1)
	if e := v.MantExp(nil) - 1; e < -126 {
		if below := -126 - e; below > m.Keep {
			return 0
		} else {
			precision -= uint(below)
		}
	}
	v = new(big.Float).SetPrec(precision).SetMode(big.ToZero).Set(v)
	if v.MantExp(nil)-1 > 127 {
		v.SetInf(v.Signbit())
	}
	x, _ := v.Float32()
	return x
}

// TestFloatModels compares the models with the documented step in exact arithmetic, over
// the whole range of each format.
func TestFloatModels(t *testing.T) {
	r := source(72)
	for _, m := range Models() {
		if m.Float == NoFloat {
			continue
		}
		for range rounds(3000) {
			n := 1 + r.IntN(m.L)
			spread := []int{0, 2, 8, 40}[r.IntN(4)]
			if m.Float == FP16 {
				spread = min(spread, 14)
			}
			a, b := randomFloats(r, "a", m.Float, 1, n, spread).Values, randomFloats(r, "b", m.Float, 1, n, spread).Values
			c := wideFloat32(r)
			if r.IntN(3) == 0 {
				c = randomNumber(r, BF16, 0)
			}
			want := slowFloats(m, a, b, c)
			if got := m.DotFloats(a, b, c); math.Float32bits(got) != math.Float32bits(want) {
				t.Fatalf("%v: %v times %v plus %v: got %v, want %v", m, a, b, c, got, want)
			}
		}
	}
}

// TestFloatSpecials has NaN, infinities, zeros and what overflows, as FP8's models do.
func TestFloatSpecials(t *testing.T) {
	inf, nan32 := float32(math.Inf(1)), float32(math.NaN())
	one := []float32{1, 1}
	for _, m := range Models() {
		if m.Float == NoFloat {
			continue
		}
		bits := func(a, b []float32, c float32) uint32 { return math.Float32bits(m.DotFloats(a, b, c)) }
		const wantNaN = 0x7FFFFFFF
		require.EqualValues(t, wantNaN, bits([]float32{1, nan32}, one, 0), m.Name)
		require.EqualValues(t, wantNaN, bits(one, one, nan32), m.Name)
		require.EqualValues(t, wantNaN, bits([]float32{1, inf}, []float32{1, 0}, 0), m.Name)
		require.EqualValues(t, wantNaN, bits([]float32{-inf, inf}, one, 0), m.Name)
		require.EqualValues(t, wantNaN, bits([]float32{-inf, 1}, one, inf), m.Name)
		require.Equal(t, math.Float32bits(-inf), bits([]float32{-inf, 1}, one, 0), m.Name)
		require.Equal(t, math.Float32bits(inf), bits([]float32{-inf, 1}, []float32{-1, 1}, 0), m.Name)
		require.Zero(t, bits([]float32{1, -1}, one, 0), m.Name)
		require.Zero(t, bits([]float32{0, 0}, one, float32(math.Copysign(0, -1))), m.Name)
		if m.Float != FP16 {
			require.Equal(t, math.Float32bits(inf), bits([]float32{0x1p100, 1}, []float32{0x1p100, 1}, 0), m.Name)
			require.Panics(t, func() { m.DotFloatsFloat16(one, one, 0) })
		} else {
			require.EqualValues(t, 0x7C00, m.DotFloatsFloat16([]float32{256, 1}, []float32{256, 1}, 0).Bits())
			require.EqualValues(t, 0x7FFF, m.DotFloatsFloat16([]float32{nan32, 1}, one, 0).Bits())
		}
		require.False(t, m.Takes(fp8.E4M3))
		require.Panics(t, func() { m.Dot(make([]byte, 2), make([]byte, 2), fp8.E4M3, fp8.E4M3, 0) })
		require.Panics(t, func() { m.DotFloats(one, one[:1], 0) })
		require.Panics(t, func() { m.DotFloats([]float32{1 + 0x1p-23, 1}, one, 0) })
	}
	require.Panics(t, func() { HopperWGMMA().DotFloats(one, one, 0) })
	require.Panics(t, func() { Hopper(NoFloat) })
	require.Panics(t, func() { Ampere(9) })
	require.ErrorIs(t, Model{Unit: Emulated, K: 32, L: 16, F: 20, Keep: 23, Float: BF16}.Check(), ErrModel)
	require.ErrorIs(t, Model{K: 32, L: 16, F: 20, Keep: 23, Float: 7}.Check(), ErrModel)
}

// TestExactFloats compares with package big.
func TestExactFloats(t *testing.T) {
	r := source(73)
	for range rounds(150) {
		for _, f := range floatFormats {
			checkExactFloats[float32](t, r, f)
			checkExactFloats[fp8.BFloat16](t, r, f)
			checkExactFloats[float16.Float16](t, r, f)
		}
	}
}

func checkExactFloats[T gemm.Output](t *testing.T, r *rand.Rand, f Float) {
	spread := []int{0, 3, 12}[r.IntN(3)]
	k := r.IntN(60)
	a, b := randomFloats(r, "a", f, 3, k, spread), randomFloats(r, "b", f, 5, k, spread)
	if k > 1 && r.IntN(2) == 0 { // sums that cancel but for their last bits
		for i := range 3 {
			copy(a.Values[i*k+k/2:(i+1)*k], a.Values[i*k:i*k+k/2])
		}
		for j := range 5 {
			for x := range k / 2 {
				b.Values[j*k+k/2+x] = -b.Values[j*k+x]
			}
		}
	}
	specials := r.IntN(4) == 0
	if specials && k > 0 {
		a.Values[r.IntN(len(a.Values))] = float32(math.Inf(1))
		b.Values[r.IntN(len(b.Values))] = []float32{float32(math.NaN()), float32(math.Inf(-1))}[r.IntN(2)]
	}
	o := Options{}
	c := make([]T, 15)
	old := make([]float32, 15)
	if r.IntN(2) == 0 {
		o.Bias, o.Accumulate = make([]float32, 5), true
		for j := range o.Bias {
			o.Bias[j] = wideFloat32(r)
		}
		for i := range c {
			c[i] = narrow32[T](wideFloat32(r))
			old[i] = number.Float32(c[i])
		}
	}
	require.NoError(t, ExactFloats(t.Context(), c, a, b, o))
	want := make([]T, len(c))
	for i := range 3 {
		for j := range 5 {
			sum, plain := bigFloat(), 0.0
			add := func(x, y float32) {
				p := float64(x) * float64(y)
				plain += p
				if !math.IsNaN(p) && !math.IsInf(p, 0) {
					sum.Add(sum, bigFloat().SetFloat64(p))
				}
			}
			for x := range k {
				add(a.Values[i*k+x], b.Values[j*k+x])
			}
			if o.Bias != nil {
				add(o.Bias[j], 1)
				add(old[i*5+j], 1)
			}
			if math.IsNaN(plain) || math.IsInf(plain, 0) {
				sum = nil
			}
			want[i*5+j] = fromBits[T](bigRound[T](sum, plain))
		}
	}
	require.NoError(t, differ(c, want), "%v, K=%d", f, k)
}

// TestPredictFloats compares with chains of instructions.
func TestPredictFloats(t *testing.T) {
	r := source(74)
	for _, m := range Models() {
		if m.Float == NoFloat {
			continue
		}
		for range rounds(8) {
			k := r.IntN(150)
			a, b := randomFloats(r, "a", m.Float, 40, k, 5), randomFloats(r, "b", m.Float, 20, k, 5)
			promote := []int{0, 16, 48}[r.IntN(3)]
			o := Options{Bias: make([]float32, 20), Workers: 1 + r.IntN(3)}
			for j := range o.Bias {
				o.Bias[j] = r.Float32()
			}
			got := make([]float32, 800)
			require.NoError(t, PredictFloats(t.Context(), got, nil, a, b, Kernel{Model: m, Promote: promote}, o))
			for i := range 40 {
				for j := range 20 {
					x, y := a.Values[i*k:(i+1)*k], b.Values[j*k:(j+1)*k]
					var want float32
					step := promote
					if step == 0 {
						step = max(k, 1)
					}
					for lo := 0; lo < k; lo += step {
						hi := min(lo+step, k)
						want += m.DotFloats(x[lo:hi], y[lo:hi], 0)
					}
					want += o.Bias[j]
					require.Equal(t, math.Float32bits(want), math.Float32bits(got[i*20+j]), "%s promoted every %d, K=%d", m.Name, promote, k)
				}
			}
			half := make([]fp8.BFloat16, 800)
			require.NoError(t, PredictFloats(t.Context(), half, nil, a, b, Kernel{Model: m, Promote: promote}, o))
			for i := range half {
				require.Equal(t, fp8.BFloat16FromFloat32(got[i]), half[i])
			}
		}
	}
}

// TestHonestFloats demands that correct kernels, and every model, keep within the bounds.
func TestHonestFloats(t *testing.T) {
	r := source(75)
	stats := ratios{}
	for range rounds(300) {
		for _, f := range floatFormats {
			k := 1 + r.IntN(300)
			spread := []int{0, 3, 12, 60}[r.IntN(4)]
			if f == FP16 {
				spread = min(spread, 14)
			}
			a, b := randomFloats(r, "a", f, 2, k, spread), randomFloats(r, "b", f, 2, k, spread)
			about := func() string { return f.String() }
			want, got := make([]float32, 4), make([]float32, 4)
			bound := make([]float64, 4)
			require.NoError(t, ExactFloats(t.Context(), want, a, b, Options{}))
			for _, truncated := range []bool{false, true} {
				s := shuffled{truncated: truncated, pairwise: r.IntN(2) == 0}
				for i := range 4 {
					products := make([]float32, k)
					for x := range products {
						products[x] = s.multiply(a.Values[i/2*k+x], b.Values[i%2*k+x])
					}
					got[i] = s.sum(r, products)
				}
				require.NoError(t, BoundFloats[float32](t.Context(), bound, nil, a, b, Accumulation{Truncated: truncated}, Options{}))
				stats.check(t, f.String()+" "+name(s), got, want, bound, about)
			}
			for _, m := range Models() {
				if m.Float != f {
					continue
				}
				kernel := Kernel{Model: m, Promote: []int{0, 128, 32, 40}[r.IntN(4)]}
				before := make([]float64, 4)
				require.NoError(t, PredictFloats(t.Context(), got, bound, a, b, kernel, Options{}))
				require.NoError(t, BoundFloats[float32](t.Context(), before, nil, a, b, Accumulation{Kernel: kernel}, Options{}))
				stats.check(t, m.Name, got, want, bound, about)
				stats.check(t, m.Name+" a priori", got, want, before, about)
			}
		}
	}
	for name, ratio := range stats {
		t.Logf("%-28s largest error / bound %.3f", name, ratio)
		require.Greater(t, ratio, 0.001, name)
	}
}

// TestFloatsRefuse: matrices that are not whole, and kernels that do not take them.
func TestFloatsRefuse(t *testing.T) {
	ctx := t.Context()
	good := func() *Floats { return NewFloats("x", 2, 3, make([]fp8.BFloat16, 6)) }
	require.NoError(t, good().Check())
	require.Equal(t, FP16, NewFloats("x", 0, 0, []float16.Float16{}).Format)
	for name, test := range map[string]struct {
		change func(m *Floats)
		want   error
	}{
		"rows":   {func(m *Floats) { m.Rows = -1 }, tensor.ErrShape},
		"length": {func(m *Floats) { m.Rows = 3 }, tensor.ErrShape},
		"huge":   {func(m *Floats) { m.Rows, m.K = math.MaxInt, math.MaxInt }, tensor.ErrShape},
		"none":   {func(m *Floats) { m.Format = NoFloat }, ErrFloat},
		"format": {func(m *Floats) { m.Format = 9 }, ErrFloat},
		"value":  {func(m *Floats) { m.Values[4] = 1 + 0x1p-10 }, ErrFloat},
	} {
		bad := good()
		test.change(bad)
		require.ErrorIs(t, bad.Check(), test.want, name)
		c, bound := make([]float32, 4), make([]float64, 4)
		k := Kernel{Model: Hopper(BF16)}
		require.ErrorIs(t, ExactFloats(ctx, c, good(), bad, Options{}), test.want, name)
		require.ErrorIs(t, PredictFloats(ctx, c, nil, bad, good(), k, Options{}), test.want, name)
		require.ErrorIs(t, BoundFloats[float32](ctx, bound, nil, bad, good(), Accumulation{}, Options{}), test.want, name)
	}
	bad := good()
	bad.Values[4] = 1 + 0x1p-10
	require.ErrorContains(t, bad.Check(), `oracle: tensor "x": 1.0009766 at row 1, column 1 is no number of bf16: round it first`)
	c, bound := make([]float32, 4), make([]float64, 4)
	var none *Floats
	require.ErrorIs(t, ExactFloats(ctx, c, none, none, Options{}), tensor.ErrShape)
	half := NewFloats("y", 2, 3, make([]float16.Float16, 6))
	require.ErrorIs(t, ExactFloats(ctx, c, good(), half, Options{}), ErrFloat)
	wide := NewFloats("z", 2, 4, make([]fp8.BFloat16, 8))
	require.ErrorIs(t, ExactFloats(ctx, c, good(), wide, Options{}), tensor.ErrShape)
	for _, m := range []Model{{}, HopperWGMMA(), Hopper(FP16), BlackwellNVFP4()} {
		require.ErrorIs(t, PredictFloats(ctx, c, nil, good(), good(), Kernel{Model: m}, Options{}), ErrModel)
		if m != (Model{}) {
			require.ErrorIs(t, BoundFloats[float32](ctx, bound, nil, good(), good(), Accumulation{Kernel: Kernel{Model: m}}, Options{}), ErrModel)
		}
	}
	require.ErrorIs(t, Predict(ctx, c[:1], nil, plain("p", 1, 32), plain("p", 1, 32), Kernel{Model: Hopper(BF16)}, Options{}), ErrModel)
	k := Kernel{Model: Hopper(BF16)}
	require.ErrorIs(t, ExactFloats(ctx, c[:3], good(), good(), Options{}), gemm.ErrOperands)
	require.ErrorIs(t, PredictFloats(ctx, c, bound[:2], good(), good(), k, Options{}), gemm.ErrOperands)
	require.ErrorIs(t, BoundFloats[float32](ctx, bound, nil, good(), good(), Accumulation{}, Options{Accumulate: true}), gemm.ErrOperands)
	ended, cancel := context.WithCancelCause(ctx)
	stop := errors.New("stop")
	cancel(stop)
	require.ErrorIs(t, ExactFloats(ended, c, good(), good(), Options{}), stop)
	require.ErrorIs(t, PredictFloats(ended, c, nil, good(), good(), k, Options{}), stop)
	require.ErrorIs(t, BoundFloats[float32](ended, bound, nil, good(), good(), Accumulation{}, Options{}), stop)
}

// TestBoundFloatsByHand has each term of the bound where it counts.
func TestBoundFloatsByHand(t *testing.T) {
	row := func(f Float, values ...float32) *Floats {
		return &Floats{Name: "x", Format: f, Rows: 1, K: len(values), Values: values}
	}
	repeated := func(f Float, x float32, n, every int) *Floats {
		m := row(f, make([]float32, n)...)
		for i := 0; i < n; i += every {
			m.Values[i] = x
		}
		return m
	}
	const u = 0x1p-24
	gammaOf := func(n float64) float64 { return n * u / (1 - n*u) }
	volta := Accumulation{Kernel: Kernel{Model: VoltaFP16()}}
	hopper := Accumulation{Kernel: Kernel{Model: Hopper(BF16)}}
	for name, test := range map[string]struct {
		a, b      *Floats
		acc       Accumulation
		bias, old float32
		want      float64
	}{
		"additions": {a: repeated(FP16, 1, 4, 1), b: repeated(FP16, 1, 4, 1), want: 4*gammaOf(3) + 4*u},
		"epilogue":  {a: repeated(FP16, 1, 4, 1), b: repeated(FP16, 1, 4, 1), bias: 2, old: 3, want: 4*gammaOf(3)*(1+gammaOf(2)) + 9*gammaOf(2) + 9*u},
		"truncated": {a: repeated(FP16, 1, 4, 1), b: repeated(FP16, 1, 4, 1), acc: Accumulation{Truncated: true}, want: 4*(6*u/(1-6*u)) + 4*u},
		// 64 products that are 3/4 of the least float32 are rounded to it.
		"underflow":           {a: repeated(BF16, 0x1.8p-75, 64, 1), b: repeated(BF16, 0x1p-75, 64, 1), want: 64*0x1p-150 + 0x1p-150},
		"underflow truncated": {a: repeated(BF16, 0x1.8p-75, 64, 1), b: repeated(BF16, 0x1p-75, 64, 1), acc: Accumulation{Truncated: true}, want: 64*0x1p-149*(1+63*0x1p-23) + 0x1p-150},
		"step":                {a: repeated(FP16, 1, 4, 1), b: repeated(FP16, 1, 4, 1), acc: volta, want: 4*6*0x1p-23 + 4*u},
		// A subnormal is aligned as 2^-14.
		"subnormal": {a: row(FP16, 0x1p-24), b: row(FP16, 1), acc: volta, want: 0x1p-14*6*0x1p-23 + 0x1p-24*u},
		// Four steps of one product each, which all vanish.
		"small": {a: repeated(BF16, 0x1.8p-75, 64, 16), b: repeated(BF16, 0x1p-75, 64, 1), acc: hopper, want: 5*(17*0x1p-151+0x1p-149) + 0x1p-150},
		"large": {a: row(BF16, 0x1p64), b: row(BF16, 0x1p64), want: math.Inf(1)},
		"zero":  {a: row(BF16, 0), b: row(BF16, 0x1p64), want: 0x1p-150},
		"nan":   {a: row(BF16, float32(math.NaN())), b: row(BF16, 0x1p64), want: 0},
	} {
		bound := make([]float64, 1)
		var old []float32
		o := Options{}
		if test.bias != 0 {
			o.Bias, o.Accumulate, old = []float32{test.bias}, true, []float32{test.old}
		}
		require.NoError(t, BoundFloats(t.Context(), bound, old, test.a, test.b, test.acc, o), name)
		if math.IsInf(test.want, 0) || test.want == 0 {
			require.Equal(t, test.want, bound[0], name)
			continue
		}
		require.GreaterOrEqual(t, bound[0], test.want*(1-1e-9), name)
		require.LessOrEqual(t, bound[0], test.want*(1+1e-5), name)
	}
}

// TestFloatModelParameters has those that vectors do not pin, too: L of TF32.
func TestFloatModelParameters(t *testing.T) {
	for _, of := range []func(Float) Model{Ampere, Ada} {
		require.Equal(t, []int{8, 8, 4, 24}, []int{of(FP16).L, of(BF16).L, of(TF32).L, of(TF32).F})
	}
	for _, of := range []func(Float) Model{Hopper, Blackwell} {
		require.Equal(t, []int{16, 16, 8, 25}, []int{of(FP16).L, of(BF16).L, of(TF32).L, of(TF32).F})
	}
}
