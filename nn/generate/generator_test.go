package generate_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/generate"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/scaling"
)

// model returns a model whose keys and values are far from alike from token to token.
func model(t *testing.T) *nn.Llama {
	t.Helper()
	m, err := nn.NewLlama(nn.Config{
		Vocab: 37, Dim: 32, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 40, Context: 96,
	}, 1)
	require.NoError(t, err)
	for i, p := range m.Params() {
		if p.Decay {
			p.Randomize(1, uint64(i), 0.3)
		}
	}
	return m
}

// mixture returns a model with latent attention and, behind a dense layer, experts whose biases
// have been moved.
func mixture(t *testing.T, change func(*nn.Config)) *nn.Llama {
	t.Helper()
	c := nn.Config{
		Vocab: 37, Dim: 32, Layers: 2, Heads: 2, Hidden: 40, Context: 96, Dense: 1,
		MLA: &nn.MLAConfig{QueryRank: 12, KVRank: 10, NoPE: 6, RoPE: 4, Value: 8, NormEps: 1e-3},
		Experts: &nn.ExpertsConfig{Hidden: 20, Shared: 1, Router: nn.RouterConfig{
			Experts: 6, TopK: 2, Scale: 1.5, BiasRate: 0.25, BalanceLoss: 0.1,
		}},
	}
	change(&c)
	m, err := nn.NewLlama(c, 1)
	require.NoError(t, err)
	for i, p := range m.Params() {
		if p.Decay {
			p.Randomize(1, uint64(i), 0.3)
		}
	}
	tokens := tokensOf(rand.New(rand.NewPCG(6, 1)), 64, 37)
	_, err = m.Loss(t.Context(), tokens, tokens, 1, len(tokens))
	require.NoError(t, err)
	require.NoError(t, m.Backward(t.Context()))
	m.EndStep()
	return m
}

// rounded returns a model after rounding it to bfloat16.
func rounded(m *nn.Llama) *nn.Llama {
	for _, p := range m.Params() {
		for i, x := range p.Value {
			p.Value[i] = fp8.BFloat16FromFloat32(x).Float32()
		}
	}
	return m
}

// models are those of all kinds.
func models(t *testing.T) map[string]*nn.Llama {
	t.Helper()
	return map[string]*nn.Llama{
		"llama":   model(t),
		"BF16":    rounded(model(t)),
		"mixture": mixture(t, func(*nn.Config) {}),
		"direct": mixture(t, func(c *nn.Config) {
			c.MLA.QueryRank, c.MLA.Value, c.Experts.Shared, c.Dense = 0, 12, 0, 0
		}),
		"features": featured(t, func(c *nn.Config) {
			for _, f := range features {
				f.set(c)
			}
		}),
		"latent features": latentFeatures(t),
	}
}

// latentFeatures returns a model with latent attention and all features that go with it.
func latentFeatures(t *testing.T) *nn.Llama {
	t.Helper()
	m := mixture(t, func(c *nn.Config) {
		for _, f := range features {
			if !slices.Contains([]string{"head", "rotary", "bases", "sinks", "experts", "groups"}, f.name) {
				f.set(c)
			}
		}
	})
	randomize(m)
	return m
}

