package fp8_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/stretchr/testify/require"
)

func TestStatsCounts(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	negativeZero := float32(math.Copysign(0, -1))
	src := []float32{
		0, negativeZero, // zeros
		464, -464, // rounded to ±448
		464.0001, 1000, -500, // saturated
		0x1p-10, -0x1p-10, 0x1p-149, // flushed: the tie goes to 0
		0x1.000002p-10, 0x1p-9, -0x1.cp-7, // subnormal
		0x1.fp-7,                       // a tie that goes to the smallest normal
		nan, -nan, nan, inf, inf, -inf, // nothing else
		1, -2,
	}
	want := fp8.Stats{
		Elements: int64(len(src)), Amax: 1000, Smallest: 0x1p-149,
		SaturatedPos: 2, SaturatedNeg: 1, Flushed: 3, Subnormal: 3, Zeros: 2, NaN: 3, PosInf: 2, NegInf: 1,
	}
	codes := make([]byte, len(src))
	for _, p := range policies(fp8.NearestEven) {
		var st fp8.Stats
		fp8.Encode(codes, src, fp8.E4M3, p, &st)
		require.Equal(t, want, st, "%+v", p)
		require.EqualValues(t, 3, st.Saturated())
		require.EqualValues(t, 6, st.NonFinite())
	}
	var empty fp8.Stats
	fp8.Encode(nil, []float32{}, fp8.E4M3, fp8.Policy{}, &empty)
	require.Equal(t, fp8.Stats{}, empty)
}

// Encode adds to Stats that are not empty.
func TestStatsAdds(t *testing.T) {
	var st fp8.Stats
	codes := make([]byte, 2)
	fp8.Encode(codes, []float32{3, -0.5}, fp8.E5M2, fp8.Policy{}, &st)
	fp8.Encode(codes, []float32{-2, 0.75}, fp8.E5M2, fp8.Policy{}, &st)
	require.Equal(t, fp8.Stats{Elements: 4, Amax: 3, Smallest: 0.5}, st)
}

// Magnitudes are those before scaling, judgements those after it.
func TestStatsScaled(t *testing.T) {
	src := []float32{1, -4, 0x1p-20, 3e-5}
	codes := make([]byte, len(src))
	for _, s := range []fp8.Scale{{Stored: 1.0 / 256, Multiplier: 256}, {Stored: 1.0 / 256}} {
		st := fp8.Stats{Detail: &fp8.Detail{}}
		fp8.EncodeScaled(codes, src, fp8.E4M3, fp8.Policy{}, s, 0, &st)
		detail := st.Detail
		st.Detail = nil
		require.Equal(t, []byte{0x78, 0xFE, 0x00, 0x04}, codes)
		require.Equal(t, fp8.Stats{Elements: 4, Amax: 4, Smallest: 0x1p-20, SaturatedNeg: 1, Flushed: 1, Subnormal: 1}, st)
		x := float64(src[3])
		e := x - 0x1p-15 // 4 * 2^-9 / 256
		require.Equal(t, 2.25*2.25+0x1p-40+e*e, detail.SquaredError)
		require.Equal(t, 1+16+0x1p-40+x*x, detail.SquaredSum)
		require.EqualValues(t, 1, detail.Exponents[127])
		require.EqualValues(t, 1, detail.Exponents[129])
		require.EqualValues(t, 1, detail.Exponents[107])
		require.EqualValues(t, 1, detail.Exponents[111])
	}
}

// A finite value whose scaled product overflows float32 is no infinity.
func TestStatsScaledOverflow(t *testing.T) {
	src := []float32{1e30, -1e30, float32(math.Inf(1)), float32(math.Inf(-1))}
	wide := []float64{1e300, -1e300, math.Inf(1), math.Inf(-1)}
	for _, v := range []struct {
		policy fp8.Policy
		codes  []byte // of E5M2
	}{
		{fp8.Policy{}, []byte{0x7B, 0xFB, 0x7B, 0xFB}},
		{fp8.Policy{Inf: fp8.InfPropagate}, []byte{0x7B, 0xFB, 0x7C, 0xFC}},
		{fp8.Policy{Overflow: fp8.OverflowNonFinite}, []byte{0x7C, 0xFC, 0x7B, 0xFB}},
		{fp8.Policy{Inf: fp8.InfPropagate, Rounding: fp8.Stochastic}, []byte{0x7B, 0xFB, 0x7C, 0xFC}},
		{fp8.Policy{Inf: fp8.InfPropagate, Rounding: fp8.TowardZero}, []byte{0x7B, 0xFB, 0x7C, 0xFC}},
	} {
		for _, s := range []fp8.Scale{{Stored: 1e-30, Multiplier: 1e30}, {Stored: 1e-30}} {
			var single, double fp8.Stats
			codes := make([]byte, 4)
			fp8.EncodeScaled(codes, src, fp8.E5M2, v.policy, s, 0, &single)
			require.Equal(t, v.codes, codes, "%+v", v.policy)
			require.Equal(t, fp8.Stats{Elements: 4, Amax: float64(src[0]), Smallest: float64(src[0]),
				SaturatedPos: 1, SaturatedNeg: 1, PosInf: 1, NegInf: 1}, single)
			fp8.EncodeScaled(codes, wide, fp8.E5M2, v.policy, s, 0, &double)
			require.Equal(t, v.codes, codes, "float64, %+v", v.policy)
			require.Equal(t, fp8.Stats{Elements: 4, Amax: 1e300, Smallest: 1e300,
				SaturatedPos: 1, SaturatedNeg: 1, PosInf: 1, NegInf: 1}, double)
		}
	}
}

