package plan_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/plan"
)

// sunLoss is equation 26 with the constants of Table 2.
func sunLoss(n, d, e, m, b float64) float64 {
	return 69.2343/math.Pow(n, 0.2368) + 68973.0621/math.Pow(d, 0.5162) + 1.9061 + sunPenalty(n, d, e, m, b)
}

func sunPenalty(n, d, e, m, b float64) float64 {
	return math.Pow(d, 0.5162) / math.Pow(n, 0.2368) * math.Log2(b) /
		(11334.5197 * math.Pow(e+0.5, 3.1926) * math.Pow(m+0.5, 2.9543))
}

// sunBest is the loss in the continuous layout of p bits, from δ/(δ+ν) and
// ν/(δ+ν) of the text.
func sunBest(n, d, p, b float64) float64 {
	const exponent = 3.1926 / (3.1926 + 2.9543)
	return sunLoss(n, d, exponent*p-0.5, (1-exponent)*p-0.5, b)
}

// TestSunTable2 has the constants of Table 2 (Appendix B.1), and the data of Table 3.
func TestSunTable2(t *testing.T) {
	s := plan.Sun2025()
	require.Equal(t, [8]float64{69.2343, 0.2368, 68973.0621, 0.5162, 1.9061, 11334.5197, 3.1926, 2.9543},
		[8]float64{s.A, s.Alpha, s.B, s.Beta, s.E, s.Gamma, s.Delta, s.Nu})
	for _, n := range []float64{40894464, 84934656, 154140672, 679477248} {
		for _, d := range []float64{10485760000, 20971520000, 52428800000, 104857600000} {
			for _, f := range []plan.Format{{0, 7, plan.ChannelBlock}, {4, 5, plan.ChannelBlock}, {6, 1, plan.ChannelBlock}, {1, 1, 32}, {1, 1, 512}} {
				l, err := s.Loss(n, d, f)
				require.NoError(t, err)
				require.Empty(t, l.Warnings, "in Table 3")
			}
		}
	}
	for _, n := range []float64{1233125376, 7083130880, 71236059136} {
		l, err := s.Loss(n, 20971520000, plan.Format{Exponent: 4, Mantissa: 3, Block: 64})
		require.NoError(t, err)
		require.Len(t, l.Warnings, 1, "checked, not fitted")
	}
}

// TestSunFixedCost is the experiment of Kumar et al., section 4.3.2, under this
// law, evaluated with other software: FP4 is best.
func TestSunFixedCost(t *testing.T) {
	plans, err := plan.Sun2025().Sweep(220e6*32, 26e9, 128, 8, 6, 5, 4)
	require.NoError(t, err)
	formats := []plan.Format{{Exponent: 4, Mantissa: 3, Block: 128}, {Exponent: 3, Mantissa: 2, Block: 128}, {Exponent: 2, Mantissa: 2, Block: 128}, {Exponent: 2, Mantissa: 1, Block: 128}}
	for i, want := range []float64{2.724, 2.690, 2.672, 2.659} {
		require.InDelta(t, want, plans[i].Loss.Total, 0.5e-3)
		require.Equal(t, formats[i], plans[i].Format)
		require.Equal(t, formats[i].Bits(), plans[i].Bits)
		require.InEpsilon(t, 220e6*32, plans[i].N*plans[i].Bits, 1e-15)
		require.Equal(t, 26e9, plans[i].D)
	}
}

func TestSunTerms(t *testing.T) {
	s := plan.Sun2025()
	for _, n := range geometric(41e6, 679e6, 4) {
		for _, d := range geometric(10e9, 100e9, 4) {
			for _, f := range []plan.Format{{4, 3, 128}, {5, 2, 32}, {2, 1, 512}, {0, 7, 64}, {6, 1, plan.ChannelBlock}, {3.5, 2.5, 100}} {
				e, err := s.Loss(n, d, f)
				require.NoError(t, err)
				require.InEpsilon(t, sunLoss(n, d, f.Exponent, f.Mantissa, f.Block), e.Total, 1e-12)
				require.InEpsilon(t, 69.2343*math.Pow(n, -0.2368), e.Capacity, 1e-12)
				require.InEpsilon(t, 68973.0621*math.Pow(d, -0.5162), e.Data, 1e-12)
				require.Equal(t, 1.9061, e.Irreducible)
				require.InEpsilon(t, sunPenalty(n, d, f.Exponent, f.Mantissa, f.Block), e.Precision, 1e-12)
				require.Zero(t, e.PostTraining)
				require.Empty(t, e.Warnings)
				// Equation 38.
				require.InEpsilon(t, e.Capacity+e.Precision, 69.2343*math.Pow(e.Effective, -0.2368), 1e-12)
			}
		}
	}
}

