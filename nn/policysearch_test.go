package nn

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/knapsack"
	"github.com/octavo-fp8/octavo/internal/recompute"
	"github.com/octavo-fp8/octavo/swiglu"
)

// TestPlannedActivations: the plan is what is kept, to the byte, and the memory that blocks
// take turns in.
func TestPlannedActivations(t *testing.T) {
	const batch, seq = 3, 7
	for name, cfg := range policyModels() {
		t.Run(name, func(t *testing.T) {
			if cfg.Experts != nil {
				cfg.Experts.CapacityFactor = 0
			}
			plan, err := cfg.PlanActivations(batch, seq)
			require.NoError(t, err)
			requirePlanned(t, plan, cfg, batch, seq)
			require.EqualValues(t, cfg.Layers, len(plan.Policies))
			for _, p := range somePolicies(cfg.Activations, cfg.FP8 != nil, 1, 2, 3) {
				changed := alike(cfg, p)
				for i := range changed.Policies {
					if cfg.layerOptions(i, nil).FP8 == nil {
						changed.Policies[i] = p.withoutFP8()
					}
				}
				plan, err := changed.PlanActivations(batch, seq)
				require.NoError(t, err)
				requirePlanned(t, plan, changed, batch, seq)
			}
		})
	}
}

func requirePlanned(t *testing.T, plan ActivationPlan, cfg Config, batch, seq int) {
	t.Helper()
	m := livelyModel(t, cfg)
	tokens := someTokens(1, batch*seq, cfg.Vocab)
	_, err := m.Loss(t.Context(), tokens, tokens, batch, seq)
	require.NoError(t, err)
	kept := m.ActivationBytes()
	require.EqualValues(t, kept.Float32, plan.Float32, plan.Policies)
	require.EqualValues(t, kept.Codes, plan.Codes, plan.Policies)
	if cfg.Experts == nil || cfg.Activations.keepsTiles() { // the load of experts is not even
		require.EqualValues(t, kept.Scales, plan.Scales, plan.Policies)
	}
	require.NoError(t, m.Backward(t.Context()))
	require.EqualValues(t, turnBytes(m), plan.Turns, plan.Policies)
	require.Equal(t, plan.Float32+plan.Codes+plan.Scales+plan.Turns, plan.Total())
}

// turnBytes is the shared memory of a model that no inference has used, which is there only
// where something is not kept.
func turnBytes(m *Llama) (n int) {
	s := &m.shared.scratch
	for _, x := range [][]float32{
		s.normed, s.mlpNormed, s.mixed, s.product, s.middle, s.q, s.k, s.v, s.u, s.g, s.expertInput, s.expertOutput,
		s.queryLatent.raw, s.queryLatent.normed, s.kvLatent.raw, s.kvLatent.normed,
		s.rawHeads.q, s.rawHeads.k, s.attended,
	} {
		n += 4 * cap(x)
	}
	return n
}

// TestAgain counts on paper what a block of a Llama computes again.
func TestAgain(t *testing.T) {
	const rows, dim, kv, hidden, heads, seq, layers = 21, 24, 12, 141, 4, 7, 2
	again := func(p Policy) int64 {
		plan, err := alike(ragged(), p).PlanActivations(3, 7)
		require.NoError(t, err)
		return plan.Again / layers
	}
	const norm, swiglu = 4 * rows * dim, 20 * rows * hidden
	const qkv = 2*rows*dim*(dim+2*kv) + 3*rows*(dim+kv)
	const scores = rows * heads * (seq + 1) / 2
	const attend, weigh = scores * (2*dim/heads + 16), scores * 2 * dim / heads
	const quantizedQKV = 8 * (3*rows*dim + dim*(dim+2*kv)) // inputs and weights
	const output, branch = 2*rows*dim*dim + rows*dim, 2 * 2 * rows * dim * hidden
	for _, test := range []struct {
		p    Policy
		want int64
	}{
		{Policy{}, 0},
		{Policy{Norms: Recompute}, 2 * norm},
		{Policy{Projections: Recompute}, qkv},
		{Policy{Probabilities: Recompute}, attend},
		{Policy{Mixed: Recompute}, weigh},
		{Policy{Mixed: Recompute, Probabilities: Recompute}, weigh + 2*attend},
		{Policy{Middle: Recompute}, output},
		{Policy{Middle: Recompute, Mixed: Recompute}, output + weigh},
		{Policy{Product: Recompute, Branches: Recompute}, branch + swiglu},
	} {
		require.Equal(t, test.want, again(test.p), test.p)
	}
	tiles := func(change func(*Policy)) int64 {
		p := ActivationsDeepSeekV3.Policy()
		change(&p)
		plan, err := alike(deepSeekV3Of(ragged()), p).PlanActivations(3, 7)
		require.NoError(t, err)
		return plan.Again / layers
	}
	own := tiles(func(*Policy) {})
	require.EqualValues(t, attend+swiglu+2*rows*hidden, own, "both inputs of SwiGLU are decoded")
	const quantized = 8 * rows * dim // once for queries, keys and values, and once for an MLP
	require.EqualValues(t, own+2*norm+2*quantized, tiles(func(p *Policy) { p.Norms = Recompute }))
	const rounded = qkv + quantizedQKV
	require.EqualValues(t, own+norm+rounded, tiles(func(p *Policy) { p.Projections = Recompute }))
}

