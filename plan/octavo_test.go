package plan_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/plan"
	"github.com/octavo-fp8/octavo/tensor"
)

// twin is a configuration of package nn and the same for this package.
type twin struct {
	cfg       nn.Config
	model     plan.Model
	precision plan.Precision
}

// alongTokens are the operands of weight gradients as nn keeps them.
var alongTokens = plan.Numbers{Bits: 8, Block: tensor.Block{Rows: 128, Cols: 1}, ScaleBits: 32}

// precisions are those of nn's activations, in which all else is FP32.
func precisions() map[string]plan.Precision {
	fp8 := plan.Precision{Name: "in fp8", Stream: plan.FP32, Inputs: alongTokens}
	swiglu := fp8
	swiglu.SwiGLU, swiglu.FromSwiGLU = plan.Tiles, true
	tiles := swiglu
	tiles.Inputs = plan.Tiles
	tiles.AttentionOut = plan.Numbers{Bits: 12, Block: plan.Tiles.Block, ScaleBits: 32}
	return map[string]plan.Precision{
		"fp32": {Stream: plan.FP32, Inputs: plan.FP32}, "fp8": fp8, "fp8-swiglu": swiglu, "deepseek-v3": tiles,
	}
}

// twins are of every kind of layer and activations. The bytes do not depend on the vocabulary's
// being padded.
func twins() map[string]twin {
	dense := nn.Config{Vocab: 131, Dim: 24, Layers: 3, Heads: 4, KVHeads: 2, Hidden: 141, Context: 150}
	denseModel := plan.Model{Layers: 3, Hidden: 24, Vocab: 131, Heads: 4, KVHeads: 2, FFN: 141}
	mixture := nn.Config{
		Vocab: 31, Dim: 32, Layers: 3, Heads: 2, Hidden: 48, Context: 150, Dense: 1,
		MLA: &nn.MLAConfig{QueryRank: 12, KVRank: 10, NoPE: 8, RoPE: 4, Value: 12},
		Experts: &nn.ExpertsConfig{
			Hidden: 20, Shared: 2, Router: nn.RouterConfig{Experts: 8, TopK: 3, BiasRate: 0.01},
		},
	}
	mixtureModel := plan.Model{
		Layers: 3, Hidden: 32, Vocab: 31, Heads: 2, FFN: 48,
		MLA: plan.MLA{QRank: 12, KVRank: 10, NoPE: 8, RoPE: 4, Value: 12},
		MoE: plan.MoE{Experts: 8, TopK: 3, FFN: 20, Shared: 40, Dense: 1, RouterBias: true},
	}
	all := map[string]twin{}
	for name, p := range precisions() {
		f, err := nn.ParseActivationFormat(name)
		if err != nil {
			panic(err)
		}
		for kind, t := range map[string]twin{"dense": {dense, denseModel, p}, "mixture": {mixture, mixtureModel, p}} {
			if name != "fp32" {
				recipe := nn.DefaultFP8()
				t.cfg.FP8, t.cfg.Activations = &recipe, f
			}
			all[kind+" "+name] = t
		}
	}
	direct := all["mixture fp8"]
	m, x := *direct.cfg.MLA, *direct.cfg.Experts
	m.QueryRank, x.Shared = 0, 0
	direct.cfg.MLA, direct.cfg.Experts = &m, &x
	direct.model.MLA.QRank, direct.model.MoE.Shared = 0, 0
	all["direct fp8"] = direct
	return all
}

// memory is what a twin's job takes, of one stage.
func (w twin) memory(t *testing.T, batch, seq int, policies []nn.Policy) plan.Stage {
	t.Helper()
	mem, err := w.job(batch, seq, policies).Memory()
	require.NoError(t, err)
	require.Len(t, mem.Stages, 1)
	return mem.Stages[0]
}

func (w twin) job(batch, seq int, policies []nn.Policy) plan.TrainJob {
	return plan.TrainJob{
		Model: w.model, Precision: w.precision, Library: plan.Library{Octavo: true},
		Sequence: seq, Batch: batch, Policies: policies,
	}
}

// TestOctavo: what library octavo keeps is what package nn plans to keep, to the byte, which
// nn's own tests hold against what models have; so are the memory that layers share and the
// operations.
func TestOctavo(t *testing.T) {
	const batch, seq = 2, 139
	for name, w := range twins() {
		t.Run(name, func(t *testing.T) {
			f, inFP8 := w.cfg.Activations, w.cfg.FP8 != nil
			check := func(policies []nn.Policy) {
				cfg := w.cfg
				cfg.Policies = policies
				want, err := cfg.PlanActivations(batch, seq)
				require.NoError(t, err)
				got := w.memory(t, batch, seq, policies)
				require.Equal(t, want.Float32+want.Codes+want.Scales, got.Activations, policies)
				require.Equal(t, want.Turns, got.Turns, policies)
				require.Equal(t, want.Again, got.Again, policies)
				require.Equal(t, want.Step, got.Operations)
				var sum int64
				for _, c := range got.Classes {
					require.Positive(t, c.Bytes, c.Class)
					sum += c.Bytes
				}
				require.Equal(t, got.Microbatch, sum)
				require.Equal(t, 1, got.InFlight)
			}
			check(nil)
			i := 0
			nn.EachPolicy(f.Ways(inFP8), func(p nn.Policy) {
				if i++; i%7 == 0 {
					check(slices.Repeat([]nn.Policy{p}, w.cfg.Layers))
				}
			})
			require.Greater(t, i, 7)
		})
	}
}

// TestSearchOctavo: with a budget of all that there is, what is found is what package nn finds
// for the activations alone.
func TestSearchOctavo(t *testing.T) {
	const batch, seq = 2, 139
	for name, w := range twins() {
		t.Run(name, func(t *testing.T) {
			own := w.memory(t, batch, seq, nil)
			rest := own.Total() - own.Activations - own.Turns
			all := own.Activations + own.Turns
			least := new(nn.BudgetError)
			_, err := w.cfg.SearchPolicies(batch, seq, 0)
			require.ErrorAs(t, err, &least)
			for _, part := range []float64{0, 0.1, 0.3, 0.6, 1} {
				budget := least.Least + int64(part*math.Abs(float64(all-least.Least)))
				want, err := w.cfg.SearchPolicies(batch, seq, budget)
				require.NoError(t, err)
				got, err := w.job(batch, seq, nil).SearchPolicies(rest + budget)
				require.NoError(t, err)
				st := w.memory(t, batch, seq, got)
				require.LessOrEqual(t, st.Total(), rest+budget)
				require.Equal(t, want.Again, st.Again)
				require.Equal(t, want.Total(), st.Activations+st.Turns)
			}
			_, err = w.job(batch, seq, nil).SearchPolicies(rest + least.Least - 1)
			require.ErrorIs(t, err, plan.ErrJob)
			require.ErrorContains(t, err, "a rank of stage 0 takes at least")
		})
	}
}