// features are what a model may have besides, in two layers.
var features = []struct {
	name string
	set  func(c *nn.Config)
}{
	{"head", func(c *nn.Config) { c.HeadDim = 12 }},
	{"rotary", func(c *nn.Config) { c.RotaryDim = 6 }},
	{"windows", func(c *nn.Config) { c.Windows = []int{7, 0} }},
	{"bases", func(c *nn.Config) { c.Windows, c.WindowRopeTheta = []int{0, 5}, 300 }},
	{"norms", func(c *nn.Config) { c.Norms = nn.Norms{PlusOne: true, After: true, QueryKey: c.MLA == nil} }},
	{"biases", func(c *nn.Config) {
		c.Biases = nn.Biases{QueryKeyValue: true, Output: true, MLP: true, Router: c.Experts != nil}
	}},
	{"sinks", func(c *nn.Config) { c.Sinks = true }},
	{"scale", func(c *nn.Config) { c.ScoreScale = 0.17 }},
	{"cap", func(c *nn.Config) { c.ScoreCap = 2 }},
	{"logits", func(c *nn.Config) { c.LogitCap = 3 }},
	{"embedding", func(c *nn.Config) { c.EmbeddingScale = 2.5 }},
	{"GELU", func(c *nn.Config) { c.Gate = nn.Gate{Activation: nn.GateGELUTanh} }},
	{"clamped", func(c *nn.Config) { c.Gate = nn.Gate{Activation: nn.GateClamped, Alpha: 1.7, Limit: 0.5} }},
	{"YaRN", func(c *nn.Config) {
		c.RopeScaling = nn.RopeScaling{YaRN: true, Factor: 4, Original: 16, Low: 1, High: 32, Attention: 1.1}
	}},
	{"experts", func(c *nn.Config) {
		c.DenseLayers, c.Biases.Router = []int{0}, true
		c.Experts = &nn.ExpertsConfig{Hidden: 20, Router: nn.RouterConfig{Experts: 6, TopK: 2, Score: nn.ScoreSoftmax}}
	}},
	{"groups", func(c *nn.Config) {
		c.Experts = &nn.ExpertsConfig{Hidden: 20, Shared: 1, Router: nn.RouterConfig{
			Experts: 8, TopK: 3, Groups: 4, TopGroups: 2, GroupScores: 1, Unnormalized: true, Score: nn.ScoreSoftmax, Scale: 3,
		}}
	}},
}

// featured returns a model all of whose parameters are random.
func featured(t *testing.T, change func(c *nn.Config)) *nn.Llama {
	t.Helper()
	c := nn.Config{Vocab: 37, Dim: 32, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 40, Context: 96}
	change(&c)
	m, err := nn.NewLlama(c, 1)
	require.NoError(t, err)
	randomize(m)
	return m
}

// randomize makes all parameters random.
func randomize(m *nn.Llama) {
	for i, p := range m.Params() {
		before := slices.Clone(p.Value)
		if p.Randomize(1, uint64(i), 0.3); p.Decay {
			continue
		}
		for j, x := range before { // gains, biases and sinks, around what they were
			p.Value[j] += x
		}
	}
}

// TestFeatures compares with the model itself, of each feature alone, and of some together.
func TestFeatures(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	tokens := tokensOf(r, 80, 37)
	logits := func(m *nn.Llama, o generate.Options) []float32 {
		g := generator(t, m, o)
		got, err := g.Logits(t.Context(), []*generate.Sequence{sequence(t, g)}, [][]int32{tokens})
		require.NoError(t, err)
		return slices.Clone(got)
	}
	plain := logits(featured(t, func(*nn.Config) {}), generate.Options{Cache: generate.CacheF32})
	for _, f := range features {
		m := featured(t, f.set)
		want, err := m.Logits(t.Context(), tokens, 1, len(tokens))
		require.NoError(t, err)
		got := logits(m, generate.Options{Cache: generate.CacheF32})
		require.Less(t, difference(want, got), 2e-6, f.name)
		require.Greater(t, difference(plain, got), 1e-3, "%s has an effect", f.name)
	}
	for range 12 {
		var names []string
		m := featured(t, func(c *nn.Config) {
			for _, f := range features {
				if r.IntN(3) == 0 {
					f.set(c)
					names = append(names, f.name)
				}
			}
		})
		want, err := m.Logits(t.Context(), tokens, 1, len(tokens))
		require.NoError(t, err)
		got := logits(m, generate.Options{Cache: generate.CacheF32, Workers: 3})
		require.Less(t, difference(want, got), 2e-6, "%v", names)
	}
}

