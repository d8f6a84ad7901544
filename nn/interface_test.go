package nn

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestInferenceLeavesNoTrace: with delayed scales of tensors and of blocks, delayed
// smoothing and random gradients, before the first step, in the middle of one, and
// where the call fails.
func TestInferenceLeavesNoTrace(t *testing.T) {
	cfg := delayedRagged()
	cfg.FP8.Stochastic = true
	blocks := scaling.Recipe{Profile: scaling.TEDelayed, Block: tensor.Block{Rows: 4, Cols: 4}}
	cfg.FP8.Forward.B, cfg.FP8.Forward.A.Block = blocks, tensor.Block{}
	for _, f := range ActivationFormats() {
		m := livelyModel(t, kept(cfg, f))
		recorder := telemetry.New()
		m.Listen(recorder)
		tokens := someTokens(1, 6, cfg.Vocab)
		for step := range 3 {
			before := m.Shared().Scaling().State()
			heard := len(recorder.Totals())
			first, err := m.Evaluate(t.Context(), tokens, tokens, 2, 3)
			require.NoError(t, err)
			second, err := m.Evaluate(t.Context(), tokens, tokens, 2, 3)
			require.NoError(t, err)
			require.Equal(t, first, second)
			_, err = m.Logits(t.Context(), tokens, 1, 6)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			m.Shared().Tap = func(name string, _ []float32, _, _ int) {
				if name == "model.layers.1.self_attn.key" {
					cancel()
				}
			}
			_, err = m.Evaluate(ctx, tokens, tokens, 2, 3)
			require.ErrorIs(t, err, context.Canceled)
			m.Shared().Tap = nil
			require.Equal(t, before, m.Shared().Scaling().State(), "step %d", step)
			require.Len(t, recorder.Totals(), heard, "step %d", step)
			require.ErrorIs(t, m.Backward(t.Context()), ErrInput)

			_, err = m.Loss(t.Context(), tokens, tokens, 2, 3)
			require.NoError(t, err)
			require.NoError(t, m.Backward(t.Context()))
			if step > 0 {
				m.EndStep()
			}
		}
		require.NotEmpty(t, recorder.Totals())
	}
}

// TestGradientFromOutside: the gradient of the loss, given by the caller, is the
// backward pass of the loss.
func TestGradientFromOutside(t *testing.T) {
	a, b := livelyModel(t, tiny), livelyModel(t, tiny)
	tokens, targets := someTokens(1, 12, tiny.Vocab), someTokens(2, 12, tiny.Vocab)
	_, err := a.Loss(t.Context(), tokens, targets, 2, 6)
	require.NoError(t, err)
	require.NoError(t, a.Backward(t.Context()))

	logits, err := b.Forward(t.Context(), tokens, 2, 6)
	require.NoError(t, err)
	var loss CrossEntropy
	_, err = loss.Forward(t.Context(), logits, targets, tiny.Vocab)
	require.NoError(t, err)
	dLogits := make([]float32, len(logits))
	require.NoError(t, loss.Backward(t.Context(), dLogits, 1))
	require.ErrorIs(t, b.BackwardLogits(t.Context(), dLogits[1:]), ErrInput)
	require.NoError(t, b.BackwardLogits(t.Context(), dLogits))
	for i, p := range a.Params() {
		require.Equal(t, p.Grad, b.Params()[i].Grad, p.Name)
	}
	require.ErrorIs(t, b.BackwardLogits(t.Context(), dLogits), ErrInput, "a second time")
}

