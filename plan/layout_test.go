package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/plan"
)

func TestLayoutErrors(t *testing.T) {
	moe, err := plan.Named("deepseek-v3")
	require.NoError(t, err)
	dense, err := plan.Named("llama-3-70b")
	require.NoError(t, err)
	for _, c := range []struct {
		model  plan.Model
		layout plan.Layout
		want   string
	}{
		{dense, plan.Layout{Ranks: 12, Tensor: 8}, "layout.ranks is 12: want a multiple of tensor·context·pipeline = 8"},
		{moe, plan.Layout{Ranks: 24, Expert: 16}, "layout.ranks is 24: want a multiple of expert·expertTensor·pipeline = 16"},
		{dense, plan.Layout{Tensor: 3}, "layout.tensor is 3: it does not divide the heads of 64"},
		{dense, plan.Layout{Tensor: 16}, "layout.tensor is 16: it does not divide the KV heads of 8"},
		{dense, plan.Layout{Tensor: -1}, "layout.tensor is -1: want 0 to"},
		{dense, plan.Layout{Zero: 4}, "layout.zero is 4: want 0 to 3"},
		{dense, plan.Layout{Expert: 8}, "layout.expert is 8 and layout.expertTensor 1: the model has no experts"},
		{moe, plan.Layout{Expert: 512}, "layout.expert is 512: the model has only 256 experts"},
		{moe, plan.Layout{Expert: 48}, "layout.expert is 48: it does not divide the experts of 256"},
		{moe, plan.Layout{Expert: 8, ExpertTensor: 3}, "layout.expertTensor is 3: it does not divide the width of an expert of 2048"},
		{moe, plan.Layout{Tensor: 2, WholeSequence: true}, "layout.wholeSequence with tensor 2: experts need sequence parallelism"},
		{moe, plan.Layout{Pipeline: 16}, "layout.pipeline is 16: 16 stages do not divide 61 layers"},
		{moe, plan.Layout{Pipeline: 16, Last: 2}, "layout.pipeline is 16: 15 stages do not divide 59 layers"},
		{dense, plan.Layout{Pipeline: 2, First: 80}, "layout.pipeline is 2: there are 0 layers for 1 stages"},
		{dense, plan.Layout{First: 40, Last: 40}, "layout.first is 40 and layout.last 40: a pipeline of 1 has one stage"},
		{dense, plan.Layout{Virtual: 2}, "layout.virtual is 2: chunks need a pipeline"},
		{dense, plan.Layout{Pipeline: 4, Virtual: 3}, "layout.virtual is 3: it does not divide the 20 layers of stage 0"},
		{dense, plan.Layout{Pipeline: 4, Group: 3}, "layout.group is 3: want at least the 4 stages"},
		{dense, plan.Layout{Context: 3}, "layout.context is 3: it does not divide the KV heads on a rank of 8"},
		{moe, plan.Layout{Context: 3}, "layout.context is 3: it does not divide the heads on a rank of 128"},
	} {
		_, err := plan.TrainJob{Model: c.model, Layout: c.layout, Sequence: 4096}.Memory()
		require.ErrorIs(t, err, plan.ErrJob)
		require.ErrorContains(t, err, c.want)
	}
}

func TestBatchErrors(t *testing.T) {
	m, err := plan.Named("llama-3-70b")
	require.NoError(t, err)
	for _, c := range []struct {
		job  plan.TrainJob
		want string
	}{
		{plan.TrainJob{}, "sequence is 0: want 1 to"},
		{plan.TrainJob{Sequence: 8, Batch: -1}, "batch is -1"},
		{plan.TrainJob{Sequence: 1 << 30, Batch: 1 << 20, Batches: 1}, "tokens at once: want fewer than"},
		{plan.TrainJob{Sequence: 1 << 30, Batch: 1 << 30, Batches: 1 << 30}, "batches is 1073741824: a step would have"},
		{plan.TrainJob{Sequence: 9, Layout: plan.Layout{Context: 2}}, "layout.context is 2: it does not divide the sequence of 9"},
		{plan.TrainJob{Sequence: 9, Layout: plan.Layout{Tensor: 2}}, "layout.tensor is 2: it does not divide the 9 tokens"},
		{plan.TrainJob{Sequence: 8, Batches: 6, Layout: plan.Layout{Pipeline: 4, Virtual: 2}}, "batches is 6: chunks need a multiple of the 4 stages"},
		{plan.TrainJob{Sequence: 8, Precision: plan.Precision{Weights: plan.Numbers{Bits: 65}}}, "precision.weights has 65 bits"},
	} {
		c.job.Model = m
		_, err := c.job.Memory()
		require.ErrorIs(t, err, plan.ErrJob)
		require.ErrorContains(t, err, c.want)
	}
}

