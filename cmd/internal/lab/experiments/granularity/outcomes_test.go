package granularity

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/labtest"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
	"github.com/octavo-fp8/octavo/cmd/internal/trial"
	"github.com/octavo-fp8/octavo/scaling"
)

// madeUp is a report on operands whose values are given: of an operand, in a step, in a
// block of 1x128, with a random number from 1/2 to 1.
func madeUp(t *testing.T, value func(o *operand, step, block int, random float64) float64) *report.Report {
	t.Helper()
	const rows, cols, steps = 16, 512, 24
	g := &study{scope: scope{steps: steps, batch: 1, looked: 1, warm: 16, every: 1}, losses: []float64{5, 4}}
	var err error
	g.run, err = trial.New("FP8", training.Llama(32, 1, 8), 1)
	require.NoError(t, err)
	for _, l := range lookedAt {
		name := map[scaling.Role]string{scaling.Input: "input", scaling.Weight: "weight", scaling.Gradient: "gradient"}[l.role]
		o := &operand{name: l.layer + "." + name, role: l.role, rows: rows, cols: cols, values: make([]float32, rows*cols)}
		g.operands = append(g.operands, o)
		for _, s := range schemes {
			k, err := newTrack(o, s)
			require.NoError(t, err)
			g.tracks = append(g.tracks, k)
		}
	}
	for step := range steps {
		for _, o := range g.operands {
			random := rand.New(rand.NewPCG(1, uint64(o.role)))
			for i := range o.values {
				o.values[i] = float32(value(o, step, i/128, 1-float64(random.IntN(4))/8))
			}
		}
		for _, k := range g.tracks {
			if step >= g.warm {
				k.measure(step)
			}
			require.NoError(t, k.observe(t.Context()))
		}
		g.keep(step)
	}
	g.seen = slices.Clone(g.watched)
	require.NoError(t, g.encode(t.Context(), lab.Options{}))
	return g.report()
}

// TestSentencesFollow feeds the report with operands of one outcome and of the opposite.
func TestSentencesFollow(t *testing.T) {
	// Blocks that hardly differ, in size or in time, and no amax that rounding up helps.
	still := madeUp(t, func(o *operand, _, block int, random float64) float64 {
		if o.role == scaling.Weight {
			random *= math.Exp2(-float64(block % 7))
		}
		return 1.5 * random
	})
	labtest.NotSaid(t, still, "Blocks differ most in gradients", "so that its query has no gradient", "gradients go beyond it", "cost more than a bit",
		"nothing is left of what small blocks are for", "A long history saturates less", "they are below 2^-10", "Rounding it up is better")
	// Blocks that change places, of which every one has been the largest; queries without a
	// gradient.
	moving := madeUp(t, func(o *operand, step, block int, random float64) float64 {
		switch {
		case o.role == scaling.Weight:
			return random
		case o.role == scaling.Gradient && block%9 == 0 && o.name == compared[3]:
			return 0
		}
		apart := map[scaling.Role]int{scaling.Input: 2, scaling.Gradient: 3}[o.role]
		return 1.9 * random * math.Exp2(-float64((7*block+5*step)%8*apart)-8)
	})
	// One block is encoded exactly; the others, and all of the last gradient, are tiny.
	tiny := madeUp(t, func(o *operand, _, block int, random float64) float64 {
		switch {
		case o.name == compared[3]:
			return random * 0x1p-30
		case block == 0:
			return 1
		}
		return random * 0x1p-14
	})
	labtest.NotSaid(t, tiny, "E4M3 has 17 binades, and so room", "and little else")
	labtest.Outcomes(t, still, moving, tiny)
}