// TestMaskedLoss of a model: a masked target has no part in it.
func TestMaskedLoss(t *testing.T) {
	m := livelyModel(t, tiny)
	tokens, targets := someTokens(1, 6, tiny.Vocab), someTokens(2, 6, tiny.Vocab)
	targets[4], targets[5] = IgnoreIndex, IgnoreIndex
	got, err := m.Loss(t.Context(), tokens, targets, 1, 6)
	require.NoError(t, err)
	require.Equal(t, 4, m.Counted())
	require.NoError(t, m.Backward(t.Context()))
	short := livelyModel(t, tiny)
	want, err := short.Loss(t.Context(), tokens[:4], targets[:4], 1, 4) // attention is causal
	require.NoError(t, err)
	require.NoError(t, short.Backward(t.Context()))
	require.Equal(t, want, got)
	for i, p := range short.Params() {
		requireClose(t, p.Name, p.Grad, m.Params()[i].Grad)
	}
	for i := range targets {
		targets[i] = IgnoreIndex
	}
	m.ZeroGrad()
	got, err = m.Loss(t.Context(), tokens, targets, 1, 6)
	require.NoError(t, err)
	require.Zero(t, got)
	require.NoError(t, m.Backward(t.Context()))
	for _, p := range m.Params() {
		for _, g := range p.Grad {
			require.Zero(t, g, p.Name)
		}
	}
}

func requireClose(t *testing.T, name string, want, got []float32) {
	t.Helper()
	var diff, sum float64
	for i := range want {
		diff += math.Pow(float64(want[i])-float64(got[i]), 2)
		sum += float64(want[i]) * float64(want[i])
	}
	require.LessOrEqual(t, math.Sqrt(diff), 1e-5*math.Sqrt(sum), name)
}

// TestTapNames: what a step shows, once each, forward and backward.
func TestTapNames(t *testing.T) {
	m := livelyModel(t, tiny)
	seen := map[string]int{}
	m.Shared().Tap = func(name string, values []float32, rows, cols int) {
		require.Len(t, values, rows*cols, name)
		require.Equal(t, 12, rows, name)
		seen[name]++
	}
	tokens := someTokens(1, 12, tiny.Vocab)
	_, err := m.Loss(t.Context(), tokens, tokens, 2, 6)
	require.NoError(t, err)
	require.NoError(t, m.Backward(t.Context()))
	want := []string{"model.embed_tokens.output", "model.embed_tokens.gradient", "model.norm.output"}
	linear := func(layer string) {
		for _, which := range []string{"input", "output", "gradient", "input_gradient"} {
			want = append(want, layer+"."+which)
		}
	}
	linear("lm_head")
	for i := range tiny.Layers {
		layer := fmt.Sprintf("model.layers.%d.", i)
		for _, l := range []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"} {
			linear(layer + l)
		}
		for _, name := range []string{
			"input_layernorm.output", "post_attention_layernorm.output",
			"self_attn.query", "self_attn.key", "self_attn.value", "self_attn.mixed",
			"self_attn.query_gradient", "self_attn.key_gradient", "self_attn.value_gradient",
			"mlp.swiglu.gate", "mlp.swiglu.up", "mlp.swiglu.product",
			"middle", "output", "gradient", "middle_gradient",
		} {
			want = append(want, layer+name)
		}
	}
	require.Len(t, seen, len(want))
	for _, name := range want {
		require.Equal(t, 1, seen[name], name)
	}
}