// TestSearchPolicies compares with all combinations of policies of two layers that are
// allowed, for budgets from the least to all.
func TestSearchPolicies(t *testing.T) {
	const batch, seq = 2, 5
	edges := withFP8(ragged(), DefaultFP8())
	edges.BF16Last = 1
	smooth := kept(withFP8(ragged(), DefaultFP8()), ActivationsFP8SwiGLU)
	smooth.Smoothing = &swiglu.Smoothing{}
	experts := mixture()
	experts.Layers, experts.Experts.Shared, experts.MLA = 2, 0, nil
	for name, cfg := range map[string]Config{"FP32": ragged(), "edges": edges, "SwiGLU": smooth, "experts": experts, "tiles": deepSeekV3Of(experts)} {
		t.Run(name, func(t *testing.T) {
			p, err := newPlanner(cfg, batch, seq)
			require.NoError(t, err)
			all := everyPlan(p)
			largest, least := int64(0), int64(math.MaxInt64)
			for _, plan := range all {
				least, largest = min(least, plan.Total()), max(largest, plan.Total())
			}
			for _, part := range []float64{0, 0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1} {
				budget := least + int64(part*float64(largest-least))
				want := ActivationPlan{Again: math.MaxInt64}
				for _, plan := range all {
					if plan.Total() <= budget && plan.Again < want.Again {
						want = plan
					}
				}
				got, err := cfg.SearchPolicies(batch, seq, budget)
				require.NoError(t, err)
				require.Equal(t, want.Again, got.Again, "budget %d", budget)
				require.LessOrEqual(t, got.Total(), budget)
				changed := cfg
				changed.Policies = got.Policies
				again, err := changed.PlanActivations(batch, seq)
				require.NoError(t, err)
				require.Equal(t, again, got)
			}
			_, err = cfg.SearchPolicies(batch, seq, least-1)
			require.Equal(t, &BudgetError{batch, seq, least - 1, least}, err)
		})
	}
}

// everyPlan returns the plans of all policies of each of two layers that differ in what they
// take or cost.
func everyPlan(p *planner) (all []ActivationPlan) {
	type choice struct {
		Policy
		knapsack.Choice
	}
	var choices [2][]choice
	for layer, plan := range p.kindOf {
		policies, sizes := plan.choices()
		for i, p := range policies {
			c := choice{p, sizes[i]}
			same := func(o choice) bool {
				return o.Cost <= c.Cost && o.Bytes <= c.Bytes && masks(o.Policy) == masks(c.Policy)
			}
			if !slices.ContainsFunc(choices[layer], same) {
				choices[layer] = append(choices[layer], c)
			}
		}
	}
	for _, a := range choices[0] {
		for _, b := range choices[1] {
			all = append(all, p.plan([]Policy{a.Policy, b.Policy}))
		}
	}
	return all
}

// masks are the classes that are kept in FP32.
func masks(p Policy) (kept [recompute.Classes]bool) {
	for i, f := range p.Classes() {
		kept[i] = *f.Kept == Keep
	}
	return kept
}

// TestSearchOfManyLayers: where combinations are too many to try, the search ends, and finds
// the same each time.
func TestSearchOfManyLayers(t *testing.T) {
	cfg := withFP8(mixture(), DefaultFP8())
	cfg.Layers, cfg.Dense, cfg.BF16Last = 40, 3, 2
	all, err := alike(cfg, Policy{}).PlanActivations(4, 16)
	require.NoError(t, err)
	before := int64(-1)
	for _, percent := range []int64{80, 40, 20} {
		plan, err := cfg.SearchPolicies(4, 16, all.Total()*percent/100)
		require.NoError(t, err)
		require.LessOrEqual(t, plan.Total(), all.Total()*percent/100)
		require.Greater(t, plan.Again, before, "%d %%", percent)
		before = plan.Again
		again, err := cfg.SearchPolicies(4, 16, all.Total()*percent/100)
		require.NoError(t, err)
		require.Equal(t, plan, again)
	}
}

func TestPlanRefuses(t *testing.T) {
	_, err := small().PlanActivations(0, 3)
	require.ErrorIs(t, err, ErrInput)
	_, err = small().PlanActivations(1, 17)
	require.ErrorContains(t, err, "at most Config.Context = 16")
	bad := small()
	bad.Dim = 0
	_, err = bad.SearchPolicies(1, 3, 1)
	require.ErrorIs(t, err, ErrConfig)
}
