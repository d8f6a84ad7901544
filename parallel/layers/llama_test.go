package layers

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

// Models that are small, with sizes that slices do not divide where they need not.
func denseModel() nn.Config {
	return nn.Config{Vocab: 13, Dim: 16, Layers: 2, Heads: 4, KVHeads: 4, Hidden: 11, Context: 6, Workers: 1}
}

func delayedModel(stochastic bool) nn.Config {
	c := denseModel()
	f := nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	for _, o := range []*nn.Operands{&f.Forward, &f.InputGradient, &f.WeightGradient} {
		o.A.Delayed.Length, o.B.Delayed.Length = 3, 3
	}
	f.Stochastic = stochastic
	c.FP8, c.Smoothing = &f, &swiglu.Smoothing{Delay: 2}
	return c
}

func expertsModel() nn.Config {
	c := denseModel()
	f := nn.DefaultFP8()
	c.FP8, c.Dense, c.BF16First = &f, 1, 1
	c.MLA = &nn.MLAConfig{QueryRank: 6, KVRank: 7, NoPE: 4, RoPE: 2, Value: 3, NormEps: 1e-3}
	c.Experts = &nn.ExpertsConfig{Hidden: 9, Shared: 1, CapacityFactor: 1.5, Router: nn.RouterConfig{
		Experts: 4, TopK: 2, BiasRate: 0.01, BalanceLoss: 0.01,
	}}
	return c
}

// delayedExperts has scales of experts that ranks must exchange.
func delayedExperts() nn.Config {
	c := delayedModel(true)
	c.Smoothing, c.Experts = nil, expertsModel().Experts
	return c
}

const llamaSteps = 2

// batchOf returns the batch of a step: n pairs of sequences.
func batchOf(step, n int) (tokens, targets []int32) {
	for _, s := range shards(step, n) {
		tokens, targets = append(tokens, s.Tokens...), append(targets, s.Targets...)
	}
	return tokens, targets
}

// ofLlama is what a run has after some steps: gradients are those of the last.
type ofLlama struct {
	losses         []float32
	norms          []float64
	weights, grads map[string][]float32
}

// runLlama trains a model on the ranks of a layout, with batches of n pairs of sequences.
func runLlama(t *testing.T, cfg nn.Config, l Layout, n int) (run ofLlama) {
	t.Helper()
	whole, err := nn.NewLlama(cfg, 5)
	require.NoError(t, err)
	m, err := NewLlama(whole, l, adamW)
	require.NoError(t, err)
	for step := range llamaSteps {
		tokens, targets := batchOf(step, n)
		loss, norm, err := m.Step(t.Context(), tokens, targets, 2*n, 6, 1e-2)
		require.NoError(t, err)
		run.losses, run.norms = append(run.losses, loss), append(run.norms, norm)
	}
	require.NoError(t, m.Store(whole))
	run.weights, run.grads = map[string][]float32{}, map[string][]float32{}
	for _, p := range whole.Params() {
		run.weights[p.Name], run.grads[p.Name] = p.Value, p.Grad
	}
	return run
}

func requireSameRun(t *testing.T, want, got ofLlama, what string) {
	t.Helper()
	require.Equal(t, want.losses, got.losses, what)
	for name, grad := range want.grads {
		requireSame(t, grad, got.grads[name], "%s: gradient of %s", what, name)
	}
	require.Equal(t, want.norms, got.norms, what)
	for name, w := range want.weights {
		requireSame(t, w, got.weights[name], "%s: %s", what, name)
	}
}

// TestLlamaIsDataParallel: without slices all layouts have the losses, norms and weights of
// nn.Llama under train.DataParallel.
func TestLlamaIsDataParallel(t *testing.T) {
	for what, cfg := range map[string]nn.Config{"delayed": delayedModel(false), "experts": expertsModel()} {
		for workers, layouts := range map[int][]Layout{
			1: {{}, {Pipeline: 2}},
			2: {{Shards: 2}, {Data: 2}, {Data: 2, Zero: 1}, {Data: 2, Zero: 2, Pipeline: 2}, {Data: 2, Zero: 3}},
		} {
			if cfg.Experts != nil && workers == 2 {
				layouts = append(layouts, Layout{Data: 2, Expert: 2}, Layout{Data: 2, Expert: 2, Zero: 3})
			}
			want := onOne(t, cfg, workers, llamaSteps, collective.DividePost)
			whole, err := nn.NewLlama(cfg, 5)
			require.NoError(t, err)
			for _, l := range layouts {
				got := runLlama(t, cfg, l, workers)
				require.Equal(t, want.losses, got.losses, "%s, %+v", what, l)
				require.Equal(t, want.norms, got.norms, "%s, %+v", what, l)
				for i, p := range whole.Params() {
					requireSame(t, want.weights[i], got.weights[p.Name], "%s, %+v: %s", what, l, p.Name)
				}
			}
		}
	}
}