// TestZero: what all ranks have together depends on what ZeRO divides.
func TestZero(t *testing.T) {
	m, err := plan.Named("deepseek-v3")
	require.NoError(t, err)
	counts, err := m.Parameters()
	require.NoError(t, err)
	for zero := range 4 {
		job := plan.TrainJob{Model: m, Sequence: 4096, Layout: plan.Layout{Ranks: 64, Expert: 16, Zero: zero}}
		mem, err := job.Memory()
		require.NoError(t, err)
		s := mem.Stages[0]
		// 64 ranks have the experts 64/16 times and all else 64 times, unless it is divided.
		experts := 58 * int64(256) * 3 * 7168 * 2048
		copies := 4*experts + 64*(counts.Total-experts)
		times := func(divided bool, each int64) int64 {
			if divided {
				return each * counts.Total
			}
			return each * copies
		}
		const rounding = 64 * 2000
		assert.InDelta(t, times(zero >= 1, 12), 64*s.Optimizer, rounding, "ZeRO-%d", zero)
		assert.InDelta(t, times(zero >= 2, 4), 64*s.Gradients, rounding, "ZeRO-%d", zero)
		assert.InDelta(t, times(zero >= 3, 2), 64*s.Weights, rounding, "ZeRO-%d", zero)
		assert.Equal(t, copies, 64*s.Parameters)
	}
}

// TestInterleaved: a stage goes forward 2(p-s-1) + (v-1)p + 1 times before it first goes back,
// or as often as there is something to do.
func TestInterleaved(t *testing.T) {
	m, err := plan.Named("llama-3-70b")
	require.NoError(t, err)
	for _, c := range []struct{ pipeline, virtual, batches int }{{4, 1, 8}, {4, 1, 2}, {4, 5, 8}, {4, 5, 4}, {8, 2, 64}} {
		job := plan.TrainJob{Model: m, Sequence: 128, Batches: c.batches}
		job.Layout = plan.Layout{Pipeline: c.pipeline, Virtual: c.virtual}
		mem, err := job.Memory()
		require.NoError(t, err)
		layers := 0
		for i, s := range mem.Stages {
			warm := c.pipeline - i - 1
			if c.virtual > 1 {
				warm = 2*warm + (c.virtual-1)*c.pipeline
			}
			assert.Equal(t, min(warm+1, c.batches*c.virtual), s.InFlight, "%+v stage %d", c, i)
			layers += s.Layers
		}
		assert.Equal(t, 80, layers)
	}
}

// TestExpertLayouts: experts may be divided among more ranks than there are data-parallel, and
// each among tensor-parallel ranks.
func TestExpertLayouts(t *testing.T) {
	m, err := plan.Named("mixtral-8x7b")
	require.NoError(t, err)
	stage := func(l plan.Layout) plan.Stage {
		mem, err := plan.TrainJob{Model: m, Layout: l, Sequence: 4096}.Memory()
		require.NoError(t, err)
		return mem.Stages[0]
	}
	whole := stage(plan.Layout{ExpertTensor: 1, Tensor: 2, Expert: 1})
	divided := stage(plan.Layout{Tensor: 2})
	experts := int64(32*8*3) * 4096 * 14336
	assert.Equal(t, experts/2, whole.Parameters-divided.Parameters)
	assert.Less(t, divided.Total(), whole.Total())
	// Two ranks share an expert: each reads the tokens of both, 2048 to 2 experts, half as wide.
	assert.EqualValues(t, 32*2*(2048*2)*4096, divided.Microbatch-whole.Microbatch)
	spread := stage(plan.Layout{Tensor: 2, Expert: 8, ExpertTensor: 1})
	assert.Equal(t, experts*7/8, whole.Parameters-spread.Parameters)
	assert.Equal(t, whole.Microbatch, spread.Microbatch, "ranks compute as many tokens")
	assert.Equal(t, 8, spread.Ranks, "the fewest that both need")
}

