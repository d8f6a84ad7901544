package fp4

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/labtest"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
	"github.com/octavo-fp8/octavo/nn"
)

func TestFP4(t *testing.T) {
	labtest.Slow(t)
	r := labtest.Run(t, Experiment, labtest.Short())
	labtest.Judged(t, r, 3, 11)
	losses := labtest.Table(t, r, "losses")
	require.Len(t, losses.Rows, 2*len(ways()))
	seen := map[any]any{}
	for _, row := range losses.Rows {
		require.Less(t, row[2], 5.6, "it learns: a guess costs ln 256 = 5.55")
		if row[0] == "1" {
			require.NotContains(t, seen, row[2], "%v is %v", row[1], seen[row[2]])
			seen[row[2]] = row[1]
		}
	}
}

// TestWays: each is what its name says.
func TestWays(t *testing.T) {
	list := ways()
	require.Len(t, list, plainMXFP4Way+1)
	require.Len(t, nn.Parts(), partCount)
	names := map[string]bool{}
	for i, w := range list {
		require.False(t, names[w.name], w.name)
		names[w.name] = true
		config := training.Llama(32, 4, 32)
		w.use(&config, 9)
		require.NoError(t, config.Validate())
		if i == bf16Way {
			require.Equal(t, nn.DefaultRounding(nn.NarrowBF16), *config.Rounding)
			continue
		}
		require.Nil(t, config.Rounding)
		f := config.FP8
		has := []bool{f.Hadamard, f.Stochastic, f.Forward.B.Block.Rows == 16, config.BF16Last == 1}
		want := []bool{true, true, true, true}
		switch {
		case i == fp8Way || i == mxfp8Way || i == plainWay || i == plainMXFP4Way:
			want = []bool{false, false, false, false}
		case i >= firstPart && i < firstPart+partCount:
			want[i-firstPart] = false
		case i == mxfp4Way:
			want[2] = false
		}
		if i != fp8Way {
			require.Equal(t, want, has, w.name)
		}
		require.Equal(t, f.Stochastic, f.Seed == 9, w.name)
	}
	for i, p := range nn.Parts() {
		require.Equal(t, "nvfp4 without "+p.String(), list[firstPart+i].name)
	}
	require.Equal(t, "nvfp4 without all parts", list[plainWay].name)
	require.Equal(t, "nvfp4-4over6", list[fourOverSixWay].name)
	require.Equal(t, "mxfp4 without all parts", list[plainMXFP4Way].name)
}

func TestEffect(t *testing.T) {
	e := newEffect([]float64{1, 2, 3})
	require.Equal(t, 2.0, e.mean)
	require.InDelta(t, 1/math.Sqrt(3), e.ofMean, 1e-12)
	require.True(t, e.seen())
	require.True(t, e.worse())
	require.False(t, e.better())
	require.True(t, newEffect([]float64{-1, -2, -3}).better())
	require.False(t, newEffect([]float64{-1, 2, 3}).seen())
	require.False(t, newEffect([]float64{0.01, 0.011, 0.012}).worse(), "it is seen and too small")
	require.False(t, newEffect([]float64{1, math.NaN(), 1}).worse())
	require.Equal(t, "+2.00 % (standard error 0.58)", e.String())
}

// TestPairs: differences are of the same seed, and of the ways that are asked for.
func TestPairs(t *testing.T) {
	s := madeUp(func(seed, way int) float64 { return float64(10*(seed+1)) * (1 + float64(way)/100) })
	require.InDeltaSlice(t, []float64{3, 3, 3}, s.over(nvfp4Way, bf16Way).bySeed, 1e-9)
	require.InDelta(t, 100*(1.05/1.03-1), s.over(firstPart+1, nvfp4Way).mean, 1e-9)
}

// TestDivision finds what DECLARATION.md says that another program found.
func TestDivision(t *testing.T) {
	var p lab.Steps
	list, err := measureDivisions(t.Context(), &p, 1, 4000)
	require.NoError(t, err)
	require.Equal(t, 504000, list[randomDivision].values)
	require.Zero(t, list[randomDivision].differ)
	require.Equal(t, 882, list[boundaryDivision].values)
	require.Equal(t, 42, list[boundaryDivision].differ)
	require.Equal(t, 74, list[besideDivision].differ, "with those on boundaries, 116")
	require.InDelta(t, 0.0476, list[boundaryDivision].share(), 5e-5)
}

// TestEden: it keeps what needs no rounding, and the mean of many is right where one is
// not.
func TestEden(t *testing.T) {
	zeros := make([]float32, 256)
	require.Equal(t, zeros, eden(zeros, 1))
	r := rand.New(rand.NewPCG(1, 1))
	x := make([]float32, 1024)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	const draws = 400
	sum := make([]float64, len(x))
	once := 0.0
	for seed := range uint64(draws) {
		y := make([]float64, len(x))
		for i, v := range eden(x, seed) {
			y[i] = float64(v)
			sum[i] += y[i]
		}
		once += lost(x, y, 1) / draws
	}
	require.Equal(t, eden(x, 5), eden(x, 5))
	require.InDelta(t, 0.01, once, 0.003, "E2M1 loses about 1 %%")
	require.Less(t, lost(x, sum, 1./draws), 3*once/draws)
}