// TestLlamaLayouts: each layout has the losses, gradients, norms and weights of its twin of
// one rank.
func TestLlamaLayouts(t *testing.T) {
	models := map[string]nn.Config{
		"FP32": denseModel(), "delayed": delayedModel(true),
		"experts": expertsModel(), "delayed experts": delayedExperts(),
	}
	layouts := []Layout{
		{Data: 2, Slices: 4, Shards: 4},
		{Tensor: 2, Slices: 4, Shards: 4},
		{Tensor: 4, Slices: 4, Shards: 4},
		{Pipeline: 2, Slices: 4, Shards: 4},
		{Data: 2, Expert: 2, Slices: 4, Shards: 4},
		{Data: 4, Expert: 2, Tensor: 2, Slices: 4, Shards: 4, Zero: 2},
		{Data: 2, Expert: 2, Tensor: 2, Pipeline: 2, Slices: 4, Shards: 4, Zero: 3},
		{Data: 2, Tensor: 2, Slices: 2, Sequence: true, Micro: 2},
		{Data: 2, Expert: 2, Tensor: 2, Pipeline: 2, Slices: 2, Sequence: true, Micro: 2, Zero: 1},
		{Pipeline: 2, Micro: 4, Slices: 2, Tensor: 2, AllForward: true},
	}
	for what, cfg := range models {
		twins := map[string]ofLlama{}
		for i, l := range layouts {
			if testing.Short() && i%2 == len(what)%2 {
				continue
			}
			if cfg.Experts == nil {
				l.Expert = 0
			}
			twin := l.Twin()
			twin.Zero, twin.AllForward = 0, false
			name := fmt.Sprintf("%+v", twin)
			if _, ok := twins[name]; !ok {
				twins[name] = runLlama(t, cfg, twin, 4)
			}
			requireSameRun(t, twins[name], runLlama(t, cfg, l, 4), fmt.Sprintf("%s, %+v", what, l))
		}
	}
}

// TestLlamaTied has one table for the embedding and the head, also where these are at ranks
// of their own.
func TestLlamaTied(t *testing.T) {
	cfg := denseModel()
	cfg.TieHead = true
	want := onOne(t, cfg, 1, llamaSteps, collective.DividePost)
	got := runLlama(t, cfg, Layout{}, 1)
	require.Equal(t, want.losses, got.losses)
	requireSame(t, want.weights[0], got.weights["model.embed_tokens.weight"])
	l := Layout{Tensor: 2, Slices: 4, Shards: 2, Micro: 2}
	twin := runLlama(t, cfg, l.Twin(), 4)
	for what, change := range map[string]func(l *Layout){
		"tensor":        func(*Layout) {},
		"pipeline":      func(l *Layout) { l.Pipeline = 2 },
		"pipeline, all": func(l *Layout) { l.Pipeline, l.AllForward = 2, true },
		"stage 1":       func(l *Layout) { l.Pipeline, l.Data, l.Zero = 2, 2, 1 },
		"stage 3":       func(l *Layout) { l.Pipeline, l.Data, l.Zero = 2, 2, 3 },
		"stage 3 alone": func(l *Layout) { l.Data, l.Zero = 2, 3 },
	} {
		if testing.Short() && (what == "stage 1" || what == "tensor") {
			continue
		}
		l := l
		change(&l)
		requireSameRun(t, twin, runLlama(t, cfg, l, 4), what)
	}
	one := runLlama(t, cfg, Layout{Pipeline: 2}, 1)
	require.Equal(t, want.losses, one.losses)
	requireSame(t, want.weights[0], one.weights["model.embed_tokens.weight"])
}