// TestLongRoPE: the factors are those of how long the sequence is, or of its whole prompt, in
// however many parts that is run.
func TestLongRoPE(t *testing.T) {
	const original, vocab = 270, 37
	m := featured(t, func(c *nn.Config) {
		c.Context = 300
		c.RopeScaling = nn.RopeScaling{Original: original, Attention: 1.2, Short: []float64{1, 1.5, 2, 4}, Long: []float64{2, 3, 5, 9}}
	})
	tokens := tokensOf(rand.New(rand.NewPCG(7, 5)), 300, vocab)
	for _, o := range []generate.Options{{Cache: generate.CacheF32}, {FP8: operandsOf(t, "fp8")}} {
		// want is what follows n tokens.
		want := map[int][]float32{}
		for _, n := range []int{original - 1, original, original + 1, 300} {
			all := definition(t, m, tokens[:n], o)
			want[n] = all[len(all)-vocab:]
		}
		of, err := m.Logits(t.Context(), tokens, 1, 300)
		require.NoError(t, err)
		if o.Cache == generate.CacheF32 {
			require.Less(t, difference(of[299*vocab:], want[300]), 2e-6)
		}
		g := generator(t, m, o)
		for _, prompt := range []int{1, original - 1, original, original + 1, 300} {
			s := sequence(t, g)
			got, err := g.Prefill(t.Context(), []*generate.Sequence{s}, [][]int32{tokens[:prompt]})
			require.NoError(t, err)
			for n := prompt; ; n++ {
				if want := want[n]; want != nil {
					require.Equal(t, bitsOf(want), bitsOf(got), "prompt of %d, after %d", prompt, n)
				}
				if n == len(tokens) {
					break
				}
				got, err = g.Step(t.Context(), []*generate.Sequence{s}, tokens[n:n+1])
				require.NoError(t, err)
			}
			// Back to where the short factors are, and on again.
			s.Truncate(100)
			for n := 100; n < original+1; {
				hi := min(n+57, original+1)
				if n < original && hi > original {
					hi = original
				}
				got, err = g.Prefill(t.Context(), []*generate.Sequence{s}, [][]int32{tokens[n:hi]})
				require.NoError(t, err)
				if n = hi; want[n] != nil {
					require.Equal(t, bitsOf(want[n]), bitsOf(got), "truncated, after %d", n)
				}
			}
			if want := want[prompt]; want != nil { // prompts of more than 256 tokens are run in parts
				r, _, err := g.Generate(t.Context(), generate.Request{Prompt: tokens[:prompt], Tokens: 1, LogProbs: true})
				require.NoError(t, err)
				best := slices.Index(want, slices.Max(want))
				require.Equal(t, int32(best), r.Tokens[0])
				sum := 0.0
				for _, x := range want {
					sum += math.Exp(float64(x - want[best]))
				}
				require.InDelta(t, -math.Log(sum), float64(r.LogProbs[0]), 1e-6)
			}
		}
	}
}

// difference is that of logits, relative to their size.
func difference(want, got []float32) float64 {
	noise, energy := 0.0, 0.0
	for i, x := range want {
		noise += math.Pow(float64(x)-float64(got[i]), 2)
		energy += float64(x) * float64(x)
	}
	return math.Sqrt(noise / energy)
}

func tokensOf(r *rand.Rand, n, vocab int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(r.IntN(vocab))
	}
	return tokens
}

func generator(t *testing.T, m *nn.Llama, o generate.Options) *generate.Generator {
	t.Helper()
	g, err := generate.New(t.Context(), m, o)
	require.NoError(t, err)
	return g
}

func sequence(t *testing.T, g *generate.Generator) *generate.Sequence {
	t.Helper()
	s, err := g.NewSequence(0)
	require.NoError(t, err)
	return s
}

