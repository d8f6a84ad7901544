//go:build !race

package generate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/generate"
)

// TestStepAllocatesNothing, once a few tokens have been there. The race detector has pools lose
// what they keep.
func TestStepAllocatesNothing(t *testing.T) {
	all := models(t)
	large, err := nn.NewLlama(nn.Config{
		Vocab: 1000, Dim: 512, Layers: 2, Heads: 8, KVHeads: 2, Hidden: 1100, Context: 96,
	}, 1)
	require.NoError(t, err)
	all["large"] = large
	for kind, m := range all {
		for name, o := range perToken(t) {
			for _, c := range []struct{ workers, sequences int }{{1, 1}, {2, 1}, {1, 16}, {2, 16}} {
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
				for range 4 {
					step()
				}
				require.Zero(t, testing.AllocsPerRun(20, step), "%s: %s: %v", kind, name, c)
			}
		}
	}
}
