package parity

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/experiments/parity/reference"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/train"
)

func shortPlan() plan { return studyOf(lab.Options{Length: lab.Short}).plan }

func corpus(t *testing.T) *train.Corpus {
	t.Helper()
	c, err := train.NewCorpus(bytes.Repeat([]byte("one two, buckle my shoe; "), 100), 200, 1)
	require.NoError(t, err)
	return c
}

func nobody(int) error { return nil }

// root is a model after the common steps.
func root(t *testing.T) *trainee {
	t.Helper()
	r, err := shortPlan().root(t.Context(), corpus(t), 1, 1, func(float64) error { return nil })
	require.NoError(t, err)
	return r
}

// TestSpreadChangesNothing in FP32: losses of all steps are the same to the bit, while the
// weights and what they multiply are others.
func TestSpreadChangesNothing(t *testing.T) {
	p, c := shortPlan(), corpus(t)
	with, err := p.part(t.Context(), root(t), arms()[fp32Arm], c, 1, 1)
	require.NoError(t, err)
	without := root(t)
	require.NotEqual(t, without.model.Params()[3].Value, with.model.Params()[3].Value)
	got, err := p.goOn(t.Context(), with, c, nobody)
	require.NoError(t, err)
	want, err := p.goOn(t.Context(), without, c, nobody)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for i := range with.masters {
		require.Equal(t, without.masters[i].Value, with.masters[i].Value, with.masters[i].Name)
	}

	b, err := p.batch(c, 0)
	require.NoError(t, err)
	plain, err := without.widths(t.Context(), b)
	require.NoError(t, err)
	wide, err := with.widths(t.Context(), b)
	require.NoError(t, err)
	for i, k := range operandKinds {
		require.Greater(t, mean(wide[i]).largest, 2*mean(plain[i]).largest, k.what)
		require.Greater(t, mean(wide[i]).kurtosis, mean(plain[i]).kurtosis, k.what)
	}
}

// TestForkGoesOn as what it was forked from would have.
func TestForkGoesOn(t *testing.T) {
	p, c := shortPlan(), corpus(t)
	r := root(t)
	f, err := r.fork("fork", r.model.Config(), optim.MomentsFP32)
	require.NoError(t, err)
	got, err := p.goOn(t.Context(), f, c, nobody)
	require.NoError(t, err)
	want, err := p.goOn(t.Context(), r, c, nobody)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, r.masters[1].Value, f.masters[1].Value)
}

// TestForkedMoments are those of the root in BF16.
func TestForkedMoments(t *testing.T) {
	r := root(t)
	f, err := r.fork("fork", r.model.Config(), optim.MomentsBF16)
	require.NoError(t, err)
	want, err := r.optimizer.Tensors(r.masters)
	require.NoError(t, err)
	got, err := f.optimizer.Tensors(f.masters)
	require.NoError(t, err)
	require.Len(t, got, len(want))
	require.Equal(t, r.optimizer.Steps(), f.optimizer.Steps())
	for i := range want {
		require.Equal(t, want[i].Name, got[i].Name)
		for j := range want[i].Count() {
			v := want[i].Value(j)
			require.InDelta(t, v, got[i].Value(j), 0.004*math.Abs(v), want[i].Name)
		}
	}
}

// TestFactors: each weight that reads or makes a channel has that channel's factor.
func TestFactors(t *testing.T) {
	c := nn.Config{Vocab: 3, Dim: 2, Layers: 1, Heads: 1, Hidden: 3, Context: 2}
	m, err := nn.NewLlama(c, 1)
	require.NoError(t, err)
	s := []spread{{
		attention: []float32{2, 4}, mlp: []float32{8, 16}, value: []float32{32, 64},
		hidden: []float32{128, 256, 512},
	}}
	all := factorsOf(m.Params(), s)
	at := func(name string, row, col int) float32 {
		for i, p := range m.Params() {
			if p.Name == name {
				return all[i].at(row, col)
			}
		}
		require.Fail(t, name)
		return 0
	}
	const block = "model.layers.0."
	require.EqualValues(t, 4, at(block+"input_layernorm.weight", 0, 1))
	require.EqualValues(t, 1./4, at(block+"self_attn.q_proj.weight", 0, 1))
	require.EqualValues(t, 1./2, at(block+"self_attn.k_proj.weight", 1, 0))
	require.EqualValues(t, 64./2, at(block+"self_attn.v_proj.weight", 1, 0))
	require.EqualValues(t, 1./64, at(block+"self_attn.o_proj.weight", 0, 1))
	require.EqualValues(t, 16, at(block+"post_attention_layernorm.weight", 0, 1))
	require.EqualValues(t, 1./8, at(block+"mlp.gate_proj.weight", 2, 0))
	require.EqualValues(t, 512./16, at(block+"mlp.up_proj.weight", 2, 1))
	require.EqualValues(t, 1./256, at(block+"mlp.down_proj.weight", 0, 1))
	require.EqualValues(t, 1, at("lm_head.weight", 2, 1))
	require.EqualValues(t, 1, at("model.embed_tokens.weight", 2, 1))
}

