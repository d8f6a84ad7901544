package generate_test

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/generate"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// definition returns the logits of all tokens: the layers of package nn, of which each token
// sees the keys and values of those up to it as they are in a cache.
func definition(t *testing.T, m *nn.Llama, tokens []int32, o generate.Options) []float32 {
	t.Helper()
	d := &defined{t: t, m: m, c: m.Config(), o: o}
	if o.FP8 != nil {
		r := nn.DefaultFP8()
		r.Forward = *o.FP8
		d.with.FP8 = &r
	}
	var stream []float32
	embedding := d.kept(m.Params()[0])
	for _, id := range tokens {
		for _, x := range embedding[int(id)*d.c.Dim:][:d.c.Dim] {
			stream = append(stream, x*cmp.Or(float32(d.c.EmbeddingScale), 1))
		}
	}
	add := func(x []float32, after *nn.RMSNorm) {
		if after != nil {
			x = d.norm(after.Gain, x, d.c.NormEps)
		}
		for i := range x {
			stream[i] += x[i]
		}
	}
	for layer, b := range m.Blocks() {
		x := d.norm(b.AttentionNorm.Gain, stream, d.c.NormEps)
		if b.MLA != nil {
			add(d.layer(b.MLA.Output, d.mixed(d.latent(b.MLA, x, len(tokens), layer), layer, b.MLA.Sinks)), b.AfterAttention)
		} else {
			add(d.layer(b.Attention.Output, d.mixed(d.heads(b.Attention, x, len(tokens), layer), layer, b.Attention.Sinks)), b.AfterAttention)
		}
		x = d.norm(b.MLPNorm.Gain, stream, d.c.NormEps)
		if b.Experts != nil {
			add(d.experts(b.Experts, x, len(tokens)), b.AfterMLP)
			continue
		}
		g, u := d.layer(b.MLP.Gate, x), d.layer(b.MLP.Up, x)
		d.c.Gate.Multiply(u, u, g)
		add(d.layer(b.MLP.Down, u), b.AfterMLP)
	}
	normed := d.norm(m.Param("model.norm.weight"), stream, d.c.NormEps)
	head := *m.Param("lm_head.weight")
	var with nn.Options
	if o.Head != nil {
		r := nn.DefaultFP8()
		r.Forward = *o.Head
		with.FP8 = &r
	} else {
		head.Value = d.kept(&head)
	}
	logits := d.linear(&head, normed, with)
	for i, x := range logits {
		if limit := float32(d.c.LogitCap); limit != 0 {
			logits[i] = limit * elementary.Tanh(x*float32(1/limit))
		}
	}
	return logits
}

// kept returns the values of the embedding or the head as they are kept.
func (d *defined) kept(p *nn.Param) []float32 {
	values := slices.Clone(p.Value)
	switch {
	case d.o.Head != nil:
		codes := tensor.Tensor{Shape: []int{p.Rows, p.Cols}}
		q := scaling.Quantizer{Recipe: d.o.Head.B}
		require.NoError(d.t, scaling.Quantize(d.t.Context(), &codes, values, q))
		tensor.Dequantize(values, &codes)
	case d.o.RoundHead:
		for i, x := range values {
			values[i] = fp8.BFloat16FromFloat32(x).Float32()
		}
	}
	return values
}

// defined is a model under options.
type defined struct {
	t    *testing.T
	m    *nn.Llama
	c    nn.Config
	o    generate.Options
	with nn.Options // of linear layers
}

func (d *defined) linear(w *nn.Param, x []float32, o nn.Options) []float32 {
	l, err := nn.NewLinearOf(w.Name, w, o)
	require.NoError(d.t, err)
	rows := len(x) / w.Cols
	y := make([]float32, rows*w.Rows)
	require.NoError(d.t, l.Forward(d.t.Context(), y, x, rows))
	return y
}

// layer is linear with the bias that a layer has.
func (d *defined) layer(l *nn.Linear, x []float32) []float32 {
	y := d.linear(l.Weight, x, d.with)
	for i := range y {
		if l.Bias != nil {
			y[i] += l.Bias.Value[i%len(l.Bias.Value)]
		}
	}
	return y
}

func (d *defined) norm(gain *nn.Param, x []float32, eps float64) []float32 {
	n, err := nn.NewRMSNorm(gain.Name, gain.Cols, eps, nn.Options{Norms: d.c.Norms})
	require.NoError(d.t, err)
	n.Gain = gain
	y := make([]float32, len(x))
	require.NoError(d.t, n.Forward(d.t.Context(), y, x))
	return y
}

// rotate rotates the elements of each head of a layer from one on.
func (d *defined) rotate(x []float32, heads, dim, first, rows, layer int) {
	rotary, windowed := d.c.Rotaries()
	if d.c.Scores(layer).Window > 0 {
		rotary = windowed
	}
	for row := range rows {
		for h := range heads {
			last := x[(row*heads+h)*dim:][first:dim]
			require.NoError(d.t, rotary.RotateFrom(last, 1, row, rows, 1))
		}
	}
}

