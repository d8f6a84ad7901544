package train

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/telemetry"
)

// lost64 is what happened on the way to a mean.
type lost64 struct{ flushed, saturated, saturatedSums int64 }

// plainMean is the mean of [Reducer.Mean] by definition.
func plainMean(shards [][]float32, eight bool, f float64) (mean []float32, lost lost64) {
	n := float64(len(shards))
	scale := float32(1)
	if eight {
		scale = float32(math.Inf(1))
		for _, s := range shards {
			for _, v := range s {
				if v != 0 {
					scale = min(scale, 448/float32(math.Abs(float64(v))))
				}
			}
		}
	}
	round := func(x float32, saturated *int64) float32 {
		if !eight {
			if math.IsInf(float64(x), 0) {
				*saturated++
			}
			return x
		}
		if math.Abs(float64(x)) > 464 { // halfway to the number after 448; a tie goes down
			*saturated++
		}
		return fp8.E4M3.Float32(fp8.EncodeOne(x, fp8.E4M3, fp8.Policy{}))
	}
	mean = make([]float32, len(shards[0]))
	for i := range mean {
		for k, s := range shards {
			x := round(s[i]*float32(float64(scale)*f), &lost.saturated)
			if x == 0 && s[i] != 0 {
				lost.flushed++
			}
			if k > 0 {
				x = round(mean[i]+x, &lost.saturatedSums)
			}
			mean[i] = x
		}
	}
	for i := range mean {
		mean[i] *= float32(1 / (float64(scale) * (f * n)))
	}
	return mean, lost
}

func someShards(n, size int) [][]float32 {
	shards := make([][]float32, n)
	for i := range shards {
		shards[i] = wideGradients(uint64(i), size)
		for j := range shards[i] {
			if j%9 == 0 {
				shards[i][j] = 3e6 + float32(i) // all of one sign
			}
		}
	}
	return shards
}

func TestMeanByDefinition(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		shards := someShards(n, 5000)
		for _, eight := range []bool{false, true} {
			for division, f := range map[Division]float64{
				DividePost: 1, DividePre: 1 / float64(n), DivideRoot: 1 / math.Sqrt(float64(n)), DivideAuto: 0.375,
			} {
				want, lost := plainMean(shards, eight, f)
				for _, workers := range []int{1, 3} {
					r := Reducer{FP8: eight, Division: division, Workers: workers, Mu: []float64{1, 0.375}}
					got := make([]float32, len(want))
					reduction := r.Mean(1, got, shards)
					require.Equal(t, want, got, "%d shards, FP8 %v, division %d", n, eight, division)
					require.Equal(t, f, reduction.Factor)
					require.Equal(t, lost, lost64{reduction.Encode.Flushed, reduction.Encode.Saturated(), reduction.Sum.Saturated()})
					require.EqualValues(t, n*5000, reduction.Encode.Elements)
					require.EqualValues(t, (n-1)*5000, reduction.Sum.Elements)
				}
			}
		}
	}
}

// TestDivisionsLose: what each way of dividing is known for.
func TestDivisionsLose(t *testing.T) {
	const n = 4
	shards := make([][]float32, n)
	for i := range shards {
		shards[i] = []float32{448, 1.0 / 1024 * 1.5, 1}
	}
	mean := make([]float32, 3)
	for division, want := range map[Division]lost64{
		DividePost: {saturatedSums: n - 1},
		DividePre:  {flushed: n},
		DivideRoot: {flushed: n, saturatedSums: n - 2},
	} {
		r := Reducer{FP8: true, Division: division}
		got := r.Mean(0, mean, shards)
		require.EqualValues(t, 1, got.Scale)
		require.Equal(t, want, lost64{got.Encode.Flushed, got.Encode.Saturated(), got.Sum.Saturated()}, "division %d", division)
	}

	auto := Reducer{FP8: true, Division: DivideAuto}
	factors := []float64{1, 0.5, 0.25, 0.25 * math.Exp2(1.0/1000)}
	for i, want := range factors {
		got := auto.Mean(2, mean, shards)
		require.InEpsilon(t, want, got.Factor, 1e-12, "time %d", i)
		require.Equal(t, i < 2, got.Sum.Saturated() > 0)
	}
	require.Equal(t, []float64{1, 1}, auto.Mu[:2], "other tensors have their own")
	auto = Reducer{FP8: true, Division: DivideAuto, Threshold: 0.9, Mu: []float64{0.5}}
	small := [][]float32{{1, 0}, {-1, 0}}
	for range 1000 {
		auto.Mean(0, mean[:2], small)
	}
	require.InEpsilon(t, 1, auto.Mu[0], 1e-9, "doubled in 1000 steps")
	for range 10 {
		auto.Mean(0, mean[:2], small)
	}
	require.Equal(t, 1.0, auto.Mu[0], "and no more than 1")
}

