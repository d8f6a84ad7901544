package serve

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/safetensors"
)

// quantizerArrays are values and their codes in E4M3 under floor(log2 amax)-8 of 32, as OCP MX
// has it, from the definition.
func quantizerArrays(testing.TB) []safetensors.Tensor {
	const rows, cols = 3, 64
	x, codes, scales := make([]float32, rows*cols), make([]byte, rows*cols), make([]byte, rows*2)
	for i := range x { // 1 to 1.875 in eighths, times powers of two that E4M3 has: codes are exact
		x[i] = float32(math.Ldexp(1+float64(i%8)/8, i/8%8-4))
	}
	for b := range scales {
		amax := float32(0)
		for _, v := range x[b*32 : (b+1)*32] {
			amax = max(amax, v)
		}
		_, e := math.Frexp(float64(amax))
		scales[b] = byte(e - 1 - 8 + 127)
		for i := b * 32; i < (b+1)*32; i++ {
			f, e := math.Frexp(math.Ldexp(float64(x[i]), 127-int(scales[b])))
			codes[i] = byte(e-1+7)<<3 | byte((f*2-1)*8)
			if codes[i] == 0x7F {
				codes[i] = 0x7E // 480 saturates
			}
		}
	}
	return []safetensors.Tensor{
		floatArray("x", []int{rows, cols}, x), safetensors.New("codes", safetensors.F8E4M3, []int{rows, cols}, codes),
		safetensors.New("scales", safetensors.F8E8M0, []int{rows, 2}, scales),
	}
}

func TestCheckQuantizer(t *testing.T) {
	c := start(t, t.Context())
	arrays := quantizerArrays(t)
	options := func(more ...any) map[string]any {
		o := map[string]any{"recipe": "mx-floor", "block": "1x32"}
		for i := 0; i < len(more); i += 2 {
			o[more[i].(string)] = more[i+1]
		}
		return o
	}
	r := c.get("check_quantizer", options("page", true), arrays...)
	require.Equal(t, true, r.Result["pass"], r.Result["text"])
	require.Equal(t, "", r.Result["failure"])
	require.Contains(t, string(r.bytes(t, "page")), "</html>")
	require.Equal(t, true, c.get("check_quantizer", map[string]any{"recipe": "mx-floor"}, arrays...).Result["pass"], "its block")
	require.Equal(t, true, c.get("check_quantizer", options("workers", 1, "rounding", "nearest-even"), arrays...).Result["pass"])

	with := func(name string, change func(data []byte)) []safetensors.Tensor {
		all := slices.Clone(arrays)
		for i := range all {
			if all[i].Name == name {
				all[i].Data = slices.Clone(all[i].Data)
				change(all[i].Data)
			}
		}
		return all
	}
	r = c.get("check_quantizer", options(), with("scales", func(b []byte) { b[3]-- })...)
	require.Equal(t, false, r.Result["pass"])
	require.Equal(t, "fail", r.Result["outcome"])
	require.Equal(t, "1 of 6 scales and 0 of 192 codes are not those of mx-floor E4M3 1x32", r.Result["failure"])
	require.Contains(t, r.Result["text"], "first scale")
	r = c.get("check_quantizer", options(), with("codes", func(b []byte) { b[70] ^= 0x80 })...)
	require.Contains(t, r.Result["failure"], "0 of 6 scales and 1 of 192 codes")

	c.refused("the option recipe is missing", "check_quantizer", nil, arrays...)
	c.refused("no-such", "check_quantizer", options("recipe", "no-such"), arrays...)
	c.refused(`wants a tensor "scales"`, "check_quantizer", options(), arrays[:2]...)
	c.refused("say another block", "check_quantizer", options("block", "1x16"), arrays...)
	c.refused(`unknown field "bias"`, "check_quantizer", options("bias", 1), arrays...)
	c.refused(`takes no tensor "y"`, "check_quantizer", options(), append(slices.Clone(arrays), floatArray("y", []int{0}, nil))...)
	c.refused("workers", "check_quantizer", options("workers", -1), arrays...)
	c.refused("has no outer scales", "check_quantizer", options(), append(slices.Clone(arrays), floatArray("outer", []int{1}, []float32{1}))...)
	c.refused("say that it is bfloat16", "check_quantizer", options(),
		append([]safetensors.Tensor{safetensors.New("x", safetensors.U16, []int{3, 64}, make([]byte, 384))}, arrays[1:]...)...)
}