// attended is queries, keys and values of all tokens, and how large they are for each head.
type attended struct {
	q, k, v          []float32
	keyDim, valueDim int
}

func (d *defined) heads(a *nn.Attention, x []float32, rows, layer int) attended {
	n := cmp.Or(d.c.HeadDim, d.c.Dim/d.c.Heads)
	to := attended{d.layer(a.Query, x), d.layer(a.Key, x), d.layer(a.Value, x), n, n}
	if a.QueryNorm != nil {
		to.q, to.k = d.norm(a.QueryNorm.Gain, to.q, d.c.NormEps), d.norm(a.KeyNorm.Gain, to.k, d.c.NormEps)
	}
	d.rotate(to.q, d.c.Heads, n, 0, rows, layer)
	d.rotate(to.k, d.c.KVHeads, n, 0, rows, layer)
	return to
}

func (d *defined) latent(a *nn.MLA, x []float32, rows, layer int) attended {
	c := d.c.MLA
	to := attended{keyDim: c.NoPE + c.RoPE, valueDim: c.Value}
	from := x
	if a.QueryDown != nil {
		from = d.norm(a.QueryNorm.Gain, d.layer(a.QueryDown, x), c.NormEps)
	}
	to.q = d.layer(a.Query, from)
	down := d.layer(a.KVDown, x)
	var raw, shared []float32
	for row := range slices.Chunk(down, c.KVRank+c.RoPE) {
		raw, shared = append(raw, row[:c.KVRank]...), append(shared, row[c.KVRank:]...)
	}
	up := d.layer(a.KV, d.norm(a.KVNorm.Gain, raw, c.NormEps))
	for i := range rows * d.c.Heads {
		of := up[i*(c.NoPE+c.Value):][:c.NoPE+c.Value]
		to.k = append(append(to.k, of[:c.NoPE]...), shared[i/d.c.Heads*c.RoPE:][:c.RoPE]...)
		to.v = append(to.v, of[c.NoPE:]...)
	}
	d.rotate(to.q, d.c.Heads, to.keyDim, c.NoPE, rows, layer)
	d.rotate(to.k, d.c.Heads, to.keyDim, c.NoPE, rows, layer)
	return to
}

// mixed returns what tokens see of each other.
func (d *defined) mixed(a attended, layer int, sinks *nn.Param) (mixed []float32) {
	keys := cached(d.c, d.o, a.k, d.o.KeyScales, layer, a.keyDim)
	values := cached(d.c, d.o, a.v, d.o.ValueScales, layer, a.valueDim)
	i := 0
	for q := range slices.Chunk(a.q, d.c.Heads*a.keyDim) {
		i++
		p := attention.Problem{K: first(keys, i), V: first(values, i)}
		s := d.c.Scores(layer)
		if p.Scale, p.Cap = float32(s.Scale), float32(s.Cap); sinks != nil {
			p.Sinks = sinks.Value
		}
		if s.Window > 0 {
			p.Mask.Window = &attention.Window{Left: s.Window - 1, Right: -1}
		}
		mixed = append(mixed, sees(d.t, d.c, q, p)...)
	}
	return mixed
}

func (d *defined) experts(of *nn.Experts, x []float32, rows int) []float32 {
	var shared nn.Shared
	o := d.with
	o.Shared, o.Gate, o.Biases = &shared, d.c.Gate, d.c.Biases
	c := *d.c.Experts
	c.Dim = d.c.Dim
	prefix, _, _ := strings.Cut(of.Params()[0].Name, "gate")
	experts, err := nn.NewExperts(prefix, c, o)
	require.NoError(d.t, err)
	for i, p := range experts.Params() {
		copy(p.Value, of.Params()[i].Value)
	}
	state := shared.Scaling().State()
	for name := range state.Routers {
		state.Routers[name] = nn.RouterState{Bias: of.Router.Bias(), Load: make([]int64, c.Router.Experts)}
	}
	require.NoError(d.t, shared.Scaling().Restore(state))
	y := make([]float32, len(x))
	require.NoError(d.t, experts.Forward(d.t.Context(), y, x, 1, rows))
	return y
}

