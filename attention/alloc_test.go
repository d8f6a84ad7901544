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
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_ = attention.Forward(t.Context(), out, p,
				attention.Options{LSE: lse, Splits: splits, Workers: 2})
		}))
	}
}

// TestAttendAllocates: likewise.
func TestAttendAllocates(t *testing.T) {
	record := attention.FlashMLAV32
	for _, config := range []attention.CacheConfig{cacheConfigs()["token-head[64 64]"],
		{Record: &record}} {
		s := cached(t, config, 200)
		k, v := s.Operands()
		heads, _, dim := k.Dims()
		_, _, valueDim := v.Dims()
		q := attention.Query{Sequence: s, Q: queries(2*heads, 1, dim, true)}
		out := make([]float32, 2*heads*valueDim)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_ = attention.Attend(t.Context(), out, &q, attention.Options{Workers: 2})
		}))
	}
}

// TestCheckAllocates: a sequence that is fine is checked in its own memory.
func TestCheckAllocates(t *testing.T) {
	for name, config := range cacheConfigs() {
		s := cached(t, config, 200)
		require.Zero(t, testing.AllocsPerRun(5, func() {
			if s.Check() != nil {
				panic(name)
			}
		}), name)
	}
}
