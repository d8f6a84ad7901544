package plan_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/plan"
)

// kumarFraction is N_eff/N as the paper writes it, with the constants of its
// Table 2.
func kumarFraction(w, a, kv float64) float64 {
	return (1 - math.Exp(-w/2.6745+0.3037)) * (1 - math.Exp(-a/2.2102+1.4072)) * (1 - math.Exp(-kv/0.9578+2.4185))
}

func kumarLoss(n, d, p float64) float64 {
	return 4.299e3*math.Pow(n*kumarFraction(p, p, p), -0.4965) + 1.806e4*math.Pow(d, -0.4965) + 2.7648
}

func kumarPTQ(n, d, post float64) float64 {
	return 0.0598 * math.Pow(d, 0.5068) / math.Pow(n, 0.3439) * math.Exp(-post/0.5907)
}

// kumarLeast is where the activations have no effective parameters left.
const kumarLeast = 2.2102 * 1.4072

// TestKumarTable2 has the constants of Table 2 (Appendix K), and the data of section
// 2.3 and Appendix L.
func TestKumarTable2(t *testing.T) {
	k := plan.Kumar2024()
	require.Equal(t, plan.Kumar{
		Chinchilla: plan.Chinchilla{A: 4299, Alpha: 0.4965, B: 18060, Beta: 0.4965, E: 2.7648,
			FitN: plan.FitRange{Min: 30e6, Max: 1.7e9}, FitD: plan.FitRange{Min: 1.5e9, Max: 26e9}},
		Weights:      plan.Sensitivity{Gamma: 2.6745, Offset: 0.3037, Fit: plan.FitRange{Min: 3, Max: 16}},
		Activations:  plan.Sensitivity{Gamma: 2.2102, Offset: 1.4072, Fit: plan.FitRange{Min: 4, Max: 16}},
		KV:           plan.Sensitivity{Gamma: 0.9578, Offset: 2.4185, Fit: plan.FitRange{Min: 4, Max: 16}},
		PostTraining: plan.Degradation{C: 0.0598, GammaD: 0.5068, GammaN: 0.3439, Gamma: 0.5907},
	}, k)
}

// TestKumarNothingLeftToQuantize: section 5 defines the degradation as 0 where weights
// keep the bits that they were trained in.
func TestKumarNothingLeftToQuantize(t *testing.T) {
	bits := plan.UniformBits(16)
	bits.Post = 16
	l, err := plan.Kumar2024().Loss(3e7, 2.6e10, bits)
	require.NoError(t, err)
	require.Zero(t, l.PostTraining)
}

// TestKumarFixedCost is a sweep like that of section 4.3.2, at N·P = 220M·32 bits,
// evaluated with other software. The section does not say on how many tokens its models
// were trained; 26B are the most in the paper.
func TestKumarFixedCost(t *testing.T) {
	want := []struct {
		bits, millions float64
		loss           float64
	}{
		{32, 220, 3.1966}, {16, 440, 3.1070}, {12, 587, 3.0803}, {10, 704, 3.0675}, {8, 880, 3.0577},
		{7, 1006, 3.0558}, {6, 1173, 3.0590}, {5, 1408, 3.0748}, {4, 1760, 3.1378},
	}
	var bits []float64
	for _, w := range want {
		bits = append(bits, w.bits)
	}
	got, err := plan.Kumar2024().Sweep(220e6*32, 26e9, bits...)
	require.NoError(t, err)
	require.Len(t, got, len(want))
	for i, w := range want {
		require.Equal(t, w.bits, got[i].Bits)
		require.InDelta(t, w.millions, got[i].N/1e6, 0.5)
		require.Equal(t, 26e9, got[i].D)
		require.InDelta(t, w.loss, got[i].Loss.Total, 0.5e-4, "%v bits", w.bits)
	}
}

func TestKumarTerms(t *testing.T) {
	k := plan.Kumar2024()
	for _, n := range geometric(3e7, 1.7e9, 5) {
		for _, d := range geometric(1.5e9, 2.6e10, 4) {
			for _, b := range []plan.Bits{{Weights: 3, Activations: 4, KV: 5}, {Weights: 12, Activations: 8, KV: 6}, plan.UniformBits(16), {Weights: 4.5, Activations: 16, KV: 16}} {
				e, err := k.Loss(n, d, b)
				require.NoError(t, err)
				effective := n * kumarFraction(b.Weights, b.Activations, b.KV)
				require.InEpsilon(t, effective, e.Effective, 1e-12)
				require.InEpsilon(t, 4.299e3*math.Pow(n, -0.4965), e.Capacity, 1e-12)
				require.InEpsilon(t, 1.806e4*math.Pow(d, -0.4965), e.Data, 1e-12)
				require.Equal(t, 2.7648, e.Irreducible)
				require.InEpsilon(t, 4.299e3*(math.Pow(effective, -0.4965)-math.Pow(n, -0.4965)), e.Precision, 1e-9)
				require.Zero(t, e.PostTraining)
				require.InEpsilon(t, e.Capacity+e.Data+e.Irreducible+e.Precision, e.Total, 1e-15)
				require.Empty(t, e.Warnings)
			}
		}
	}
}

