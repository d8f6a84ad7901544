package plan_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/plan"
)

// TestKumarNoEffectiveParameters: below some bits a factor of N_eff is 0 or
// negative. Two negative ones must not pass for a positive product.
func TestKumarNoEffectiveParameters(t *testing.T) {
	k := plan.Kumar2024()
	for _, c := range []struct {
		bits plan.Bits
		want string
	}{
		{plan.UniformBits(3), "3 bits for activations leave no effective parameters: N_eff reaches 0 at 3.11 bits"},
		{plan.UniformBits(2), "2 bits for activations"},
		{plan.UniformBits(0.5), "0.5 bits for weights leave no effective parameters: N_eff reaches 0 at 0.8122 bits"},
		{plan.Bits{Weights: 8, Activations: 8, KV: 2}, "2 bits for the KV cache leave no effective parameters: N_eff reaches 0 at 2.316 bits"},
		{plan.UniformBits(kumarLeast - 1e-6), "for activations leave"},
	} {
		_, err := k.Loss(1e8, 1e10, c.bits)
		require.ErrorContains(t, err, c.want)
	}
	require.Positive(t, kumarFraction(2, 2, 2), "two negative factors")
	_, err := k.Sweep(7e9, 26e9, 8, 4, 3)
	require.ErrorContains(t, err, "3 bits for activations")
	_, err = k.OptimumAtBits(1e21, 3)
	require.ErrorContains(t, err, "3 bits for activations")

	_, err = k.Loss(1e8, 1e10, plan.UniformBits(kumarLeast+1e-6))
	require.NoError(t, err)
	e, err := k.Loss(1e8, 1e10, plan.UniformBits(3.2))
	require.NoError(t, err)
	require.Greater(t, e.Total, 4.)
	require.Len(t, e.Warnings, 2, "activations and KV cache are known from 4 bits")
}

func TestKumarPostTrainingErrors(t *testing.T) {
	k := plan.Kumar2024()
	for _, c := range []struct {
		bits plan.Bits
		want string
	}{
		{plan.Bits{Weights: 8, Activations: 16, KV: 16, Post: 4}, "weights trained in 8 bits and weights quantized afterwards"},
		{plan.Bits{Weights: 16, Activations: 8, KV: 16, Post: 4}, "activations trained in 8 bits"},
		{plan.Bits{Weights: 16, Activations: 16, KV: 15.9, Post: 4}, "the KV cache trained in 15.9 bits"},
		{plan.Bits{Weights: 16, Activations: 16, KV: 16, Post: 17}, "quantized to 17 afterwards"},
		{plan.Bits{Weights: 16, Activations: 32, KV: 32, Post: 17}, "weights trained in 16 bits and quantized to 17 afterwards"},
		{plan.Bits{Weights: 16, Activations: 16, KV: 16, Post: -1}, "the precision after training is -1"},
		{plan.Bits{Weights: 16, Activations: 16, KV: 16, Post: math.NaN()}, "the precision after training is NaN"},
	} {
		_, err := k.Loss(1e8, 1e10, c.bits)
		require.ErrorContains(t, err, c.want)
	}
	_, err := k.CriticalData(1e8, 0)
	require.ErrorContains(t, err, "the precision after training is 0")
	_, err = k.CriticalData(1e8, 17)
	require.ErrorContains(t, err, "quantized to 17")
	k.PostTraining = plan.Degradation{}
	_, err = k.CriticalData(1e8, 4)
	require.ErrorContains(t, err, "constant C of PostTraining is 0")
	_, err = k.Loss(1e8, 1e10, plan.Bits{Weights: 16, Activations: 16, KV: 16, Post: 4})
	require.ErrorContains(t, err, "constant C of PostTraining is 0")
	_, err = k.Loss(1e8, 1e10, plan.UniformBits(16))
	require.NoError(t, err, "needed by nobody else")
}

