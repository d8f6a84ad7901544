package judge

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
)

// TestSentences has each sentence of a verdict in the text of an input of which it is true,
// and not in that of one of which it is not. Inputs are products of 32x40x512 elements.
func TestSentences(t *testing.T) {
	const m, n, k = 32, 40, 512
	a, b := normal(m, n, k, 9)
	right := make([]float32, m*n)
	require.NoError(t, gemm.Multiply(t.Context(), right, a, b, gemm.Options{}))
	changed := func(f func(c []float32)) []float32 {
		c := append([]float32(nil), right...)
		f(c)
		return c
	}
	hopper := oracle.Kernel{Model: oracle.HopperWGMMA()}
	promoted := hopper
	promoted.Promote = 128
	predict := func(k oracle.Kernel) []float32 {
		c := make([]float32, m*n)
		require.NoError(t, oracle.Predict(t.Context(), c, nil, a, b, k, oracle.Options{}))
		return c
	}
	far, near := farScales(m, n, 320)
	farRight := make([]float32, m*n)
	require.NoError(t, gemm.Multiply(t.Context(), farRight, far, near, gemm.Options{}))
	farRight[5] = float32(math.Inf(1))
	say := func(c []float32, claim Claim, o Options) string {
		x, y := a, b
		if c[5] == farRight[5] {
			x, y = far, near
		}
		v, err := Check(t.Context(), c, nil, x, y, claim, o)
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, v.WriteText(&text))
		return strings.Join(strings.Fields(text.String()), " ")
	}
	inputs := map[string]string{
		"right":     say(right, Claim{}, Options{}),
		"same":      say(right, Claim{Want: Canonical}, Options{}),
		"one wrong": say(changed(func(c []float32) { c[77] += 1e6 }), Claim{}, Options{}),
		"one bit":   say(changed(func(c []float32) { c[77] = math.Nextafter32(c[77], 0) }), Claim{Want: Canonical}, Options{}),
		"NaN":       say(changed(func(c []float32) { c[77] = float32(math.NaN()) }), Claim{}, Options{}),
		"shrunk":    say(shrunk(right), Claim{}, Options{}),
		"warned":    say(shrunk(right), Claim{Alarms: Warn}, Options{}),
		"ignored":   say(right, Claim{Alarms: Ignore}, Options{}),
		"truncated": say(right, Claim{Accumulation: oracle.Accumulation{Truncated: true}}, Options{}),
		"model":     say(predict(promoted), Claim{Accumulation: oracle.Accumulation{Kernel: promoted}}, Options{}),
		"other":     say(predict(hopper), Claim{Accumulation: oracle.Accumulation{Kernel: promoted}}, Options{}),
		"overflows": say(farRight, Claim{}, Options{}),
		"ordered":   say(farRight, Claim{Accumulation: oracle.Accumulation{Scales: oracle.AThenB}}, Options{}),
		"sampled":   say(right, Claim{}, Options{Sample: &Sample{Elements: 100}}),
	}
	for _, x := range []struct{ sentence, of, not string }{
		{"PASS: all 1280 elements are within the bound of the exact result", "right", "shrunk"},
		{"PASS: all 1280 elements are within the bound of the exact result", "right", "overflows"},
		{"PASS: all 1280 elements are octavo's canonical result, bit for bit", "same", "one bit"},
		{"PASS, with an alarm: all 1280 elements are within", "warned", "right"},
		{"FAIL: 1 of 1280 elements are outside the bound of the exact result", "one wrong", "right"},
		{"FAIL: 1 of 1280 elements differ from octavo's canonical result", "one bit", "same"},
		{"FAIL: all 1280 elements are within the bound of the exact result, but taken together their errors are not those of sums in float32", "shrunk", "one wrong"},
		{"but taken together their errors are not those of sums of hopper-wgmma", "other", "model"},
		{"UNDECIDED: 1 of 1280 elements", "overflows", "ordered"},
		{"they have no bound, since what the claim allows may overflow", "overflows", "right"},
		{"What would decide it a claim of the order in which the kernel applies scales", "overflows", "ordered"},
		{"What explains them", "shrunk", "right"},
		{"sums lose bits below 2^-13 of their largest term, as 14-bit accumulators do: all 1280 elements compared have the bits of hopper-wgmma, unpromoted", "other", "shrunk"},
		{"sums or results are not rounded to nearest, or have a factor: a bias toward zero", "shrunk", "other"},
		{"raise no alarm; of the results of correct kernels at most one in 1000000 raises one", "right", "shrunk"},
		{"raise no alarm; none of the results of correct kernels that were measured raises one", "model", "other"},
		{"ALARM: taken together, the errors of all 1280 elements are not those of sums in float32", "shrunk", "one wrong"},
		{"Errors were not tested together: the result fails", "one wrong", "shrunk"},
		{"Errors were not tested together: every change of a bit fails", "same", "right"},
		{"Errors were not tested together: sums that are rounded toward zero have errors of one sign", "truncated", "right"},
		{"What would have been seen", "right", "ignored"},
		{"may be missed: only what equals octavo's product", "sampled", "right"},
		{"looked at: ", "sampled", "right"},
		{"elements looked at are within the bound of the exact result", "sampled", "right"},
		{"NaN or infinite none, as wanted", "right", "NaN"},
		{"not finite though wanted so 1", "NaN", "right"},
		{"bit for bit yes", "same", "one bit"},
		{"First that differs: row 1, column 37", "one bit", "one wrong"},
		{"First outside the bound: row 1, column 37", "one wrong", "one bit"},
	} {
		require.Contains(t, inputs[x.of], x.sentence, x.of)
		require.NotContains(t, inputs[x.not], x.sentence, x.not)
	}
}

// TestTruncatedOutput names results that are truncated to bfloat16, which the bound allows at
// this K, and not those that are rounded to nearest.
func TestTruncatedOutput(t *testing.T) {
	const m, n, k = 40, 64, 8192
	a, b := normal(m, n, k, 11)
	c := make([]float32, m*n)
	require.NoError(t, gemm.Multiply(t.Context(), c, a, b, gemm.Options{}))
	cut, nearest := make([]fp8.BFloat16, m*n), make([]fp8.BFloat16, m*n)
	for i, x := range c {
		cut[i], nearest[i] = fp8.BFloat16(math.Float32bits(x)>>16), fp8.BFloat16FromFloat32(x)
	}
	v, err := Check(t.Context(), nearest, nil, a, b, Claim{}, Options{})
	require.NoError(t, err)
	require.Equal(t, "pass", v.Outcome)
	v, err = Check(t.Context(), cut, nil, a, b, Claim{}, Options{})
	require.NoError(t, err)
	require.Equal(t, "fail", v.Outcome)
	require.Contains(t, v.Failure(), "results are truncated, toward zero, to bfloat16 in place of to the nearest number")
}
