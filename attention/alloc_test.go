//go:build !race

package attention_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
)

// TestAllocates: nothing, once warm.
func TestAllocates(t *testing.T) {
	p := shapes["chunk"].problem(1)
	s := p.Sizes()
	out, lse := make([]float32, s.Heads*s.Queries*s.ValueDim), make([]float32, s.Heads*s.Queries)
	for _, splits := range []int{1, 3} {
		require.Zero(t, testing.AllocsPerRun(20, func() {
			_ = attention.Forward(t.Context(), out, p, attention.Options{LSE: lse, Splits: splits, Workers: 2})
		}))
	}
}
