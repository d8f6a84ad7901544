package swiglu_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

const in, out = 56, 18

// block is an MLP and its input: up and gate are [channels, in], down is
// [out, channels].
type block struct{ x, up, gate, down []float32 }

func newBlock() block {
	r := rand.New(rand.NewPCG(7, 7))
	normal := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	b := block{normal(tokens * in), normal(channels * in), normal(channels * in), normal(out * channels)}
	for i := range in {
		b.up[3*in+i] *= 1000 // one neuron is an outlier
		b.up[4*in+i] = 0     // one is dead
	}
	return b
}

func (b block) branches() (u, g []float32) {
	u, g = make([]float32, tokens*channels), make([]float32, tokens*channels)
	canonical.MultiplyDense(u, b.x, b.up, tokens, channels, in, 1)
	canonical.MultiplyDense(g, b.x, b.gate, tokens, channels, in, 1)
	return u, g
}

func scalesFor(u []float32, axis swiglu.Axis) swiglu.Scales {
	s := swiglu.Smoother{Smoothing: swiglu.Smoothing{Axis: axis}}
	return s.Scales(u, channels)
}

func quantize(t *testing.T, values []float32, rows int, r scaling.Recipe) *tensor.Tensor {
	q := &tensor.Tensor{Shape: []int{rows, len(values) / rows}}
	require.NoError(t, scaling.Quantize(t.Context(), q, values, scaling.Quantizer{Recipe: r}))
	return q
}

// TestFloat32Graph: with scales of powers of two and nothing quantized, the
// smoothed graph with its folded weight gives the plain graph's bits, forward
// and backward, on either axis.
func TestFloat32Graph(t *testing.T) {
	b := newBlock()
	u, g := b.branches()
	type result struct{ y, du, dg, ddown []float32 }
	dy := make([]float32, tokens*out)
	for i := range dy {
		dy[i] = float32(i%11) - 5
	}
	run := func(s swiglu.Scales) result {
		z := make([]float32, tokens*channels)
		swiglu.Forward(z, u, g, s)
		down := make([]float32, len(b.down))
		swiglu.FoldDown(down, b.down, s)
		y := make([]float32, tokens*out)
		canonical.MultiplyDense(y, z, down, tokens, out, channels, 1)
		swiglu.Unscale(y, s)

		d := append([]float32(nil), dy...)
		swiglu.Unscale(d, s)
		dz, ddown := make([]float32, len(z)), make([]float32, len(down))
		canonical.MultiplyDense(dz, d, transpose(down, out), tokens, channels, out, 1)
		canonical.MultiplyDense(ddown, transpose(d, tokens), transpose(z, tokens), out, channels, tokens, 1)
		swiglu.FoldDown(ddown, ddown, s)
		r := result{y, make([]float32, len(z)), make([]float32, len(z)), ddown}
		swiglu.Backward(r.du, r.dg, dz, u, g, s)
		return r
	}
	plain := run(swiglu.Scales{})
	for _, axis := range []swiglu.Axis{swiglu.PerChannel, swiglu.PerToken} {
		require.Equal(t, plain, run(scalesFor(u, axis)))
	}
}

func transpose(m []float32, rows int) []float32 {
	cols := len(m) / rows
	v := make([]float32, len(m))
	for i := range rows {
		for j := range cols {
			v[j*rows+i] = m[i*cols+j]
		}
	}
	return v
}

// TestQuantizedPerToken: a scale of a power of two for each row passes through a
// just-in-time quantization by row without changing a code, so the smoothed FP8
// graph gives the plain FP8 graph's bits.
func TestQuantizedPerToken(t *testing.T) {
	b := newBlock()
	u, g := b.branches()
	recipe := scaling.Recipe{Block: tensor.Block{Rows: 1, Cols: 16}}
	w := quantize(t, b.down, out, scaling.Recipe{Block: tensor.Block{Rows: 16, Cols: 16}})
	run := func(s swiglu.Scales) (codes []byte, y []float32) {
		z := make([]float32, tokens*channels)
		swiglu.Forward(z, u, g, s)
		q := quantize(t, z, tokens, recipe)
		y = make([]float32, tokens*out)
		require.NoError(t, gemm.Multiply(t.Context(), y, q, w, gemm.Options{}))
		swiglu.Unscale(y, s)
		return q.Codes, y
	}
	plainCodes, plain := run(swiglu.Scales{})
	codes, y := run(scalesFor(u, swiglu.PerToken))
	require.Equal(t, plainCodes, codes)
	require.Equal(t, plain, y)
}

// TestQuantizedPerChannel: with one scale for the tensor the outlier pushes the
// other channels of z toward underflow, and smoothing brings them back: per
// channel the error of the product falls by an order of magnitude.
func TestQuantizedPerChannel(t *testing.T) {
	b := newBlock()
	for i := range in {
		b.up[3*in+i] *= 1 << 11 // far enough that E4M3's range does not hide it
	}
	u, g := b.branches()
	recipe := scaling.Recipe{Profile: scaling.TECurrentPow2}
	exact := make([]float32, tokens*out)
	z := make([]float32, tokens*channels)
	swiglu.Forward(z, u, g, swiglu.Scales{})
	// The outlier's weight in the down projection is small, as trained ones are.
	for i := range out {
		b.down[i*channels+3] /= 1000 << 11
	}
	canonical.MultiplyDense(exact, z, b.down, tokens, out, channels, 1)

	relativeError := func(s swiglu.Scales) float64 {
		z := make([]float32, tokens*channels)
		swiglu.Forward(z, u, g, s)
		down := make([]float32, len(b.down))
		swiglu.FoldDown(down, b.down, s)
		y := make([]float32, tokens*out)
		require.NoError(t, gemm.Multiply(t.Context(), y, quantize(t, z, tokens, recipe), quantize(t, down, out, recipe), gemm.Options{}))
		var diff, sum float64
		for i := range y {
			d := float64(y[i] - exact[i])
			diff += d * d
			sum += float64(exact[i]) * float64(exact[i])
		}
		return math.Sqrt(diff / sum)
	}
	plain, smoothed := relativeError(swiglu.Scales{}), relativeError(scalesFor(u, swiglu.PerChannel))
	t.Logf("relative error: plain %.4f, smoothed %.4f", plain, smoothed)
	require.Less(t, smoothed, 0.06)
	require.Greater(t, plain, 3*smoothed)
}

// TestMergedForInference: with the scales merged into the linear branch's FP8
// weight, plain SwiGLU gives the bits that Smooth-SwiGLU gave in training.
func TestMergedForInference(t *testing.T) {
	b := newBlock()
	byRow := scaling.Recipe{Block: tensor.Block{Rows: 1, Cols: 32}}
	x := quantize(t, b.x, tokens, byRow)
	linear := func(w []float32) []float32 {
		y := make([]float32, tokens*channels)
		require.NoError(t, gemm.Multiply(t.Context(), y, x, quantize(t, w, channels, byRow), gemm.Options{}))
		return y
	}
	u, g := linear(b.up), linear(b.gate)
	s := scalesFor(u, swiglu.PerChannel)
	trained := make([]float32, len(u))
	swiglu.Forward(trained, u, g, s)

	merged := make([]float32, len(b.up))
	swiglu.FoldUp(merged, b.up, s)
	inferred := make([]float32, len(u))
	swiglu.Forward(inferred, linear(merged), g, swiglu.Scales{})
	require.Equal(t, trained, inferred)

	r := byRow
	r.Format = fp8.E5M2
	require.Equal(t, quantize(t, trained, tokens, r), quantize(t, inferred, tokens, r))
}
