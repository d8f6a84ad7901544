package plan_test

import (
	"math"
	"testing"

	"github.com/octavo-fp8/octavo/plan"
)

// sound fails for a result that is not an answer: with an error everything is
// zero, without one every number is finite and in its range.
func sound(t *testing.T, e plan.Loss, err error) {
	t.Helper()
	all := []float64{e.Total, e.Capacity, e.Data, e.Irreducible, e.Precision, e.PostTraining, e.Effective}
	for _, v := range all {
		if err != nil && v != 0 {
			t.Fatalf("%+v with %v", e, err)
		}
		if !(v >= 0) || math.IsInf(v, 0) {
			t.Fatalf("%+v", e)
		}
	}
	if err == nil && (e.Total <= 0 || e.Effective <= 0 || e.Total < max(e.Capacity, e.Data, e.Precision)) {
		t.Fatalf("%+v", e)
	}
}

func soundTraining(t *testing.T, p plan.Training, err error) {
	t.Helper()
	sound(t, p.Loss, err)
	for _, v := range []float64{p.N, p.D, p.Bits} {
		if (err == nil) != (v > 0) || math.IsInf(v, 0) {
			t.Fatalf("%+v with %v", p, err)
		}
	}
}

// seeds reach every branch: ordinary numbers, none, and the ends of float64.
func seeds(f *testing.F) {
	for _, v := range [][6]float64{
		{1e9, 1e10, 8, 8, 8, 0}, {1e9, 1e10, 4, 3, 128, 4}, {1e8, 2e10, 16, 16, 16, 4}, {1e21, 1e9, 3, 3, 1, 3},
		{5e-324, 1.7e308, 1e-3, 1e300, 2, 1}, {1.7e308, 5e-324, 3.111, 0, 1e308, 16}, {1, 1, 1, 1, 1, 1}, {0, -1, 0, -0.5, 0.5, -1},
		{math.NaN(), 1, math.Inf(1), 3, math.Inf(-1), 1}, {1e-300, 1e300, 700, 1e5, 1.0000000000000002, 1e-320},
	} {
		f.Add(v[0], v[1], v[2], v[3], v[4], v[5])
	}
}

func FuzzKumar(f *testing.F) {
	seeds(f)
	k := plan.Kumar2024()
	f.Fuzz(func(t *testing.T, a, b, c, d, e, post float64) {
		got, err := k.Loss(a, b, plan.Bits{Weights: c, Activations: d, KV: e, Post: post})
		sound(t, got, err)
		if err == nil && got.Effective > a {
			t.Fatalf("N %v has N_eff %v", a, got.Effective)
		}
		for _, run := range []func() (plan.Training, error){
			func() (plan.Training, error) { return k.Optimum(a) },
			func() (plan.Training, error) { return k.OptimumAtD(a, b) },
			func() (plan.Training, error) { return k.OptimumAtN(a, b) },
			func() (plan.Training, error) { return k.OptimumAtBits(a, c) },
			func() (plan.Training, error) { return k.CriticalData(a, post) },
		} {
			best, err := run()
			soundTraining(t, best, err)
		}
		if plans, err := k.Sweep(a, b, c, d); err == nil {
			soundTraining(t, plans[0], nil)
			soundTraining(t, plans[1], nil)
		}
		cost, err := plan.FLOPs(a, b, c)
		if (err == nil) != (cost > 0 && !math.IsInf(cost, 0) && a > 0 && b > 0 && c > 0) {
			t.Fatalf("cost %v with %v", cost, err)
		}
	})
}

func FuzzSun(f *testing.F) {
	seeds(f)
	s := plan.Sun2025()
	f.Fuzz(func(t *testing.T, a, b, c, d, e, bits float64) {
		format := plan.Format{Exponent: c, Mantissa: d, Block: e}
		got, err := s.Loss(a, b, format)
		sound(t, got, err)
		if err == nil && got.Effective > a {
			t.Fatalf("N %v has N_eff %v", a, got.Effective)
		}
		for _, run := range []func() (plan.Training, error){
			func() (plan.Training, error) { return s.Optimum(a, e) },
			func() (plan.Training, error) { return s.OptimumAtD(a, b, e) },
			func() (plan.Training, error) { return s.OptimumAtN(a, b, e) },
			func() (plan.Training, error) { return s.OptimumAtFormat(a, format) },
			func() (plan.Training, error) { return s.CriticalData(a, format) },
		} {
			best, err := run()
			soundTraining(t, best, err)
		}
		if layout, err := s.BestFormat(bits, e); err == nil {
			if math.Abs(layout.Bits()-bits) > 1e-12*bits || layout.Exponent < 0 || layout.Mantissa < 0 || layout.Block != e {
				t.Fatalf("%v bits: %+v", bits, layout)
			}
		} else if layout != (plan.Format{}) {
			t.Fatalf("%+v with %v", layout, err)
		}
		if plans, err := s.Sweep(a, b, e, 4, int(bits)); err == nil {
			soundTraining(t, plans[0], nil)
			soundTraining(t, plans[1], nil)
		}
	})
}
