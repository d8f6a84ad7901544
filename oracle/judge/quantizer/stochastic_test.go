package quantizer

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// rounded has codes of x rounded away from zero where pick says so of the fraction.
func rounded(t *testing.T, rows, cols int, seed uint64, pick func(i, j int, p float64) bool) *Verdict {
	t.Helper()
	x := laplace(seed, rows, cols, 23)
	r := scaling.Recipe{Profile: scaling.MXRCeil, Format: fp8.E2M1, Block: tensor.Block{Rows: 1, Cols: 32}}
	r.Policy.Rounding = fp8.Stochastic
	cut := r
	cut.Policy.Rounding = fp8.TowardZero
	got := &tensor.Tensor{Name: "codes", Shape: []int{rows, cols}}
	require.NoError(t, scaling.Quantize(t.Context(), got, x, scaling.Quantizer{Recipe: cut}))
	for i := range rows {
		for j := range cols {
			y := math.Abs(float64(x[i*cols+j] / got.Scale(i, j)))
			c := got.Codes[i*cols+j]
			low := math.Abs(float64(fp8.E2M1.Float32(c)))
			if y <= low || low == 6 {
				continue
			}
			high := math.Abs(float64(fp8.E2M1.Float32(c + 1)))
			if pick(i, j, (y-low)/(high-low)) {
				got.Codes[i*cols+j]++
			}
		}
	}
	v, err := Check(t.Context(), Result[float32]{X: x, Got: got}, r, Options{})
	require.NoError(t, err)
	return v
}

// TestStochastic has no alarm for codes that are rounded at random, by us or by octavo, and one for
// what is not: each kind of bias that is tested.
func TestStochastic(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		v := rounded(t, 40, 160, seed, func(_, _ int, p float64) bool { return r.Float64() < p })
		require.True(t, v.Pass, v.Title())
	}
	x := laplace(5, 64, 512, 23)
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E2M1, fp8.E3M2} {
		recipe := scaling.Recipe{Profile: scaling.MXCeil, Format: f, Block: tensor.Block{Rows: 1, Cols: 32}}
		recipe.Policy = fp8.Policy{Rounding: fp8.Stochastic, Seed: 77}
		got := &tensor.Tensor{Shape: []int{64, 512}}
		require.NoError(t, scaling.Quantize(t.Context(), got, x, scaling.Quantizer{Recipe: recipe}))
		v, err := Check(t.Context(), Result[float32]{X: x, Got: got}, recipe, Options{})
		require.NoError(t, err)
		require.True(t, v.Pass, v.Title())
		require.Less(t, v.Random.Seen, 0.05)
		got.Codes[100] ^= 0x10 >> (8 - f.Bits()) << 1 // a code that is not next to its value
		v, err = Check(t.Context(), Result[float32]{X: x, Got: got}, recipe, Options{})
		require.NoError(t, err)
		require.Equal(t, "fail", v.Outcome, f)
	}

	r := rand.New(rand.NewPCG(1, 3))
	shared := 0.0
	for name, pick := range map[string]func(i, j int, p float64) bool{
		"nearest": func(_, _ int, p float64) bool { return p > 0.5 },
		"cut":     func(_, _ int, _ float64) bool { return false },
		"biased":  func(_, _ int, p float64) bool { return r.Float64() < p+0.06 },
		"shared": func(_, j int, p float64) bool { // two neighbours have the same random bits
			if j%2 == 0 {
				shared = r.Float64()
			}
			return shared < p
		},
	} {
		v := rounded(t, 100, 320, 9, pick)
		require.Equal(t, "fail", v.Outcome, name)
		require.NotEmpty(t, v.Random.Alarm, name)
		require.Contains(t, v.Title(), "not rounded at random")
	}
	v := rounded(t, 1, 32, 9, func(_, _ int, p float64) bool { return p > 0.5 })
	require.Equal(t, "undecided", v.Outcome)
	require.Contains(t, v.Title(), "too few to see how")

	// Scales that are wrong are explained all the same.
	recipe := scaling.Recipe{Profile: scaling.MXRCeil, Format: fp8.E4M3, Block: micro, Policy: fp8.Policy{Rounding: fp8.Stochastic, Seed: 5}}
	got := &tensor.Tensor{Shape: []int{64, 512}}
	floor := recipe
	floor.Profile = scaling.MXFloor
	require.NoError(t, scaling.Quantize(t.Context(), got, x, scaling.Quantizer{Recipe: floor}))
	v, err := Check(t.Context(), Result[float32]{X: x, Got: got}, recipe, Options{})
	require.NoError(t, err)
	require.Contains(t, v.Cause(), "mx-floor")
}