// TestDescriptions: a configuration is the same after it was written and read, in
// every field.
func TestDescriptions(t *testing.T) {
	cfg := kept(delayedRagged(), ActivationsFP8).withDefaults()
	cfg.TieHead, cfg.Workers = true, 0
	fill := 1
	var set func(v reflect.Value)
	set = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				set(v.Field(i))
			}
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Uint64:
			v.SetUint(math.MaxUint64 - uint64(fill))
		case reflect.Uint8:
			v.SetUint(1)
		case reflect.Float32:
			v.SetFloat(0.1)
		case reflect.Int:
			v.SetInt(int64(fill))
		}
		fill++
	}
	rounding := DefaultRounding(NarrowE3M2)
	set(reflect.ValueOf(&rounding).Elem())
	rounded := cfg
	rounded.FP8, rounded.Rounding, rounded.Activations = nil, &rounding, ActivationsFP32
	decoded := rounded
	decoded.Rounding = &Rounding{Weight: Narrowing{Recipe: &scaling.Recipe{Profile: scaling.MXFloor, Format: fp8.E2M1, Block: tensor.Block{Rows: 1, Cols: 32}}}}
	decoded.RopeScaling = RopeScaling{Factor: 8, Original: 8192, Low: 1, High: 4}
	recipes := *cfg.FP8
	for _, o := range []*Operands{&recipes.Forward, &recipes.InputGradient, &recipes.WeightGradient} {
		set(reflect.ValueOf(&o.A.Delayed).Elem())
		set(reflect.ValueOf(&o.B.Policy).Elem())
		o.A.Delayed.Margin = -fill % 100
	}
	set(reflect.ValueOf(&recipes.Stochastic).Elem())
	recipes.Seed = math.MaxUint64
	recipes.Hadamard, recipes.Signs = true, 0x1234
	rounded8 := cfg
	deepSeek, err := ParseRecipe("deepseek-v3")
	require.NoError(t, err)
	deepSeek.Apply(&rounded8, 3)
	rounded8.Operators = Operators{"E4M3", "E8M7", "E5M2", "E3M2", "E2M1", "E2M3"}
	delayed := cfg
	delayed.FP8 = &recipes
	delayed.BF16First, delayed.BF16Last = 0, 1
	set(reflect.ValueOf(delayed.Smoothing).Elem())
	rows := cfg
	row, err := ParseRecipe("nvfp4")
	require.NoError(t, err)
	row.Apply(&rows, 3)
	rows.FP8.InputGradient.A.OuterRows = 5
	rows.FP8.InputGradient.B.OuterAmax = 7
	mixed := mixture().withDefaults()
	mixed.Experts.CapacityFactor = 1.25
	mixed.Experts.Router.Score, mixed.Experts.Router.Unnormalized = ScoreSoftmax, true
	four := DefaultRounding(NarrowE2M1)
	mixed.Experts.Router.Rounding = &four
	families := []Config{cfg, rounded, decoded, delayed, rows, rounded8, mixed}
	for _, f := range featured() {
		families = append(families, f.config.withDefaults())
	}
	for _, c := range families {
		require.NoError(t, c.Validate())
		text, err := json.Marshal(Description{llamaKind, llamaVersion, newSavedConfig(c)})
		require.NoError(t, err)
		var d Description
		require.NoError(t, json.Unmarshal(text, &d))
		got, err := ParseConfig(d)
		require.NoError(t, err, string(text))
		require.Equal(t, c, got)
		require.NotRegexp(t, `"[A-Z]\w*":`, string(text))
	}
	// Fields that are added must be saved too, but for Workers and Policies.
	for typ, n := range map[any]int{&Config{}: 36, MLAConfig{}: 10, ExpertsConfig{}: 5, RouterConfig{}: 11, Operators{}: 6, &RopeScaling{}: 9, Norms{}: 3, Biases{}: 4, Gate{}: 3, FP8{}: 8, Rounding{}: 6, Narrowing{}: 4, scaling.Recipe{}: 8, fp8.Policy{}: 7, scaling.Delayed{}: 3, swiglu.Smoothing{}: 3} {
		require.Equal(t, n, reflect.Indirect(reflect.ValueOf(typ)).NumField(), "%T", typ)
	}
	_, err = ParseConfig(Description{Kind: "mixer", Version: 1})
	require.ErrorIs(t, err, ErrConfig)
}

// TestStepAmaxIsSmall: 2,000 tensors with histories of 1,024 steps send some tens of
// kilobytes for each worker and step.
func TestStepAmaxIsSmall(t *testing.T) {
	var s Scaling
	recipe := scaling.Recipe{Profile: scaling.TEDelayed}
	for i := range 2000 {
		name := fmt.Sprintf("model.layers.%d.mlp.up_proj.input forward", i)
		h, err := s.history(name, recipe)
		require.NoError(t, err)
		for range 3 {
			h.Observe(0, 1+float32(i)/3)
			h.Update()
		}
		h.Observe(0, 1+float32(i)/3)
	}
	a := s.StepAmax()
	data, err := a.MarshalBinary()
	require.NoError(t, err)
	full, err := json.Marshal(s.State())
	require.NoError(t, err)
	t.Logf("%d bytes, of %d", len(data), len(full))
	require.Less(t, len(data), 50_000)
	require.Greater(t, len(full), 4_000_000)
	var read StepAmax
	require.NoError(t, read.UnmarshalBinary(data))
	require.Equal(t, a, read)
	require.NoError(t, s.SetStepAmax(read))
	require.Equal(t, a, s.StepAmax())
	for n := range 100 {
		require.ErrorIs(t, read.UnmarshalBinary(data[:n]), ErrState)
	}
}