// TestPrecisions compares the states of a parameter with what recipes say of them.
func TestPrecisions(t *testing.T) {
	m := plan.Model{Layers: 2, Hidden: 1024, Vocab: 1024, Heads: 8, FFN: 4096}
	all := map[string]int64{}
	const linear = 2 * (4*1024*1024 + 3*1024*4096)
	const rest = 2*1024*1024 + 5*1024
	for _, c := range []struct {
		name             string
		weights, moments float64 // bytes of a parameter in a linear layer; of both moments
	}{
		{"bf16", 2, 8},
		{"fp8", 1 + 4./(128*128), 8},
		{"te-current", 1, 8},
		{"mxfp8", 2 * (1 + 1./32), 8},
		{"deepseek-v3", 1 + 4./(128*128), 4},
		{"octavo", 1 + 4./(128*128), 2 + 8./128},
	} {
		mem, err := plan.TrainJob{Model: m, Sequence: 1024, Precision: precision(t, c.name)}.Memory()
		require.NoError(t, err)
		s := mem.Stages[0]
		assert.InDelta(t, c.weights*linear+2*rest, s.Weights, 100, c.name)
		assert.InDelta(t, (4+c.moments)*(linear+rest), s.Optimizer, 100, c.name)
		assert.EqualValues(t, 4*(linear+rest), s.Gradients, c.name)
		all[c.name] = s.Microbatch
	}
	// What package nn documents for a block, for each token: dim D is 1024, keys and values K
	// as wide, and H 4096; the stream and queries, keys and values of 2 bytes here. Behind come
	// the inputs of the last norm and the head, and the logits.
	const tokens, scales = 1024, 1 + 4./128
	behind := 2.*1024 + 2*1024 + 2*1024
	lse := 4. * 8
	each := func(block float64) float64 { return tokens * (2*(block+lse) + behind) }
	const d, h = 1024, 4096
	assert.InDelta(t, each(2*2*d+2*3*d+2*(3*d+h)+2*2*h), all["bf16"], 1)
	assert.InDelta(t, each(2*2*d+2*3*d+scales*3*d+scales*2*h), all["octavo"], 1)
	assert.InDelta(t, each(2*2*d+2*3*d+scales*2*d+(1.5+4./128)*d+scales*2*h), all["deepseek-v3"], 1)
	// A layer after attention reads FP8, and attention's backward pass BF16.
	assert.InDelta(t, each(2*2*d+2*3*d+2*d+3*d+h+2*2*h), all["te-current"], 100)
	assert.InDelta(t, each(2*2*d+2*3*d+scales*2*d+(scales+2)*d+scales*h+2*2*h), all["fp8"], 100)
	assert.InDelta(t, each(2*2*d+2*3*d+33./32*2*d+(33./32+2)*d+33./32*h+2*2*h), all["mxfp8"], 100)
}

// TestRecompute: what is computed again is not kept, and takes no more than before.
func TestRecompute(t *testing.T) {
	for _, name := range []string{"llama-3-8b", "deepseek-v2"} {
		m, err := plan.Named(name)
		require.NoError(t, err)
		m.Layers = 8
		job := plan.TrainJob{Model: m, Sequence: 4096}
		mem, err := job.Memory()
		require.NoError(t, err)
		none := mem.Stages[0]
		all := plan.Recompute{Attention: true, Latent: true, MLP: true, MoE: true, Norms: true, ExpertActivation: true}
		for _, r := range []plan.Recompute{{Attention: true}, {MLP: true}, {Norms: true}, {Norms: true, MLP: true}, all} {
			job.Recompute = r
			mem, err := job.Memory()
			require.NoError(t, err)
			assert.Less(t, mem.Stages[0].Microbatch, none.Microbatch, "%s %+v", name, r)
			assert.LessOrEqual(t, mem.Stages[0].Total(), none.Total(), "%s %+v", name, r)
		}
		job.Recompute = plan.Recompute{Norms: true, MLP: true}
		both, err := job.Memory()
		require.NoError(t, err)
		job.Recompute = plan.Recompute{MLP: true}
		one, err := job.Memory()
		require.NoError(t, err)
		assert.Less(t, both.Stages[0].Microbatch, one.Stages[0].Microbatch, "together they save more")
		// With all layers, only what they read is kept, beside what comes behind them.
		behind := func(layers int) int64 {
			job.Model.Layers, job.Recompute = layers, plan.Recompute{Layers: -1}
			mem, err := job.Memory()
			require.NoError(t, err)
			return mem.Stages[0].Microbatch
		}
		assert.EqualValues(t, 2*4096*m.Hidden, behind(8)-behind(7))
	}
}
