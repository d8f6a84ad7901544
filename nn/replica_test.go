package nn

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/race"
)

// TestReplicaDrawsNothing: its matrices, which are replaced anyway, are zero.
func TestReplicaDrawsNothing(t *testing.T) {
	m := livelyModel(t, tiny)
	r, err := m.Replica()
	require.NoError(t, err)
	require.Equal(t, m.Config(), r.Config())
	for i, p := range r.Params() {
		want := float32(0)
		if !p.Decay {
			want = 1
		}
		require.Equal(t, m.Params()[i].Name, p.Name)
		for _, v := range p.Value {
			require.Equal(t, want, v, p.Name)
		}
	}
}

// TestAttentionForwardTakesLittle: what only the backward pass needs, more than two
// matrices of scores, is not allocated before it.
func TestAttentionForwardTakesLittle(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	const dim, seq = 8, 512
	a, err := NewAttention("a.", AttentionConfig{Dim: dim, Heads: 1}, Options{Workers: 1})
	require.NoError(t, err)
	x, y := randoms(1, seq*dim), make([]float32, seq*dim)
	require.NoError(t, a.Forward(t.Context(), y, x, 1, seq))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, a.Forward(t.Context(), y, x, 1, seq))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*seq*seq))
}

// TestUnreadLlamaTakesLittle: its matrices, and their gradients, have the memory of one.
func TestUnreadLlamaTakesLittle(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	c := Config{Vocab: 512, Dim: 128, Layers: 8, Heads: 4, Hidden: 512, Context: 8,
		Experts: &ExpertsConfig{Hidden: 256, Router: RouterConfig{Experts: 4, TopK: 2}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := NewUnreadLlama(c)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.True(t, m.Unread())
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*4*c.Vocab*c.Dim))
	for _, p := range m.Params() {
		require.Len(t, p.Value, p.Rows*p.Cols, p.Name)
		require.Len(t, p.Grad, p.Rows*p.Cols, p.Name)
	}
}