// bitsOf tells NaN and zeros apart.
func bitsOf(values []float32) []uint32 {
	bits := make([]uint32, len(values))
	for i, x := range values {
		bits[i] = math.Float32bits(x)
	}
	return bits
}

func operandsOf(t *testing.T, name string) *nn.Operands {
	t.Helper()
	if name == "" {
		return nil
	}
	if r, err := nn.ParseRecipe(name); err == nil {
		return &r.FP8.Forward
	}
	p := scaling.Profile(name)
	require.True(t, p.Valid(), name)
	return &nn.Operands{A: p.Recipe(scaling.Input), B: p.Recipe(scaling.Weight)}
}

// perToken are options whose scales belong to one token.
func perToken(t *testing.T) map[string]generate.Options {
	static := generate.Options{
		FP8: operandsOf(t, "fp8"), KeyScales: []float32{0.01, 0.02},
		ValueScales: []float32{0.03, 0.004},
	}
	perHead := generate.Options{
		KeyScales:   []float32{0.01, 0.02, 0.003, 0.04},
		ValueScales: []float32{0.03, 0.004, 0.02, 0.01},
	}
	return map[string]generate.Options{
		"FP32":              {},
		"FP32, per head":    perHead,
		"FP32, BF16 cache":  {Cache: generate.CacheBF16},
		"FP32, F32 cache":   {Cache: generate.CacheF32},
		"fp8, F32 cache":    {FP8: operandsOf(t, "fp8"), Cache: generate.CacheF32},
		"FP32, NVFP4 cache": {Cache: generate.CacheNVFP4},
		"fp8, MXFP8 cache":  {FP8: operandsOf(t, "fp8"), Cache: generate.CacheMXFP8},
		"fp8":               {FP8: operandsOf(t, "fp8"), BatchInvariant: true},
		"fp8, BF16 cache":   {FP8: operandsOf(t, "fp8"), Cache: generate.CacheBF16},
		"fp8, static":       static,
		"fp8, FP8 head": {
			FP8: operandsOf(t, "fp8"), Head: operandsOf(t, "fp8"), BatchInvariant: true,
		},
		"BF16 head":       {RoundHead: true},
		"fp8, MXFP8 head": {FP8: operandsOf(t, "fp8"), Head: operandsOf(t, "mxfp8")},
		"mxfp8":           {FP8: operandsOf(t, "mxfp8"), BatchInvariant: true},
		"nvfp4-te-row":    {FP8: operandsOf(t, "nvfp4-te-row"), BatchInvariant: true},
	}
}

// TestDefinition compares with the definition, to the bit.
func TestDefinition(t *testing.T) {
	tokens := tokensOf(rand.New(rand.NewPCG(1, 1)), 80, 37)
	for kind, m := range models(t) {
		for name, o := range perToken(t) {
			want := definition(t, m, tokens, o)
			g := generator(t, m, o)
			got, err := g.Logits(t.Context(), []*generate.Sequence{sequence(t, g)}, [][]int32{tokens})
			require.NoError(t, err)
			require.Equal(t, bitsOf(want), bitsOf(got), "%s: %s", kind, name)
		}
	}
}

// TestIncremental cuts a sequence anywhere: all parts at once, or token by token.
func TestIncremental(t *testing.T) {
	for kind, m := range models(t) {
		t.Run(kind, func(t *testing.T) { testIncremental(t, m) })
	}
}

