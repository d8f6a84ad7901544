package train

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// stepTimes are those of a made-up run: all ranks are slow together in some steps, each
// differs by a little from the others for good and by more from step to step, and pauses now
// and then.
type stepTimes struct {
	ranks, steps int
	differ       float64 // standard deviation of the logarithm, of ranks
	noise        float64 // and of steps
	pauses       float64 // share of steps that take three times as long
}

func (s stepTimes) draw(r *rand.Rand) [][]float64 {
	own := make([]float64, s.ranks)
	for i := range own {
		own[i] = s.differ * r.NormFloat64()
	}
	times := make([][]float64, s.steps)
	for i := range times {
		all := 0.4 * math.Exp(0.3*r.NormFloat64())
		for j := range own {
			t := all * math.Exp(own[j]+s.noise*r.NormFloat64())
			if r.Float64() < s.pauses {
				t *= 3
			}
			times[i] = append(times[i], t)
		}
	}
	return times
}

func slowRanks(t *testing.T, w StepWatch, times [][]float64) (ranks []int) {
	t.Helper()
	slow, err := w.Slow(times)
	require.NoError(t, err)
	for _, s := range slow {
		ranks = append(ranks, s.Rank)
	}
	return ranks
}

// TestNoSlowRankIsMadeUp counts windows in which a rank like the others is blamed, and in which
// one that is 20 percent slower is not.
func TestNoSlowRankIsMadeUp(t *testing.T) {
	windows := 400
	if testing.Short() {
		windows = 60
	}
	for _, s := range []stepTimes{
		{ranks: 3, steps: 105, noise: 0.05},
		{ranks: 4, steps: 25, differ: 0.01, noise: 0.05, pauses: 0.05},
		{ranks: 8, steps: 105, differ: 0.005, noise: 0.1, pauses: 0.02},
		{ranks: 64, steps: 55, differ: 0.01, noise: 0.03, pauses: 0.1},
	} {
		r := rand.New(rand.NewPCG(7, uint64(s.ranks)))
		blamed, missed := 0, 0
		for range windows {
			times := s.draw(r)
			if len(slowRanks(t, StepWatch{}, times)) > 0 {
				blamed++
			}
			who := r.IntN(s.ranks)
			for _, step := range times {
				step[who] *= 1.2
			}
			if ranks := slowRanks(t, StepWatch{}, times); len(ranks) == 0 || ranks[0] != who {
				missed++
			}
		}
		t.Logf("%+v, %d windows: %d false alarms, %d without the slow rank", s, windows, blamed, missed)
		require.LessOrEqual(t, blamed, windows/100, "%+v", s)
		if s.ranks > 4 {
			require.LessOrEqual(t, missed, windows/100, "%+v", s)
		}
	}
}

func TestSlowRanks(t *testing.T) {
	even := func(ranks, steps int) [][]float64 {
		return stepTimes{ranks: ranks, steps: steps, noise: 0.01}.draw(rand.New(rand.NewPCG(3, 4)))
	}
	slowed := func(ranks, steps int, by float64, from, to int, who ...int) [][]float64 {
		times := even(ranks, steps)
		for _, step := range times[from:to] {
			for _, r := range who {
				step[r] *= by
			}
		}
		return times
	}
	for _, c := range []struct {
		name  string
		watch StepWatch
		times [][]float64
		want  []int
	}{
		{"nothing", StepWatch{}, nil, nil},
		{"none", StepWatch{}, even(8, 60), nil},
		{"one", StepWatch{}, slowed(8, 60, 1.1, 0, 60, 5), []int{5}},
		{"one of three", StepWatch{}, slowed(3, 60, 1.5, 0, 60, 0), []int{0}},
		{"three of eight", StepWatch{}, slowed(8, 60, 1.3, 0, 60, 1, 4, 6), []int{1, 4, 6}},
		{"all but one", StepWatch{}, slowed(4, 60, 1.3, 0, 60, 1, 2, 3), nil},
		{"all", StepWatch{}, slowed(4, 60, 9, 30, 60, 0, 1, 2, 3), nil},
		{"of two", StepWatch{}, slowed(2, 60, 9, 0, 60, 1), nil},
		{"less than the ratio", StepWatch{}, slowed(8, 60, 1.04, 0, 60, 5), nil},
		{"less than another ratio", StepWatch{Ratio: 1.2}, slowed(8, 60, 1.15, 0, 60, 5), nil},
		{"in warm-up", StepWatch{}, slowed(8, 16, 100, 0, 5, 5), nil},
		{"without warm-up", StepWatch{Warmup: -1, Window: 10}, slowed(8, 10, 2, 0, 10, 5), []int{5}},
		{"a third of the steps", StepWatch{}, slowed(8, 65, 2, 5, 25, 5), nil},
		{"too few steps", StepWatch{}, slowed(8, 14, 2, 0, 14, 5), nil},
		{"enough steps", StepWatch{}, slowed(8, 15, 2, 0, 15, 5), []int{5}},
		{"before the window", StepWatch{Window: 20}, slowed(8, 65, 2, 0, 45, 5), nil},
		{"within noise", StepWatch{Threshold: 1e4}, slowed(8, 60, 1.5, 0, 60, 5), nil},
	} {
		got := slowRanks(t, c.watch, c.times)
		require.ElementsMatch(t, c.want, got, c.name)
	}

	times := even(6, 20)
	for range 60 { // two that were left
		nan := math.NaN()
		times = append(times, []float64{1, 2, nan, nan, nan, nan})
	}
	require.Empty(t, slowRanks(t, StepWatch{}, times))

	times = slowed(8, 60, 1.2, 0, 60, 2)
	for _, step := range times {
		step[6] *= 1.5
	}
	for s := range 20 { // it came later
		times[s][2], times[s][3] = math.NaN(), math.NaN()
	}
	slow, err := StepWatch{}.Slow(times)
	require.NoError(t, err)
	require.Len(t, slow, 2)
	require.Equal(t, 6, slow[0].Rank)
	require.InDelta(t, 1.5, slow[0].Ratio, 0.02)
	require.Equal(t, 2, slow[1].Rank)
	require.InDelta(t, 1.2, slow[1].Ratio, 0.02)
	require.Equal(t, 40, slow[1].Steps)
	require.Greater(t, slow[0].Score, slow[1].Score)
}