// TestStepAmaxIsAMerge: workers that exchange what a step recorded, and end it each by
// itself, have the state that merging whole states gives; text and binary form change
// nothing.
func TestStepAmaxIsAMerge(t *testing.T) {
	cfg := delayedRagged()
	cfg.FP8.Stochastic = true
	workers := []*Llama{livelyModel(t, cfg), livelyModel(t, cfg), livelyModel(t, cfg)}
	for step := range 3 {
		var states []ScalingState
		var recorded []StepAmax
		for i, m := range workers {
			tokens := someTokens(uint64(3*step+i), 12, cfg.Vocab)
			_, err := m.Loss(t.Context(), tokens, tokens, 2, 6)
			require.NoError(t, err)
			require.NoError(t, m.Backward(t.Context()))
			states = append(states, m.Shared().Scaling().State())
			a := m.Shared().Scaling().StepAmax()
			text, err := json.Marshal(a)
			require.NoError(t, err)
			data, err := a.MarshalBinary()
			require.NoError(t, err)
			var fromText, fromData StepAmax
			require.NoError(t, json.Unmarshal(text, &fromText))
			require.NoError(t, fromData.UnmarshalBinary(data))
			require.Equal(t, a, fromText)
			require.Equal(t, a, fromData)
			recorded = append(recorded, fromData)
		}
		want, err := MergeScaling(states...)
		require.NoError(t, err)
		merged, err := MergeStepAmax(recorded...)
		require.NoError(t, err)
		for _, m := range workers {
			require.NoError(t, m.Shared().Scaling().SetStepAmax(merged))
			require.Equal(t, want, m.Shared().Scaling().State())
			m.EndStep()
		}
	}
	other := livelyModel(t, withFP8(tiny, ProfileFP8(scaling.TEDelayed, fp8.E4M3)))
	before := other.Shared().Scaling().State()
	require.ErrorIs(t, other.Shared().Scaling().SetStepAmax(workers[0].Shared().Scaling().StepAmax()), ErrState)
	require.Equal(t, before, other.Shared().Scaling().State())
	_, err := MergeStepAmax()
	require.ErrorIs(t, err, ErrState)
	_, err = MergeStepAmax(workers[0].Shared().Scaling().StepAmax(), other.Shared().Scaling().StepAmax())
	require.ErrorIs(t, err, ErrState)
}

// TestNamesAreUnique: what a model remembers is kept by the names of its layers, so
// that a second layer of one name is refused, and that of another model is not.
func TestNamesAreUnique(t *testing.T) {
	delayed := ProfileFP8(scaling.TEDelayed, fp8.E4M3)
	for _, o := range []Options{{FP8: &delayed}, {Smoothing: &swiglu.Smoothing{Delay: 2}}} {
		o.Shared = new(Shared)
		_, err := NewMLP("mlp.", 2, 3, o)
		require.NoError(t, err)
		before := o.Shared.Scaling().State()
		_, err = NewMLP("mlp.", 2, 3, o)
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, `nn: "mlp`)
		require.Equal(t, before, o.Shared.Scaling().State())
		_, err = NewMLP("another.", 2, 3, o)
		require.NoError(t, err)
		o.Shared = new(Shared)
		_, err = NewMLP("mlp.", 2, 3, o)
		require.NoError(t, err)
	}
	shared := new(Shared)
	first, err := NewLinear("layer.weight", 2, 2, Options{FP8: &delayed, Shared: shared})
	require.NoError(t, err)
	_, err = NewLinearOf("layer", first.Weight, Options{FP8: &delayed, Shared: shared})
	require.ErrorIs(t, err, ErrConfig)
	_, err = NewLinearOf("head", first.Weight, Options{FP8: &delayed, Shared: shared})
	require.NoError(t, err)
	require.Len(t, shared.Scaling().names(), 12)
}

