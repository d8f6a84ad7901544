package nn

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// plainMLA is the definition of arXiv 2405.04434, section 2.1, in float64, of one sequence.
// Parameters are in the order of [MLA.Params].
func plainMLA(c MLAConfig, params [][]float64, x []float64) (y []float64) {
	c = c.withDefaults()
	next := func() []float64 {
		p := params[0]
		params = params[1:]
		return p
	}
	norm := func(rows [][]float64, gain []float64) [][]float64 {
		var out [][]float64
		for _, row := range rows {
			var squares float64
			for _, v := range row {
				squares += v * v
			}
			n := make([]float64, len(row))
			for i, v := range row {
				n[i] = v / math.Sqrt(squares/float64(len(row))+c.NormEps) * gain[i]
			}
			out = append(out, n)
		}
		return out
	}
	rotated := func(v []float64, position int) []float64 {
		out := slices.Clone(v)
		if c.Rotary == nil {
			return out
		}
		for i := 0; i < len(v); i += 2 {
			sin, cos := math.Sincos(float64(position) * math.Pow(1e4, -float64(i)/float64(len(v))))
			out[i], out[i+1] = v[i]*cos-v[i+1]*sin, v[i]*sin+v[i+1]*cos
		}
		return out
	}
	var queries [][]float64
	if c.QueryRank > 0 {
		latent := product64(x, next(), c.Dim)
		latent = norm(latent, next())
		queries = product64(slices.Concat(latent...), next(), c.QueryRank)
	} else {
		queries = product64(x, next(), c.Dim)
	}
	down := product64(x, next(), c.Dim)
	var latent, shared [][]float64
	for _, row := range down {
		latent, shared = append(latent, row[:c.KVRank]), append(shared, row[c.KVRank:])
	}
	latent = norm(latent, next())
	up := product64(slices.Concat(latent...), next(), c.KVRank)
	output := next()
	for t := range down {
		var mixed []float64
		for h := range c.Heads {
			q := queries[t][h*(c.NoPE+c.RoPE):][:c.NoPE+c.RoPE]
			q = append(slices.Clone(q[:c.NoPE]), rotated(q[c.NoPE:], t)...)
			var all float64
			value := make([]float64, c.Value)
			for j := range t + 1 {
				head := up[j][h*(c.NoPE+c.Value):][:c.NoPE+c.Value]
				k := append(slices.Clone(head[:c.NoPE]), rotated(shared[j], j)...)
				var score float64
				for i := range q {
					score += q[i] * k[i]
				}
				p := math.Exp(score / math.Sqrt(float64(c.NoPE+c.RoPE)))
				all += p
				for i := range value {
					value[i] += p * head[c.NoPE+i]
				}
			}
			for _, v := range value {
				mixed = append(mixed, v/all)
			}
		}
		y = append(y, product64(mixed, output, len(mixed))[0]...)
	}
	return y
}

func mlaConfigs(t *testing.T, context int) map[string]MLAConfig {
	rotary, err := NewRotary(4, context, 0)
	require.NoError(t, err)
	c := MLAConfig{Dim: 10, Heads: 3, QueryRank: 7, KVRank: 5, NoPE: 3, RoPE: 4, Value: 6, Rotary: rotary}
	direct, still, narrow := c, c, c
	direct.QueryRank = 0
	still.Rotary = nil
	narrow.Value = 2
	return map[string]MLAConfig{"latent queries": c, "direct queries": direct, "no positions": still, "narrow values": narrow}
}