// The only NaN of the FNUZ formats has no magnitude bits and is no zero.
func TestStatsScaleNaN(t *testing.T) {
	codes := make([]byte, 3)
	for _, f := range fp8.Formats() {
		var st fp8.Stats
		s := fp8.Scale{Stored: fp8.E8M0NaN.Float32()}
		fp8.EncodeScaled(codes, []float32{1, -1, 0}, f, fp8.Policy{}, s, 0, &st)
		require.Equal(t, bytes.Repeat([]byte{f.NaNCode()}, 3), codes)
		require.Equal(t, fp8.Stats{Elements: 3, Amax: 1, Smallest: 1, BecameNonFinite: 3, Zeros: 1}, st)
	}
}

// A NaN keeps its sign under a scale; one that the scale makes is positive.
func TestScaledNaN(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	src := []float32{nan, math.Float32frombits(0xFFC00000), 0, inf, -1}
	for _, v := range []struct {
		scale fp8.Scale
		codes []byte // of E5M2
	}{
		{fp8.Scale{Stored: 3}, []byte{0x7F, 0xFF, 0x00, 0x7B, 0xB5}},
		{fp8.Scale{Stored: 0.5, Multiplier: 2}, []byte{0x7F, 0xFF, 0x00, 0x7B, 0xC0}},
		{fp8.Scale{Stored: nan}, []byte{0x7F, 0xFF, 0x7F, 0x7F, 0x7F}},
		{fp8.Scale{Multiplier: inf}, []byte{0x7F, 0xFF, 0x7F, 0x7B, 0xFB}},
		{fp8.Scale{Stored: inf}, []byte{0x7F, 0xFF, 0x00, 0x7F, 0x80}},
	} {
		wide := make([]float64, len(src))
		for i, x := range src {
			wide[i] = float32Value(x)
		}
		codes := make([]byte, len(src))
		fp8.EncodeScaled(codes, src, fp8.E5M2, fp8.Policy{}, v.scale, 0, nil)
		require.Equal(t, v.codes, codes, "%+v", v.scale)
		fp8.EncodeScaled(codes, wide, fp8.E5M2, fp8.Policy{}, v.scale, 0, nil)
		require.Equal(t, v.codes, codes, "float64, %+v", v.scale)
	}
}

func TestDetailExponents(t *testing.T) {
	src := []float64{0, 1, -1.99, 2, 0x1p-126, 0x1.fp-127, 0x1p-149, 5e-324, 0x1p127, 0x1.fffffffffffffp127,
		0x1p128, math.MaxFloat64, math.Inf(1), math.NaN()}
	want := [256]int64{0: 3, 1: 1, 127: 2, 128: 1, 254: 2, 255: 2}
	st := fp8.Stats{Detail: &fp8.Detail{}}
	fp8.Encode(make([]byte, len(src)), src, fp8.E4M3, fp8.Policy{}, &st)
	require.Equal(t, want, st.Detail.Exponents)
}

func TestSQNR(t *testing.T) {
	sqnr := func(src ...float32) float64 {
		st := fp8.Stats{Detail: &fp8.Detail{}}
		fp8.Encode(make([]byte, len(src)), src, fp8.E4M3, fp8.Policy{}, &st)
		return st.Detail.SQNR()
	}
	require.True(t, math.IsNaN(sqnr()))
	require.True(t, math.IsNaN(sqnr(0, float32(math.Inf(1)), float32(math.NaN()))))
	require.Equal(t, math.Inf(1), sqnr(1, -2, 448))
	require.InDelta(t, 20*math.Log10(17), sqnr(1.0625), 1e-12) // error 1/16
}

// An infinite scale makes NaN of zero codes and infinities of the others: no
// value is merely flushed.
func TestStatsScaleInf(t *testing.T) {
	var st fp8.Stats
	s := fp8.Scale{Stored: float32(math.Inf(1))}
	codes := make([]byte, 4)
	fp8.EncodeScaled(codes, []float32{1, -1, 0, float32(math.Inf(1))}, fp8.E4M3, fp8.Policy{}, s, 0, &st)
	require.Equal(t, fp8.Stats{Elements: 4, Amax: 1, Smallest: 1, BecameNonFinite: 3, Zeros: 1, PosInf: 1}, st)
	require.EqualValues(t, 4, st.Lost())
}
