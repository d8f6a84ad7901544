package recompute

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each operation is a power of two, so that a sum says which are in it.
var work = Work{
	Norm: 1 << 0, Tiles: 1 << 1, Latents: 1 << 2, LatentNorms: 1 << 3, Project: 1 << 4, Attend: 1 << 5,
	Weigh: 1 << 6, Output: 1 << 7, Gather: 1 << 8, Branch: 1 << 9, Decode: 1 << 10, SwiGLU: 1 << 11,
	Down: 1 << 12, Outputs: 1 << 13,
}

func TestAgain(t *testing.T) {
	require.Equal(t, int64(1<<13-1+1-1<<1-1<<10), work.Forward()) // two norms; no tiles, nothing decoded
	for _, c := range []struct {
		ways map[int]Way
		want int64
	}{
		{nil, 0},
		{map[int]Way{Norms: Again}, 2*work.Norm + work.Tiles + work.LatentNorms + work.Gather},
		{map[int]Way{Norms: InFP8, Branches: Again}, work.Norm + work.Gather + work.Branch},
		{map[int]Way{Norms: InFP8, Latents: Again}, work.Norm + work.Latents},
		{map[int]Way{Projections: Again}, work.LatentNorms + work.Project},
		{map[int]Way{Probabilities: Again}, work.Attend},
		{map[int]Way{Probabilities: Again, Mixed: Again}, 2*work.Attend + work.Weigh},
		{map[int]Way{Middle: Again}, work.Output},
		{map[int]Way{Middle: Again, Mixed: InFP8}, work.Weigh + work.Output},
		{map[int]Way{Branches: InFP8, Product: Again}, work.Decode + work.SwiGLU},
		{map[int]Way{Product: InFP8, Outputs: Again}, work.SwiGLU + work.Outputs},
	} {
		var ways [Classes]Way
		for class, way := range c.ways {
			ways[class] = way
		}
		require.Equal(t, c.want, work.Again(ways), c.ways)
	}
}

// A block of 2 rows of 3 columns, by hand.
func TestMeter(t *testing.T) {
	m := Meter{Own: 2, Tokens: 2, Dim: 3}
	require.Equal(t, int64(2*2*5*3), m.Linear(2, 5, 3))
	m.AddProjections(4, 5)
	require.Equal(t, int64(2*2*3*(4+5+5)+3*2*(4+5)), m.Project)
	m.AddMixing(7, 1, 4, 5)
	require.Equal(t, []int64{7 * (2*4 + 16), 7 * 2 * 5, 2*2*3*5 + 2*3}, []int64{m.Attend, m.Weigh, m.Output})
	m.AddFeedForward(2, 6, true)
	require.Equal(t, []int64{2 * 2 * 6, 2 * 2 * 2 * 3 * 6, 20 * 2 * 6, 2 * 2 * 3 * 6}, []int64{m.Decode, m.Branch, m.SwiGLU, m.Down})
	m.AddExperts(4, 8)
	require.Equal(t, []int64{4 * 3, 72, 72 + 2*2*8*3}, []int64{m.Gather, m.Outputs, m.Down})
	m.AddLatents(MLA{Heads: 2, QRank: 5, KVRank: 7, NoPE: 3, RoPE: 2, Value: 4})
	require.Equal(t, int64(2*2*3*(7+2)+3*2*2+2*2*3*5), m.Latents)
	require.Equal(t, int64(4*2*(7+5)), m.LatentNorms)
	require.Equal(t, int64(2*2*5*2*5+3*2*2*2+2*2*7*2*7), m.Project)
	m.Narrow = true
	require.Equal(t, int64(2*2*5*3+8*(2*3+5*3)), m.Linear(2, 5, 3))
}