func testIncremental(t *testing.T, m *nn.Llama) {
	r := rand.New(rand.NewPCG(2, 2))
	tokens, vocab := tokensOf(r, 80, 37), m.Config().Vocab
	for name, o := range perToken(t) {
		g := generator(t, m, o)
		logits, err := g.Logits(t.Context(), []*generate.Sequence{sequence(t, g)},
			[][]int32{tokens})
		require.NoError(t, err)
		want := bitsOf(logits)
		for trial := range 3 {
			o.Workers = trial
			g := generator(t, m, o)
			s := sequence(t, g)
			for lo := 0; lo < len(tokens); {
				hi := lo + 1
				if trial > 0 && r.IntN(2) == 0 {
					hi = min(lo+1+r.IntN(30), len(tokens))
				}
				var got []float32
				if hi == lo+1 {
					got, err = g.Step(t.Context(), []*generate.Sequence{s}, tokens[lo:hi])
				} else {
					got, err = g.Prefill(t.Context(), []*generate.Sequence{s},
						[][]int32{tokens[lo:hi]})
				}
				require.NoError(t, err)
				require.Equal(t, want[(hi-1)*vocab:hi*vocab], bitsOf(got), "%s: tokens %d to %d",
					name, lo, hi)
				if lo = hi; trial == 2 && r.IntN(4) == 0 {
					lo = r.IntN(hi + 1)
					s.Truncate(lo)
				}
				require.Equal(t, lo, s.Len())
			}
		}
	}
}

// TestBatch runs requests of different lengths in random batches, and each of them alone.
func TestBatch(t *testing.T) {
	for kind, m := range models(t) {
		t.Run(kind, func(t *testing.T) { testBatch(t, m) })
	}
}

func testBatch(t *testing.T, m *nn.Llama) {
	r := rand.New(rand.NewPCG(3, 3))
	vocab := m.Config().Vocab
	for name, o := range perToken(t) {
		g := generator(t, m, o)
		const requests = 5
		var all [requests][]int32
		var alone [requests][]uint32
		var s [requests]*generate.Sequence
		for i := range requests {
			all[i] = tokensOf(r, 1+r.IntN(80), vocab)
			got, err := g.Logits(t.Context(), []*generate.Sequence{sequence(t, g)},
				[][]int32{all[i]})
			require.NoError(t, err)
			alone[i], s[i] = bitsOf(got), sequence(t, g)
		}
		for left := requests; left > 0; {
			var batch []*generate.Sequence
			var parts [][]int32
			var which []int
			for _, i := range r.Perm(requests) {
				n := len(all[i]) - s[i].Len()
				if n > 0 && (r.IntN(2) == 0 || len(batch) == 0) {
					if r.IntN(3) > 0 {
						n = 1 + r.IntN(n)
					}
					batch, which = append(batch, s[i]), append(which, i)
					parts = append(parts, all[i][s[i].Len():][:n])
				}
			}
			got, err := g.Prefill(t.Context(), batch, parts)
			require.NoError(t, err)
			left = 0
			for j, i := range which {
				end := s[i].Len()
				require.Equal(t, alone[i][(end-1)*vocab:end*vocab],
					bitsOf(got[j*vocab:(j+1)*vocab]), "%s: request %d", name, i)
			}
			for i := range requests {
				if s[i].Len() < len(all[i]) {
					left++
				}
			}
		}
	}
}

// TestSpanning checks that a recipe which is refused does depend on what is run together.
func TestSpanning(t *testing.T) {
	m, r := model(t), rand.New(rand.NewPCG(4, 4))
	for _, name := range []string{"te-current", "nvfp4", "torchao-tensorwise"} {
		o := generate.Options{FP8: operandsOf(t, name)}
		g := generator(t, m, o)
		a, b := tokensOf(r, 9, 37), tokensOf(r, 5, 37)
		got, err := g.Prefill(t.Context(), []*generate.Sequence{sequence(t, g)}, [][]int32{a})
		require.NoError(t, err)
		alone := bitsOf(got)
		got, err = g.Prefill(t.Context(), []*generate.Sequence{sequence(t, g), sequence(t, g)},
			[][]int32{a, b})
		require.NoError(t, err)
		require.NotEqual(t, alone, bitsOf(got[:37]), name)

		o.BatchInvariant = true
		_, err = generate.New(t.Context(), m, o)
		require.ErrorIs(t, err, generate.ErrBatch)
		require.ErrorContains(t, err, "such as fp8, mxfp8 or torchao-rowwise")
	}
}