// TestSlowScore computes the score of three ranks by hand: logarithms over the median are 0, 0
// and ln 2 in each step, so that no distance is above 0 and the least spread counts.
func TestSlowScore(t *testing.T) {
	times := make([][]float64, 12)
	for i := range times {
		times[i] = []float64{3, 3, 6}
	}
	slow, err := StepWatch{Warmup: 2}.Slow(times)
	require.NoError(t, err)
	require.Len(t, slow, 1)
	require.Equal(t, 2, slow[0].Rank)
	require.Equal(t, 10, slow[0].Steps)
	require.InDelta(t, 2, slow[0].Ratio, 1e-12)
	require.InDelta(t, 1000*math.Ln2, slow[0].Score, 1e-9)

	// Six ranks are e times slower or faster than the others in turn, so that most distances
	// are 1; one is always faster by e to the power of x and one slower.
	for _, x := range []float64{3, 4} {
		for i := range times {
			e := math.Exp(float64(i%2*2 - 1))
			times[i] = []float64{1 / e, e, 1 / e, e, 1 / e, e, math.Exp(-x), 1, math.Exp(x)}
		}
		slow, err = StepWatch{Warmup: -1}.Slow(times)
		require.NoError(t, err)
		if x == 3 {
			require.Empty(t, slow, "5.6 spreads of 1.2533·1.4826/√12")
			continue
		}
		require.Len(t, slow, 1)
		require.Equal(t, 8, slow[0].Rank)
		require.InDelta(t, 7.457, slow[0].Score, 1e-3)
	}
}

func TestHungRanks(t *testing.T) {
	times := make([][]float64, 30)
	for i := range times {
		times[i] = []float64{1, 2, 3, 2}
	}
	times[3][0] = 500 // in warm-up
	times[20], times[29] = []float64{80, 80, 80, 80}, []float64{80, 80, 80, 80}
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		watch  StepWatch
		waited []float64
		want   []HungRank
		all    bool
	}{
		{"none", StepWatch{}, []float64{19, 20, 1, 0}, nil, false},
		{"one", StepWatch{}, []float64{nan, 20.5, nan, nan}, []HungRank{{1, 20.5, 20}}, false},
		{"half", StepWatch{}, []float64{nan, 21, 21, nan}, nil, true},
		{"all", StepWatch{}, []float64{30, 30, 30, 30}, nil, true},
		{"patience", StepWatch{Patience: 3}, []float64{0, 0, 0, 6.5}, []HungRank{{3, 6.5, 6}}, false},
		{"too early", StepWatch{Least: 26}, []float64{nan, nan, nan, 100}, nil, false},
		{"just not", StepWatch{Least: 25}, []float64{nan, nan, nan, 99}, []HungRank{{3, 99, 20}}, false},
		{"of two", StepWatch{}, []float64{nan, 100}, nil, false},
	} {
		hung, all, err := c.watch.Hung(times, c.waited)
		require.NoError(t, err)
		require.Equal(t, c.want, hung, c.name)
		require.Equal(t, c.all, all, c.name)
	}
}

func TestStepTimesMisuse(t *testing.T) {
	good := [][]float64{{1, 2, 3}, {1, 2, 3}}
	for text, try := range map[string]func() error{
		"step 1 has times of 2 ranks, the first of 3": func() error {
			_, err := StepWatch{}.Slow([][]float64{{1, 2, 3}, {1, 2}})
			return err
		},
		"the time of rank 1 in step 0 is -2": func() error {
			_, err := StepWatch{}.Slow([][]float64{{1, -2, 3}})
			return err
		},
		"the time of rank 0 in step 0 is +Inf": func() error {
			_, _, err := StepWatch{}.Hung([][]float64{{math.Inf(1)}}, nil)
			return err
		},
		"rank 2 has waited for -1": func() error {
			_, _, err := StepWatch{}.Hung(good, []float64{0, 0, -1})
			return err
		},
		"Ratio must be above 1": func() error {
			_, err := StepWatch{Ratio: 1}.Slow(good)
			return err
		},
		"must not be negative": func() error {
			_, err := StepWatch{Patience: -1}.Slow(good)
			return err
		},
	} {
		err := try()
		require.ErrorContains(t, err, text)
		require.ErrorIs(t, err, ErrInput)
	}
}
