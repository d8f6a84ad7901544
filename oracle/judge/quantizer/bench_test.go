package quantizer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// BenchmarkCheck judges 1024x4096 values: what is right, what a fault explains and what nothing
// does.
func BenchmarkCheck(b *testing.B) {
	const rows, cols = 1024, 4096
	x := laplace(1, rows, cols, 23)
	for _, p := range []scaling.Profile{scaling.TEBlock, scaling.MXRCeil} {
		r := scaling.Recipe{Profile: p, Format: fp8.E4M3, Block: p.Block(scaling.Input)}
		honest := &tensor.Tensor{Shape: []int{rows, cols}}
		require.NoError(b, scaling.Quantize(b.Context(), honest, x, scaling.Quantizer{Recipe: r}))
		cut, noise := *honest, *honest
		cut.Codes, noise.Codes = make([]byte, len(x)), append([]byte(nil), honest.Codes...)
		q := r
		q.Policy.Rounding = fp8.TowardZero
		require.NoError(b, scaling.Quantize(b.Context(), &cut, x, scaling.Quantizer{Recipe: q}))
		for i := 0; i < len(x); i += 97 {
			noise.Codes[i] ^= 3
		}
		down := *honest
		down.Scales = append([]float32(nil), honest.Scales...)
		for i := range down.Scales {
			down.Scales[i] /= 2
		}
		for _, c := range []struct {
			name string
			of   *tensor.Tensor
		}{{"right", honest}, {"cut", &cut}, {"noise", &noise}, {"scales", &down}} {
			b.Run(string(p)+"/"+c.name, func(b *testing.B) {
				b.SetBytes(4 * rows * cols)
				for b.Loop() {
					_, err := Check(b.Context(), Result[float32]{X: x, Got: c.of}, r, Options{})
					require.NoError(b, err)
				}
			})
		}
	}
}

// BenchmarkIdentify tries all profiles on as many.
func BenchmarkIdentify(b *testing.B) {
	const rows, cols = 1024, 4096
	x := laplace(1, rows, cols, 23)
	got := &tensor.Tensor{Shape: []int{rows, cols}}
	require.NoError(b, scaling.Quantize(b.Context(), got, x, scaling.Quantizer{Recipe: scaling.Recipe{Profile: scaling.DeepGEMM, Block: tile}}))
	for b.Loop() {
		_, err := Identify(b.Context(), x, got, got.Scales, nil, Options{})
		require.NoError(b, err)
	}
}