func TestMeanInFP32Loses(t *testing.T) {
	huge, tiny := float32(3e38), float32(math.SmallestNonzeroFloat32)
	shards := [][]float32{{huge, -huge, tiny, 0, float32(math.NaN())}, {huge, -huge, tiny, 0, 1}}
	mean := make([]float32, 5)
	post := (&Reducer{}).Mean(0, mean, shards)
	require.Equal(t, []float32{float32(math.Inf(1)), float32(math.Inf(-1)), tiny, 0}, mean[:4])
	require.EqualValues(t, 1, post.Sum.SaturatedPos)
	require.EqualValues(t, 1, post.Sum.SaturatedNeg)
	require.Zero(t, post.Encode.Flushed)
	require.EqualValues(t, 1, post.Encode.NaN)
	require.EqualValues(t, 2, post.Encode.Zeros)
	require.Equal(t, float64(tiny), post.Encode.Smallest)
	require.Equal(t, float64(huge), post.Encode.Amax)
	pre := (&Reducer{Division: DividePre}).Mean(0, mean, shards)
	require.Equal(t, []float32{huge, -huge, 0, 0}, mean[:4])
	require.EqualValues(t, 2, pre.Encode.Flushed)
	require.Zero(t, pre.Sum.Saturated())
}

// TestMeanCountsByDefinition: subnormal numbers count where values are multiplied and where
// they are added, in FP32 as in E4M3, whose least normal number is 2^-6.
func TestMeanCountsByDefinition(t *testing.T) {
	const n = 4
	for eight, least := range map[bool]float64{false: 0x1p-126, true: 0x1p-6} {
		shards := make([][]float32, n)
		for i := range shards {
			for j := range 3000 {
				v := float32(math.Ldexp(1+float64(j%7)/8, -j%24)) * float32(least) * float32(1-2*(i*j%2))
				shards[i] = append(shards[i], v)
			}
			shards[i][0] = 448 // its scale is 1
		}
		round := func(x float32) float64 {
			if eight {
				x = fp8.E4M3.Float32(fp8.EncodeOne(x, fp8.E4M3, fp8.Policy{}))
			}
			return float64(x)
		}
		var encode, sum int64
		for j := range shards[0] {
			total := 0.0
			for i, s := range shards {
				x := round(s[j] / n)
				if x != 0 && math.Abs(x) < least {
					encode++
				}
				if total = round(float32(total + x)); i > 0 && total != 0 && math.Abs(total) < least {
					sum++
				}
			}
		}
		got := (&Reducer{FP8: eight, Division: DividePre}).Mean(0, make([]float32, 3000), shards)
		require.EqualValues(t, 1, got.Scale)
		require.True(t, encode > 300 && sum > 300)
		require.Equal(t, [2]int64{encode, sum}, [2]int64{got.Encode.Subnormal, got.Sum.Subnormal}, "FP8 %v", eight)
	}
}

// TestMeanHidesNothing: a worker's infinity or NaN is in the mean.
func TestMeanHidesNothing(t *testing.T) {
	for _, bad := range []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())} {
		for _, eight := range []bool{false, true} {
			mean := make([]float32, 2)
			got := (&Reducer{FP8: eight, Division: DividePre}).Mean(0, mean, [][]float32{{1, 1}, {1, bad}, {1, 1}})
			require.InDelta(t, 1, mean[0], 1e-6)
			require.False(t, number.IsFinite(float64(mean[1])))
			require.EqualValues(t, 1, got.Encode.NonFinite())
		}
	}
}

