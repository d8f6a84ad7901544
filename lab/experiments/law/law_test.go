package law

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
)

// rhymes are long enough for a full run.
func rhymes(l lab.Length) lab.Options {
	o := labtest.Rhymes(l)
	o.Text = text.New("rhymes", bytes.Repeat(o.Text.Data, 8))
	return o
}

func TestLaw(t *testing.T) {
	r := labtest.Run(t, Experiment, labtest.Short())
	labtest.Judged(t, r, 0, len(declared().Names()))
	arms := len(arms())
	require.Len(t, labtest.Table(t, r, "sweep").Rows, arms)
	require.Len(t, labtest.Table(t, r, "seeds").Rows, arms)
	seen := make(map[any]string)
	for _, row := range labtest.Table(t, r, "seeds").Rows {
		require.Empty(t, seen[row[2]], "each arm is another: %v", row)
		seen[row[2]] = row[1].(string)
	}
}

// TestPublished: what the laws say at the points that were published, from an evaluation of
// their formulas that is not this code's.
func TestPublished(t *testing.T) {
	p, err := newPublished()
	require.NoError(t, err)
	rows := p.table().Rows
	require.Len(t, rows, 9)
	for i, loss := range []float64{3.1966, 3.1070, 3.0803, 3.0675, 3.0577, 3.0558, 3.0590, 3.0748, 3.1378} {
		require.InDelta(t, loss, rows[i][2], 6e-5)
	}
	require.Equal(t, "E4M3", rows[4][4])
	require.Equal(t, 7.0, lowest(p.kumar).Bits)
	require.Equal(t, 4.0, lowest(p.sun).Bits)
	require.ErrorContains(t, p.tooFew, "3")
	for i, o := range p.optima {
		require.InDelta(t, 7.0, o.kumar, 0.05, "whatever the cost")
		if i > 0 {
			require.Greater(t, o.sun, p.optima[i-1].sun)
		}
	}
	require.InDelta(t, math.Pow(10, 20), p.optima[0].cost, 1e6)
}

// TestPredictions: what the declaration says that the laws say of our models. Kumar's shares
// are products of 1 - exp(-P/γ + n) with the constants of the paper.
func TestPredictions(t *testing.T) {
	share := func(bits, gamma, offset float64) float64 { return 1 - math.Exp(-bits/gamma+offset) }
	weights := func(bits float64) float64 { return share(bits, 2.6745, 0.3037) / share(16, 2.6745, 0.3037) }
	inputs := func(bits float64) float64 { return share(bits, 2.2102, 1.4072) / share(16, 2.2102, 1.4072) }
	s, err := newSweep(rhymes(lab.Full))
	require.NoError(t, err)
	for _, c := range []struct {
		arm, goal string
		kumar     float64
	}{
		{fp4Forward, "effective-fp4", weights(4) * inputs(4)},
		{fp4Weights, "effective-fp4-weights", weights(4)},
		{fp6, "effective-fp6", weights(6) * inputs(6)},
		{fp8, "effective-fp8", weights(8) * inputs(8)},
		{bf16, "", 1},
	} {
		a := s.arms[s.index(c.arm)]
		p, err := predict(s.params(c.arm), s.tokens(c.arm), a.weights, a.activations)
		require.NoError(t, err)
		require.InEpsilon(t, c.kumar, p.kumar, 1e-9, c.arm)
		require.InDelta(t, 1, p.sun, 2e-3, "Sun's law charges nothing for so few bytes")
		if i := slices.IndexFunc(declared().Hypotheses, func(g declaration.Goal) bool { return g.Name == c.goal }); i >= 0 {
			require.InDelta(t, c.kumar, *declared().Hypotheses[i].Published, 0.005, c.goal)
		}
	}
}

// TestEqualCost: parameters times bits, and tokens, of all models are the same, to half a
// percent of what whole widths allow.
func TestEqualCost(t *testing.T) {
	for _, l := range []lab.Length{lab.Full, lab.Look, lab.Short} {
		s, err := newSweep(rhymes(l))
		require.NoError(t, err)
		require.Len(t, s.jobs, s.seeds*len(s.arms))
		for i, a := range s.arms {
			config := s.jobs[i].Config
			require.NoError(t, config.Validate(), a.name)
			if a.half {
				require.Equal(t, s.Steps/2, s.jobs[i].Setup.Steps)
				continue
			}
			require.InEpsilon(t, s.cost(fp8), s.cost(a.name), map[lab.Length]float64{lab.Short: 0.03}[l]+0.008, a.name)
			require.Equal(t, s.params(full[a.pays]), s.params(a.name), "a curve in FP32 goes through it: %s", a.name)
		}
	}
}

