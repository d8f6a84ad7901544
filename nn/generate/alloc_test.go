//go:build !race

package generate_test

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/generate"
)

// TestStepAllocatesNothing, once a few tokens have been there. The race detector has pools lose
// what they keep, and the garbage collector too.
func TestStepAllocatesNothing(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	all := models(t)
	large, err := nn.NewLlama(nn.Config{
		Vocab: 1000, Dim: 512, Layers: 2, Heads: 8, KVHeads: 2, Hidden: 1100, Context: 96,
	}, 1)
	require.NoError(t, err)
	all["large"] = large
	for kind, m := range all {
		for name, o := range perToken(t) {
			for _, c := range []struct{ workers, sequences int }{{1, 1}, {2, 1}, {1, 16}, {2, 16}} {
				if kind == "large" && c.workers == 1 {
					continue // it is large so that there are parts for two
				}
				o.Workers = c.workers
				g := generator(t, m, o)
				var sequences []*generate.Sequence
				var tokens []int32
				for i := range c.sequences {
					sequences, tokens = append(sequences, sequence(t, g)), append(tokens, int32(i))
				}
				step := func() {
					_, err := g.Step(t.Context(), sequences, tokens)
					require.NoError(t, err)
				}
				for range 8 {
					step()
				}
				require.Zero(t, testing.AllocsPerRun(20, step), "%s: %s: %v", kind, name, c)
			}
		}
	}
}

// TestTokensAllocateNothing: a request of many tokens allocates as often as one of few, but for
// the pages of its cache and for its result, which grow by ever more.
func TestTokensAllocateNothing(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	c, err := nn.NewLlama(nn.Config{Vocab: 37, Dim: 32, Layers: 2, Heads: 4, Hidden: 40, Context: 600}, 1)
	require.NoError(t, err)
	for name, s := range map[string]generate.Sampling{
		"greedy": {}, "top": {Temperature: 1, TopK: 5, TopP: 0.5}, "any": {Temperature: 2},
	} {
		g := generator(t, c, generate.Options{FP8: operandsOf(t, "fp8")})
		allocations := func(tokens int) float64 {
			return testing.AllocsPerRun(2, func() {
				batch := generate.Batch{}
				for range 3 {
					batch.Requests = append(batch.Requests, generate.Request{Prompt: []int32{1}, Tokens: tokens, Sampling: s})
				}
				_, _, err := g.GenerateBatch(t.Context(), batch)
				require.NoError(t, err)
			})
		}
		allocations(550) // what grows has grown
		require.Less(t, allocations(550)-allocations(50), 100.0, "%s: 1500 tokens more", name)
	}
}