// TestModel compares with the model itself, whose attention is FP32.
func TestModel(t *testing.T) {
	for kind, m := range models(t) {
		t.Run(kind, func(t *testing.T) { testModel(t, m) })
	}
}

func testModel(t *testing.T, m *nn.Llama) {
	tokens := tokensOf(rand.New(rand.NewPCG(5, 5)), 80, 37)
	want, err := m.Logits(t.Context(), tokens, 1, len(tokens))
	require.NoError(t, err)
	last := 0.0
	for _, o := range []struct {
		name        string
		least, most float64 // of the noise, relative
		options     generate.Options
	}{
		{"f32", 0, 2e-6, generate.Options{Cache: generate.CacheF32}},
		{"bf16", 1e-4, 0.01, generate.Options{Cache: generate.CacheBF16}},
		{"e4m3", 2e-3, 0.1, generate.Options{}},
		{"fp8", 2e-3, 0.4, generate.Options{FP8: operandsOf(t, "fp8")}},
	} {
		g := generator(t, m, o.options)
		got, err := g.Logits(t.Context(), []*generate.Sequence{sequence(t, g)}, [][]int32{tokens})
		require.NoError(t, err)
		relative := difference(want, got)
		t.Log(o.name, relative)
		require.Greater(t, relative, max(o.least, last), o.name)
		require.Less(t, relative, o.most, o.name)
		last = relative
	}
}

func TestRefuses(t *testing.T) {
	m := model(t)
	for text, o := range map[string]generate.Options{
		"Workers is -1":                     {Workers: -1},
		"unknown format of a cache 7":       {Cache: 7},
		"KeyScales are 1 and ValueScales 0": {KeyScales: []float32{1}},
		"KeyScales are 1: the model has 2 layers of 2 heads": {KeyScales: []float32{1},
			ValueScales: []float32{1, 1}},
		"ValueScales are 3: the model has 2 layers of 2 heads": {KeyScales: []float32{1, 1},
			ValueScales: []float32{1, 1, 1}},
		"ValueScales[1] is NaN: it must be positive": {KeyScales: []float32{1, 1},
			ValueScales: []float32{1, float32(math.NaN())}},
		"KeyScales are for a cache in e4m3: this one is in bf16": {KeyScales: []float32{1, 1},
			ValueScales: []float32{1, 1}, Cache: generate.CacheBF16},
		"takes its scale from the amax of earlier steps": {FP8: operandsOf(t,
			"te-delayed")},
		"unknown profile": {FP8: &nn.Operands{A: scaling.Recipe{Profile: "none"}}},
		"Options.Head: ":  {Head: &nn.Operands{A: scaling.Recipe{Profile: "none"}}},
	} {
		_, err := generate.New(t.Context(), m, o)
		require.ErrorIs(t, err, generate.ErrOptions, text)
		require.ErrorContains(t, err, text)
	}
	g, other := generator(t, m, generate.Options{}), generator(t, m, generate.Options{})
	s, foreign := sequence(t, g), sequence(t, other)
	short, err := g.NewSequence(3)
	require.NoError(t, err)
	_, err = g.NewSequence(97)
	require.ErrorIs(t, err, generate.ErrInput)
	list := func(s ...*generate.Sequence) []*generate.Sequence { return s }
	for _, c := range []struct {
		sequences []*generate.Sequence
		tokens    [][]int32
		says      string
	}{
		{nil, nil, "there is no sequence"},
		{list(s), nil, "1 sequences are given tokens for 0"},
		{list(s, s), [][]int32{{1}, {1}}, "sequence 1 is there twice"},
		{list(foreign), [][]int32{{1}}, "sequence 0 is of another generator"},
		{list(s), [][]int32{{}}, "sequence 0 is given no token"},
		{list(s, short), [][]int32{{1}, {1, 2, 3, 4}},
			"sequence 1 has 0 tokens and would get 4 more: it is for 3"},
		{list(s), [][]int32{{1, 37}},
			"token 1 for sequence 0 is 37: the model has those from 0 to 36"},
		{list(s), [][]int32{{-1}}, "is -1"},
	} {
		_, err := g.Prefill(t.Context(), c.sequences, c.tokens)
		require.ErrorIs(t, err, generate.ErrInput)
		require.ErrorContains(t, err, c.says)
		require.Zero(t, s.Len())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = g.Prefill(ctx, list(s), [][]int32{{1, 2}})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, s.Len())
	require.Panics(t, func() { s.Truncate(1) })
}

