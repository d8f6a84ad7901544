package generate_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/nn/generate"
)

// TestGenerate takes the largest logit of the whole sequence so far, again and again.
func TestGenerate(t *testing.T) {
	m := model(t)
	g := generator(t, m, generate.Options{FP8: operandsOf(t, "fp8")})
	prompt := tokensOf(rand.New(rand.NewPCG(6, 6)), 7, 37)
	want := slices.Clone(prompt)
	for range 12 {
		logits, err := g.Prefill(t.Context(), []*generate.Sequence{sequence(t, g)}, [][]int32{want})
		require.NoError(t, err)
		want = append(want, int32(slices.Index(logits, slices.Max(logits))))
	}
	want = want[len(prompt):]
	var emitted []int32
	r := generate.Request{
		Prompt: prompt, Tokens: 12,
		Emit: func(token int32) error { emitted = append(emitted, token); return nil },
	}
	result, timing, err := g.Generate(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, want, result.Tokens)
	require.Equal(t, want, emitted)
	require.Equal(t, generate.StopTokens, result.Stop)
	require.Nil(t, result.LogProbs)
	require.Equal(t, []int{7, 11, 11}, []int{timing.PromptTokens, timing.Steps, timing.Tokens})
	require.Positive(t, timing.Prefill)
	require.Positive(t, timing.Decode)
	tokens := int64(0) // that steps read: 8 after the first, and so on
	for n := 8; n <= 18; n++ {
		tokens += int64(n)
	}
	require.Equal(t, tokens*2*2*2*(8+4), timing.CacheBytes) // layers, keys and values, heads

	emitted = nil
	r.Ends = []int32{99, want[3]}
	first := slices.Index(want, want[3])
	result, _, err = g.Generate(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, generate.StopEnd, result.Stop)
	require.Equal(t, want[:first+1], result.Tokens)
	require.Equal(t, want[:first], slices.Concat([]int32{}, emitted))

	r.Ends, r.Tokens, r.Emit = nil, 0, nil
	result, _, err = g.Generate(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, generate.StopContext, result.Stop)
	require.Len(t, result.Tokens, 96-7+1, "the last one need not be taken")
	require.Equal(t, "context", result.Stop.String())
}