// TestArms: what each rounds, and that it pays for the bits of its format.
func TestArms(t *testing.T) {
	formats := map[string][3]nn.NarrowFormat{ // inputs, weights, gradients
		bf16: {"E8M7", "E8M7", "E8M7"}, fp8: {"E4M3", "E4M3", "E4M3"}, fp6: {"E3M2", "E3M2", "E3M2"},
		fp6m: {"E2M3", "E2M3", "E2M3"}, fp4: {"E2M1", "E2M1", "E2M1"},
		fp4Forward: {"E2M1", "E2M1", ""}, fp4Weights: {"", "E2M1", ""}, threeBits: {"E1M1", "E1M1", "E1M1"},
	}
	s, err := newSweep(rhymes(lab.Look))
	require.NoError(t, err)
	rounded := 0
	for seed := range s.seeds {
		for i, a := range s.arms {
			j := s.jobs[seed*len(s.arms)+i]
			require.EqualValues(t, 1+seed, j.Seed)
			require.Nil(t, j.Config.FP8)
			want, narrow := formats[a.Name(t)]
			if !narrow {
				require.Nil(t, j.Config.Rounding, a.name)
				continue
			}
			rounded++
			r := j.Config.Rounding
			require.Equal(t, want, [3]nn.NarrowFormat{r.Input.Format, r.Weight.Format, r.Gradient.Format}, a.name)
			require.Equal(t, j.Seed, r.Seed)
			require.Equal(t, want[2] != "" && want[2] != nn.NarrowBF16, r.Stochastic, a.name)
		}
	}
	require.Equal(t, s.seeds*(len(formats)+4), rounded)
}

// Name is that of an arm without what it is trained on.
func (a arm) Name(t *testing.T) string {
	t.Helper()
	if a.once {
		return a.name[:len(a.name)-len(once(""))]
	}
	return a.name
}

// TestTexts: each seed has a part of its own, and arms on the whole text have all of it.
func TestTexts(t *testing.T) {
	data := make([]byte, 1000)
	for i := range data {
		data[i] = byte(i / 100)
	}
	s := &sweep{scope: scope{cut: 63, Setup: training.Setup{Judged: 3, Batch: 3, Seq: 4}}} // 100 with what is held out
	require.Equal(t, data[:100], s.part(data, 0))
	require.Equal(t, data[300:400], s.part(data, 3))
	require.Len(t, s.part(data, 12345), 100, "again from the beginning")
	require.Equal(t, data[:99], s.part(data[:99], 7), "of less, all")
}

// TestLargestSeed: the number of runs does not depend on the seed.
func TestLargestSeed(t *testing.T) {
	o := rhymes(lab.Look)
	want, err := newSweep(o)
	require.NoError(t, err)
	o.Seed = math.MaxUint64
	got, err := newSweep(o)
	require.NoError(t, err)
	require.Len(t, got.jobs, len(want.jobs))
	require.Equal(t, []uint64{math.MaxUint64, 0}, []uint64{got.jobs[0].Seed, got.jobs[len(got.arms)].Seed})
}

// TestSizeAt follows broken lines, and goes on with the first and the last.
func TestSizeAt(t *testing.T) {
	sizes, losses := []float64{1, 2, 4}, []float64{8, 6, 5}
	for loss, want := range map[float64]float64{8: 1, 7: 1.5, 6: 2, 5.5: 3, 5: 4, 4: 6, 9: 0.5} {
		require.InDelta(t, want, sizeAt(sizes, losses, loss), 1e-12, loss)
	}
}

// TestSweepTakesTheRightRuns has the loss of a run fall with its size, and be what that of
// another size is.
func TestSweepTakesTheRightRuns(t *testing.T) {
	s := given(t, func(seed int, a arm) float64 {
		loss := map[int]float64{32: 5, 16: 4, 8: 3, 6: 2.5, 4: 2}[a.pays]
		if a.name == fp4 {
			loss = 4 // as that in the width of 16 bits
		}
		if a.half {
			loss = 3.25
		}
		return loss * float64(seed+1)
	})
	require.Equal(t, []float64{4, 8}, s.losses(fp4, trained))
	require.InDeltaSlice(t, []float64{100.0 / 3, 100.0 / 3}, s.over(fp4, fp8, trained), 1e-12)
	require.InDeltaSlice(t, []float64{0.25, 0.25}, s.effective(fp4), 0.005)
	require.InDeltaSlice(t, []float64{1, 1}, s.effective(fp6), 1e-12)
	require.InDeltaSlice(t, []float64{0.25, 0.25}, s.gain(), 1e-12)
	require.Equal(t, []float64{-4, -8}, s.losses(fp4, heldOut))
}

func TestLinearParams(t *testing.T) {
	config := llama(24, 2, 16, 4)
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