// TestMLA compares results with the definition and gradients with its difference quotients.
func TestMLA(t *testing.T) {
	const batch, seq = 2, 5
	for name, c := range mlaConfigs(t, seq) {
		t.Run(name, func(t *testing.T) {
			a, err := NewMLA("self_attn.", c, Options{})
			require.NoError(t, err)
			fill(a.Params())
			x, dy := randoms(2, batch*seq*c.Dim), randoms(3, batch*seq*c.Dim)
			y, dx := make([]float32, len(x)), make([]float32, len(x))
			require.NoError(t, a.Forward(t.Context(), y, x, batch, seq))
			require.NoError(t, a.Backward(t.Context(), dx, dy))
			require.ErrorIs(t, a.Backward(t.Context(), dx, dy), ErrInput)

			x64 := doubles(x)
			var params [][]float64
			for _, p := range a.Params() {
				params = append(params, doubles(p.Value))
			}
			requireDefinition64(t, a.Params(), params, x64, y, dx, dy, func() (y64 []float64, more float64) {
				for b := range batch {
					y64 = append(y64, plainMLA(c, params, x64[b*seq*c.Dim:][:seq*c.Dim])...)
				}
				return y64, 0
			})
		})
	}
}

// TestMLAActivations: what is kept does not change the forward pass, and with FP8 activations
// no gradient; nor do workers. The input need not stay.
func TestMLAActivations(t *testing.T) {
	const batch, seq = 2, 70
	recipes := DefaultFP8()
	c := mlaConfigs(t, seq)["latent queries"]
	var want [][]float32
	for i, o := range []Options{
		{}, {Activations: ActivationsFP8}, {Activations: ActivationsFP8SwiGLU}, {Activations: ActivationsDeepSeekV3},
	} {
		o.FP8, o.Workers = &recipes, i
		a, err := NewMLA("self_attn.", c, o)
		require.NoError(t, err)
		fill(a.Params())
		x, dy := randoms(2, batch*seq*c.Dim), randoms(3, batch*seq*c.Dim)
		y, dx := make([]float32, len(x)), make([]float32, len(x))
		require.NoError(t, a.Forward(t.Context(), y, x, batch, seq))
		if i > 0 {
			clear(x)
		}
		require.NoError(t, a.Backward(t.Context(), dx, dy))
		got := [][]float32{y, dx}
		for _, p := range a.Params() {
			got = append(got, p.Grad)
		}
		switch {
		case i == 0:
			want = got
		case o.Activations == ActivationsDeepSeekV3:
			require.Equal(t, want[0], got[0])
			for j := range got[1:] {
				var norm, distance float64
				for k, v := range want[1+j] {
					norm += float64(v) * float64(v)
					distance += math.Pow(float64(got[1+j][k]-v), 2)
				}
				require.Less(t, math.Sqrt(distance/norm), 0.05, "gradient %d", j)
			}
		default:
			require.Equal(t, want, got)
		}
	}
}

// TestMLARefuses names what is wrong.
func TestMLARefuses(t *testing.T) {
	good := mlaConfigs(t, 5)["latent queries"]
	for want, change := range map[string]func(*MLAConfig){
		"Heads is 0":               func(c *MLAConfig) { c.Heads = 0 },
		"KVRank is -1":             func(c *MLAConfig) { c.KVRank = -1 },
		"QueryRank is -1":          func(c *MLAConfig) { c.QueryRank = -1 },
		"RoPE is 3":                func(c *MLAConfig) { c.RoPE = 3 },
		"Rotary is for heads of 4": func(c *MLAConfig) { c.RoPE = 2 },
		"NormEps is 2":             func(c *MLAConfig) { c.NormEps = 2 },
		"it must have at most":     func(c *MLAConfig) { c.Value = math.MaxInt32 / 4; c.KVRank = math.MaxInt32 - 8 },
	} {
		c := good
		change(&c)
		_, err := NewMLA("", c, Options{})
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, want)
	}
	a, err := NewMLA("", good, Options{})
	require.NoError(t, err)
	y := make([]float32, 6*good.Dim)
	require.ErrorContains(t, a.Forward(t.Context(), y, y, 1, 6), "rotary positions are for 5")
	require.ErrorIs(t, a.Forward(t.Context(), y, y[1:], 1, 6), ErrInput)
	require.ErrorIs(t, a.Backward(t.Context(), y, y), ErrInput)
}