// TestLlamaChunks: stages that are interleaved have the bits of the twin.
func TestLlamaChunks(t *testing.T) {
	for what, cfg := range map[string]nn.Config{"tied": denseModel(), "experts": delayedExperts()} {
		cfg.Layers, cfg.TieHead = 4, what == "tied"
		twin := runLlama(t, cfg, Layout{Shards: 2, Micro: 2}, 4)
		for i, l := range []Layout{
			{Pipeline: 2, Chunks: 2, Shards: 2, Micro: 2},
			{Pipeline: 1, Chunks: 4, Shards: 2, Micro: 2},
			{Data: 2, Pipeline: 2, Chunks: 2, Micro: 2, Zero: 3, AllForward: true},
		} {
			if testing.Short() && i > 0 && what != "tied" {
				continue
			}
			requireSameRun(t, twin, runLlama(t, cfg, l, 4), fmt.Sprintf("%s, %+v", what, l))
		}
	}
}

// TestLlamaResidual rounds the residual stream where nn.Llama does.
func TestLlamaResidual(t *testing.T) {
	cfg := denseModel()
	plain := onOne(t, cfg, 2, llamaSteps, collective.DividePost)
	cfg.Operators.Residual = nn.NarrowBF16
	want := onOne(t, cfg, 2, llamaSteps, collective.DividePost)
	require.NotEqual(t, plain.losses, want.losses)
	for _, l := range []Layout{{Shards: 2}, {Data: 2, Pipeline: 2, Zero: 3}} {
		got := runLlama(t, cfg, l, 2)
		require.Equal(t, want.losses, got.losses)
		require.Equal(t, want.norms, got.norms)
		requireSame(t, want.weights[0], got.weights["model.embed_tokens.weight"])
	}
	l := Layout{Data: 2, Tensor: 2, Sequence: true, Slices: 2}
	requireSameRun(t, runLlama(t, cfg, l.Twin(), 2), runLlama(t, cfg, l, 2), "sequence")
}

// TestLlamaEvaluate has the losses of Gradients, also with weights that were moved since,
// and changes nothing.
func TestLlamaEvaluate(t *testing.T) {
	for what, l := range map[string]Layout{
		"one":     {Shards: 2, Slices: 2, Micro: 2},
		"stage 0": {Data: 2, Expert: 2, Pipeline: 2, Tensor: 2, Slices: 2, Micro: 2},
		"stage 2": {Data: 2, Pipeline: 2, Slices: 2, Micro: 2, Zero: 2},
		"stage 3": {Data: 2, Expert: 2, Slices: 2, Micro: 2, Zero: 3},
		"chunks":  {Data: 2, Chunks: 2, Slices: 2, Micro: 2},
	} {
		if testing.Short() && (what == "one" || what == "stage 2") {
			continue
		}
		plain, m := newLlama(t, delayedExperts(), l, 5, adamW), newLlama(t, delayedExperts(), l, 5, adamW)
		for step := range 2 {
			tokens, targets := batchOf(step, 4)
			want, wantNorm, err := plain.Gradients(t.Context(), tokens, targets, 8, 6)
			require.NoError(t, err)
			before := fmt.Sprint(joined(m.scales(), sameName))
			loss, err := m.Evaluate(t.Context(), tokens, targets, 8, 6)
			require.NoError(t, err)
			require.Equal(t, want, loss, what)
			require.Equal(t, before, fmt.Sprint(joined(m.scales(), sameName)), what)
			loss, norm, err := m.Gradients(t.Context(), tokens, targets, 8, 6)
			require.NoError(t, err)
			require.Equal(t, want, loss, what)
			require.Equal(t, wantNorm, norm, what)
			_, err = m.Evaluate(t.Context(), targets, tokens, 8, 6)
			require.NoError(t, err)
			require.NoError(t, plain.Move(t.Context(), 0.1))
			require.NoError(t, m.Move(t.Context(), 0.1))
		}
	}
	whole, err := nn.NewLlama(delayedModel(false), 5)
	require.NoError(t, err)
	m := newLlama(t, delayedModel(false), Layout{Pipeline: 2}, 5, nil)
	tokens, targets := batchOf(0, 1)
	want, err := whole.Evaluate(t.Context(), tokens, targets, 2, 6)
	require.NoError(t, err)
	loss, err := m.Evaluate(t.Context(), tokens, targets, 2, 6)
	require.NoError(t, err)
	require.Equal(t, want, loss)
	require.Equal(t, int64(12*16*4), m.Traffic().Bytes()) // activations, there
}