// TestOptionsAreCopied: what the caller does later with its recipes, or with those of
// Config, changes neither the model nor what it says of itself.
func TestOptionsAreCopied(t *testing.T) {
	delayed := delayedRagged()
	rounded := withRounding(small(), DefaultRounding(NarrowE2M1))
	for _, cfg := range []Config{delayed, rounded} {
		m, err := NewLlama(cfg, 1)
		require.NoError(t, err)
		before := m.Describe()
		for _, c := range []Config{cfg, m.Config()} {
			if c.FP8 != nil {
				*c.FP8 = DefaultFP8()
				*c.Smoothing = swiglu.Smoothing{Axis: swiglu.PerToken}
			} else {
				*c.Rounding = Rounding{}
			}
			require.Equal(t, before, m.Describe())
			require.NotEqual(t, c, m.Config())
		}
	}
}

// TestMergeScalingChecksVersions, as Restore does.
func TestMergeScalingChecksVersions(t *testing.T) {
	m := livelyModel(t, delayedRagged())
	state, old := m.Shared().Scaling().State(), m.Shared().Scaling().State()
	old.Version = 1
	_, err := MergeScaling(state, old)
	require.ErrorIs(t, err, ErrState)
	require.EqualError(t, err, "nn: worker 1: scaling state of version 1: this package reads version 2")
}

// TestMessages: one prefix is enough.
func TestMessages(t *testing.T) {
	_, err := NewLinear("w", 1, 1, Options{Activations: 9})
	require.EqualError(t, err, "nn: Options.Activations is ActivationFormat(9): want one of fp32, fp8, fp8-swiglu, deepseek-v3")
	require.EqualError(t, new(ActivationFormat).UnmarshalText([]byte("fp4")), `nn: unknown activation format "fp4": want one of fp32, fp8, fp8-swiglu, deepseek-v3`)
	_, err = ParseConfig(Description{Kind: llamaKind, Version: llamaVersion, Config: map[string]any{"activations": "fp4"}})
	require.ErrorIs(t, err, ErrConfig)
	require.NotContains(t, err.Error(), "nn: nn:")
	a := new(Scaling).StepAmax()
	b := a
	b.Version = 9
	_, err = MergeStepAmax(a, b)
	require.EqualError(t, err, "nn: worker 1: what a step recorded is of version 9: this package reads version 1")
	require.EqualError(t, new(Scaling).SetStepAmax(b), "nn: what a step recorded is of version 9: this package reads version 1")
}

// TestRefusedBackwardIsNotShown to a Tap.
func TestRefusedBackwardIsNotShown(t *testing.T) {
	shared := new(Shared)
	b, err := NewBlock("b.", BlockConfig{AttentionConfig: AttentionConfig{Dim: 2, Heads: 1}, Hidden: 3}, Options{Shared: shared})
	require.NoError(t, err)
	x := randoms(1, 6)
	y := make([]float32, 6)
	gradients := 0
	shared.Tap = func(name string, _ []float32, _, _ int) {
		if name == "b.gradient" {
			gradients++
		}
	}
	require.ErrorIs(t, b.Backward(t.Context(), y, x), ErrInput, "without a Forward")
	require.NoError(t, b.Forward(t.Context(), y, x, 1, 3))
	for _, n := range []int{0, 1, 4, 5} {
		require.ErrorIs(t, b.Backward(t.Context(), y[:n], x[:n]), ErrInput)
	}
	require.ErrorIs(t, b.Backward(t.Context(), y[:4], x), ErrInput)
	require.Zero(t, gradients)
	require.NoError(t, b.Backward(t.Context(), y, x))
	require.Equal(t, 1, gradients)
}

