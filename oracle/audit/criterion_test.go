package audit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/oracle/fault"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

// TestMeasures compares every measure with its value by hand, of got (3, -4) and want
// (1, -2), and of others.
func TestMeasures(t *testing.T) {
	got, want := []float64{3, -4}, []float64{1, -2}
	for m, by := range map[Measure]float64{
		MeanError:      2,                  // (2+2)/2
		RelativeMean:   4.0 / 3,            // (2+2)/(1+2)
		RelativeL2:     math.Sqrt(8.0 / 5), // sqrt((4+4)/(1+4))
		RelativeMax:    1,                  // 2/2
		CosineDistance: 1 - 11/(5*math.Sqrt(5)),
		CalcDiff:       1 - 2*11.0/(25+5),
	} {
		values, pass := apply([]Criterion{{Measure: m, Limit: by * 1.000001}}, got, want)
		require.InDelta(t, by, float64(values[0].Value), 1e-12, "%v", m)
		require.True(t, pass, "%v", m)
		_, pass = apply([]Criterion{{Measure: m, Limit: by * 0.999999}}, got, want)
		require.False(t, pass, "%v", m)
		_, pass = apply([]Criterion{{Measure: m, Limit: 1e300}}, []float64{nan, 1}, []float64{1, 1})
		require.False(t, pass, "%v of NaN", m)
		_, pass = apply([]Criterion{{Measure: m, Limit: 1e300, NaNPasses: true}}, []float64{nan, 1}, []float64{1, 1})
		require.True(t, pass, "%v of NaN where only what is over the limit fails", m)
	}
	zeros := []float64{0, 0}
	for _, m := range []Measure{RelativeMean, RelativeL2, RelativeMax, CalcDiff} {
		values, pass := apply([]Criterion{{Measure: m}}, zeros, zeros)
		require.True(t, pass, "%v: %v", m, values)
	}
	values, _ := apply([]Criterion{{Measure: CosineDistance, Limit: 1}}, zeros, want)
	require.Equal(t, 1.0, float64(values[0].Value), "the cosine of zeros is 0")
}

// TestCosineOfEqual demands a cosine of 1 of equal numbers, whatever their roundings.
func TestCosineOfEqual(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		got, twice := make([]float64, 7), make([]float64, 7)
		for i := range got {
			got[i] = float64(float32(r.NormFloat64()))
			twice[i] = 2 * got[i]
		}
		for _, want := range [][]float64{got, twice} {
			values, pass := apply([]Criterion{{Measure: CosineDistance}}, got, want)
			require.True(t, pass, "%v: %v", got, values)
			require.Zero(t, float64(values[0].Value))
		}
	}
	for _, x := range []float64{math.MaxFloat32, math.SmallestNonzeroFloat32} {
		_, pass := apply([]Criterion{{Measure: CosineDistance}}, []float64{x, x, x}, []float64{x, x, x})
		require.True(t, pass, "%v", x)
	}
}

// TestClose has the rules of torch.isclose, element by element.
func TestClose(t *testing.T) {
	for _, c := range []struct {
		got, want  float64
		rtol, atol float64
		close      bool
	}{
		{1, 1, 0, 0, true},
		{1.5, 1, 0, 0.5, true}, // at the limit
		{math.Nextafter(1.5, 2), 1, 0, 0.5, false},
		{1.5, 1, 0.5, 0, true},
		{1, 1.5, 0.34, 0, true}, // the tolerance is relative to want:
		{1.5, 1, 0.34, 0, false},
		{-1.75, -1, 0.5, 0.25, true},
		{-1.8, -1, 0.5, 0.25, false},
		{0, math.Copysign(0, -1), 0, 0, true},
		{inf, inf, 0, 0, true},
		{inf, -inf, 1, 1, false},
		{1, inf, 1, 1, false}, // though the tolerance is infinite
		{inf, 1, 1, 1, false},
		{nan, 1, 1, 1, false},
		{1, nan, 1, 1, false},
		{nan, nan, 1, 1, false},
	} {
		_, pass := apply([]Criterion{{Rtol: c.rtol, Atol: c.atol}}, []float64{c.got}, []float64{c.want})
		require.Equal(t, c.close, pass, "%+v", c)
	}
	for _, v := range [][2]float64{{nan, nan}, {nan, 1}} {
		_, pass := apply([]Criterion{{EqualNaN: true}}, []float64{v[0]}, []float64{v[1]})
		require.Equal(t, v[1] != v[1], pass, "%v", v)
		_, pass = apply([]Criterion{{NaNPasses: true}}, []float64{v[0]}, []float64{v[1]})
		require.True(t, pass)
	}
}

