package fp8_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/stretchr/testify/require"
)

// scaled returns x under s as the documentation has it, rounded to float32 if
// single, with finite overflow at the largest float64. A float64 quotient or
// product of two float32 rounds to the right float32.
func scaled(x float64, s fp8.Scale, single bool) float64 {
	y := x
	switch {
	case s == fp8.Scale{} || x != x:
		return x
	case s.Multiplier != 0:
		y *= float64(s.Multiplier)
	default:
		y /= float64(s.Stored)
	}
	if single {
		y = float64(float32(y))
	}
	if math.IsInf(y, 0) && !math.IsInf(x, 0) {
		y = math.Copysign(math.MaxFloat64, y)
	}
	return y
}

// recount returns the codes and the Stats by their definitions.
func recount[T float32 | float64](d *definition, src []T, p fp8.Policy, s fp8.Scale, first uint64) (codes []byte, st fp8.Stats) {
	st.Detail = &fp8.Detail{}
	stored := float64(s.Stored)
	if s == (fp8.Scale{}) {
		stored = 1
	}
	_, single := any(src).([]float32)
	smallest := math.Inf(1)
	for i, t := range src {
		x := float64(t)
		if f, ok := any(t).(float32); ok {
			x = float32Value(f)
		}
		code, saturated := d.encode(scaled(x, s, single), p, first+uint64(i))
		codes = append(codes, code)
		st.Elements++
		switch {
		case math.IsNaN(x):
			st.NaN++
			continue
		case math.IsInf(x, 1):
			st.PosInf++
			continue
		case math.IsInf(x, -1):
			st.NegInf++
			continue
		case x == 0:
			st.Zeros++
			continue
		}
		st.Amax = math.Max(st.Amax, math.Abs(x))
		smallest = math.Min(smallest, math.Abs(x))
		value := d.decode(code)
		minNormal := float64(d.format.MinNormal())
		switch {
		case saturated && x > 0:
			st.SaturatedPos++
		case saturated:
			st.SaturatedNeg++
		case value == 0:
			st.Flushed++
		case math.Abs(value) < minNormal:
			st.Subnormal++
		}
		e := x - value*stored
		st.Detail.SquaredError += float64(e * e)
		st.Detail.SquaredSum += float64(x * x)
		_, exponent := math.Frexp(x) // |x| in [2^(exponent-1), 2^exponent)
		st.Detail.Exponents[min(max(exponent-1+127, 0), 255)]++
	}
	if !math.IsInf(smallest, 1) {
		st.Smallest = smallest
	}
	return codes, st
}

// edges returns values of which many, once multiplied by m, lie where codes,
// saturation, flushing or subnormals begin.
func edges(d *definition, random *rand.Rand, m float64, n int) []float32 {
	src := make([]float32, n)
	for i := range src {
		var x float64
		switch random.IntN(10) {
		case 0, 1:
			x = d.midpoint(random.IntN(d.max+1)) / m
		case 2:
			x = d.value[random.IntN(d.max+2)] / m
		case 3:
			x = d.midpoint([]int{0, int(1<<d.format.Mantissa() - 1), d.max}[random.IntN(3)]) / m
		case 4, 5:
			x = math.Ldexp(1+random.Float64(), random.IntN(50)-30) / m
		case 6:
			x = float64(math.Float32frombits(random.Uint32()))
		case 7:
			x = float64(math.Float32frombits(random.Uint32N(1 << 24))) // subnormals
		case 8:
			x = float64(math.Float32frombits(0x7F7FFFFF - random.Uint32N(100)))
		case 9:
			x = []float64{0, math.Inf(1), math.NaN()}[random.IntN(3)]
		}
		y := math.Float32frombits(math.Float32bits(float32(x)) + random.Uint32N(5) - 2)
		if x == 0 || random.IntN(2) == 0 {
			y = float32(x)
		}
		src[i] = math.Float32frombits(math.Float32bits(y) ^ random.Uint32()&(1<<31))
	}
	return src
}

// requireStats compares all fields, NaN being equal to NaN, and sums of squares
// to within a relative tolerance.
func requireStats(t *testing.T, want, got fp8.Stats, tolerance float64, note ...any) {
	t.Helper()
	if want.Detail == nil || got.Detail == nil {
		require.Equal(t, want, got, note...)
		return
	}
	w, g := *want.Detail, *got.Detail
	near := func(a, b float64) bool {
		return a == b || a != a && b != b || math.Abs(a-b) <= tolerance*math.Abs(a)
	}
	require.True(t, near(w.SquaredError, g.SquaredError), "squared error %v, want %v", g.SquaredError, w.SquaredError)
	require.True(t, near(w.SquaredSum, g.SquaredSum), "squared sum %v, want %v", g.SquaredSum, w.SquaredSum)
	require.Equal(t, w.Exponents, g.Exponents, note...)
	want.Detail, got.Detail = nil, nil
	require.Equal(t, want, got, note...)
}