func TestMeanPanics(t *testing.T) {
	require.PanicsWithValue(t, noShards, func() { (&Reducer{}).Mean(0, nil, nil) })
	require.PanicsWithValue(t, unequalShards, func() { (&Reducer{}).Mean(0, make([]float32, 2), [][]float32{{1, 2}, {1}}) })
	require.PanicsWithValue(t, badReducer, func() { (&Reducer{Division: 4}).Mean(0, nil, [][]float32{{}}) })
	require.PanicsWithValue(t, badReducer, func() { (&Reducer{Threshold: -1}).Mean(0, nil, [][]float32{{}}) })
	a := []float32{1, 2}
	(&Reducer{}).Mean(0, a, [][]float32{{3, 4}, a})
	require.Equal(t, []float32{2, 3}, a, "in place")
}

// shardsOf cuts batches of the corpus of other tests.
func shardsOf(t *testing.T, n, step int) (shards []Shard) {
	corpus, err := NewCorpus([]byte("the quick brown fox jumps over the lazy dog; the dog sleeps on. "), 0, 3)
	require.NoError(t, err)
	tokens, targets, err := corpus.Batch(step, n, 16)
	require.NoError(t, err)
	for i := range n {
		shards = append(shards, Shard{tokens[16*i : 16*i+16], targets[16*i : 16*i+16]})
	}
	return shards
}

// TestDataParallel trains with several numbers of replicas, which must not matter,
// and compares with one model that does one shard after the other.
func TestDataParallel(t *testing.T) {
	for name, reducers := range map[string][]Reducer{
		"smooth delayed":      {{}, {FP8: true, Division: DivideAuto}},
		"gradients at random": {{}},
		"rounded at random":   {{}},
	} {
		for _, reducer := range reducers {
			t.Run(name, func(t *testing.T) { testDataParallel(t, name, reducer) })
		}
	}
}

func testDataParallel(t *testing.T, run string, reducer Reducer) {
	const n = 4
	r := runs()[run]
	plain, plainOptimizer := newRun(t, r.Config, r.Moments, 5)
	means := reducer
	var want []float32
	for step := range 3 {
		grads := make([][][]float32, len(plain.Params()))
		var sum float64
		for _, s := range shardsOf(t, n, step) {
			plain.ZeroGrad()
			loss, err := plain.Loss(t.Context(), s.Tokens, s.Targets, 1, 16)
			require.NoError(t, err)
			require.NoError(t, plain.Backward(t.Context()))
			sum += float64(loss)
			for i, p := range plain.Params() {
				grads[i] = append(grads[i], append([]float32{}, p.Grad...))
			}
		}
		want = append(want, float32(sum/n))
		for i, p := range plain.Params() {
			means.Mean(i, p.Grad, grads[i])
		}
		_, err := plainOptimizer.Step(t.Context(), plain.Params(), 3e-3)
		require.NoError(t, err)
		plain.EndStep()
	}
	for _, replicas := range []int{1, 2, 3, 7} {
		model, optimizer := newRun(t, r.Config, r.Moments, 5)
		d, err := NewDataParallel(model, replicas, model.Replica)
		require.NoError(t, err)
		d.Reducer = reducer
		var got []float32
		for step := range 3 {
			loss, reductions, err := gradients(t, d, shardsOf(t, n, step))
			require.NoError(t, err)
			require.Len(t, reductions, len(model.Params()))
			_, err = optimizer.Step(t.Context(), model.Params(), 3e-3)
			require.NoError(t, err)
			model.EndStep()
			got = append(got, loss)
		}
		require.Equal(t, want, got, "%d replicas", replicas)
		require.Equal(t, bitsOf(plain, plainOptimizer), bitsOf(model, optimizer), "%d replicas", replicas)
		require.Equal(t, means.Mu, d.Reducer.Mu)
	}
}

// gradients computes those of shards of one sequence each.
func gradients(t *testing.T, d *DataParallel[*nn.Llama], shards []Shard) (float32, []Reduction, error) {
	return d.Gradients(t.Context(), len(shards), LlamaGradients(shards, 1, 16))
}

