package granularity

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
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
	return seeds{g, g}.report()
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
	// Blocks that change places, of which every one has been the largest; queries without a
	// gradient.
	moving := madeUp(t, func(o *operand, step, block int, random float64) float64 {
		switch {
		case o.role == scaling.Weight:
			return random * math.Exp2(float64(step%2))
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
	for _, r := range []*report.Report{still, moving, tiny} {
		for _, f := range r.Findings {
			require.Empty(t, f.Follows, "the first seed concludes nothing")
		}
		require.NotContains(t, labtest.Sentences(r), "not judged", "said once, of all")
	}
	require.Equal(t, report.Met, goal(t, still, weightsLast).Outcome)
	require.Equal(t, report.Missed, goal(t, moving, weightsLast).Outcome)
}

func goal(t *testing.T, r *report.Report, name string) report.Goal {
	t.Helper()
	i := slices.IndexFunc(r.Goals, func(g report.Goal) bool { return g.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return r.Goals[i]
}

// TestFiguresByHand: what a seed's tracks and encodings come to.
func TestFiguresByHand(t *testing.T) {
	of := func(signal, noise float64, elements, saturated, zeros, flushed int64) outcome {
		return outcome{stats: fp8.Stats{
			Elements: elements, SaturatedPos: saturated, Zeros: zeros, Flushed: flushed,
			Detail: &fp8.Detail{SquaredSum: signal, SquaredError: noise},
		}}
	}
	g := new(study)
	ratios := map[scaling.Role][]float64{
		scaling.Input: {0.5, 1.5, 1, 2}, scaling.Weight: {1.03, 1.04, 1, 1}, scaling.Gradient: {3, 2, 2, 0.1},
	}
	for _, l := range lookedAt {
		name := map[scaling.Role]string{scaling.Input: "input", scaling.Weight: "weight", scaling.Gradient: "gradient"}[l.role]
		o := &operand{name: l.layer + "." + name, role: l.role}
		g.operands = append(g.operands, o)
		for _, s := range schemes {
			k := &track{of: o, scheme: s, ratios: ratios[l.role], outcome: of(1, 0.01, 100, 1, 0, 0)}
			switch {
			case s.name == blockLast.name:
				k.outcome = of(1, 0.1, 100, 5, 0, 0)
			case s.name == tensorLong.name && o.name == compared[1]:
				k.outcome = of(1, 0.02, 100, 1, 0, 0)
			}
			g.tracks = append(g.tracks, k)
		}
		for _, n := range grains {
			for _, f := range recipeFormats {
				found := of(1, 0.01, 100, 0, 20, 8)
				if n.name == tileGrain.name {
					found = of(1, 0.001, 100, 0, 20, 4)
				}
				if f == fp8.E5M2 {
					found.stats.Detail.SquaredError *= 4
				}
				g.grains = append(g.grains, recipeOutcome{of: o, recipe: scaling.Recipe{Block: n.block, Format: f}, outcome: found})
			}
		}
	}
	want := map[string]float64{
		"inputs-last": 50, "gradients-last": 75, "inputs-few": 50, "gradients-few": 75, "weights-last": 25,
		"inputs-saturate": 4, "gradients-saturate": 4, "tensor-long": 10 * math.Log10(2),
		"tile-input": 10, "tile-gradient": 10, "tile-flushes": 5, "block-last": 10, "e5m2": 10 * math.Log10(4),
	}
	for _, f := range figures() {
		require.InDelta(t, want[f.goal], f.of(g), 1e-9, f.goal)
	}
	require.Len(t, want, len(figures()))
}
