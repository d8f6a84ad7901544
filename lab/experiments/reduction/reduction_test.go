package reduction

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

func TestReduction(t *testing.T) {
	labtest.Slow(t)
	r := labtest.Run(t, Experiment, labtest.Shakespeare(t))
	labtest.Judged(t, r, 0, 14)
	require.Len(t, labtest.Table(t, r, "worlds").Rows, 2*2*8)
	teams, steps := labtest.Table(t, r, "losses").Rows, labtest.Table(t, r, "losses-steps").Rows
	require.Len(t, teams, 6)
	require.Len(t, steps, 6*4)
	for i, row := range teams {
		require.Equal(t, steps[4*i+0][3], row[2])
		require.Equal(t, steps[4*i+3][3], row[3], "the last quarter")
		require.Equal(t, i == 0, row[3] == teams[0][3], "all ways differ from FP32")
	}
	require.Len(t, labtest.Table(t, r, "factors").Rows, 2*2*3)
	params := 2 + 1 + 2*9
	require.Len(t, labtest.Table(t, r, "tensors").Rows, 2*4*params)
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

// TestDeclaredSample: a full run has a value for each seed that was declared.
func TestDeclaredSample(t *testing.T) {
	seeds := newStudy(labtest.Rhymes(lab.Full)).seeds
	for _, g := range append(slices.Clone(declared().Hypotheses), declared().Controls...) {
		require.Equal(t, seeds, g.Sample, g.Name)
	}
}

// randomGradients are of two parameters, of which the second is far smaller.
func randomGradients(sequences int) *stepGradients {
	random := rand.New(rand.NewPCG(7, 7))
	g := newStepGradients([]*nn.Param{{Grad: make([]float32, 301)}, {Grad: make([]float32, 17)}}, sequences)
	for _, s := range g.shards {
		for j := range s[0] {
			s[0][j] = float32(random.NormFloat64() * math.Exp2(float64(j%30-29)))
		}
		for j := range s[1] {
			s[1][j] = float32(random.NormFloat64() * 1e-9)
		}
		s[0][5] = 0
	}
	if err := g.average(context.Background()); err != nil {
		panic(err)
	}
	return g
}

// TestGradients: a step's are those of its sequences, one after the other.
func TestGradients(t *testing.T) {
	r := &sample{o: labtest.Shakespeare(t)}
	var err error
	r.corpus, err = training.Corpus(r.o)
	require.NoError(t, err)
	r.run, err = r.newRun("x")
	require.NoError(t, err)
	params := r.run.Model.Params()
	g := newStepGradients(params, 2)
	require.NoError(t, r.gradients(t.Context(), g, 3, 2))
	tokens, targets, err := r.corpus.Batch(3, 2, training.SmallContext)
	require.NoError(t, err)
	for i := range 2 {
		r.run.Model.ZeroGrad()
		part := func(all []int32) []int32 { return all[i*training.SmallContext : (i+1)*training.SmallContext] }
		_, err := r.run.Model.Loss(t.Context(), part(tokens), part(targets), 1, training.SmallContext)
		require.NoError(t, err)
		require.NoError(t, r.run.Model.Backward(t.Context()))
		for k, param := range params {
			require.Equal(t, param.Grad, g.shards[i][k], "sequence %d, %s", i, param.Name)
		}
	}
	require.Equal(t, g.shards[0][0][7]/2+g.shards[1][0][7]/2, g.mean[0][7])
}

func TestAverage(t *testing.T) {
	g := randomGradients(5)
	for param := range g.mean {
		for j, got := range g.mean[param] {
			var sum float64
			for i := range 5 {
				sum += float64(g.shards[i][param][j])
			}
			require.Equal(t, float32(sum/5), got)
		}
	}
}

// TestWorld follows a world by the definitions of its figures.
func TestWorld(t *testing.T) {
	g := randomGradients(6)
	for _, k := range kinds {
		w := newWorld(k, 4, way{true, collective.DivideRoot}, 1)
		require.NoError(t, w.step(t.Context(), g))
		var saturated, flushed, nonzero, encoded, squaredError, squares float64
		round := func(x float32) float32 {
			encoded++
			if math.Abs(float64(x)) > 464 {
				saturated++
			}
			return fp8.E4M3.Float32(fp8.EncodeOne(x, fp8.E4M3, fp8.Policy{}))
		}
		for param, mean := range g.mean {
			var of [4][]float32
			var amax float32
			for i := range of {
				of[i] = g.shards[i][param]
				if k.name == alike.name {
					of[i] = mean
				}
				a, _ := fp8.Amax(of[i])
				amax = max(amax, a)
			}
			scale := 448 / amax
			require.Equal(t, scale, w.tensors[param].Scale)
			for j := range mean {
				var sum float32
				var exact float64
				for i, shard := range of {
					x := round(shard[j] * scale / 2)
					if shard[j] != 0 {
						nonzero++
						if x == 0 {
							flushed++
						}
					}
					if i > 0 {
						x = round(sum + x)
					}
					sum = x
					exact += float64(shard[j]) / 4
				}
				squares += exact * exact
				squaredError += math.Pow(float64(sum)/float64(scale)/2-exact, 2)
			}
		}
		require.Positive(t, flushed)
		require.Equal(t, k.name == alike.name, saturated > 0)
		require.Equal(t, flushed/nonzero, w.underflow(), k.name)
		require.Equal(t, saturated/encoded, w.overflow(), k.name)
		require.InEpsilon(t, math.Sqrt(squaredError/squares), w.err, 1e-6, k.name)
		require.Equal(t, []float64{0.5}, w.factors)
	}
}

// TestWorldAdapts: each parameter has a factor of its own, from step to step.
func TestWorldAdapts(t *testing.T) {
	g := newStepGradients([]*nn.Param{{Grad: make([]float32, 1)}, {Grad: make([]float32, 1)}, {Grad: make([]float32, 1)}}, 1)
	g.mean[0][0], g.mean[2][0] = 1, 1 // the second is zero, and never saturates
	w := newWorld(alike, 4, auto, 1)
	for range 3 {
		require.NoError(t, w.step(t.Context(), g))
	}
	require.Equal(t, []float64{1, 0.5, 0.25}, w.factors, "medians over parameters")
	require.Equal(t, 1.0, w.tensors[1].Factor)
	require.Zero(t, w.overflow(), "of the last step alone")
}

// TestSumsStopGrowing: in gradients that are all the same, at 16 to 32 values.
func TestSumsStopGrowing(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	g := newStepGradients([]*nn.Param{{Grad: make([]float32, 1000)}}, 1)
	for j := range g.mean[0] {
		g.mean[0][j] = random.Float32() + 1
	}
	w := newWorld(alike, 64, pre, 1)
	require.NoError(t, w.step(t.Context(), g))
	require.Greater(t, w.err, 0.5)
	require.Less(t, w.err, 0.75)
	w = newWorld(alike, 64, way{false, collective.DividePre}, 1)
	require.NoError(t, w.step(t.Context(), g))
	require.Less(t, w.err, 1e-6)
}

// TestIndependentError compares it with one rounding of values that are uniform
// between powers of two, and with sums of values without a common sign.
func TestIndependentError(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	one := roundedError(1, func() float32 { return random.Float32() + 1 })
	require.InEpsilon(t, one, independentError(1), 0.01)
	bell := func() float32 { return float32(random.NormFloat64()) }
	one = roundedError(1, bell)
	for _, n := range []int{2, 4, 8} {
		require.InEpsilon(t, roundedError(n, bell)/one, independentError(n)/independentError(1), 0.08, n) // sums of codes are codes more often
	}
}

// roundedError is the relative error of sums of n values, all rounded to E4M3.
func roundedError(n int, value func() float32) float64 {
	round := func(x float32) float32 { return fp8.E4M3.Float32(fp8.EncodeOne(x, fp8.E4M3, fp8.Policy{})) }
	var squaredError, squares float64
	for range 40000 {
		var exact float64
		var sum float32
		for range n {
			x := value()
			exact += float64(x)
			sum = round(sum + round(x))
		}
		squares += exact * exact
		squaredError += math.Pow(float64(sum)-exact, 2)
	}
	return math.Sqrt(squaredError / squares)
}

// TestWhatFollowsFromFormats: FP32 loses nothing, and dividing before does not overflow. Both follow from the formats,
// whatever the gradients, so that they are no goals.
func TestWhatFollowsFromFormats(t *testing.T) {
	const n = 6
	g := randomGradients(n)
	for _, k := range kinds {
		for _, w := range ways() {
			world := newWorld(k, n, w, 1)
			require.NoError(t, world.step(t.Context(), g))
			switch {
			case !w.fp8:
				require.Zero(t, world.encode.Flushed+world.encode.Saturated()+world.sum.Saturated(), world)
				require.LessOrEqual(t, world.err, n*0x1p-24, world)
			case w == pre:
				require.Zero(t, world.overflow(), world)
			}
		}
	}
}

// TestPerValue counts what saturates over the values of a gradient, as an automatic factor does.
func TestPerValue(t *testing.T) {
	g := newStepGradients([]*nn.Param{{Grad: make([]float32, 4)}}, 1)
	for j := range g.mean[0] {
		g.mean[0][j] = 1 // the largest: all sums but the first value are too large
	}
	w := newWorld(alike, 3, post, 1)
	require.NoError(t, w.step(t.Context(), g))
	require.Equal(t, []float64{2}, w.saturated)
	require.Equal(t, 200.0, saturatedLast(w))
	w.saturated = []float64{9, 1, 3}
	require.Equal(t, 200.0, (&study{scope: scope{adapted: 2}}).saturatedAdapted(w))
}

func TestTeams(t *testing.T) {
	for i, k := range teamKinds {
		require.Equal(t, i > 0, k.way.fp8, k.name)
		r := k.reducer(3, 1)
		require.NoError(t, r.Check())
		if k.name != "starved" {
			require.Empty(t, r.Mu)
			continue
		}
		require.Equal(t, []float64{0x1p-16, 0x1p-16, 0x1p-16}, r.Mu)
		values := []float32{448, 448 / 8, -448 / 64}
		got := r.Mean(0, make([]float32, 3), [][]float32{values})
		require.EqualValues(t, 2, got.Encode.Flushed, "all that is 4 times smaller than the largest or less")
	}
	s := &sample{}
	for i, k := range teamKinds {
		s.teams = append(s.teams, &team{kind: k, losses: []float64{9, 9, 9, 9, 9, 9, 9, 9, 9, 2, 2, 2 + 3*float64(i)}})
	}
	require.Equal(t, 2.0, s.teams[0].last(), "the last three of twelve")
	require.Equal(t, 3.0, s.teamOf("post").last())
	require.Equal(t, 50.0, s.excess(s.teamOf("post")))
	require.Equal(t, 5.0, (&team{losses: []float64{5}}).last())
}

func TestWays(t *testing.T) {
	var names []string
	for _, w := range ways() {
		names = append(names, w.String())
	}
	require.Equal(t, []string{"FP32 post", "FP32 pre", "FP32 root", "FP32 auto", "FP8 post", "FP8 pre", "FP8 root", "FP8 auto"}, names)
	params := []*nn.Param{{Value: make([]float32, 90)}, {Value: make([]float32, 10)}}
	require.Equal(t, 4.0, newWorld(alike, 2, way{}, 1).bytes(params))
	require.Equal(t, 1.08, newWorld(alike, 2, auto, 1).bytes(params))
}

// TestStepsEnd: a step of a large world takes seconds, and ends before the next parameter.
func TestStepsEnd(t *testing.T) {
	g := randomGradients(4)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := newWorld(sequences, 4, auto, 1)
	require.ErrorIs(t, w.step(ctx, g), context.Canceled)
	require.Empty(t, w.factors)
	require.ErrorIs(t, g.average(ctx), context.Canceled)
}