// TestSunConstants: the derived constants, from the penalty of one parameter and
// one token in the best layout, and the block size of a channel.
func TestSunConstants(t *testing.T) {
	s := plan.Sun2025()
	f, err := s.BestFormat(6, 2)
	require.NoError(t, err)
	e, err := s.Loss(1, 1, f)
	require.NoError(t, err)
	require.InDelta(t, 160.70, 1/(e.Precision*math.Pow(6, 3.1926+2.9543)), 0.005) // γ_ρ

	const d = 1e12
	best, err := s.OptimumAtD(1e24, d, 2)
	require.NoError(t, err)
	require.InDelta(t, 2.2433e-3, math.Pow(best.Bits, 3.1926+2.9543)/math.Pow(d, 0.5162), 0.5e-7) // γ_D

	require.InDelta(t, 13.1567, math.Log2(plan.ChannelBlock), 1e-12)
}

func TestSunMonotone(t *testing.T) {
	s := plan.Sun2025()
	penalty := func(n, d float64, f plan.Format) float64 {
		e, err := s.Loss(n, d, f)
		require.NoError(t, err)
		return e.Precision
	}
	f := plan.Format{Exponent: 4, Mantissa: 3, Block: 128}
	at := penalty(1e8, 2e10, f)
	require.Greater(t, penalty(1e8, 3e10, f), at, "more data")
	require.Less(t, penalty(2e8, 2e10, f), at, "more parameters")
	require.Less(t, penalty(1e8, 2e10, plan.Format{Exponent: 5, Mantissa: 3, Block: 128}), at)
	require.Less(t, penalty(1e8, 2e10, plan.Format{Exponent: 4, Mantissa: 4, Block: 128}), at)
	require.Greater(t, penalty(1e8, 2e10, plan.Format{Exponent: 4, Mantissa: 3, Block: 256}), at)
	require.Zero(t, penalty(1e8, 2e10, plan.Format{Exponent: 4, Mantissa: 3, Block: 1}))
}

// TestSunWholeLayout has the formats of Figure 5.
func TestSunWholeLayout(t *testing.T) {
	s := plan.Sun2025()
	for i, want := range [][2]float64{
		{0, 0}, {1, 0}, {1, 1}, {2, 1}, {2, 2}, {3, 2}, {3, 3}, {4, 3},
		{4, 4}, {5, 4}, {5, 5}, {6, 5}, {6, 6}, {7, 6}, {7, 7}, {8, 7},
	} {
		f, err := s.BestWholeFormat(i+1, 32)
		require.NoError(t, err)
		require.Equal(t, plan.Format{Exponent: want[0], Mantissa: want[1], Block: 32}, f)
		require.Equal(t, float64(i+1), f.Bits())
	}
	for _, bits := range []int{-1, 0, 65, math.MaxInt} {
		_, err := s.BestWholeFormat(bits, 32)
		require.ErrorContains(t, err, "must be from 1 to 64")
	}
}

func TestSunLayout(t *testing.T) {
	s := plan.Sun2025()
	for _, bits := range []float64{1.05, 2, 4, 6.5, 8, 16} {
		f, err := s.BestFormat(bits, 64)
		require.NoError(t, err)
		mantissa := minimum(func(m float64) float64 { return sunPenalty(1, 1, bits-1-m, m, 64) }, 0, bits-1)
		require.InDelta(t, mantissa, f.Mantissa, 1e-5)
		require.InDelta(t, bits, f.Bits(), 1e-12)
		require.Equal(t, 64., f.Block)
	}
	// 0.5·(δ+ν)/ν = 1.0403 bits have no mantissa left.
	_, err := s.BestFormat(1.04, 64)
	require.ErrorContains(t, err, "the number of bits is 1.04, must be at least 1.04")
	// At the least bits rounding must not leave less than none.
	for s.Nu = 0.1; s.Nu < 3; s.Nu += 0.1 {
		f, err := s.BestFormat((s.Delta+s.Nu)/(2*s.Nu), 64)
		require.NoError(t, err)
		require.InDelta(t, 0, f.Mantissa, 1e-14)
		_, err = s.Loss(1e8, 2e10, f)
		require.NoError(t, err)
	}
	for s.Delta = 0.1; s.Delta < 2.5; s.Delta += 0.1 {
		f, err := s.BestFormat((s.Delta+s.Nu)/(2*s.Delta), 64)
		require.NoError(t, err)
		require.InDelta(t, 0, f.Exponent, 1e-14)
		_, err = s.Loss(1e8, 2e10, f)
		require.NoError(t, err)
	}
}