func TestStats(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	n, each := 4000, 2
	if testing.Short() {
		n, each = 500, 5
	}
	if testutil.Full() {
		each = 1
	}
	scales := []fp8.Scale{
		{},
		{Stored: 1},
		{Stored: 3, Multiplier: 1},
		{Stored: 1, Multiplier: 0.75},
		{Stored: 0.0123, Multiplier: 1 / float32(0.0123)},
		{Stored: 0.0123},
		{Stored: 0x1p-100},
		{Stored: 0x1p60}, // by which small values become zero
		{Stored: 0x1p60, Multiplier: 0x1p-60},
	}
	for k, d := range definitions {
		for j, s := range scales {
			m := scaled(1, s, false)
			for _, r := range []fp8.Rounding{fp8.NearestEven, fp8.TowardZero, fp8.Stochastic} {
				for i, p := range policies(r) {
					if (i+j+k)%each != 0 { // the others have other scales and formats
						continue
					}
					first := uint64(1<<32 - 50)
					single := edges(d, random, m, n/8)
					checkStats(t, d, single, p, s, first)
					double := make([]float64, len(single))
					for i, x := range single {
						double[i] = float32Value(x)
						if x == x {
							double[i] *= 1 + float64(random.IntN(3)-1)*0x1p-40
						}
					}
					checkStats(t, d, double, p, s, first)
				}
			}
		}
	}
}

func checkStats[T float32 | float64](t *testing.T, d *definition, src []T, p fp8.Policy, s fp8.Scale, first uint64) {
	t.Helper()
	wantCodes, want := recount(d, src, p, s, first)
	codes := make([]byte, len(src))
	got := fp8.Stats{Detail: &fp8.Detail{}}
	fp8.EncodeScaled(codes, src, d.format, p, s, first, &got)
	for i := range codes {
		if codes[i] != wantCodes[i] {
			t.Fatalf("%v of %T %v, %+v, %+v: %02x, want %02x", d.format, src[i], src[i], p, s, codes[i], wantCodes[i])
		}
	}
	requireStats(t, want, got, 0, "%v, %+v, %+v", d.format, p, s)

	without := make([]byte, len(src))
	fp8.EncodeScaled(without, src, d.format, p, s, first, nil)
	require.Equal(t, codes, without, "codes without Stats")
	plain := fp8.Stats{}
	fp8.EncodeScaled(without, src, d.format, p, s, first, &plain)
	require.Equal(t, codes, without, "codes without Detail")
	want.Detail = nil
	requireStats(t, want, plain, 0, "without Detail")
}

func TestStatsMerge(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	for _, d := range definitions {
		src := edges(d, random, 1, 300)
		// Squares of the largest are not what this is about.
		for i, x := range src {
			if !math.IsInf(float64(x), 0) && (x > 1e15 || x < -1e15) {
				src[i] = 1e15
			}
		}
		codes := make([]byte, len(src))
		whole := fp8.Stats{Detail: &fp8.Detail{}}
		p := fp8.Policy{Rounding: fp8.Stochastic, Seed: 1}
		fp8.EncodeScaled(codes, src, d.format, p, fp8.Scale{}, 0, &whole)
		for cut := range len(src) + 1 {
			low, high := fp8.Stats{Detail: &fp8.Detail{}}, fp8.Stats{Detail: &fp8.Detail{}}
			fp8.EncodeScaled(codes, src[:cut], d.format, p, fp8.Scale{}, 0, &low)
			fp8.EncodeScaled(codes, src[cut:], d.format, p, fp8.Scale{}, uint64(cut), &high)
			forward, backward := fp8.Stats{Detail: &fp8.Detail{}}, fp8.Stats{Detail: &fp8.Detail{}}
			forward.Merge(&low)
			forward.Merge(&high)
			backward.Merge(&high)
			backward.Merge(&low)
			requireStats(t, whole, forward, 1e-12, "cut at %d", cut)
			requireStats(t, whole, backward, 1e-12, "cut at %d, backward", cut)
		}
	}
	var plain fp8.Stats
	plain.Merge(&fp8.Stats{Elements: 1, Detail: &fp8.Detail{}})
	require.Equal(t, fp8.Stats{Elements: 1}, plain)
}