// TestWithin has a share of elements that must be close: 3 of 4 are.
func TestWithin(t *testing.T) {
	got, want := []float64{1, 2, 3, 5}, []float64{1, 2, 3, 4}
	for share, passes := range map[float64]bool{0: false, 1: false, 0.76: false, 0.75: true, 0.5: true} {
		values, pass := apply([]Criterion{{Within: share}}, got, want)
		require.Equal(t, passes, pass, "%v: %v", share, values)
		require.Equal(t, 0.25, float64(values[0].Value))
	}
}

// TestAll demands that all criteria hold.
func TestAll(t *testing.T) {
	near, far := Criterion{Atol: 1}, Criterion{Measure: MeanError, Limit: 0.1}
	for _, c := range []struct {
		criteria []Criterion
		pass     bool
	}{{[]Criterion{near}, true}, {[]Criterion{far}, false}, {[]Criterion{near, far}, false}, {[]Criterion{far, near}, false}} {
		_, pass := apply(c.criteria, []float64{1.5}, []float64{1})
		require.Equal(t, c.pass, pass)
	}
	for m := Close; m <= CalcDiff; m++ {
		values, pass := apply([]Criterion{{Measure: m}}, nil, nil)
		require.True(t, pass, "%v of nothing", m)
		require.Equal(t, m == CosineDistance, values[0].Value == 1, "%v", values)
	}
}

// TestDefaults has the documented tolerances of torch.testing.assert_close, torch.allclose,
// numpy.allclose and numpy.testing.assert_allclose.
func TestDefaults(t *testing.T) {
	require.Equal(t, Criterion{Rtol: 1.3e-6, Atol: 1e-5}, AssertClose(fault.Float32))
	require.Equal(t, Criterion{Rtol: 1.6e-2, Atol: 1e-5}, AssertClose(fault.BFloat16))
	require.Equal(t, Criterion{Rtol: 1e-3, Atol: 1e-5}, AssertClose(fault.Float16))
	require.Equal(t, Criterion{Rtol: 1e-5, Atol: 1e-8}, AllClose())
	require.Equal(t, Criterion{Rtol: 1e-7, EqualNaN: true}, AssertAllClose())
}

func TestNoTest(t *testing.T) {
	for _, criteria := range [][]Criterion{nil, {{Rtol: -1}}, {{Atol: nan}}, {{Measure: CalcDiff, Limit: inf}}, {{Within: 1.5}}, {{Within: -0.1}}} {
		test := Test{Criteria: criteria}
		require.ErrorIs(t, test.check(), ErrTest, "%v", criteria)
	}
	require.ErrorContains(t, (&Test{Criteria: []Criterion{{Measure: 99}}}).check(), "unknown measure")
	require.ErrorContains(t, (&Test{Criteria: []Criterion{{}}, Reference: Reference{Of: 99}}).check(), "unknown reference")
	require.NoError(t, (&Test{Criteria: []Criterion{{}}}).check())
}

func TestStrings(t *testing.T) {
	for want, c := range map[string]Criterion{
		"|got - want| <= 0":                               {},
		"|got - want| <= 0.1 + 0.01·|want|":               {Rtol: 0.01, Atol: 0.1},
		"|got - want| <= 0.01·|want| in 95 % of elements": {Rtol: 0.01, Within: 0.95},
		"calc_diff <= 0.001":                              {Measure: CalcDiff, Limit: 1e-3},
		"1 - cosine <= 0.01":                              {Measure: CosineDistance, Limit: 0.01},
	} {
		require.Equal(t, want, c.String())
	}
}
