package plan_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/plan"
	"github.com/octavo-fp8/octavo/scaling"
)

// twin is a configuration of package nn and the same for this package.
type twin struct {
	cfg       nn.Config
	model     plan.Model
	precision plan.Precision
}

// nnPrecision returns a recipe in which what is not narrow is FP32, as package nn has it.
func nnPrecision(name string) plan.Precision {
	p, err := plan.NamedPrecision(name)
	if err != nil {
		panic(err)
	}
	p.Stream = plan.Numbers{Bits: 32}
	if p.Inputs == (plan.Numbers{}) {
		p.Inputs = plan.Numbers{Bits: 32}
	}
	return p
}

// twins are of every kind of layer and activations.
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
	for name, of := range map[string]struct {
		profile scaling.Profile
		nn.ActivationFormat
	}{
		"bf16": {}, "te-current": {scaling.TECurrent, nn.ActivationsFP8}, "fp8": {scaling.TEBlockPow2, nn.ActivationsFP8},
		"octavo":      {scaling.TEBlock, nn.ActivationsFP8SwiGLU},
		"deepseek-v3": {scaling.TEBlock, nn.ActivationsDeepSeekV3},
	} {
		p := nnPrecision(name)
		for kind, t := range map[string]twin{"dense": {dense, denseModel, p}, "mixture": {mixture, mixtureModel, p}} {
			if of.profile != "" {
				recipe := nn.ProfileFP8(of.profile, fp8.E4M3)
				t.cfg.FP8, t.cfg.Activations = &recipe, of.ActivationFormat
			}
			all[kind+" "+name] = t
		}
	}
	direct := all["mixture octavo"]
	m, x := *direct.cfg.MLA, *direct.cfg.Experts
	m.QueryRank, x.Shared = 0, 0
	direct.cfg.MLA, direct.cfg.Experts = &m, &x
	direct.model.MLA.QRank, direct.model.MoE.Shared = 0, 0
	all["direct octavo"] = direct
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
				got, err := w.job(batch, seq, nil).SearchPolicies(t.Context(), rest+budget, 0)
				require.NoError(t, err)
				st := w.memory(t, batch, seq, got)
				require.LessOrEqual(t, st.Total(), rest+budget)
				require.Equal(t, want.Again, st.Again)
				require.Equal(t, want.Total(), st.Activations+st.Turns)
			}
			_, err = w.job(batch, seq, nil).SearchPolicies(t.Context(), rest+least.Least-1, 0)
			require.ErrorIs(t, err, plan.ErrJob)
			require.Equal(t, &plan.BudgetError{Card: rest + least.Least - 1, Least: rest + least.Least}, err)
		})
	}
}

// TestOctavoRanks: what ranks keep together is what one keeps, where all that is divided is
// even, but for what is there on several.
func TestOctavoRanks(t *testing.T) {
	kept := func(l plan.Layout, batches int) (mem plan.Memory) {
		m, err := plan.Named("deepseek-v3")
		require.NoError(t, err)
		m.Layers = 4
		p, err := plan.NamedPrecision("octavo")
		require.NoError(t, err)
		job := plan.TrainJob{
			Model: m, Layout: l, Precision: p, Library: plan.Library{Octavo: true}, Sequence: 4096, Batches: batches,
		}
		mem, err = job.Memory()
		require.NoError(t, err)
		return mem
	}
	alone := kept(plan.Layout{}, 1).Stages[0]
	two := kept(plan.Layout{Pipeline: 2}, 8).Stages
	require.Equal(t, alone.Microbatch, two[0].Microbatch+two[1].Microbatch)
	require.Equal(t, alone.Operations, two[0].Operations+two[1].Operations)
	require.Equal(t, alone.Again, two[0].Again+two[1].Again)
	require.Equal(t, 2*two[0].Microbatch, two[0].Activations)
	require.Equal(t, two[1].Microbatch, two[1].Activations)

	chunks := kept(plan.Layout{Pipeline: 2, Virtual: 2}, 8).Stages
	require.Equal(t, alone.Microbatch, chunks[0].Microbatch+chunks[1].Microbatch)
	require.Greater(t, chunks[0].InFlight, 2)

	spread := kept(plan.Layout{Expert: 8}, 1).Stages[0]
	require.Equal(t, alone.Microbatch, spread.Microbatch, "as many rows go to experts as come from tokens")
	halves := kept(plan.Layout{Tensor: 2, Expert: 8}, 1).Stages[0]
	one, both := map[string]int64{}, map[string]int64{}
	for _, c := range alone.Classes {
		one[c.Class] = c.Bytes
	}
	for _, c := range halves.Classes {
		both[c.Class] = 2 * c.Bytes
	}
	for _, class := range []string{"stream", "projections", "mixed", "latents", "middle", "router"} {
		require.Equal(t, one[class], both[class], class)
	}
}