// TestKumarPostTraining: δ is for models trained in 16 bits or more, and is the
// only term that changes.
func TestKumarPostTraining(t *testing.T) {
	k := plan.Kumar2024()
	for _, post := range []float64{3, 4, 5.5, 8, 15.9} {
		for _, n := range geometric(3e7, 1e9, 4) {
			before, err := k.Loss(n, 2e10, plan.UniformBits(16))
			require.NoError(t, err)
			bits := plan.UniformBits(16)
			bits.Post = post
			after, err := k.Loss(n, 2e10, bits)
			require.NoError(t, err)
			require.InEpsilon(t, kumarPTQ(n, 2e10, post), after.PostTraining, 1e-12)
			require.InEpsilon(t, before.Total+after.PostTraining, after.Total, 1e-15)
			after.PostTraining, after.Total = 0, before.Total
			require.Equal(t, before, after)
		}
	}

	// The constant b as the offset of the exponent.
	bits := plan.Bits{Weights: 16, Activations: 16, KV: 32, Post: 4}
	plain, err := k.Loss(1e8, 1e10, bits)
	require.NoError(t, err)
	k.PostTraining.Offset = 1.1277
	shifted, err := k.Loss(1e8, 1e10, bits)
	require.NoError(t, err)
	require.InEpsilon(t, math.Exp(1.1277), shifted.PostTraining/plain.PostTraining, 1e-12)
}

// TestKumarMonotone: more of anything is better, except that more data is worse
// for quantization after training.
func TestKumarMonotone(t *testing.T) {
	k := plan.Kumar2024()
	loss := func(n, d float64, b plan.Bits) plan.Loss {
		e, err := k.Loss(n, d, b)
		require.NoError(t, err)
		return e
	}
	base := plan.Bits{Weights: 5, Activations: 5, KV: 5}
	at := loss(1e8, 1e10, base)
	require.Less(t, loss(1.1e8, 1e10, base).Total, at.Total)
	require.Less(t, loss(1e8, 1.1e10, base).Total, at.Total)
	for _, more := range []plan.Bits{{Weights: 5.1, Activations: 5, KV: 5}, {Weights: 5, Activations: 5.1, KV: 5}, {Weights: 5, Activations: 5, KV: 5.1}} {
		e := loss(1e8, 1e10, more)
		require.Less(t, e.Total, at.Total)
		require.Less(t, e.Precision, at.Precision)
		require.Greater(t, e.Effective, at.Effective)
	}
	post := plan.Bits{Weights: 16, Activations: 16, KV: 16, Post: 4}
	require.Greater(t, loss(1e8, 2e10, post).PostTraining, loss(1e8, 1e10, post).PostTraining)
	require.Less(t, loss(2e8, 1e10, post).PostTraining, loss(1e8, 1e10, post).PostTraining)
	// In very many bits nothing is left of the penalty, and nothing negative.
	require.Zero(t, loss(1e8, 1e10, plan.UniformBits(1e4)).Precision)
	require.Equal(t, 1e8, loss(1e8, 1e10, plan.UniformBits(1e4)).Effective)
}

// TestKumarOptimum compares with a search over N and P and D = C/(6/16·N·P).
func TestKumarOptimum(t *testing.T) {
	k := plan.Kumar2024()
	for _, cost := range []float64{1e19, 1e21, 1e24} {
		best, err := k.Optimum(cost)
		require.NoError(t, err)
		logN, bits := minimum2(func(logN, p float64) float64 {
			n := math.Exp(logN)
			return kumarLoss(n, cost*16/6/(n*p), p)
		}, math.Log(1e6), math.Log(1e13), 3.2, 30)
		require.InDelta(t, 7.0, best.Bits, 0.05)
		require.InDelta(t, bits, best.Bits, 1e-3)
		require.InEpsilon(t, math.Exp(logN), best.N, 1e-3)
		require.InEpsilon(t, cost, best.N*best.D*best.Bits*6/16, 1e-12)
		require.InEpsilon(t, kumarLoss(best.N, best.D, best.Bits), best.Loss.Total, 1e-12)
	}

	// Independent of the cost, to the bit.
	a, err := k.Optimum(1e19)
	require.NoError(t, err)
	b, err := k.Optimum(1e25)
	require.NoError(t, err)
	require.Equal(t, a.Bits, b.Bits)
}