// cached returns keys or values as they are in a cache.
func cached(
	c nn.Config, o generate.Options, x, static []float32, layer, d int,
) (to attention.Operand) {
	rows := len(x) / (c.KVHeads * d)
	if len(static) == c.Layers { // the same for all heads
		static = slices.Repeat(static[layer:layer+1], c.KVHeads)
	} else if static != nil {
		static = static[layer*c.KVHeads:][:c.KVHeads]
	}
	codes := &tensor.Tensor{Format: fp8.E4M3, Shape: []int{c.KVHeads, rows, d},
		Block: tensor.Block{Rows: 1}}
	to.Shape = [3]int{c.KVHeads, rows, d}
	for h := range c.KVHeads {
		for i := range rows {
			row := x[(i*c.KVHeads+h)*d:][:d]
			scale := float32(1e-6)
			for _, v := range row {
				scale = max(scale, float32(math.Abs(float64(v)))/448)
			}
			if static != nil {
				scale = static[h]
			}
			codes.Scales = append(codes.Scales, scale)
			for _, v := range row {
				codes.Codes = append(codes.Codes, fp8.EncodeOne(v/scale, fp8.E4M3, fp8.Policy{}))
				to.BFloat16 = append(to.BFloat16, fp8.BFloat16FromFloat32(v))
			}
		}
	}
	switch {
	case o.Cache == generate.CacheBF16:
		return to
	case o.Cache == generate.CacheF32:
		to.BFloat16, to.Float32 = nil, nil
		for i := range c.KVHeads * rows {
			to.Float32 = append(to.Float32, x[(i%rows*c.KVHeads+i/rows)*d:][:d]...)
		}
		return to
	case o.Cache == generate.CacheNVFP4, o.Cache == generate.CacheMXFP8:
		return blockwise(o.Cache == generate.CacheNVFP4, c.KVHeads, rows, d, x)
	case static != nil:
		codes.Block.Rows, codes.Scales = rows, static
	}
	return attention.Operand{Codes: codes}
}

// blockwise quantizes blocks along rows: of 16 in E2M1 under amax/6 in E4M3, 2^-6 at least, or of
// 32 in E4M3 under the power of two above amax/448.
func blockwise(narrow bool, heads, rows, d int, x []float32) attention.Operand {
	t := &tensor.Tensor{Shape: []int{heads, rows, d}, Block: tensor.Block{Rows: 1, Cols: 32}, ScaleFormat: tensor.E8M0Scales}
	if narrow {
		t.Format, t.ScaleFormat, t.Block.Cols = fp8.E2M1, tensor.UE4M3Scales, 16
	}
	for h := range heads {
		for i := range rows {
			row := x[(i*heads+h)*d:][:d]
			for lo := 0; lo < d; lo += t.Block.Cols {
				block := row[lo:min(lo+t.Block.Cols, d)]
				amax := float32(0)
				for _, v := range block {
					amax = max(amax, float32(math.Abs(float64(v))))
				}
				scale := max(fp8.E4M3.Float32(fp8.EncodeOne(amax/6, fp8.E4M3, fp8.Policy{})), 0x1p-6)
				if !narrow {
					for scale = 0x1p-127; scale < float32(amax*(float32(1)/448)); {
						scale *= 2
					}
				}
				t.Scales = append(t.Scales, scale)
				for _, v := range block {
					t.Codes = append(t.Codes, fp8.EncodeOne(v*(1/scale), t.Format, fp8.Policy{}))
				}
			}
		}
	}
	return attention.Operand{Codes: t}
}

// first returns the first so many tokens of an operand.
func first(o attention.Operand, n int) (to attention.Operand) {
	heads, tokens, d := o.Dims()
	if o.Codes == nil {
		to.Shape = [3]int{heads, n, d}
		for h := range heads {
			if o.Float32 != nil {
				to.Float32 = append(to.Float32, o.Float32[h*tokens*d:][:n*d]...)
			} else {
				to.BFloat16 = append(to.BFloat16, o.BFloat16[h*tokens*d:][:n*d]...)
			}
		}
		return to
	}
	t := *o.Codes
	t.Shape, t.Codes = []int{heads, n, d}, nil
	each := len(t.Scales) / (heads * tokens)
	perToken := each > 0 && o.Codes.Block.Rows == 1
	if t.Block.Rows = n; perToken {
		t.Block.Rows, t.Scales = 1, nil
	}
	for h := range heads {
		t.Codes = append(t.Codes, o.Codes.Codes[h*tokens*d:][:n*d]...)
		if perToken {
			t.Scales = append(t.Scales, o.Codes.Scales[h*tokens*each:][:n*each]...)
		}
	}
	return attention.Operand{Codes: &t}
}

// sees returns what one token's queries see of a problem's keys and values.
func sees(t *testing.T, c nn.Config, q []float32, p attention.Problem) []float32 {
	queries := attention.Operand{Shape: [3]int{c.Heads, 1, len(q) / c.Heads}}
	if queries.Float32 = q; p.K.Float32 == nil {
		queries.Float32 = nil
		for _, x := range q {
			queries.BFloat16 = append(queries.BFloat16, fp8.BFloat16FromFloat32(x))
		}
	}
	_, _, wide := p.V.Dims()
	out := make([]float32, c.Heads*wide)
	p.Q = queries
	require.NoError(t, attention.Forward(t.Context(), out, &p, attention.Options{}))
	return out
}