// TestLlamaLayerByLayer: in stage 3 a rank has the weights of a layer at a time, which are
// gathered for each pass; what that sends is counted.
func TestLlamaLayerByLayer(t *testing.T) {
	cfg := denseModel()
	sent := map[int]int64{}
	for _, zero := range []int{2, 3} {
		m := newLlama(t, cfg, Layout{Data: 2, Zero: zero}, 5, nil)
		tokens, targets := batchOf(0, 2)
		_, _, err := m.Gradients(t.Context(), tokens, targets, 4, 6)
		require.NoError(t, err)
		sent[zero] = m.Traffic().ByFormat()["fp32"].Bytes
		if zero < 3 {
			continue
		}
		const block, head, embedding = 2*16 + 4*16*16 + 3*16*11, 16 + 13*16, 13 * 16
		for _, p := range m.parts {
			require.Len(t, p.weights, block)
			for _, w := range p.weights {
				require.True(t, math.IsNaN(float64(w)))
			}
			for _, q := range p.params {
				require.Empty(t, q.Value)
			}
		}
		// Both halves of blocks and head go for a backward pass a second time.
		require.EqualValues(t, 4*(2*block+head), sent[3]-sent[2])
	}
}

// TestLlamaExchanges: every exchange is used, changes the gradients in another format where
// that rounds, and leaves them near.
func TestLlamaExchanges(t *testing.T) {
	cfg := expertsModel()
	cfg.FP8, cfg.BF16First, cfg.TieHead = nil, 0, true
	l := Layout{Data: 2, Expert: 2, Tensor: 2, Pipeline: 2, Sequence: true, Micro: 1, Zero: 1}
	plain := runLlama(t, cfg, l, 2)
	for _, name := range ExchangeNames() {
		coded := l
		x := collective.Exchange{Wire: wire(t, "bf16"), Order: collective.OrderTree}
		coded.Exchanges = map[string]collective.Exchange{name: x}
		got := runLlama(t, cfg, coded, 2)
		require.NotEqual(t, plain.weights, got.weights, name)
		require.InDelta(t, plain.losses[0], got.losses[0], 0.05, name)
		require.InDelta(t, 1, got.norms[0]/plain.norms[0], 0.1, name)
		switch name { // rounded on one rank as on many
		case stageActivations, stageGradients, tiedGradients:
		default:
			requireSameRun(t, runLlama(t, cfg, coded.Twin(), 2), got, name)
		}
	}
}

// TestLlamaTraffic: what is sent of a small layout, counted by hand.
func TestLlamaTraffic(t *testing.T) {
	whole, err := nn.NewLlama(denseModel(), 5)
	require.NoError(t, err)
	m, err := NewLlama(whole, Layout{Pipeline: 2}, nil)
	require.NoError(t, err)
	tokens, targets := batchOf(0, 1)
	_, _, err = m.Gradients(t.Context(), tokens, targets, 2, 6)
	require.NoError(t, err)
	const rows = 2 * 12 * 16 * 4 // activations there, gradients back
	require.Equal(t, int64(rows), m.Traffic().ByFormat()["fp32"].Bytes)
}

// TestLlamaNonFinite: nothing moves.
func TestLlamaNonFinite(t *testing.T) {
	whole, err := nn.NewLlama(denseModel(), 5)
	require.NoError(t, err)
	whole.Param("model.norm.weight").Value[0] = float32(math.Inf(1))
	m, err := NewLlama(whole, Layout{Tensor: 2}, adamW)
	require.NoError(t, err)
	tokens, targets := batchOf(0, 1)
	_, norm, err := m.Step(t.Context(), tokens, targets, 2, 6, 1)
	require.ErrorContains(t, err, "no rank has moved a weight")
	require.True(t, math.IsNaN(norm))
	before := append([]float32(nil), whole.Params()[0].Value...)
	require.NoError(t, m.Store(whole))
	requireSame(t, before, whole.Params()[0].Value)
}