// TestStaleScales are of before the spread, and stay: outliers saturate in one and not in
// the other.
func TestStaleScales(t *testing.T) {
	p, c := shortPlan(), corpus(t)
	r := root(t)
	s, err := p.part(t.Context(), r, arms()[staleArm], c, 1, 1)
	require.NoError(t, err)
	before := s.model.Shared().Scaling().State()
	_, err = p.goOn(t.Context(), s, c, nobody)
	require.NoError(t, err)
	after := s.model.Shared().Scaling().State()
	require.Equal(t, before.Histories.Step, after.Histories.Step)
	require.NotZero(t, before.Histories.Step)
}

// TestWidths of normal values, and of those with one large channel.
func TestWidths(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float32, 100*1000)
	for i := range values {
		values[i] = float32(random.NormFloat64())
	}
	w := widthOf(values, 100)
	require.InDelta(t, 3, w.kurtosis, 0.1)
	require.InDelta(t, 4.5, w.amax, 0.7)
	require.InDelta(t, 0, w.channels, 0.1)
	require.InDelta(t, 1, w.largest, 0.1)
	for i := 7; i < len(values); i += 100 {
		values[i] *= 32
	}
	w = widthOf(values, 100)
	require.InDelta(t, 3*(99+math.Pow(32, 4))*100/math.Pow(99+32*32, 2), w.kurtosis, 30)
	require.InDelta(t, 32, w.largest, 2)
	require.InDelta(t, 0.5, w.channels, 0.05, "5 powers of two, in a hundredth")
}

// TestNarrowProducts: with exact sums they give the gradients of package nn's FP8 but for
// the float32 around them, which is far less than what FP8 itself does.
func TestNarrowProducts(t *testing.T) {
	p, c := shortPlan(), corpus(t)
	r := root(t)
	base, err := p.part(t.Context(), r, arms()[fp32Arm], c, 1, 1)
	require.NoError(t, err)
	recipes := nn.ProfileFP8("", fp8.E5M2) // of gradients, so that operands have recipes of their own
	hybrid := arm{name: "hybrid", use: func(c *nn.Config, _ uint64) { c.FP8 = &recipes }}
	inFP8, err := p.part(t.Context(), r, hybrid, c, 1, 1)
	require.NoError(t, err)
	b, err := p.batch(c, 5)
	require.NoError(t, err)
	gradient := func(s source) reference.Values {
		g, err := s.gradient(t.Context(), b)
		require.NoError(t, err)
		return g
	}
	exact, got := gradient(base.inFloat64(reference.Exact)), gradient(inFP8.source())
	same := gradient(base.inFloat64((&narrow{recipes: recipes}).multiply))
	for _, w := range weightsOf(base.masters) {
		require.Less(t, off(got[w], same[w]), 0.3*off(got[w], exact[w]), w)
		require.Greater(t, off(got[w], exact[w]), 0.01, w)
	}
	inFP32 := gradient(base.source())
	for _, w := range weightsOf(base.masters) {
		require.Less(t, off(inFP32[w], exact[w]), 1e-5, w)
	}
}

func off(got, want []float64) float64 {
	var squares float64
	for i, v := range want {
		squares += (got[i] - v) * (got[i] - v)
	}
	return math.Sqrt(squares) / length(want)
}

// TestErrors has the figures of two batches that can be computed by hand.
func TestErrors(t *testing.T) {
	next := 0
	of := func(batches ...[]float64) source {
		return source{gradient: func(context.Context, batch) (reference.Values, error) {
			return reference.Values{"w": batches[next]}, nil
		}}
	}
	exact := of([]float64{3, 4}, []float64{4, 3})
	sources := []source{
		of([]float64{3, 5}, []float64{4, 4}), of([]float64{3, 5}, []float64{4, 2}),
		of([]float64{6, 8}, []float64{8, 6}),
	}
	e := newErrors([]string{"w"}, sources)
	for next = range 2 {
		require.NoError(t, e.add(t.Context(), batch{}, exact, sources))
	}
	all := e.results()
	same, opposite, twice := all[0]["w"], all[1]["w"], all[2]["w"]
	require.InDelta(t, 1./5, same.relative, 1e-12)
	require.InDelta(t, (4./25+3./25)/2, same.projection, 1e-12)
	require.InDelta(t, (29/(5*math.Sqrt(34))+28/(5*math.Sqrt(32)))/2, same.cosine, 1e-12)
	require.InDeltaSlice(t, []float64{1. / 5, 1. / 5}, same.mean, 1e-12, "it stays")
	require.InDelta(t, 1, same.persistent, 1e-12)
	require.InDelta(t, 2/(7*math.Sqrt2), same.sum, 1e-12)
	require.InDeltaSlice(t, []float64{1. / 5, 0}, opposite.mean, 1e-12)
	require.InDelta(t, 1, same.fall, 1e-12)
	require.Zero(t, opposite.fall)
	require.InDelta(t, -1, opposite.persistent, 1e-12)
	require.Zero(t, opposite.sum)
	require.InDelta(t, 1, twice.projection, 1e-12)
	require.InDelta(t, 1, twice.cosine, 1e-12)
	require.InDelta(t, 1, twice.sum, 1e-12)
}
