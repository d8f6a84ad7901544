package generate_test

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/generate"
	"github.com/octavo-fp8/octavo/progress"
)

// requests are of different lengths; the last two have prompts of others.
func requests(t *testing.T, vocab int) (list []generate.Request) {
	t.Helper()
	r := rand.New(rand.NewPCG(9, 9))
	for i := range 16 {
		request := generate.Request{
			Prompt: tokensOf(r, 1+r.IntN(90), vocab), Tokens: i, LogProbs: true,
			Sampling: generate.Sampling{Temperature: 0.8, Seed: uint64(i)},
		}
		if i >= 14 {
			request.Prompt = list[i-5].Prompt
			request.Sampling = generate.Sampling{}
			request.Ends = []int32{3}
		}
		list = append(list, request)
	}
	return list
}

// batchDiffers reports whether a result of a batch, however many requests of it are run
// at once and in whatever order, is not that of its request alone.
func batchDiffers(t *testing.T, g *generate.Generator, list []generate.Request, sizes ...int) bool {
	t.Helper()
	var alone []generate.Result
	for _, r := range list {
		result, _, err := g.Generate(t.Context(), r)
		require.NoError(t, err)
		alone = append(alone, result)
	}
	r := rand.New(rand.NewPCG(8, 8))
	for _, together := range sizes {
		order := r.Perm(len(list))[:len(list)-together]
		b := generate.Batch{Together: together}
		for _, i := range order {
			b.Requests = append(b.Requests, list[i])
		}
		results, _, err := g.GenerateBatch(t.Context(), b)
		require.NoError(t, err)
		for at, i := range order {
			got, want := results[at], alone[i]
			if !slices.Equal(want.Tokens, got.Tokens) || want.Stop != got.Stop ||
				!slices.Equal(bitsOf(want.LogProbs), bitsOf(got.LogProbs)) {
				return true
			}
		}
	}
	return false
}

func TestGenerateBatch(t *testing.T) {
	for kind, m := range models(t) {
		t.Run(kind, func(t *testing.T) { testGenerateBatch(t, m) })
	}
}

func testGenerateBatch(t *testing.T, m *nn.Llama) {
	list := requests(t, m.Config().Vocab)
	options := perToken(t)
	for i, name := range slices.Sorted(maps.Keys(options)) {
		require.False(t, batchDiffers(t, generator(t, m, options[name]), list, 0, 1+i%4), name)
	}
	spans := generator(t, m, generate.Options{FP8: operandsOf(t, "te-current")})
	require.True(t, batchDiffers(t, spans, list, 0), "a recipe that spans requests")
}

// TestBatchTiming counts passes: three requests, two at once, whose prompts are of 90, 90 and
// 1 tokens.
func TestBatchTiming(t *testing.T) {
	m := model(t)
	g := generator(t, m, generate.Options{})
	r := rand.New(rand.NewPCG(7, 7))
	var events []int
	var b generate.Batch
	for i, n := range []int{90, 90, 1} {
		b.Requests = append(b.Requests, generate.Request{
			Prompt: tokensOf(r, n, m.Config().Vocab), Tokens: 3 + i,
			Emit: func(int32) error { events = append(events, i); return nil },
			Done: func() error { events = append(events, i+10); return nil },
		})
	}
	b.Together = 2
	done, total := int64(0), int64(0)
	b.Progress = progress.Func(func(op string, n, of int64) { done, total = n, of })
	results, timing, err := g.GenerateBatch(t.Context(), b)
	require.NoError(t, err)
	require.Equal(t, []int64{181, 181}, []int64{done, total})
	for i, r := range results {
		require.Len(t, r.Tokens, 3+i)
		require.Equal(t, generate.StopTokens, r.Stop)
	}
	// Both prompts; two steps of both; the third prompt; a step of the last two, three of one.
	require.Equal(t, []int{0, 1, 0, 1, 0, 10, 1, 2, 1, 11, 2, 2, 2, 2, 12}, events)
	require.Equal(t, []int{181, 6, 9},
		[]int{timing.PromptTokens, timing.Steps, timing.Tokens})
	keys := 91 + 91 + 92 + 92 + 93 + 2 + 3 + 4 + 5
	require.Equal(t, int64(keys*2*2*2*(8+4)), timing.CacheBytes) // layers, keys and values, heads
}