// TestLlamaDropsAmaxes: sums do not have the amaxes of a step that did not count next.
func TestLlamaDropsAmaxes(t *testing.T) {
	whole, err := nn.NewLlama(denseModel(), 5)
	require.NoError(t, err)
	late := collective.Exchange{Wire: wire(t, "e5m2-tensor"), Amax: collective.AmaxLate}
	m, err := NewLlama(whole, Layout{Data: 2, Exchanges: map[string]collective.Exchange{shardGradients: late}}, adamW)
	require.NoError(t, err)
	tokens, targets := batchOf(0, 2)
	_, _, err = m.Step(t.Context(), tokens, targets, 4, 6, 1e-2)
	require.NoError(t, err)
	q := m.parts[1].params[0]
	amax := func() string { return fmt.Sprint(reflect.ValueOf(q.memory).FieldByName("amax")) }
	before := amax()
	tokens, targets = batchOf(1, 2)
	_, _, err = m.Gradients(t.Context(), tokens, targets, 4, 6)
	require.NoError(t, err)
	require.NotEqual(t, before, amax())
	m.norm = math.Inf(1)
	require.ErrorIs(t, m.Move(t.Context(), 1e-2), optim.ErrNonFinite)
	require.Equal(t, before, amax())
}

func TestLayoutRefusals(t *testing.T) {
	experts, reductions := expertsModel(), denseModel()
	reductions.Operators.Reductions = nn.NarrowBF16
	features := reductions
	features.Operators, features.Sinks, features.ScoreCap = nn.Operators{}, true, 2
	for _, test := range []struct {
		cfg    nn.Config
		layout Layout
		want   string
	}{
		{denseModel(), Layout{Data: -1}, "Layout.Data is -1: it must be from 1 to 65536"},
		{denseModel(), Layout{Data: 4, Expert: 3}, "Layout.Expert is 3: it must divide Data = 4"},
		{denseModel(), Layout{Data: 2, Shards: 3}, "Layout.Data is 2: it must divide Shards = 3"},
		{denseModel(), Layout{Tensor: 2, Slices: 3}, "Layout.Tensor is 2: it must divide Slices = 3"},
		{denseModel(), Layout{Zero: 4}, "Layout.Zero is 4: want 0 to 3"},
		{denseModel(), Layout{Slices: 3}, "Layout.Slices is 3: it must divide Config.KVHeads = 4"},
		{experts, Layout{Slices: 8}, "Layout.Slices is 8: it must divide Config.Heads = 4"},
		{denseModel(), Layout{Pipeline: 3}, "Layout.Pipeline·Chunks is 3·1: it must divide Config.Layers = 2"},
		{denseModel(), Layout{Pipeline: 2, Chunks: 2, Micro: 3},
			"Layout.Micro is 3: with Chunks = 2 it must be a multiple of Pipeline = 2"},
		{denseModel(), Layout{Chunks: 4}, "Layout.Pipeline·Chunks is 1·4: it must divide Config.Layers = 2"},
		{denseModel(), Layout{Chunks: -1}, "Layout.Chunks is -1: it must be from 1 to 65536"},
		{denseModel(), Layout{Data: 2, Expert: 2}, "Layout.Expert is 2: the model has no experts"},
		{experts, Layout{Data: 3, Expert: 3}, "Layout.Expert is 3: it must divide the number of experts, 4"},
		{features, Layout{}, "Config.Sinks, ScoreCap: a model with that is not cut"},
		{reductions, Layout{}, "Config.Operators.Reductions is E8M7: leave it FP32: where the sums of the loss over slices would be rounded is not settled"},
		{denseModel(), Layout{Exchanges: map[string]collective.Exchange{"x": {}}}, `Layout.Exchanges has "x": want some of forward, backward, rows, common gradient, loss, activation, activation gradient, tied gradient, dispatch, combine, combine gradient, dispatch gradient, gradient, weight`},
		{denseModel(), Layout{Exchanges: map[string]collective.Exchange{"weight": {Wire: wire(t, "bf16")}}}, `Layout.Exchanges["weight"] is bf16: stage 0 of ZeRO sends no weights`},
	} {
		whole, err := nn.NewLlama(test.cfg, 5)
		require.NoError(t, err)
		_, err = NewLlama(whole, test.layout, nil)
		require.EqualError(t, err, "layers: "+test.want)
		require.ErrorIs(t, err, collective.ErrInput)
	}
	whole, err := nn.NewLlama(denseModel(), 5)
	require.NoError(t, err)
	m, err := NewLlama(whole, Layout{Data: 2, Micro: 2}, nil)
	require.NoError(t, err)
	_, _, err = m.Gradients(t.Context(), nil, nil, 6, 6)
	require.EqualError(t, err, "layers: a batch of 6 sequences: it must be a multiple of Shards·Micro = 2·2")
	require.EqualError(t, m.Move(t.Context(), 1), "layers: Move without Gradients before it, or without optimizers")
}
