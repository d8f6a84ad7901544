package checkpoint_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestKept converts the golden model to each layout, and the result to the same layout: all
// bytes of weights stay.
func TestKept(t *testing.T) {
	source := golden(t, "llama-bf16")
	for _, l := range checkpoint.Layouts() {
		if !l.Writable() || l.Plain != "" || l.Name == "gpt-oss" { // which has stacks alone
			continue
		}
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			testKept(t, source, l, l.Calibrated == checkpoint.Calibrated)
			if l.Calibrated == checkpoint.Optional {
				testKept(t, source, l, true)
			}
		})
	}
}

func testKept(t *testing.T, source *checkpoint.Checkpoint, l *checkpoint.Layout, calibrated bool) {
	once, twice := t.TempDir(), t.TempDir()
	var o checkpoint.PlanOptions
	if calibrated {
		o.Amax = readCalibration(t)
	}
	first, err := checkpoint.NewPlan(source, l, o)
	require.NoError(t, err)
	_, err = checkpoint.Convert(t.Context(), first, once, checkpoint.Options{})
	require.NoError(t, err)
	c, err := checkpoint.Open(once)
	require.NoError(t, err)
	defer c.Close()
	p, err := checkpoint.NewPlan(c, l, checkpoint.PlanOptions{})
	require.NoError(t, err)
	cert, err := checkpoint.Convert(t.Context(), p, twice, checkpoint.Options{Strip: 1 << 10})
	require.NoError(t, err)
	quantized := 0
	for _, w := range cert.Tensors {
		require.True(t, w.Copied, w.Name)
		require.True(t, w.Exact)
		if w.To != "BF16" {
			quantized++
			require.Equal(t, w.From, w.To)
		}
	}
	require.Positive(t, quantized)
	want, got := files(t, once), files(t, twice)
	for name := range want {
		if filepath.Ext(name) == ".safetensors" || name == checkpoint.ConfigName {
			require.True(t, want[name] == got[name], name)
		}
	}
}

// TestInputsKept keeps scales of inputs where all weights have one, and none otherwise.
func TestInputsKept(t *testing.T) {
	const name = "model.layers.0.mlp.down_proj"
	weight := stored(name+".weight", safetensors.F8E4M3, 0x38, 16, 16)
	scale, input := stored(name+".weight_scale", safetensors.F32, 0x3C), stored(name+".input_scale", safetensors.F32, 0x3C)
	for _, other := range []safetensors.Tensor{
		stored("model.norm.weight", safetensors.BF16, 0, 16), stored("model.layers.0.mlp.up_proj.weight", safetensors.BF16, 0, 16, 16),
	} {
		static := other.Name == "model.norm.weight"
		config := `{"quantization_config":{"quant_method":"fp8","activation_scheme":"static"}}`
		p := planOf(t, model(t, config, weight, scale, input, other), "fp8", checkpoint.PlanOptions{})
		roles := []checkpoint.Role{checkpoint.Codes, checkpoint.Scales}
		scheme := "dynamic"
		if static {
			roles, scheme = append(roles, checkpoint.Input), "static"
		}
		for _, target := range p.Shards[0].Targets {
			if target.Weight.Name == weight.Name {
				require.ElementsMatch(t, roles, target.Roles)
			}
		}
		documents := p.Documents()
		require.Contains(t, string(documents[checkpoint.ConfigName]), `"activation_scheme": "`+scheme+`"`)
	}
}

// TestNotKept quantizes again what is in the scheme but may not stay.
func TestNotKept(t *testing.T) {
	up, gate := "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.gate_proj.weight"
	both := model(t, "{}", random(up, 1, 256, 256), random(gate, 2, 256, 256))
	quantized := func(to string) *checkpoint.Checkpoint {
		dir := t.TempDir()
		_, err := checkpoint.Convert(t.Context(), planOf(t, both, to, checkpoint.PlanOptions{
			Only: func(w string) bool { return w == up },
		}), dir, checkpoint.Options{})
		require.NoError(t, err)
		c, err := checkpoint.Open(dir)
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	copied := func(p *checkpoint.Plan) (names []string) {
		for _, target := range p.Shards[0].Targets {
			if target.Copied() {
				names = append(names, target.Weight.Name)
			}
		}
		return names
	}
	v3 := quantized("deepseek-v3")
	onlyUp := checkpoint.PlanOptions{Only: func(w string) bool { return w == up }}
	fused := planOf(t, v3, "deepseek-v3", checkpoint.PlanOptions{})
	require.Empty(t, copied(fused), "fused with what was not quantized")
	require.Equal(t, []string{gate}, copied(planOf(t, v3, "deepseek-v3-ue8m0", onlyUp)), "scales are no powers of two")
	require.Equal(t, []string{gate}, copied(planOf(t, v3, "ct-fp8-block", onlyUp)), "in another scheme")
}

// TestKeptUnlessAsked gives an arithmetic.
func TestKeptUnlessAsked(t *testing.T) {
	name := "model.layers.0.mlp.down_proj.weight"
	dir := t.TempDir()
	source := model(t, "{}", random(name, 1, 256, 256))
	_, err := checkpoint.Convert(t.Context(), planOf(t, source, "deepseek-v3", checkpoint.PlanOptions{}), dir, checkpoint.Options{})
	require.NoError(t, err)
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	for _, arithmetic := range []checkpoint.Arithmetic{"", "deepgemm"} {
		p := planOf(t, c, "deepseek-v3", checkpoint.PlanOptions{Arithmetic: arithmetic})
		require.Equal(t, arithmetic == "", p.Shards[0].Targets[0].Copied())
	}
}