// TestNotFinite names the layer, the head and the position of a key without a scale.
func TestNotFinite(t *testing.T) {
	m := model(t)
	m.Param("model.layers.1.self_attn.v_proj.weight").Value[9*32] = math.MaxFloat32
	m.Param("model.layers.1.input_layernorm.weight").Value[0] = 1e9
	g := generator(t, m, generate.Options{})
	s := sequence(t, g)
	_, err := g.Prefill(t.Context(), []*generate.Sequence{s}, [][]int32{{1, 2, 3}})
	require.ErrorIs(t, err, generate.ErrNotFinite)
	require.ErrorContains(t, err,
		"layer 1: one of the values of head 1 at position 0 is not finite")
	require.Zero(t, s.Len())

	m = mixture(t, func(*nn.Config) {}) // whose keys and values are not of one size
	m.Params()[0].Value[5*32] = float32(math.NaN())
	g = generator(t, m, generate.Options{})
	_, err = g.Prefill(t.Context(), []*generate.Sequence{sequence(t, g)}, [][]int32{{1, 2, 5}})
	require.ErrorContains(t, err, "layer 0: one of the keys of head 0 at position 2 is not finite")
}

func TestBytes(t *testing.T) {
	for kind, m := range models(t) {
		weights := int64(0)
		for _, p := range m.Params()[1:] {
			weights += int64(len(p.Value))
		}
		if kind == "BF16" { // and whole panels: a head of 37 rows, keys and values of 16, MLPs of 40
			norms := int64(5 * 32)
			weights += 32 * ((64 - 37) + 2*2*((32-16)+(64-40)))
			require.Equal(t, 2*weights+2*norms, generator(t, m, generate.Options{}).WeightBytes())
			continue
		}
		require.Equal(t, 4*weights, generator(t, m, generate.Options{}).WeightBytes(), kind)
		fp8 := generator(t, m, generate.Options{FP8: operandsOf(t, "fp8")}).WeightBytes()
		require.Less(t, fp8, 3*weights+4*37*32, kind)
		require.Greater(t, fp8, weights, kind)
	}
}

// TestCacheBytesOfMixtures: two heads of keys of 10 elements and of values of 8.
func TestCacheBytesOfMixtures(t *testing.T) {
	for want, o := range map[int64]generate.Options{
		2 * (10 + 8 + 2*4): {}, 2 * 2 * (10 + 8): {Cache: generate.CacheBF16},
		2 * 4 * (10 + 8): {Cache: generate.CacheF32},
	} {
		g := generator(t, mixture(t, func(*nn.Config) {}), o)
		_, timing, err := g.Generate(t.Context(), generate.Request{Prompt: []int32{1, 2}, Tokens: 2})
		require.NoError(t, err)
		require.Equal(t, 3*2*want, timing.CacheBytes) // tokens, layers
	}
}

// TestPackTells: every parameter counts, and once.
func TestPackTells(t *testing.T) {
	for kind, m := range models(t) {
		var done, total int64
		generator(t, m, generate.Options{FP8: operandsOf(t, "fp8"), Progress: progress.Func(
			func(op string, n, of int64) { done, total = n, of },
		)})
		weights := int64(0)
		for _, p := range m.Params() {
			weights += int64(len(p.Value))
		}
		require.Equal(t, []int64{weights, weights}, []int64{done, total}, kind)
	}
}

