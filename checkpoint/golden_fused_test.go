package checkpoint_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
)

// TestFusedByLoader does with q, k and v under a scale each what vLLM does when it loads them
// as one weight (w8a8_utils.requantize_with_max_scale): values in binary16, encoded again under
// the largest of the scales. The golden codes are what then is in its memory.
func TestFusedByLoader(t *testing.T) {
	source, want := golden(t, "llama-fp8-static"), golden(t, "llama-fp8-static-fused-qkv")
	for layer := range 2 {
		attention := fmt.Sprintf("model.layers.%d.self_attn.", layer)
		largest := float32(0)
		for _, w := range projections(source, attention) {
			q, err := w.Matrix(0)
			require.NoError(t, err)
			require.Len(t, q.Scales, 1)
			largest = max(largest, q.Scales[0])
		}
		var codes []byte
		for _, w := range projections(source, attention) {
			q, err := w.Matrix(0)
			require.NoError(t, err)
			for i := range q.Codes {
				_, cols := q.Dims()
				x := float16.Fromfloat32(q.At(i/cols, i%cols)).Float32()
				codes = append(codes, fp8.EncodeOne(x*(1/largest), fp8.E4M3, fp8.Policy{}))
			}
		}
		fused, err := want.Weight(attention + "qkv_proj.weight").Matrix(0)
		require.NoError(t, err)
		require.Equal(t, []float32{largest}, fused.Scales)
		require.Equal(t, -1, firstDifference(fused.Codes, codes), "%d codes differ", differences(fused.Codes, codes))
		require.Len(t, codes, len(fused.Codes))
	}
}

func projections(c *checkpoint.Checkpoint, attention string) (all []*checkpoint.Weight) {
	for _, name := range []string{"q_proj", "k_proj", "v_proj"} {
		all = append(all, c.Weight(attention+name+".weight"))
	}
	return all
}
