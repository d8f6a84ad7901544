package law

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/labtest"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
	"github.com/octavo-fp8/octavo/nn"
)

func TestLaw(t *testing.T) {
	r := labtest.Run(t, Experiment, labtest.Short())
	labtest.Judged(t, r, 2, 2) // the published laws, and the sweep
	for _, g := range r.Goals[2:] {
		require.Regexp(t, `^\d\.\d{3} against \d\.\d{3}$`, g.Got)
	}
	require.Len(t, r.Tables[0].Rows, 9)
	for i, loss := range []float64{3.1966, 3.1070, 3.0803, 3.0675, 3.0577, 3.0558, 3.0590, 3.0748, 3.1378} {
		require.InDelta(t, loss, r.Tables[0].Rows[i][2], 6e-5)
	}
	require.Equal(t, "E4M3", r.Tables[0].Rows[4][4])
	require.Len(t, r.Tables[1].Rows, 5+5)
	seen := make(map[any]bool)
	for _, row := range r.Tables[1].Rows[5:] {
		require.False(t, seen[row[7]], "each precision is another: %v", row)
		seen[row[7]] = true
	}
}

// TestEqualCost: parameters, bits and tokens of all models make the same product, to
// what whole steps allow.
func TestEqualCost(t *testing.T) {
	for _, l := range []lab.Length{lab.Full, lab.Look, lab.Short} {
		o := labtest.Rhymes(l)
		s, err := newSweep(o)
		require.NoError(t, err)
		n := len(s.widths) * s.seeds
		for i, j := range s.jobs[:n] {
			tolerance := 0.5 / float64(j.Setup.Steps)
			require.InEpsilon(t, s.cost(2), s.cost(i), tolerance+1e-9, j.Name)
			require.Contains(t, j.Name, "equal cost")
		}
		for _, j := range s.jobs[n:] {
			require.Equal(t, s.jobs[2].Config.Dim, j.Config.Dim)
			require.Equal(t, s.jobs[2].Setup.Steps, j.Setup.Steps)
			require.Contains(t, j.Name, "equal size")
		}
	}
}

// TestLargestSeed: the number of runs does not depend on the seed.
func TestLargestSeed(t *testing.T) {
	o := labtest.Rhymes(lab.Full)
	want, err := newSweep(o)
	require.NoError(t, err)
	o.Seed = math.MaxUint64
	got, err := newSweep(o)
	require.NoError(t, err)
	require.Len(t, got.jobs, len(want.jobs))
	require.Equal(t, []uint64{math.MaxUint64, 0}, []uint64{got.jobs[0].Seed, got.jobs[len(got.widths)].Seed})
}

// TestSweepTakesTheRightRuns has the loss of a run be its number.
func TestSweepTakesTheRightRuns(t *testing.T) {
	s := &sweep{widths: widths(32), seeds: 2}
	for i := range 3 * len(s.widths) {
		s.curves = append(s.curves, training.Curve{Losses: []float64{float64(i)}})
	}
	require.Equal(t, []float64{3, 8}, s.equalCost(3))
	require.Equal(t, 13.0, s.equalSize(3))
}

func TestLinearParams(t *testing.T) {
	config := training.Llama(32, 2, 16)
	model, err := nn.NewLlama(config, 1)
	require.NoError(t, err)
	n := 0
	for _, p := range model.Params() {
		if p.Decay && p.Name != "model.embed_tokens.weight" && p.Name != "lm_head.weight" {
			n += len(p.Value)
		}
	}
	require.Equal(t, n, linearParams(config))
}

func TestWidthsPayForThemselves(t *testing.T) {
	for _, w := range widths(128) {
		config := training.Llama(w.dim, 4, 128)
		w.Use(&config)
		require.NoError(t, config.Validate(), w.Name)
		require.InEpsilon(t, 128*128*8, w.dim*w.dim*w.bits, 0.15, w.Name)
		switch w.bits {
		case 32:
			require.True(t, config.FP8 == nil && config.Rounding == nil)
		case 8:
			require.NotNil(t, config.FP8)
		default:
			require.NotNil(t, config.Rounding)
		}
	}
}

func TestOptimumRises(t *testing.T) {
	p, err := newPublished()
	require.NoError(t, err)
	require.ErrorContains(t, p.tooFew, "3")
	for i := 1; i < len(p.optima); i++ {
		require.Greater(t, p.optima[i].sun, p.optima[i-1].sun)
		require.InDelta(t, p.optima[0].kumar, p.optima[i].kumar, 1e-6)
	}
	require.InDelta(t, math.Pow(10, 20), p.optima[0].cost, 1e6)
}