// TestWarnings: outside the data of a fit there is an answer and a warning that
// names what, where and the range.
func TestWarnings(t *testing.T) {
	k, s := plan.Kumar2024(), plan.Sun2025()
	kumar := func(n, d float64, b plan.Bits) []string {
		e, err := k.Loss(n, d, b)
		require.NoError(t, err)
		return e.Warnings
	}
	sun := func(n, d float64, f plan.Format) []string {
		e, err := s.Loss(n, d, f)
		require.NoError(t, err)
		return e.Warnings
	}
	e4m3 := plan.Format{Exponent: 4, Mantissa: 3, Block: 128}
	for _, c := range []struct {
		got  []string
		want string // a part of each warning, in order, by |
	}{
		{kumar(1.7e9, 26e9, plan.UniformBits(16)), ""},
		{kumar(30e6, 1.5e9, plan.Bits{Weights: 3, Activations: 4, KV: 4}), ""},
		{kumar(1.71e9, 26e9, plan.UniformBits(8)), "N is 1.71e+09, and the law is known from 3e+07 to 1.7e+09"},
		{kumar(29e6, 26e9, plan.UniformBits(8)), "N is 2.9e+07"},
		{kumar(1e9, 27e9, plan.UniformBits(8)), "D is 2.7e+10, and the law is known from 1.5e+09 to 2.6e+10"},
		{kumar(1e9, 1e9, plan.UniformBits(8)), "D is 1e+09"},
		{kumar(1e9, 2e9, plan.Bits{Weights: 2.9, Activations: 3.9, KV: 3.9}), "of weights is 2.9|of activations is 3.9|of the KV cache is 3.9"},
		{kumar(1e10, 1e12, plan.UniformBits(32)), "N is|D is|of weights is 32|of activations is 32|of the KV cache is 32"},
		{sun(40894464, 10485760000, e4m3), ""},
		{sun(679477248, 104857600000, plan.Format{Exponent: 6, Mantissa: 1, Block: plan.ChannelBlock}), ""},
		{sun(1.2e9, 2e10, e4m3), "N is 1.2e+09, and the law is known from 4e+07 to 6.8e+08"},
		{sun(3e7, 2e10, e4m3), "N is 3e+07"},
		{sun(1e8, 2e11, e4m3), "D is 2e+11"},
		{sun(1e8, 9e9, e4m3), "D is 9e+09"},
		{sun(1e8, 2e10, plan.Format{Exponent: 8, Mantissa: 0, Block: 16}), "exponent bits is 8|mantissa bits is 0|block size is 16"},
		{sun(1e8, 2e10, plan.Format{Exponent: 4, Mantissa: 8, Block: 1e5}), "mantissa bits is 8|block size is 1e+05"},
	} {
		var want []string
		if c.want != "" {
			want = strings.Split(c.want, "|")
		}
		require.Len(t, c.got, len(want), "%q", c.got)
		for i := range want {
			require.Contains(t, c.got[i], want[i])
		}
	}

	// A law of somebody else, whose data are not known, warns of nothing.
	k.FitN, k.FitD = plan.FitRange{}, plan.FitRange{}
	require.Empty(t, kumar(1e15, 1e15, plan.UniformBits(8)))
}

// TestBadInput: each argument of each function, one at a time, is one of the
// numbers that mean nothing.
func TestBadInput(t *testing.T) {
	k, s := plan.Kumar2024(), plan.Sun2025()
	type call struct {
		name string
		args []float64 // valid ones
		zero string    // arguments that may be 0, by their index
		run  func(a []float64) error
	}
	only := func(_ plan.Training, err error) error { return err }
	calls := []call{
		{"Cost", []float64{1e9, 1e10, 8}, "", func(a []float64) error { _, err := plan.FLOPs(a[0], a[1], a[2]); return err }},
		{"Kumar.Loss", []float64{1e9, 1e10, 8, 8, 8}, "", func(a []float64) error {
			_, err := k.Loss(a[0], a[1], plan.Bits{Weights: a[2], Activations: a[3], KV: a[4]})
			return err
		}},
		{"Kumar.Optimum", []float64{1e21}, "", func(a []float64) error { return only(k.Optimum(a[0])) }},
		{"Kumar.OptimumAtD", []float64{1e21, 1e10}, "", func(a []float64) error { return only(k.OptimumAtD(a[0], a[1])) }},
		{"Kumar.OptimumAtN", []float64{1e21, 1e9}, "", func(a []float64) error { return only(k.OptimumAtN(a[0], a[1])) }},
		{"Kumar.OptimumAtBits", []float64{1e21, 8}, "", func(a []float64) error { return only(k.OptimumAtBits(a[0], a[1])) }},
		{"Kumar.CriticalData", []float64{1e9, 4}, "", func(a []float64) error { return only(k.CriticalData(a[0], a[1])) }},
		{"Kumar.Sweep", []float64{7e9, 26e9, 8}, "", func(a []float64) error { _, err := k.Sweep(a[0], a[1], a[2]); return err }},
		{"Sun.Loss", []float64{1e9, 1e10, 4, 3, 128}, "23", func(a []float64) error {
			_, err := s.Loss(a[0], a[1], plan.Format{Exponent: a[2], Mantissa: a[3], Block: a[4]})
			return err
		}},
		{"Sun.Layout", []float64{8, 128}, "", func(a []float64) error { _, err := s.BestFormat(a[0], a[1]); return err }},
		{"Sun.WholeLayout", []float64{128}, "", func(a []float64) error { _, err := s.BestWholeFormat(8, a[0]); return err }},
		{"Sun.Optimum", []float64{1e21, 128}, "", func(a []float64) error { return only(s.Optimum(a[0], a[1])) }},
		{"Sun.OptimumAtD", []float64{1e21, 1e10, 128}, "", func(a []float64) error { return only(s.OptimumAtD(a[0], a[1], a[2])) }},
		{"Sun.OptimumAtN", []float64{1e21, 1e9, 128}, "", func(a []float64) error { return only(s.OptimumAtN(a[0], a[1], a[2])) }},
		{"Sun.OptimumAtFormat", []float64{1e21, 4, 3, 128}, "12", func(a []float64) error {
			return only(s.OptimumAtFormat(a[0], plan.Format{Exponent: a[1], Mantissa: a[2], Block: a[3]}))
		}},
		{"Sun.CriticalData", []float64{1e9, 4, 3, 128}, "12", func(a []float64) error {
			return only(s.CriticalData(a[0], plan.Format{Exponent: a[1], Mantissa: a[2], Block: a[3]}))
		}},
		{"Sun.Sweep", []float64{7e9, 26e9, 128}, "", func(a []float64) error { _, err := s.Sweep(a[0], a[1], a[2], 8); return err }},
	}
	for _, c := range calls {
		require.NoError(t, c.run(c.args), c.name)
		for i := range c.args {
			for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
				args := append([]float64(nil), c.args...)
				args[i] = bad
				err := c.run(args)
				if bad == 0 && strings.Contains(c.zero, string(rune('0'+i))) {
					require.NoError(t, err, "%s argument %d", c.name, i)
					continue
				}
				require.ErrorContains(t, err, "must be ", "%s argument %d is %v", c.name, i, bad)
				require.ErrorContains(t, err, "plan: ", c.name)
			}
		}
	}
}

