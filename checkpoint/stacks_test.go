package checkpoint_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
)

// TestGPTOSSStacks computes the codes and scales of a stack of experts from the layout's text:
// of [E, in, out] each 32 inputs of an output share the power of two at or above amax/6, and
// are the nearest of eight magnitudes, ties to even, two in a byte, the first in its low half.
func TestGPTOSSStacks(t *testing.T) {
	const name, experts, in, out = "model.layers.0.mlp.experts.gate_up_proj", 2, 96, 10
	stack := random(name, 5, experts, in, out)
	_, got := planned(t, model(t, `{}`, stack), "gpt-oss", checkpoint.PlanOptions{})
	blocks, scales := got[name+"_blocks"], got[name+"_scales"]
	require.Equal(t, []int{experts, out, in / 32, 16}, blocks.Shape)
	require.Equal(t, []int{experts, out, in / 32}, scales.Shape)
	magnitudes := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	at := 0
	for e := range experts {
		for o := range out {
			for b := range in / 32 {
				var values [32]float64
				amax := 0.0
				for k := range values {
					i := (e*in+b*32+k)*out + o
					bits := uint32(binary.LittleEndian.Uint16(stack.Data[2*i:])) << 16
					values[k] = float64(math.Float32frombits(bits))
					amax = max(amax, math.Abs(values[k]))
				}
				exponent := math.Ceil(math.Log2(amax / 6))
				require.Equal(t, byte(127+exponent), scales.Data[at], "expert %d, output %d, block %d", e, o, b)
				for k, v := range values {
					code := byte(0)
					y := math.Abs(v) / math.Exp2(exponent)
					for c, m := range magnitudes {
						near, best := math.Abs(y-m), math.Abs(y-magnitudes[code])
						if near < best || near == best && c%2 == 0 {
							code = byte(c)
						}
					}
					if math.Signbit(v) {
						code |= 8
					}
					require.Equal(t, code, blocks.Data[at*16+k/2]>>(k%2*4)&15, "expert %d, output %d, input %d", e, o, b*32+k)
				}
				at++
			}
		}
	}
}