// TestLogProbs computes logarithms of probabilities in float64.
func TestLogProbs(t *testing.T) {
	m := model(t)
	g := generator(t, m, generate.Options{})
	prompt := tokensOf(rand.New(rand.NewPCG(5, 9)), 11, m.Config().Vocab)
	r := generate.Request{
		Prompt: prompt, Tokens: 20, LogProbs: true,
		Sampling: generate.Sampling{Temperature: 3, TopK: 5},
	}
	result, _, err := g.Generate(t.Context(), r)
	require.NoError(t, err)
	logits, err := g.Logits(t.Context(), []*generate.Sequence{sequence(t, g)},
		[][]int32{slices.Concat(prompt, result.Tokens)})
	require.NoError(t, err)
	for i, token := range result.Tokens {
		row := logits[(len(prompt)-1+i)*37:][:37]
		sum := 0.0
		for _, x := range row {
			sum += math.Exp(float64(x))
		}
		require.InDelta(t, float64(row[token])-math.Log(sum), float64(result.LogProbs[i]), 1e-6)
	}
}

func TestGenerateBatchRefuses(t *testing.T) {
	m := model(t)
	g := generator(t, m, generate.Options{})
	good := generate.Request{Prompt: []int32{1}, Tokens: 2}
	_, _, err := g.GenerateBatch(t.Context(), generate.Batch{Together: -1})
	require.ErrorIs(t, err, generate.ErrOptions)
	results, _, err := g.GenerateBatch(t.Context(), generate.Batch{})
	require.NoError(t, err)
	require.Empty(t, results)

	bad := generate.Request{Name: "line 2", Prompt: []int32{1, 99}}
	b := generate.Batch{Requests: []generate.Request{good, bad}}
	_, _, err = g.GenerateBatch(t.Context(), b)
	require.ErrorIs(t, err, generate.ErrInput)
	require.ErrorContains(t, err, "line 2: generate: token 1 of the prompt is 99")

	bad.Name = ""
	b.Requests = []generate.Request{good, good, bad}
	_, _, err = g.GenerateBatch(t.Context(), b)
	require.EqualError(t, err,
		"request 2: generate: token 1 of the prompt is 99: the model has those from 0 to 36")
	_, _, err = g.Generate(t.Context(), bad)
	require.EqualError(t, err,
		"generate: token 1 of the prompt is 99: the model has those from 0 to 36")

	full := errors.New("the disk is full")
	bad = good
	bad.Done = func() error { return full }
	b.Requests = []generate.Request{good, bad, good}
	results, _, err = g.GenerateBatch(t.Context(), b)
	require.ErrorIs(t, err, full)
	require.Len(t, results[1].Tokens, 2)

	m.Param("model.layers.1.self_attn.v_proj.weight").Value[0] = float32(math.Inf(1))
	m.Param("model.layers.1.input_layernorm.weight").Value[0] = 1e9
	good.Name = "line 1"
	b.Requests = []generate.Request{good}
	_, _, err = generator(t, m, generate.Options{}).GenerateBatch(t.Context(), b)
	require.ErrorIs(t, err, generate.ErrNotFinite)
	require.ErrorContains(t, err, "line 1: generate: layer 1: one of the values of head 0")
	good.Name = ""
	b.Requests = []generate.Request{good, good}
	_, _, err = generator(t, m, generate.Options{}).GenerateBatch(t.Context(), b)
	require.ErrorContains(t, err, "request 0: generate: layer 1: one of the values of head 0")
}
