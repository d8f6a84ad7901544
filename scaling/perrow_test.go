package scaling_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestPerRow quantizes a row alone and beside others, under every profile.
func TestPerRow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const rows, cols = 3, 64
	values := make([]float32, rows*cols)
	for i := range values {
		values[i] = float32(r.NormFloat64() * float64(int(1)<<(4*(i/cols)))) // no two rows have one power of two for a scale
	}
	seen := map[bool]int{}
	for _, p := range scaling.Profiles() {
		for _, role := range []scaling.Role{scaling.Input, scaling.Weight} {
			recipe := p.Recipe(role)
			seen[recipe.PerRow()]++
			if p.Delayed() {
				require.False(t, recipe.PerRow(), recipe)
				continue
			}
			quantize := func(values []float32) (tensor.Tensor, []float32) {
				q := tensor.Tensor{Shape: []int{len(values) / cols, cols}}
				require.NoError(t, scaling.Quantize(t.Context(), &q, values, scaling.Quantizer{Recipe: recipe}))
				decoded := make([]float32, len(values))
				tensor.Dequantize(decoded, &q)
				return q, decoded
			}
			whole, all := quantize(values)
			same := true
			for i := range rows {
				alone, row := quantize(values[i*cols : (i+1)*cols])
				same = same && string(alone.Codes) == string(whole.Codes[i*cols:(i+1)*cols])
				for j := range row {
					same = same && row[j] == all[i*cols+j]
				}
			}
			require.Equal(t, same, recipe.PerRow(), recipe)
		}
	}
	require.Positive(t, seen[true])
	require.Positive(t, seen[false])
	random := scaling.Recipe{Block: tensor.Block{Rows: 1, Cols: 32}}
	require.True(t, random.PerRow())
	random.Policy.Rounding = fp8.Stochastic
	require.False(t, random.PerRow())
	require.False(t, scaling.Recipe{Profile: "none such"}.PerRow())
}