func TestOctavoErrors(t *testing.T) {
	w := twins()["dense deepseek-v3"]
	base := w.job(2, 139, nil)
	changed := func(change func(*plan.TrainJob)) plan.TrainJob {
		j := base
		change(&j)
		return j
	}
	own := nn.ActivationsDeepSeekV3.Policy()
	wrong := own
	wrong.Middle = nn.KeepFP8
	for want, job := range map[string]plan.TrainJob{
		"policies[1] with precision deepseek-v3: middle cannot be fp8 with activations deepseek-v3 and FP8 products: want one of [keep recompute]": changed(func(j *plan.TrainJob) {
			j.Policies = []nn.Policy{own, wrong, own}
		}),
		"policies has 1: want one for each of 3 layers": changed(func(j *plan.TrainJob) { j.Policies = []nn.Policy{own} }),
		"policies: only library octavo has them": changed(func(j *plan.TrainJob) {
			j.Library, j.Policies = plan.Library{}, []nn.Policy{own, own, own}
		}),
		"library: octavo keeps nothing of what another does":                  changed(func(j *plan.TrainJob) { j.Library.ZeroGradients = true }),
		"recompute: library octavo has policies instead":                      changed(func(j *plan.TrainJob) { j.Recompute.Layers = -1 }),
		"precision.fromSwiglu: with library octavo it goes":                   changed(func(j *plan.TrainJob) { j.Precision.Inputs = plan.Numbers{Bits: 32} }),
		"precision.attentionOut: library octavo keeps it":                     changed(func(j *plan.TrainJob) { j.Precision.FromSwiGLU = false }),
		"sequence is 2147483647: a micro-batch takes some 6.2e+23 operations": changed(func(j *plan.TrainJob) { j.Sequence = math.MaxInt32 }),
	} {
		_, err := job.Memory()
		require.ErrorIs(t, err, plan.ErrJob)
		require.ErrorContains(t, err, want)
	}
	_, err := changed(func(j *plan.TrainJob) {
		j.Model.Layers, j.Layout = 4, plan.Layout{Pipeline: 2, Virtual: 2}
	}).SearchPolicies(t.Context(), 1<<40, 0)
	require.ErrorContains(t, err, "layout.virtual is 2: policies are searched for stages of one chunk")
}

