package oracletest_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/oracletest"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestCheckQuantizer passes what package scaling makes of values, and fails a test of others with
// the fault and the first code.
func TestCheckQuantizer(t *testing.T) {
	x := make([]float32, 64*256)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)*1.7)) * float32(1+i%5)
	}
	claim := scaling.MXRCeil.Recipe(scaling.Input)
	got := &tensor.Tensor{Name: "x", Shape: []int{64, 256}}
	require.NoError(t, scaling.Quantize(t.Context(), got, x, scaling.Quantizer{Recipe: claim}))
	require.True(t, oracletest.CheckQuantizer(t, x, got, claim, oracletest.Options{}).Pass)

	cut := claim
	cut.Policy.Rounding = fp8.TowardZero
	require.NoError(t, scaling.Quantize(t.Context(), got, x, scaling.Quantizer{Recipe: cut}))
	r := &recorder{ctx: t.Context(), name: t.Name()}
	require.False(t, oracletest.CheckQuantizer(r, x, got, claim, oracletest.Options{}).Pass)
	require.Contains(t, strings.Join(r.errors, ""), "what the quantizer made is wrong")
	require.Contains(t, strings.Join(r.errors, ""), "directed")
}