// TestBadConstants: a law with any constant left out is no law.
func TestBadConstants(t *testing.T) {
	for name, change := range map[string]func(k *plan.Kumar, v float64){
		"A":                     func(k *plan.Kumar, v float64) { k.A = v },
		"Alpha":                 func(k *plan.Kumar, v float64) { k.Alpha = v },
		"B":                     func(k *plan.Kumar, v float64) { k.B = v },
		"Beta":                  func(k *plan.Kumar, v float64) { k.Beta = v },
		"E":                     func(k *plan.Kumar, v float64) { k.E = v },
		"Gamma of weights":      func(k *plan.Kumar, v float64) { k.Weights.Gamma = v },
		"Gamma of activations":  func(k *plan.Kumar, v float64) { k.Activations.Gamma = v },
		"Offset of the KV":      func(k *plan.Kumar, v float64) { k.KV.Offset = v },
		"C of PostTraining":     func(k *plan.Kumar, v float64) { k.PostTraining.C = v },
		"GammaD of PostTrain":   func(k *plan.Kumar, v float64) { k.PostTraining.GammaD = v },
		"GammaN of PostTrain":   func(k *plan.Kumar, v float64) { k.PostTraining.GammaN = v },
		"Gamma of PostTraining": func(k *plan.Kumar, v float64) { k.PostTraining.Gamma = v },
	} {
		for _, v := range []float64{-1, math.NaN(), math.Inf(1)} {
			k := plan.Kumar2024()
			change(&k, v)
			_, err := k.CriticalData(1e8, 4)
			require.ErrorContains(t, err, "constant "+name)
			if strings.Contains(name, "PostTrain") {
				continue
			}
			_, err = k.Optimum(1e21)
			require.ErrorContains(t, err, "constant "+name)
			_, err = k.OptimumAtN(1e21, 1e9)
			require.ErrorContains(t, err, "constant "+name)
		}
	}
	k := plan.Kumar2024()
	k.PostTraining.Offset = math.Inf(-1)
	_, err := k.CriticalData(1e8, 4)
	require.ErrorContains(t, err, "constant Offset of PostTraining is -Inf, must be finite")
	_, err = plan.Kumar{}.Loss(1e8, 1e10, plan.UniformBits(8))
	require.ErrorContains(t, err, "constant A is 0")

	for name, change := range map[string]func(s *plan.Sun, v float64){
		"A":     func(s *plan.Sun, v float64) { s.A = v },
		"Gamma": func(s *plan.Sun, v float64) { s.Gamma = v },
		"Delta": func(s *plan.Sun, v float64) { s.Delta = v },
		"Nu":    func(s *plan.Sun, v float64) { s.Nu = v },
	} {
		for _, v := range []float64{0, -1, math.NaN(), math.Inf(1)} {
			s := plan.Sun2025()
			change(&s, v)
			_, err := s.Optimum(1e21, 128)
			require.ErrorContains(t, err, "constant "+name+" is")
			_, err = s.BestWholeFormat(8, 128)
			require.ErrorContains(t, err, "constant "+name+" is")
			_, err = s.BestFormat(8, 128)
			require.ErrorContains(t, err, "constant "+name+" is")
			_, err = s.OptimumAtFormat(1e21, plan.Format{Exponent: 4, Mantissa: 3, Block: 128})
			require.ErrorContains(t, err, "constant "+name+" is")
		}
	}
}