func TestDataParallelRefuses(t *testing.T) {
	model, _ := newRun(t, small(), optim.Moments{}, 1)
	_, err := NewDataParallel(model, 0, nil)
	require.ErrorContains(t, err, "0 replicas")
	d, err := NewDataParallel(model, 2, model.Replica)
	require.NoError(t, err)
	_, _, err = gradients(t, d, nil)
	require.ErrorContains(t, err, "0 shards")
	shards := shardsOf(t, 3, 0)
	shards[1].Tokens = shards[1].Tokens[:5]
	shards[2].Targets = nil
	_, _, err = d.Gradients(t.Context(), len(shards), LlamaGradients(shards, 1, 16))
	require.ErrorContains(t, err, "shard 1: nn: 5 tokens")
	for _, i := range []int{-1, 3} {
		_, err = LlamaGradients(shards, 1, 16)(t.Context(), model, i)
		require.ErrorIs(t, err, ErrInput, "shard %d of 3", i)
	}
	_, _, err = d.Gradients(t.Context(), 4, LlamaGradients(shardsOf(t, 3, 0), 1, 16))
	require.ErrorContains(t, err, "there are 3 shards")
	require.ErrorIs(t, err, ErrInput)
}

// sharingModel is a model that has parts of another one.
type sharingModel struct {
	*mixer
	params []*nn.Param
	shared *nn.Shared
}

func (s sharingModel) Params() []*nn.Param { return s.params }
func (s sharingModel) Shared() *nn.Shared  { return s.shared }

// TestReplicasAreModelsOfTheirOwn: two goroutines never compute with the same memory,
// and all replicas compute the same.
func TestReplicasAreModelsOfTheirOwn(t *testing.T) {
	model, _ := newRun(t, small(), optim.Moments{}, 1)
	once, err := model.Replica()
	require.NoError(t, err)
	_, err = NewDataParallel(model, 3, func() (*nn.Llama, error) { return once, nil })
	require.ErrorIs(t, err, ErrMismatch, "the same replica twice")

	cfg := small()
	cfg.RopeTheta = 5000
	other, _ := newRun(t, cfg, optim.Moments{}, 1)
	_, err = NewDataParallel(model, 2, func() (*nn.Llama, error) { return other, nil })
	require.ErrorIs(t, err, ErrMismatch)
	require.EqualError(t, err, "train: model.config.rope_theta is 10000 and a replica's is 5000")
	cfg = small()
	cfg.Workers = 3
	workers, _ := newRun(t, cfg, optim.Moments{}, 1)
	_, err = NewDataParallel(model, 2, func() (*nn.Llama, error) { return workers, nil })
	require.NoError(t, err, "results do not depend on Workers")
	_, err = NewDataParallel(model, 2, func() (*nn.Llama, error) { return nil, nil })
	require.ErrorIs(t, err, ErrInput, "no replica")

	for name, replica := range map[string]func(a, b *mixer) sharingModel{
		"parameter": func(a, b *mixer) sharingModel {
			return sharingModel{b, append(b.Params()[:2:2], a.Params()[2:]...), &b.shared}
		},
		"gradient": func(a, b *mixer) sharingModel {
			b.Params()[1].Grad = a.Params()[1].Grad
			return sharingModel{b, b.Params(), &b.shared}
		},
		"scaling state": func(a, b *mixer) sharingModel { return sharingModel{b, b.Params(), &a.shared} },
	} {
		a := newMixer(t, 16, 1)
		_, err := NewDataParallel(sharingModel{a, a.Params(), &a.shared}, 2, func() (sharingModel, error) { return replica(a, newMixer(t, 16, 1)), nil })
		require.ErrorIs(t, err, ErrMismatch, name)
	}
}

// TestReplicasReport: everything is heard, whichever replica did it, and parameters
// that were replaced are those of all.
func TestReplicasReport(t *testing.T) {
	model, _ := newRun(t, withFP8(small(), nn.DefaultFP8()), optim.Moments{}, 1)
	d, err := NewDataParallel(model, 3, model.Replica)
	require.NoError(t, err)
	recorder := telemetry.New()
	model.Listen(recorder)
	up := model.Param(someWeight)
	up.Value = append([]float32{}, up.Value...)
	up.Value[7] = float32(math.NaN())
	_, _, err = gradients(t, d, shardsOf(t, 3, 0))
	require.NoError(t, err)
	first, ok := recorder.FirstNonFinite()
	require.True(t, ok)
	require.Equal(t, someWeight, first.Tensor)
	for _, total := range recorder.Totals() {
		if total.Tensor == someWeight && total.Op == "forward" {
			require.EqualValues(t, 3, total.Stats.NaN)
		}
	}
}
