package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/plan"
)

func TestKVBytes(t *testing.T) {
	for name, each := range map[string]int64{
		"llama-3-70b": 327_680, "llama-3-8b": 131_072, "gpt-oss-120b": 73_728, "deepseek-v3": 70_272, "kimi-k2": 70_272,
	} {
		m, err := plan.Named(name)
		require.NoError(t, err)
		n, err := m.KVBytes(plan.Precision{}, 3, 100)
		require.NoError(t, err)
		require.Equal(t, 300*each, n, name)
		n, err = m.KVBytes(plan.Precision{}, 1, 10000)
		require.NoError(t, err)
		if name == "gpt-oss-120b" { // half of its layers see 128 tokens
			require.Equal(t, each/2*(10000+128), n)
		} else {
			require.Equal(t, 10000*each, n, name)
		}
	}
}

// TestServedWeights compares with the sizes of published checkpoints.
func TestServedWeights(t *testing.T) {
	weights := func(name, recipe string) int64 {
		m, err := plan.Named(name)
		require.NoError(t, err)
		mem, err := plan.ServeJob{Model: m, Precision: precision(t, recipe), Tokens: 1}.Memory()
		require.NoError(t, err)
		require.Len(t, mem.Stages, 1)
		return mem.Stages[0].Weights
	}
	assert.Equal(t, int64(2*671_026_419_200), weights("deepseek-v3", "bf16"))
	assert.InDelta(t, 673.15e9, float64(weights("deepseek-v3", "fp8-serve")), 0.01e9)
	assert.Equal(t, int64(65_248_815_744), weights("gpt-oss-120b", "mxfp4-experts"))

	// Llama 3 8B has 8,030,261,248 parameters, of which embedding, head and norms stay as they are. Four
	// bits and a scale of eight for 16 or 32 are the others; in NVFP4 matrices, of which there are at most
	// seven in a layer, have four bytes more.
	const rest = 2*128256*4096 + (2*32+1)*4096
	const linear = 8_030_261_248 - rest
	assert.Equal(t, int64(2*rest+linear/2+linear/32), weights("llama-3-8b", "mxfp4"))
	for _, recipe := range []string{"nvfp4", "nvfp4-4over6"} {
		outer := weights("llama-3-8b", recipe) - (2*rest + linear/2 + linear/16)
		assert.Positive(t, outer)
		assert.LessOrEqual(t, outer, int64(4*7*32))
	}
}

// TestServeOnly: what training keeps otherwise is not counted as a training.
func TestServeOnly(t *testing.T) {
	m, err := plan.Named("llama-3-8b")
	require.NoError(t, err)
	for _, recipe := range []string{"mxfp4", "nvfp4", "nvfp4-4over6"} {
		_, err = plan.TrainJob{Model: m, Precision: precision(t, recipe), Sequence: 4096}.Memory()
		require.ErrorIs(t, err, plan.ErrJob)
		require.ErrorContains(t, err, "precision.name is "+recipe+": it is for serving")
	}
}

// TestServedRanks: what all ranks have together is what one would have, but for what is there
// several times.
func TestServedRanks(t *testing.T) {
	m, err := plan.Named("llama-3-70b")
	require.NoError(t, err)
	memory := func(l plan.Layout) plan.Memory {
		mem, err := plan.ServeJob{Model: m, Layout: l, Sequences: 10, Tokens: 4096}.Memory()
		require.NoError(t, err)
		return mem
	}
	alone := memory(plan.Layout{}).Stages[0]
	assert.Equal(t, int64(10*4096*327_680), alone.Cache)
	const norms = (2*80 + 1) * 8192 * 2
	for _, l := range []plan.Layout{{Tensor: 2}, {Tensor: 8}, {Pipeline: 4}, {Tensor: 4, Pipeline: 2}, {Tensor: 16}, {Context: 2, Tensor: 4}} {
		var weights, cache int64
		mem := memory(l)
		for _, s := range mem.Stages {
			weights += s.Weights * int64(s.Ranks)
			cache += s.Cache * int64(s.Ranks)
		}
		copies := int64(max(l.Context, 1))
		twice := int64(0) // keys and values of 8 heads on 16 ranks
		if l.Tensor == 16 {
			twice = 1
		}
		// The vocabulary is padded to 128 on each rank.
		rows := int64(128 * max(l.Tensor, 1))
		padded := ((128256+rows-1)/rows*rows - 128256) * 8192 * 2 * 2
		extra := norms*int64(max(l.Tensor, 1)-1) + twice*80*2*8*128*8192*2 + padded
		assert.Equal(t, copies*(alone.Weights+extra), weights, "%+v", l)
		assert.Equal(t, alone.Cache*(1+twice), cache, "%+v", l)
	}
}

func TestServeErrors(t *testing.T) {
	m, err := plan.Named("llama-3-8b")
	require.NoError(t, err)
	for _, c := range []struct {
		job  plan.ServeJob
		want string
	}{
		{plan.ServeJob{}, "tokens is 0"},
		{plan.ServeJob{Tokens: 1, Sequences: -1}, "sequences is -1"},
		{plan.ServeJob{Tokens: 10, Chunk: 11}, "chunk is 11: want 1 to the 10 tokens"},
		{plan.ServeJob{Tokens: 1, Layout: plan.Layout{Zero: 1}}, "layout.zero 1: serving has neither"},
		{plan.ServeJob{Tokens: 1, Layout: plan.Layout{Tensor: 12}}, "layout.tensor is 12: it does not divide the heads of 32"},
	} {
		c.job.Model = m
		_, err := c.job.Memory()
		require.ErrorIs(t, err, plan.ErrJob)
		require.ErrorContains(t, err, c.want)
	}
}