// TestMisuse throws arguments that make no sense at every exported constructor and
// method: each is an error of this package, and none a panic.
func TestMisuse(t *testing.T) {
	const (
		huge  = math.MaxInt
		large = huge>>23 | 1<<30 - 1 // about 2^40, or 2^30 where an int has 32 bits
		wide  = huge>>28 | 1<<30 - 1 // about 2^35, or 2^30
	)
	ctx := t.Context()
	linear, err := NewLinear("w", 3, 2, Options{})
	require.NoError(t, err)
	norm, err := NewRMSNorm("n", 2, 0, Options{})
	require.NoError(t, err)
	embed, err := NewEmbedding("e", 3, 2, Options{})
	require.NoError(t, err)
	rotary, err := NewRotary(2, 3, 0)
	require.NoError(t, err)
	attention, err := NewAttention("a.", AttentionConfig{Dim: 2, Heads: 1, Rotary: rotary}, Options{})
	require.NoError(t, err)
	mlp, err := NewMLP("m.", 2, 3, Options{})
	require.NoError(t, err)
	block, err := NewBlock("b.", BlockConfig{AttentionConfig: AttentionConfig{Dim: 2, Heads: 1}, Hidden: 3}, Options{})
	require.NoError(t, err)
	llama := livelyModel(t, tiny)
	x2, x4 := make([]float32, 2), make([]float32, 4)
	two := func(_ any, err error) error { return err }
	bad := Options{Workers: -1}
	for i, err := range []error{
		two(NewParam("p", -1, 2)), two(NewParam("p", huge, huge)), two(NewParam("p", 0, 1)),
		two(NewLinear("w", huge, huge, Options{})), two(NewLinear("w", 1, 1, bad)), two(NewLinear("w", large, large, Options{})),
		two(NewLinear("w", 1, 1, Options{Activations: 9})), two(NewLinear("w", 1, 1, Options{Activations: ActivationsFP8})),
		two(NewLinearOf("w", nil, Options{})), two(NewLinearOf("w", &Param{Rows: 1, Cols: 2}, Options{})),
		two(NewRMSNorm("n", 0, 0, Options{})), two(NewRMSNorm("n", 1, -1, Options{})), two(NewRMSNorm("n", 1, math.NaN(), Options{})), two(NewRMSNorm("n", 1, 0, bad)),
		two(NewEmbedding("e", huge, 2, Options{})), two(NewEmbedding("e", 2, -2, Options{})), two(NewEmbedding("e", 2, 2, bad)),
		two(NewRotary(3, 1, 0)), two(NewRotary(2, 0, 0)), two(NewRotary(2, 1, math.NaN())), two(NewRotary(huge-1, 2, 0)),
		two(NewAttention("", AttentionConfig{}, Options{})), two(NewAttention("", AttentionConfig{Dim: 4, Heads: 2, KVHeads: -1}, Options{})),
		two(NewAttention("", AttentionConfig{Dim: 4, Heads: 2, KVHeads: 3}, Options{})), two(NewAttention("", AttentionConfig{Dim: 8, Heads: 2, Rotary: rotary}, Options{})),
		two(NewAttention("", AttentionConfig{Dim: huge, Heads: 1}, Options{})),
		two(NewMLP("", large, large, Options{})), two(NewMLP("", 1, -1, Options{})), two(NewMLP("", 1, 1, Options{Smoothing: &swiglu.Smoothing{Delay: 1}})),
		two(NewMLP("", 1, 1, Options{Smoothing: &swiglu.Smoothing{Axis: 7}})),
		two(NewBlock("", BlockConfig{}, Options{})), two(NewBlock("", BlockConfig{AttentionConfig: AttentionConfig{Dim: 2, Heads: 1}, Hidden: huge}, Options{})),
		two(NewBlock("", BlockConfig{AttentionConfig: AttentionConfig{Dim: 2, Heads: 1}, Hidden: 1, NormEps: 2}, Options{})),
		two(NewLlama(Config{}, 1)), two(NewLlama(Config{Vocab: 2, Dim: 2, Layers: 1, Heads: 1, Hidden: large, Context: 2}, 1)),
		two(NewLlama(Config{Vocab: huge, Dim: huge - 1, Layers: huge, Heads: 1, Hidden: huge, Context: 2}, 1)),
		two(NewLlama(Config{Vocab: wide, Dim: 2, Layers: 60000, Heads: 1, Hidden: wide, Context: 2}, 1)),
		two(NewLlama(Config{Vocab: 2, Dim: 2, Layers: 1, Heads: huge, Hidden: 1, Context: 2}, 1)),
		two((&CrossEntropy{Workers: -1}).Forward(ctx, x2, []int32{0}, 2)),
	} {
		require.ErrorIs(t, err, ErrConfig, "case %d", i)
	}
	for i, err := range []error{
		linear.Forward(ctx, x2, x4, -1), linear.Forward(ctx, x2, x4, huge), linear.Forward(ctx, nil, nil, 1), linear.Backward(ctx, x2, x4),
		norm.Forward(ctx, x2, x4), norm.Forward(ctx, make([]float32, 3), make([]float32, 3)), norm.Backward(ctx, x2, x2),
		embed.Forward(ctx, x2, []int32{3}), embed.Forward(ctx, x4, []int32{0}), embed.Backward(ctx, x2),
		rotary.Rotate(x2, 0, 1, 0), rotary.Rotate(x2, -1, 1, 0), rotary.Rotate(x2, 1, 0, 0), rotary.Rotate(x2, 1, 4, 0), rotary.Rotate(x2, huge, 1, 0), rotary.RotateBack(x2, 1, 1, -1), new(Rotary).Rotate(x2, 1, 1, 0), new(Rotary).RotateBack(nil, 1, 0, 0),
		rotary.RotateFrom(x2, 0, 0, 0, 0), rotary.RotateFrom(x2, 1, -1, 0, 0), rotary.RotateFrom(x2, 1, huge, 0, 0), rotary.RotateFrom(x2, 1, 0, 0, -1),
		attention.Forward(ctx, x4, x4, 0, 2), attention.Forward(ctx, x4, x4, huge, huge), attention.Forward(ctx, x4, x4, -1, -2),
		attention.Forward(ctx, make([]float32, 8), make([]float32, 8), 1, 4), attention.Backward(ctx, x4, x4),
		mlp.Forward(ctx, x4, x2, 1), mlp.Forward(ctx, x4, x4, -2), mlp.Backward(ctx, x4, x4),
		block.Forward(ctx, x4, x2, 1, 1), block.Backward(ctx, x4, x2), block.Backward(ctx, x4, x4),
		two(new(CrossEntropy).Forward(ctx, x4, []int32{0}, 0)), two(new(CrossEntropy).Forward(ctx, x4, []int32{0, 2}, 2)), two(new(CrossEntropy).Forward(ctx, x4, []int32{0, -1}, 2)),
		new(CrossEntropy).Backward(ctx, x2, 1),
		two(llama.Forward(ctx, nil, huge, huge)), two(llama.Logits(ctx, nil, 0, 0)), two(llama.Loss(ctx, []int32{1}, nil, 1, 1)),
		two(llama.Evaluate(ctx, []int32{1}, []int32{-100, 3}, 1, 1)), llama.Backward(ctx), llama.BackwardLogits(ctx, nil),
	} {
		require.ErrorIs(t, err, ErrInput, "case %d", i)
	}
	unknown := ProfileFP8("no such", 200)
	require.ErrorIs(t, two(NewLinear("w", 1, 1, Options{FP8: &unknown})), ErrConfig)
	// Nothing at all is a batch like any other, also where there is work for several.
	for _, o := range []Options{{}, {FP8: new(FP8)}, {FP8: new(FP8), Activations: ActivationsFP8SwiGLU}} {
		*o.fp8() = DefaultFP8()
		o.Workers = 2
		for _, hidden := range []int{3, 3 * elementGrain} {
			mlp, err := NewMLP("m.", 2, hidden, o)
			require.NoError(t, err)
			require.NoError(t, mlp.Forward(ctx, nil, nil, 0))
			require.NoError(t, mlp.Backward(ctx, nil, nil))
		}
	}
}

// fp8 returns memory for recipes.
func (o Options) fp8() *FP8 {
	if o.FP8 == nil {
		return new(FP8)
	}
	return o.FP8
}