// TestSweepErrors name what was passed, not the N it makes.
func TestSweepErrors(t *testing.T) {
	k, s := plan.Kumar2024(), plan.Sun2025()
	_, err := k.Sweep(0, 26e9, 8)
	require.ErrorContains(t, err, "the size is 0")
	_, err = k.Sweep(7e9, 26e9, 8, 0)
	require.ErrorContains(t, err, "the precision is 0")
	_, err = s.Sweep(-1, 26e9, 128, 8)
	require.ErrorContains(t, err, "the size is -1")
	_, err = s.Sweep(7e9, 26e9, 128, 8, 0)
	require.ErrorContains(t, err, "the number of bits is 0")
}

// TestSmallBlock: below one element the penalty would be negative.
func TestSmallBlock(t *testing.T) {
	_, err := plan.Sun2025().Loss(1e8, 2e10, plan.Format{Exponent: 4, Mantissa: 3, Block: 0.9})
	require.ErrorContains(t, err, "the block size is 0.9, must be at least 1")
}

// TestSunNoOptimum: where the law wants fewer bits than a format has, or bits do
// not pay, there is no plan.
func TestSunNoOptimum(t *testing.T) {
	s := plan.Sun2025()
	e4m3 := plan.Format{Exponent: 4, Mantissa: 3, Block: 1}
	for _, run := range []func() (plan.Training, error){
		func() (plan.Training, error) { return s.Optimum(1e21, 1) },
		func() (plan.Training, error) { return s.OptimumAtD(1e21, 1e11, 1) },
		func() (plan.Training, error) { return s.OptimumAtN(1e21, 1e9, 1) },
		func() (plan.Training, error) { return s.CriticalData(1e9, e4m3) },
	} {
		_, err := run()
		require.ErrorContains(t, err, "the block size is 1")
	}
	_, err := s.OptimumAtD(1e21, 1, 128)
	require.ErrorContains(t, err, "no format is best: the law wants 0.5088 bits here and has none of less than 1.04")
	_, err = s.OptimumAtN(1e15, 1e12, 128)
	require.ErrorContains(t, err, "no format is best: the law wants")
	_, err = s.Optimum(1e-10, 128)
	require.ErrorContains(t, err, "no format is best: the law wants")

	s.Delta, s.Nu = 0.1, 0.1
	_, err = s.Optimum(1e21, 128)
	require.ErrorContains(t, err, "must be more than Alpha")
}

// TestOverflow: valid inputs whose results float64 does not hold.
func TestOverflow(t *testing.T) {
	k, s := plan.Kumar2024(), plan.Sun2025()
	_, err := plan.FLOPs(1e200, 1e200, 8)
	require.ErrorContains(t, err, "the cost is +Inf")
	_, err = plan.FLOPs(1e-200, 1e-200, 8)
	require.ErrorContains(t, err, "the cost is 0")
	_, err = s.Loss(1e9, 1e308, plan.Format{Exponent: 0, Mantissa: 0, Block: 128})
	require.ErrorContains(t, err, "the number of effective parameters is 0")
	_, err = k.OptimumAtD(1e300, 1e-300)
	require.ErrorContains(t, err, "N is +Inf")
	_, err = k.Loss(5e-324, 1e10, plan.UniformBits(4))
	require.ErrorContains(t, err, "too small for float64")
	k.PostTraining.Offset = 1000
	_, err = k.Loss(1e8, 1e10, plan.Bits{Weights: 16, Activations: 16, KV: 16, Post: 4})
	require.ErrorContains(t, err, "the loss is +Inf")
}

func TestCost(t *testing.T) {
	c, err := plan.FLOPs(1e9, 2e10, 16)
	require.NoError(t, err)
	require.Equal(t, 6*1e9*2e10, c)
	c, err = plan.FLOPs(1e9, 2e10, 8)
	require.NoError(t, err)
	require.Equal(t, 3*1e9*2e10, c)
}