// TestCapacityRefused: what is dropped would depend on the batch.
func TestCapacityRefused(t *testing.T) {
	m := mixture(t, func(c *nn.Config) { c.Experts.CapacityFactor = 1.25 })
	_, err := generate.New(t.Context(), m, generate.Options{})
	require.ErrorIs(t, err, generate.ErrOptions)
	require.ErrorContains(t, err, "the model's experts have a CapacityFactor of 1.25")
}

// TestBiasesAreTaken: a generator has those that the model had when it was made.
func TestBiasesAreTaken(t *testing.T) {
	m := mixture(t, func(*nn.Config) {})
	tokens := [][]int32{tokensOf(rand.New(rand.NewPCG(7, 1)), 30, 37)}
	logits := func(g *generate.Generator) []uint32 {
		got, err := g.Logits(t.Context(), []*generate.Sequence{sequence(t, g)}, tokens)
		require.NoError(t, err)
		return bitsOf(got)
	}
	g := generator(t, m, generate.Options{})
	before := logits(g)
	state := m.Shared().Scaling().State()
	for _, r := range state.Routers {
		clear(r.Bias)
		r.Bias[3] = 5
	}
	require.NoError(t, m.Shared().Scaling().Restore(state))
	require.Equal(t, before, logits(g))
	require.NotEqual(t, before, logits(generator(t, m, generate.Options{})))
}

// TestReadIsNotKept checks that a generator lets go of what it read from, which may hold a model.
func TestReadIsNotKept(t *testing.T) {
	for kind, m := range models(t) {
		read := func(held *[1 << 10]byte) func(*nn.Param, []float32) error {
			return func(p *nn.Param, dst []float32) error {
				copy(dst, p.Value[:len(p.Value)*int(held[0])])
				return nil
			}
		}
		held := &[1 << 10]byte{1}
		kept := weak.Make(held)
		g := generator(t, m, generate.Options{Read: read(held)})
		runtime.GC()
		require.True(t, kept.Value() == nil, kind)
		runtime.KeepAlive(g)
	}
}

// TestRead: a model that is read while it is packed is the one whose values are there, and what
// is packed never has its memory.
func TestRead(t *testing.T) {
	tokens := [][]int32{tokensOf(rand.New(rand.NewPCG(8, 1)), 30, 37)}
	logits := func(g *generate.Generator) []uint32 {
		got, err := g.Logits(t.Context(), []*generate.Sequence{sequence(t, g)}, tokens)
		require.NoError(t, err)
		return bitsOf(got)
	}
	for kind, m := range models(t) {
		for name, o := range perToken(t) {
			want := logits(generator(t, m, o))
			empty, err := nn.NewZeroLlama(m.Config())
			require.NoError(t, err)
			require.NoError(t, empty.Shared().Scaling().Restore(m.Shared().Scaling().State()))
			read := map[string]int{}
			o.Read = func(p *nn.Param, dst []float32) error {
				read[p.Name]++
				copy(dst, m.Param(p.Name).Value)
				return nil
			}
			require.Equal(t, want, logits(generator(t, empty, o)), "%s: %s", kind, name)
			for _, p := range empty.Params() {
				require.Equal(t, 1, read[p.Name], p.Name)
				if o.FP8 != nil && o.Head != nil && p.Decay && !strings.HasSuffix(p.Name, "mlp.gate.weight") {
					require.Equal(t, make([]float32, len(p.Value)), p.Value, "%s: %s", name, p.Name)
				}
			}
			failure := errors.New("a file is gone")
			o.Read = func(p *nn.Param, dst []float32) error {
				if p.Name == "model.norm.weight" {
					return failure
				}
				return nil
			}
			_, err = generate.New(t.Context(), empty, o)
			require.ErrorIs(t, err, failure)
		}
	}
}
