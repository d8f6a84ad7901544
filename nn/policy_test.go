package nn

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
)

// alike returns one policy for all layers.
func alike(cfg Config, p Policy) Config {
	cfg.Policies = slices.Repeat([]Policy{p}, cfg.Layers)
	return cfg
}

// somePolicies returns the policy that keeps all, those that differ from it in one class,
// the one that computes all again, and some at random; all are allowed.
func somePolicies(f ActivationFormat, inFP8 bool, random ...uint64) (all []Policy) {
	allowed := f.Ways(inFP8)
	pick := func(which func(class int) int) {
		var p Policy
		for i, field := range p.Classes() {
			*field.Kept = allowed[i][which(i)%len(allowed[i])]
		}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	pick(func(int) int { return 0 })
	for class, ways := range allowed {
		for w := range ways {
			pick(func(i int) int { return map[bool]int{true: w}[i == class] })
		}
	}
	pick(func(int) int { return 1 })
	for _, seed := range random {
		pick(func(i int) int { return hashed(seed, i) })
	}
	return all
}

func hashed(seed uint64, i int) int { return int(random.Hash(11, seed, uint64(i)) >> 40) }

// trace is what two steps of training give: losses, gradients, and what scales remember.
type trace struct {
	losses []float32
	grads  [][]float32
	state  ScalingState
	heard  map[string]telemetry.Summary
}

func traceOf(t *testing.T, cfg Config, batch, seq int) (got trace) {
	t.Helper()
	m := livelyModel(t, cfg)
	recorder := telemetry.New()
	m.Listen(recorder)
	for step := range 2 {
		tokens := someTokens(uint64(step), batch*seq, cfg.Vocab)
		loss, err := m.Loss(t.Context(), tokens, tokens, batch, seq)
		require.NoError(t, err)
		require.NoError(t, m.BackwardScaled(t.Context(), 0.5))
		got.losses = append(got.losses, loss)
		m.EndStep()
	}
	for _, p := range m.Params() {
		got.grads = append(got.grads, p.Grad)
	}
	got.heard = map[string]telemetry.Summary{}
	for _, total := range recorder.Totals() {
		got.heard[total.Op+" "+total.Tensor] = total.Summary
	}
	got.state = m.Shared().Scaling().State()
	return got
}

// policyModels are models whose gradients policies must leave as they are, to the bit.
func policyModels() map[string]Config {
	bf16, random := DefaultRounding(NarrowBF16), randomFP8()
	stochastic, both := DefaultFP8(), DefaultFP8()
	stochastic.Stochastic, stochastic.Seed = true, 5
	both.Hadamard, both.RoundScales = true, true
	delayed := delayedRagged()
	rounded := ragged()
	rounded.Rounding = &bf16
	rounded.Operators = Operators{
		Residual: NarrowBF16, Normalization: NarrowE4M3, Softmax: NarrowE4M3, Reductions: NarrowBF16,
	}
	edges := withFP8(ragged(), both)
	edges.Layers, edges.BF16First, edges.BF16Last = 3, 1, 1
	all := map[string]Config{
		"FP32": ragged(), "BF16": rounded, "FP8": withFP8(ragged(), DefaultFP8()), "delayed": delayed,
		"stochastic": withFP8(ragged(), stochastic), "random": withFP8(ragged(), random),
		"SwiGLU": kept(delayed, ActivationsFP8SwiGLU), "edges": edges,
		"experts": mixture(), "experts FP8": withFP8(mixture(), DefaultFP8()),
		"experts delayed": withFP8(mixture(), ProfileFP8(scaling.TEDelayed, fp8.E5M2)),
		"experts SwiGLU":  kept(withFP8(mixture(), stochastic), ActivationsFP8SwiGLU),
		"tiles":           deepSeekV3Of(ragged()), "experts tiles": deepSeekV3Of(mixture()),
		"tiles delayed": kept(delayed, ActivationsDeepSeekV3), "tiles edges": kept(edges, ActivationsDeepSeekV3),
		"experts tiles random": kept(withFP8(mixture(), random), ActivationsDeepSeekV3),
	}
	direct := withFP8(mixture(), DefaultFP8())
	direct.MLA.QueryRank, direct.Experts.CapacityFactor = 0, 1.25
	all["experts dropped"] = direct
	all["experts dropped tiles"] = deepSeekV3Of(direct)
	smooth := withFP8(ragged(), DefaultFP8())
	smooth.Smoothing = &swiglu.Smoothing{Axis: swiglu.PerToken}
	all["smooth"], all["smooth tiles"] = smooth, deepSeekV3Of(smooth)
	for _, f := range featured() {
		all[f.name], all[f.name+" FP8"] = f.config, withFP8(f.config, DefaultFP8())
		all[f.name+" tiles"] = deepSeekV3Of(f.config)
	}
	return all
}

// deepSeekV3Of returns cfg with the recipe of that name.
func deepSeekV3Of(cfg Config) Config {
	deepSeekV3().Apply(&cfg, 0)
	return cfg
}

// TestPoliciesKeepBits: whatever is computed again or kept as an operand in FP8, losses,
// gradients of every parameter and the state of scales are those of a model without
// policies, and what a Reporter hears of is the same.
func TestPoliciesKeepBits(t *testing.T) {
	const batch, seq = 3, 7
	for name, cfg := range policyModels() {
		t.Run(name, func(t *testing.T) {
			seeds := []uint64{1, 2, 3, 4, 5, 6, 7, 8}
			if testing.Short() {
				seeds = seeds[:2]
			}
			want := traceOf(t, cfg, batch, seq)
			require.NotZero(t, want.losses[0])
			for _, p := range somePolicies(cfg.Activations, cfg.FP8 != nil, seeds...) {
				changed := alike(cfg, p)
				for i := range changed.Policies {
					if o := cfg.layerOptions(i, nil); o.FP8 == nil {
						changed.Policies[i] = p.withoutFP8()
					}
				}
				got := traceOf(t, changed, batch, seq)
				require.Equal(t, want.losses, got.losses, p)
				for i := range want.grads {
					require.True(t, sameBits(want.grads[i], got.grads[i]), "%v: gradient %d", p, i)
				}
				require.Equal(t, want.state, got.state, p)
				require.Equal(t, want.heard, got.heard, p)
			}
		})
	}
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool {
		return math.Float32bits(x) == math.Float32bits(y)
	})
}