// TestSearchReserved: what is found for a card is the best of what it holds with a headroom, and
// a byte less than the least that is reserved is an error that says so.
func TestSearchReserved(t *testing.T) {
	w := twins()["dense bf16"]
	job := w.job(2, 139, nil)
	best := func(card int64, headroom float64) (again, least int64) {
		again, least = math.MaxInt64, math.MaxInt64
		var all []nn.Policy
		nn.EachPolicy(w.cfg.Activations.Ways(false), func(p nn.Policy) { all = append(all, p) })
		for _, p := range all {
			st := w.memory(t, 2, 139, slices.Repeat([]nn.Policy{p}, w.model.Layers))
			need := int64(math.Ceil(float64(st.Total()) * (1 + headroom)))
			if least = min(least, need); need <= card {
				again = min(again, st.Again)
			}
		}
		return again, least
	}
	for _, headroom := range []float64{0, 0.03, 0.1, 1} {
		_, least := best(0, headroom)
		for _, card := range []int64{least + 2, least * 5 / 4, least * 2} {
			policies, err := job.SearchPolicies(t.Context(), card, headroom)
			require.NoError(t, err)
			st := w.memory(t, 2, 139, policies)
			require.LessOrEqual(t, float64(st.Total())*(1+headroom), float64(card))
			again, _ := best(card, headroom)
			require.LessOrEqual(t, st.Again, again)
		}
		tooSmall := new(plan.BudgetError)
		_, err := job.SearchPolicies(t.Context(), 1, headroom)
		require.ErrorAs(t, err, &tooSmall)
		_, err = job.SearchPolicies(t.Context(), tooSmall.Least, headroom)
		require.NoError(t, err)
		_, err = job.SearchPolicies(t.Context(), tooSmall.Least-1, headroom)
		require.ErrorAs(t, err, &tooSmall)
		for _, card := range []int64{math.MinInt64, math.MaxInt64} {
			_, err = job.SearchPolicies(t.Context(), card, headroom)
			require.Equal(t, card > 0, err == nil)
		}
	}
	for _, headroom := range []float64{-0.1, 1.1, math.NaN()} {
		_, err := job.SearchPolicies(t.Context(), 1<<40, headroom)
		require.ErrorIs(t, err, plan.ErrJob)
		require.ErrorContains(t, err, "headroom is ")
	}
}

// TestSearchStages compares with all policies of stages of one layer, of which the first keeps
// two micro-batches.
func TestSearchStages(t *testing.T) {
	w := twins()["mixture fp8"]
	w.model.Layers = 2
	job := w.job(2, 139, nil)
	job.Layout = plan.Layout{Pipeline: 2, Zero: 1}
	of := func(policies []nn.Policy) [2]plan.Stage {
		job := job
		job.Policies = policies
		mem, err := job.Memory()
		require.NoError(t, err)
		return [2]plan.Stage(mem.Stages)
	}
	var all [][2]plan.Stage // the same policy on both
	nn.EachPolicy(w.cfg.Activations.Ways(true), func(p nn.Policy) { all = append(all, of([]nn.Policy{p, p})) })
	require.Equal(t, 2, all[0][0].InFlight)
	var bounds [2][2]int64 // of each stage the least and the most bytes
	for s := range bounds {
		bounds[s][0] = math.MaxInt64
		for _, stages := range all {
			n := stages[s].Total()
			bounds[s] = [2]int64{min(bounds[s][0], n), max(bounds[s][1], n)}
		}
	}
	least := max(bounds[0][0], bounds[1][0])
	for _, part := range []float64{0, 0.2, 0.4, 0.6, 0.8, 1} {
		budget := least + int64(part*float64(bounds[0][1]-least))
		policies, err := job.SearchPolicies(t.Context(), budget, 0)
		require.NoError(t, err)
		for s, got := range of(policies) {
			want := int64(math.MaxInt64)
			for _, stages := range all {
				if stages[s].Total() <= budget {
					want = min(want, stages[s].Again)
				}
			}
			require.LessOrEqual(t, got.Total(), budget, "stage %d", s)
			require.Equal(t, want, got.Again, "stage %d, budget %d", s, budget)
		}
	}
	_, err := job.SearchPolicies(t.Context(), least-1, 0)
	require.ErrorIs(t, err, plan.ErrJob)
	tooSmall := new(plan.BudgetError)
	require.ErrorAs(t, err, &tooSmall)
	require.Equal(t, bounds[tooSmall.Stage][0], tooSmall.Least)
}
