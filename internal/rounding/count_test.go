package rounding

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
)

// TestCountsByDefinition counts products and sums by what they are in exact arithmetic.
func TestCountsByDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var products, sums, wantProducts, wantSums fp8.Stats
	for i := range 200_000 {
		v, w := math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
		switch i % 4 {
		case 0:
			w = float32(math.Ldexp(v64(v), r.IntN(6)-3)) // of like magnitude
		case 1:
			v, w = math.Float32frombits(math.Float32bits(v)&0x80FFFFFF), math.Float32frombits(math.Float32bits(w)&0x80FFFFFF)
		case 2:
			v, w = 0, float32(math.Copysign(0, v64(w)))
		case 3:
			if i%64 == 3 {
				v = float32(math.Inf(1 - int(r.Uint32()%3)))
			}
		}
		Count(&products, v, float32(v*w))
		CountSum(&sums, v, w, v+w)
		defineProduct(&wantProducts, v, w)
		defineSum(&wantSums, v, w)
	}
	require.Equal(t, wantProducts, products)
	require.Equal(t, wantSums, sums)
	for _, st := range []fp8.Stats{products, sums} {
		require.True(t, st.SaturatedPos > 0 && st.SaturatedNeg > 0 && st.Subnormal > 0 && st.NaN > 0 && st.PosInf > 0 && st.Zeros > 0)
	}
	require.Positive(t, products.Flushed)
}

func v64(x float32) float64 { return float64(x) }

func isFinite(x float32) bool { return !math.IsNaN(v64(x)) && !math.IsInf(v64(x), 0) }

// exact is x, which is finite.
func exact(x float32) *big.Float { return new(big.Float).SetPrec(600).SetFloat64(v64(x)) }

// kind is what a real number is as a float32.
func kind(x *big.Float) string {
	magnitude := new(big.Float).SetPrec(24).Abs(x) // rounded, with an unlimited exponent
	switch {
	case x.Sign() == 0:
		return "zero"
	case magnitude.Cmp(big.NewFloat(0x1p128)) >= 0:
		return "huge"
	case new(big.Float).Abs(x).Cmp(big.NewFloat(0x1p-150)) <= 0: // a tie is even
		return "flushed"
	case new(big.Float).Abs(x).Cmp(big.NewFloat(0x1p-126-0x1p-150)) < 0:
		return "subnormal"
	}
	return "normal"
}

func defineProduct(st *fp8.Stats, v, w float32) {
	st.Elements++
	if v == 0 {
		st.Zeros++
		return
	}
	if defineNonFinite(st, v) {
		return
	}
	st.Amax = max(st.Amax, math.Abs(v64(v)))
	if st.Smallest == 0 {
		st.Smallest = math.Inf(1)
	}
	st.Smallest = min(st.Smallest, math.Abs(v64(v)))
	if !isFinite(w) {
		x := v * w
		if x > 0 {
			st.SaturatedPos++
		} else if x < 0 {
			st.SaturatedNeg++
		}
		return
	}
	x := new(big.Float).SetPrec(600).Mul(exact(v), exact(w))
	switch kind(x) {
	case "zero", "flushed":
		st.Flushed++
	case "subnormal":
		st.Subnormal++
	case "huge":
		if x.Sign() > 0 {
			st.SaturatedPos++
		} else {
			st.SaturatedNeg++
		}
	}
}

func defineNonFinite(st *fp8.Stats, v float32) bool {
	switch {
	case math.IsNaN(v64(v)):
		st.NaN++
	case math.IsInf(v64(v), 1):
		st.PosInf++
	case math.IsInf(v64(v), -1):
		st.NegInf++
	default:
		return false
	}
	return true
}

func defineSum(st *fp8.Stats, v, w float32) {
	st.Elements++
	if !isFinite(v) || !isFinite(w) {
		defineNonFinite(st, v+w)
		return
	}
	x := new(big.Float).SetPrec(600).Add(exact(v), exact(w))
	switch k := kind(x); {
	case k == "huge" && x.Sign() > 0:
		st.SaturatedPos++
		return
	case k == "huge":
		st.SaturatedNeg++
		return
	case k == "zero":
		st.Zeros++
		return
	case k == "subnormal":
		st.Subnormal++
	}
	sum, _ := x.Float32()
	st.Amax = max(st.Amax, math.Abs(v64(sum)))
	if st.Smallest == 0 {
		st.Smallest = math.Inf(1)
	}
	st.Smallest = min(st.Smallest, math.Abs(v64(sum)))
}
