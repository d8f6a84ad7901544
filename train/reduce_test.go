package train

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/telemetry"
)

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
	for name, reducers := range map[string][]collective.Reducer{
		"smooth delayed":      {{}, {FP8: true, Division: collective.DivideAuto}},
		"gradients at random": {{}},
		"rounded at random":   {{}},
	} {
		for _, reducer := range reducers {
			t.Run(name, func(t *testing.T) { testDataParallel(t, name, reducer) })
		}
	}
}

func testDataParallel(t *testing.T, run string, reducer collective.Reducer) {
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
func gradients(t *testing.T, d *DataParallel[*nn.Llama], shards []Shard) (float32, []collective.Reduction, error) {
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