// TestPolicyTaps: what is computed again is not shown again, and products are shown with the
// same values.
func TestPolicyTaps(t *testing.T) {
	names := func(cfg Config) (all []string) {
		m := livelyModel(t, cfg)
		m.Shared().Tap = func(name string, _ []float32, _, _ int) { all = append(all, name) }
		m.Shared().ProductTap = func(p Product) {
			sum := fnv.New64a()
			for _, values := range [][]float32{p.A.Values, p.B.Values, p.Result} {
				require.NoError(t, binary.Write(sum, binary.LittleEndian, values))
			}
			all = append(all, fmt.Sprintf("product %s %x", p.Name, sum.Sum64()))
		}
		tokens := someTokens(1, 10, cfg.Vocab)
		_, err := m.Loss(t.Context(), tokens, tokens, 2, 5)
		require.NoError(t, err)
		require.NoError(t, m.Backward(t.Context()))
		return all
	}
	for _, cfg := range []Config{
		ragged(), mixture(), withFP8(mixture(), DefaultFP8()), deepSeekV3Of(mixture()),
	} {
		again := somePolicies(cfg.Activations, false)
		require.Equal(t, names(cfg), names(alike(cfg, again[len(again)-1])))
	}
}

// TestPolicyPasses: a model with policies may be evaluated between steps and cancelled in a
// backward pass, and larger batches may follow smaller ones.
func TestPolicyPasses(t *testing.T) {
	cfg := mixture()
	policies := somePolicies(ActivationsFP32, false)
	plain, again := livelyModel(t, cfg), livelyModel(t, alike(cfg, policies[len(policies)-1]))
	for i, shape := range [][2]int{{1, 3}, {2, 16}, {1, 5}} {
		tokens := someTokens(uint64(i), shape[0]*shape[1], cfg.Vocab)
		wide := someTokens(9, 3*16, cfg.Vocab)
		for _, m := range []*Llama{plain, again} {
			m.ZeroGrad()
			_, err := m.Loss(t.Context(), tokens, tokens, shape[0], shape[1])
			require.NoError(t, err)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, m.Backward(ended), context.Canceled)
			m.Shared().Scaling().DropStep()
			m.ZeroGrad()
			_, err = m.Evaluate(t.Context(), wide, wide, 3, 16)
			require.NoError(t, err)
			_, err = m.Loss(t.Context(), tokens, tokens, shape[0], shape[1])
			require.NoError(t, err)
			require.NoError(t, m.Backward(t.Context()))
		}
		for j, p := range plain.Params() {
			require.True(t, sameBits(p.Grad, again.Params()[j].Grad), "%v %s", shape, p.Name)
		}
	}
}