func TestGenerateRefuses(t *testing.T) {
	g := generator(t, model(t), generate.Options{})
	for says, r := range map[string]generate.Request{
		"the prompt has no tokens":                             {},
		"the prompt has 97 tokens and the context room for 96": {Prompt: make([]int32, 97)},
		"token 1 of the prompt is 37":                          {Prompt: []int32{1, 37}},
		"Request.Tokens is -1":                                 {Prompt: []int32{1}, Tokens: -1},
	} {
		_, _, err := g.Generate(t.Context(), r)
		require.ErrorIs(t, err, generate.ErrInput, says)
		require.ErrorContains(t, err, says)
	}
	_, _, err := g.Generate(t.Context(), generate.Request{
		Prompt: []int32{1}, Sampling: generate.Sampling{TopP: 2},
	})
	require.ErrorIs(t, err, generate.ErrOptions)
	full := errors.New("the disk is full")
	n := 0
	emit := func(int32) error {
		if n++; n == 3 {
			return full
		}
		return nil
	}
	result, _, err := g.Generate(t.Context(), generate.Request{Prompt: []int32{1}, Emit: emit})
	require.ErrorIs(t, err, full)
	require.Len(t, result.Tokens, 3)
	ctx, cancel := context.WithCancel(t.Context())
	result, _, err = g.Generate(ctx, generate.Request{
		Prompt: []int32{1}, Emit: func(int32) error { cancel(); return nil },
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, result.Tokens, 1)
}

func choose(t *testing.T, s generate.Sampling, logits []float32, position int) int32 {
	t.Helper()
	id, err := s.Choose(logits, position)
	require.NoError(t, err)
	return id
}

// TestChoose counts what is chosen at many positions.
func TestChoose(t *testing.T) {
	logits := []float32{1, 3, -2, 3, 0.5, float32(math.Inf(-1)), 2}
	require.Equal(t, int32(1), choose(t, generate.Sampling{TopK: 9, Seed: 5}, logits, 0),
		"the first of the largest")
	for _, c := range []struct {
		s    generate.Sampling
		kept []int
	}{
		{generate.Sampling{Temperature: 1}, []int{0, 1, 2, 3, 4, 6}},
		{generate.Sampling{Temperature: 0.5, Seed: 8}, []int{0, 1, 2, 3, 4, 6}},
		{generate.Sampling{Temperature: 2, TopK: 3}, []int{1, 3, 6}},
		{generate.Sampling{Temperature: 1, TopK: 1}, []int{1}},
		{generate.Sampling{Temperature: 1, TopP: 0.5}, []int{1, 3}}, // 0.39 each
		{generate.Sampling{Temperature: 1, TopP: 0.9}, []int{1, 3, 6}},
		{generate.Sampling{Temperature: 1, TopK: 3, TopP: 0.84}, []int{1, 3}}, // 0.42 each of three
		{generate.Sampling{Temperature: 1, TopP: 1e-9}, []int{1}},
		{generate.Sampling{Temperature: 1, TopP: 1}, []int{0, 1, 2, 3, 4, 6}},
		{generate.Sampling{Temperature: 1e-30}, []int{1, 3}},
	} {
		const draws = 4000
		counts := make([]float64, len(logits))
		for i := range draws {
			counts[choose(t, c.s, logits, i)]++
		}
		total := 0.0
		want := make([]float64, len(logits))
		for _, i := range c.kept {
			want[i] = math.Exp(float64(logits[i]-3) / c.s.Temperature)
			total += want[i]
		}
		for i := range want {
			p := want[i] / total
			deviation := math.Sqrt(draws * p * (1 - p))
			require.InDelta(t, draws*p, counts[i], 4*deviation+1e-9, "%+v: token %d", c.s, i)
		}
	}
	a, b := generate.Sampling{Temperature: 1}, generate.Sampling{Temperature: 1, Seed: 1}
	same := 0
	for i := range 1000 {
		if choose(t, a, logits, i) == choose(t, b, logits, i) {
			same++
		}
	}
	require.InDelta(t, 330, same, 60, "seeds are independent")
}

// TestChooseEverywhere computes choices from the definition: the first of the kept tokens, the
// most likely first, at which the sum of weights is above a uniform number's share of all.
func TestChooseEverywhere(t *testing.T) {
	s := generate.Sampling{Temperature: 0.7, TopK: 200, TopP: 0.95, Seed: 42}
	logits, ids := make([]float32, 1000), make([]int, 1000)
	for i := range logits {
		logits[i], ids[i] = float32(i*i%101)/7, i
	}
	slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
	cumulative := []float64{0}
	for i, id := range ids[:s.TopK] {
		cumulative = append(cumulative,
			cumulative[i]+math.Exp((float64(logits[id])-14)/s.Temperature))
	}
	kept, _ := slices.BinarySearch(cumulative, s.TopP*cumulative[s.TopK])
	stream := binary.BigEndian.Uint64([]byte("generate"))
	for position := range 50 {
		share := float64(random.Hash(s.Seed, stream, uint64(position))>>11) / (1 << 53)
		at, _ := slices.BinarySearch(cumulative, share*cumulative[kept])
		require.Equal(t, ids[at-1], int(choose(t, s, logits, position)), position)
	}
}

func TestChooseRefuses(t *testing.T) {
	for _, s := range []generate.Sampling{
		{Temperature: -1}, {Temperature: math.NaN()}, {Temperature: math.Inf(1)}, {TopK: -1},
		{TopP: -0.1}, {TopP: 1.1}, {TopP: math.NaN()},
	} {
		_, err := s.Choose([]float32{1}, 0)
		require.ErrorIs(t, err, generate.ErrOptions, "%+v", s)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for says, logits := range map[string][]float32{
		"token 1 at position 5 has a logit of NaN":  {1, nan},
		"token 0 at position 5 has a logit of +Inf": {inf, 1},
		"all logits at position 5 are -Inf":         {-inf, -inf},
	} {
		for _, s := range []generate.Sampling{{}, {Temperature: 1}} {
			_, err := s.Choose(logits, 5)
			require.ErrorIs(t, err, generate.ErrNotFinite)
			require.ErrorContains(t, err, says)
		}
	}
	_, err := generate.Sampling{}.Choose(nil, 0)
	require.ErrorIs(t, err, generate.ErrInput)
}