func TestNeighbours(t *testing.T) {
	for _, c := range [][3]float64{{0, 0, 0}, {1, 1, 1}, {1.01, 1, 1.125}, {0.001, 0, 0x1p-9}, {447, 416, 448}, {448, 448, 448}, {500, 448, 448}} {
		low, high := neighbours(c[0])
		require.Equal(t, c[1:], []float64{low, high}, c[0])
	}
}

func TestRotate(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6, 7, 9}
	y := append([]float64(nil), x...)
	rotate(y)
	require.NotEqual(t, x, y)
	rotate(y)
	require.InDeltaSlice(t, x, y, 1e-12, "it is its own inverse")
}

// madeUp is a study with given held-out losses and rounding that is as claimed.
func madeUp(loss func(seed, way int) float64) *study {
	s := &study{ways: ways(), seeds: []uint64{1, 2, 3}, setup: training.Setup{Steps: 1, Batch: 1, Seq: 1}}
	for seed := range s.seeds {
		for way := range s.ways {
			l := loss(seed, way)
			s.curves = append(s.curves, training.Curve{Losses: []float64{l}, HeldOut: l})
		}
	}
	for kind := range valueNames {
		for i, w := range roundingWays() {
			of := rounding{values: valueNames[kind], way: w.name, once: []float64{0.01, 0.009, 0.03, 0.011, 0.035}[i], draws: 64}
			of.ofMean = of.once
			if i >= stochasticRounding {
				of.ofMean = of.once / 64
			}
			s.roundings = append(s.roundings, of)
		}
	}
	s.divisions = []division{{"random", 100, 0, ""}, {"on a boundary", 882, 42, "an example"}, {"beside", 10, 1, ""}}
	return s
}

// asClaimed has every hypothesis hold.
func asClaimed(seed, way int) float64 {
	percents := map[int]float64{fp8Way: 0.1, mxfp8Way: 0.1, nvfp4Way: 0.9, fourOverSixWay: 0.5, mxfp4Way: 2, plainWay: 3, plainMXFP4Way: 4}
	for i := range partCount {
		percents[firstPart+i] = 1.5
	}
	noise := float64(seed) / 1000
	return 2 * (1 + (percents[way]+noise)/100)
}

// TestGoals are met where what is claimed comes out, and missed where the opposite does.
func TestGoals(t *testing.T) {
	met := func(s *study) (n int) {
		for _, g := range s.report().Goals {
			if g.Met() {
				n++
			}
		}
		return n
	}
	require.Equal(t, 14, met(madeUp(asClaimed)))
	require.Equal(t, 3+4, met(madeUp(func(int, int) float64 { return 2 })), "all alike: only gaps are as wanted")
	require.Zero(t, met(contrary()))
	require.Equal(t, 4, met(madeUp(func(int, int) float64 { return math.NaN() })), "nothing is met by no number")
}

// contrary has every hypothesis fail.
func contrary() *study {
	percents := map[int]float64{fp8Way: 1, mxfp8Way: -1, nvfp4Way: 5, fourOverSixWay: 6, mxfp4Way: 4, plainWay: 4, plainMXFP4Way: 3}
	s := madeUp(func(seed, way int) float64 { return 2 * (1 + (percents[way]+float64(seed)/1000)/100) })
	for i := range s.roundings {
		s.roundings[i].once, s.roundings[i].ofMean = 0.01*float64(1+i%roundingCount), 0.5
	}
	s.divisions[randomDivision].differ, s.divisions[boundaryDivision].differ = 3, 4
	return s
}

// TestSentencesFollow feeds the report with runs of one outcome and of the opposite.
func TestSentencesFollow(t *testing.T) {
	noisy := madeUp(func(seed, way int) float64 { return 2 + float64((seed*7+way*5)%11)/5 })
	labtest.Outcomes(t, madeUp(asClaimed).report(), contrary().report(), noisy.report())
	labtest.NotSaid(t, contrary().report(), "Training here needs", "claim holds", "keeps it unbiased", "lowers the loss:", "cannot tell one from the other")
	labtest.NotSaid(t, madeUp(asClaimed).report(), "is not shown", "not confirmed")
}

// TestDeclared: what the code does is what DECLARATION.md says.
func TestDeclared(t *testing.T) {
	var said []string
	for _, g := range madeUp(asClaimed).report().Goals {
		said = append(said, g.What+": "+g.Want)
	}
	require.Len(t, said, 14)
	all := strings.Join(said, "\n")
	for _, want := range []string{
		"fp8 above that of BF16: within 0.25 %", "mxfp8 above that of BF16: within 0.25 %", "nvfp4 above that of BF16: within 1 %",
		"mxfp4 above that of nvfp4: higher by more than 0.1 % and 3 standard errors", "more than 2 times", "at most 0.0625",
	} {
		require.Contains(t, all, want)
	}
	for _, g := range madeUp(asClaimed).report().Goals[:10] {
		g := report.Report{Goals: []report.Goal{g}}
		g.Shorten()
		require.Equal(t, report.NotJudged, g.Goals[0].Outcome)
	}
}
