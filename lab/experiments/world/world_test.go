package world

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
)

func TestWorld(t *testing.T) {
	labtest.Slow(t)
	r := labtest.Run(t, Experiment, labtest.Shakespeare(t))
	labtest.Judged(t, r, 6, 28)
	require.Len(t, labtest.Table(t, r, "tokens").Rows, 12)
	require.Len(t, labtest.Table(t, r, "sums").Rows, 2*4*5)
	require.Len(t, labtest.Table(t, r, "sums-seeds").Rows, 2*2*4*5+5)
	require.Len(t, labtest.Table(t, r, "teams").Rows, 12)
	require.Len(t, labtest.Table(t, r, "teams-steps").Rows, 12*2)
	for _, row := range labtest.Table(t, r, "tokens").Rows {
		require.Positive(t, row[3], "%v lose something", row)
		require.Positive(t, row[4], "%v lose something", row)
	}
	for _, row := range labtest.Table(t, r, "slices").Rows {
		alone, fixed := row[2] == 1, row[1] == "8, always"
		require.Equal(t, alone || fixed, row[4] == 0, "%v", row)
		require.Equal(t, alone, row[7] == int64(0), "%v", row)
	}
}

// TestSeeds: each sample has a seed of its own, after the largest comes 0.
func TestSeeds(t *testing.T) {
	o := labtest.Rhymes(lab.Look)
	o.Seed = math.MaxUint64
	s := newStudy(o)
	require.Len(t, s.samples, s.seeds)
	require.Equal(t, uint64(math.MaxUint64), s.samples[0].o.Seed)
	require.Zero(t, s.samples[1].o.Seed)
}

// TestDeclaredSample: a full run has a value for each seed that was declared, and is of the
// lengths that the declaration names.
func TestDeclaredSample(t *testing.T) {
	s := newStudy(labtest.Rhymes(lab.Full))
	for _, g := range append(slices.Clone(declared().Hypotheses), declared().Controls...) {
		if g.Sample > 0 {
			require.Equal(t, s.seeds, g.Sample, g.Name)
		}
	}
	require.Equal(t, 16384, s.most())
	require.Contains(t, s.scope.sums, measuredSequences)
	require.Equal(t, []int{120, 100, 4, 256}, []int{s.routedSteps, s.teamSteps, s.sliceSteps, s.elements})
}