func TestConfigRefusesPolicies(t *testing.T) {
	in8 := withFP8(small(), DefaultFP8())
	edges := in8
	edges.BF16Last = 1
	tiles := kept(in8, ActivationsDeepSeekV3)
	changed := func(change func(*Policy)) Policy {
		p := ActivationsDeepSeekV3.Policy()
		change(&p)
		return p
	}
	for _, test := range []struct {
		cfg  Config
		p    Policy
		want string
	}{
		{small(), Policy{Norms: KeepFP8}, `Config.Policies[0]: norms cannot be fp8 with activations fp32 and other products: want one of [keep recompute]`},
		{edges, Policy{Product: KeepFP8}, `Config.Policies[1]: product cannot be fp8`},
		{in8, Policy{Middle: KeepFP8}, `Config.Policies[0]: middle cannot be fp8`},
		{in8, Policy{Outputs: 3}, "Config.Policies[0]: outputs cannot be Keeping(3)"},
		{kept(in8, ActivationsFP8SwiGLU), Policy{}, `Config.Policies[0]: branches cannot be keep with activations fp8-swiglu and FP8 products: want one of [fp8]`},
		{tiles, Policy{}, `Config.Policies[0]: norms cannot be keep with activations deepseek-v3 and FP8 products: want one of [fp8 recompute]`},
		{tiles, changed(func(p *Policy) { p.Mixed = Recompute }), `mixed cannot be recompute with activations deepseek-v3 and FP8 products: want one of [fp8]`},
		{tiles, changed(func(p *Policy) { p.Latents = KeepFP8 }), `latents cannot be fp8 with activations deepseek-v3`},
		{tiles, changed(func(p *Policy) { p.Branches = Keep }), `branches cannot be keep with activations deepseek-v3`},
	} {
		_, err := NewLlama(alike(test.cfg, test.p), 1)
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, test.want)
	}
	cfg := small()
	cfg.Policies = make([]Policy, 1)
	_, err := NewLlama(cfg, 1)
	require.ErrorContains(t, err, "Config.Policies has 1: want one for each of 2 layers")
}

// TestPoliciesWiden: what was kept as operands in FP8 cannot be once there are none.
func TestPoliciesWiden(t *testing.T) {
	cfg := kept(withFP8(ragged(), DefaultFP8()), ActivationsFP8SwiGLU)
	cfg = alike(cfg, ActivationsFP8SwiGLU.Policy())
	wide, _, err := cfg.Widen("model.layers.0.mlp.up_proj.gradient")
	require.NoError(t, err)
	require.Equal(t, cfg.Policies, wide.Policies, "E5M2 is FP8, too")
	wide, _, err = wide.Widen("model.layers.0.mlp.up_proj.gradient")
	require.NoError(t, err)
	require.NoError(t, wide.Validate())
	want := Policy{
		Norms: Recompute, Mixed: Recompute, Branches: Recompute, Product: Recompute, Probabilities: Recompute,
	}
	require.Equal(t, []Policy{want, want}, wide.Policies)
	require.Equal(t, ActivationsFP8SwiGLU.Policy(), cfg.Policies[0], "a copy")
}

func TestPolicyText(t *testing.T) {
	require.Equal(t, "keep all", Policy{}.String())
	p := Policy{Norms: Recompute, Product: Recompute, Mixed: KeepFP8}
	require.Equal(t, "recompute norms, product; fp8 mixed", p.String())
	require.Equal(t, "Keeping(9)", fmt.Sprint(Keeping(9)))
	EachPolicy(ActivationsFP32.Ways(true), func(p Policy) {
		back, err := ParsePolicy(p.String(), Policy{})
		require.NoError(t, err)
		require.Equal(t, p, back)
	})
	p, err := ParsePolicy("recompute  all;keep norms,mixed ; fp8 product", Policy{})
	require.NoError(t, err)
	require.Equal(t, "recompute latents, projections, probabilities, middle, branches, outputs; fp8 product", p.String())
	p, err = ParsePolicy("recompute middle", ActivationsFP8.Policy())
	require.NoError(t, err)
	require.Equal(t, "recompute probabilities, middle; fp8 norms, mixed, product", p.String())
	for text, want := range map[string]string{
		"": `unknown way to keep activations "": want one of keep, recompute, fp8`, "drop norms": `"drop"`,
		"recompute norm":     `unknown class of activations "norm": want all, or some of norms, latents`,
		"recompute":          `unknown class of activations ""`,
		"keep norms; fp8 x,": `unknown class of activations "x"`,
	} {
		_, err := ParsePolicy(text, Policy{})
		require.ErrorIs(t, err, ErrConfig, text)
		require.ErrorContains(t, err, want)
	}
}