// TestKumarOffsets: without offsets the optimum is somewhere else.
func TestKumarOffsets(t *testing.T) {
	k := plan.Kumar2024()
	k.Weights.Offset, k.Activations.Offset, k.KV.Offset = 0, 0, 0
	best, err := k.Optimum(1e21)
	require.NoError(t, err)
	require.InDelta(t, 3.47, best.Bits, 0.005)

	k.Activations, k.KV = k.Weights, k.Weights
	best, err = k.Optimum(1e21)
	require.NoError(t, err)
	require.InDelta(t, 5.09, best.Bits, 0.005)
}

func TestKumarOptimumAtD(t *testing.T) {
	k := plan.Kumar2024()
	for _, d := range []float64{2e9, 26e9, 1e13} {
		const cost = 1e21
		best, err := k.OptimumAtD(cost, d)
		require.NoError(t, err)
		bits := minimum(func(p float64) float64 { return kumarLoss(cost*16/6/(d*p), d, p) }, kumarLeast+0.01, 40)
		require.InDelta(t, bits, best.Bits, 1e-5)
		require.Equal(t, d, best.D)
		require.InEpsilon(t, cost, best.N*best.D*best.Bits*6/16, 1e-12)
	}
}

// TestKumarOptimumAtN: the best precision grows with the cost, like log C once
// there is much data: by β·γ for each factor of e, γ being that of the weights,
// whose factor is the last to saturate.
func TestKumarOptimumAtN(t *testing.T) {
	k := plan.Kumar2024()
	for _, n := range []float64{1e8, 1e9, 7e10} {
		last := 0.
		for _, cost := range geometric(1e17, 1e26, 10) {
			best, err := k.OptimumAtN(cost, n)
			require.NoError(t, err)
			bits := minimum(func(p float64) float64 { return kumarLoss(n, cost*16/6/(n*p), p) }, kumarLeast+1e-3, 60)
			require.InDelta(t, bits, best.Bits, 1e-3, "N %v cost %v", n, cost)
			require.Equal(t, n, best.N)
			require.InEpsilon(t, cost, best.N*best.D*best.Bits*6/16, 1e-12)
			require.Greater(t, best.Bits, last)
			last = best.Bits
		}
	}
	low, err := k.OptimumAtN(1e60, 1e8)
	require.NoError(t, err)
	high, err := k.OptimumAtN(1e80, 1e8)
	require.NoError(t, err)
	require.InEpsilon(t, 0.4965*2.6745*math.Log(1e20), high.Bits-low.Bits, 0.05)
}

func TestKumarOptimumAtBits(t *testing.T) {
	k := plan.Kumar2024()
	const cost = 1e21
	lastN, lastD := math.Inf(1), 0.
	for _, p := range []float64{4, 5, 6, 8, 12, 16, 32} {
		best, err := k.OptimumAtBits(cost, p)
		require.NoError(t, err)
		logN := minimum(func(logN float64) float64 {
			n := math.Exp(logN)
			return kumarLoss(n, cost*16/6/(n*p), p)
		}, math.Log(1e6), math.Log(1e13))
		require.InEpsilon(t, math.Exp(logN), best.N, 1e-5)
		require.Equal(t, p, best.Bits)
		require.InEpsilon(t, cost, best.N*best.D*best.Bits*6/16, 1e-12)
		require.Less(t, best.N, lastN, "fewer bits, more parameters")
		if p <= 6 {
			require.Greater(t, best.D, lastD, "few bits, less data")
		}
		lastN, lastD = best.N, best.D
	}
}

// TestKumarCriticalData: the loss after quantization is least there, and its
// derivative by D zero.
func TestKumarCriticalData(t *testing.T) {
	k := plan.Kumar2024()
	after := func(n, d, post float64) float64 { return 1.806e4*math.Pow(d, -0.4965) + kumarPTQ(n, d, post) }
	for _, n := range []float64{3e7, 1e9} {
		last := 0.
		for _, post := range []float64{3, 4, 5, 8} {
			best, err := k.CriticalData(n, post)
			require.NoError(t, err)
			logD := minimum(func(logD float64) float64 { return after(n, math.Exp(logD), post) }, 15, 50)
			require.InEpsilon(t, math.Exp(logD), best.D, 1e-5)
			slope := (after(n, best.D*1.001, post) - after(n, best.D/1.001, post)) / (2 * math.Log(1.001))
			require.Less(t, math.Abs(slope), 1e-6*after(n, best.D, post))
			require.InEpsilon(t, kumarPTQ(n, best.D, post), best.Loss.PostTraining, 1e-9)
			require.Equal(t, n, best.N)
			require.Equal(t, 16., best.Bits)
			require.Greater(t, best.D, last)
			last = best.D
		}
	}
	// The offset of δ moves it the same way for all: by e^(-1.1277/(γ_D+β)).
	plain, err := k.CriticalData(3e7, 4)
	require.NoError(t, err)
	k.PostTraining.Offset = 1.1277
	shifted, err := k.CriticalData(3e7, 4)
	require.NoError(t, err)
	require.InEpsilon(t, math.Exp(-1.1277/(0.5068+0.4965)), shifted.D/plain.D, 1e-9)
}