// TestSunCriticalData has values of the paper (section 4.3) and their neighbours,
// for 1B parameters and blocks of 128.
func TestSunCriticalData(t *testing.T) {
	s := plan.Sun2025()
	for _, c := range []struct{ e, m, trillions, digit float64 }{
		{8, 7, 1730, 1}, {4, 3, 27.3, 0.1}, {5, 2, 19.4, 0.1}, {3, 2, 4.8, 0.1}, {2, 3, 4.44, 0.01}, {2, 1, 0.393, 0.001},
	} {
		best, err := s.CriticalData(1e9, plan.Format{Exponent: c.e, Mantissa: c.m, Block: 128})
		require.NoError(t, err)
		require.InDelta(t, c.trillions, best.D/1e12, c.digit/2*1.0001, "E%vM%v", c.e, c.m)
		logD := minimum(func(logD float64) float64 { return sunLoss(1e9, math.Exp(logD), c.e, c.m, 128) }, 20, 45)
		require.InEpsilon(t, math.Exp(logD), best.D, 1e-5)
		slope := (sunLoss(1e9, best.D*1.001, c.e, c.m, 128) - sunLoss(1e9, best.D/1.001, c.e, c.m, 128)) / (2 * math.Log(1.001))
		require.Less(t, math.Abs(slope), 1e-7)
		require.Equal(t, 1e9, best.N)
		require.Equal(t, c.e+c.m+1, best.Bits)
		require.InEpsilon(t, sunLoss(1e9, best.D, c.e, c.m, 128), best.Loss.Total, 1e-12)
		require.NotEmpty(t, best.Loss.Warnings, "beyond 100B tokens")
	}
}

func TestSunOptimumAtD(t *testing.T) {
	s := plan.Sun2025()
	for _, c := range []struct{ d, bits float64 }{{1e11, 4.27}, {1e12, 5.18}, {1e13, 6.28}, {1e14, 7.62}} {
		for _, cost := range []float64{1e22, 1e25} {
			best, err := s.OptimumAtD(cost, c.d, 128)
			require.NoError(t, err)
			require.InDelta(t, c.bits, best.Bits, 0.005)
			bits := minimum(func(p float64) float64 { return sunBest(cost*16/6/(c.d*p), c.d, p, 128) }, 1.1, 40)
			require.InDelta(t, bits, best.Bits, 1e-4)
			require.Equal(t, c.d, best.D)
			require.InEpsilon(t, cost, best.N*best.D*best.Bits*6/16, 1e-12)
			require.InEpsilon(t, sunBest(best.N, best.D, best.Bits, 128), best.Loss.Total, 1e-12)
		}
	}
}

func TestSunOptimum(t *testing.T) {
	s := plan.Sun2025()
	for _, c := range []struct{ cost, bits float64 }{{1e21, 4.19}, {1e23, 4.72}, {1e25, 5.31}, {1e27, 5.98}, {1e29, 6.73}, {1e31, 7.58}} {
		best, err := s.Optimum(c.cost, 128)
		require.NoError(t, err)
		require.InDelta(t, c.bits, best.Bits, 0.005)
		logD, bits := minimum2(func(logD, p float64) float64 {
			d := math.Exp(logD)
			return sunBest(c.cost*16/6/(d*p), d, p, 128)
		}, math.Log(1e9), math.Log(1e16), 2, 16)
		require.InDelta(t, bits, best.Bits, 1e-3)
		require.InEpsilon(t, math.Exp(logD), best.D, 1e-3)
		require.InEpsilon(t, c.cost, best.N*best.D*best.Bits*6/16, 1e-12)
		require.InDelta(t, best.Bits, best.Format.Bits(), 1e-12)
		require.Equal(t, 128., best.Format.Block)
	}
}

func TestSunOptimumAtN(t *testing.T) {
	s := plan.Sun2025()
	for _, n := range []float64{1e8, 7e9, 7e10} {
		last := 0.
		for _, cost := range geometric(1e20, 1e27, 5) {
			best, err := s.OptimumAtN(cost, n, 128)
			require.NoError(t, err)
			bits := minimum(func(p float64) float64 { return sunBest(n, cost*16/6/(n*p), p, 128) }, 1.1, 120)
			require.InDelta(t, bits, best.Bits, 1e-3)
			require.Equal(t, n, best.N)
			require.InEpsilon(t, cost, best.N*best.D*best.Bits*6/16, 1e-12)
			require.Greater(t, best.Bits, last)
			last = best.Bits
		}
	}
}

// TestSunOptimumAtFormat includes blocks of one element, which leave the optimum
// of Chinchilla.
func TestSunOptimumAtFormat(t *testing.T) {
	s := plan.Sun2025()
	for _, f := range []plan.Format{{4, 3, 128}, {2, 1, 32}, {8, 7, 128}, {4, 3, 1}} {
		for _, cost := range []float64{1e19, 1e22, 1e26} {
			best, err := s.OptimumAtFormat(cost, f)
			require.NoError(t, err)
			logN := minimum(func(logN float64) float64 {
				n := math.Exp(logN)
				return sunLoss(n, cost*16/6/(n*f.Bits()), f.Exponent, f.Mantissa, f.Block)
			}, math.Log(1e5), math.Log(1e16))
			require.InEpsilon(t, math.Exp(logN), best.N, 1e-5)
			require.InEpsilon(t, cost, best.N*best.D*f.Bits()*6/16, 1e-12)
			require.Equal(t, f, best.Format)
		}
	}
}
