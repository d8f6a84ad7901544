package checkpoint_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// recipesOf returns a recipe for each module of the golden Llama.
func recipesOf(c *checkpoint.Checkpoint, of func(module string) *scaling.Recipe) map[string]*scaling.Recipe {
	all := map[string]*scaling.Recipe{}
	for _, w := range c.Weights() {
		if module, ok := strings.CutSuffix(w.Name, "_proj.weight"); ok {
			all[module+"_proj"] = of(module)
		}
	}
	return all
}

func mx(f fp8.Format) *scaling.Recipe {
	return &scaling.Recipe{Profile: scaling.MXCompressedTensors, Format: f, Block: tensor.Block{Rows: 1, Cols: 32}}
}

// TestMixed writes a model of several schemes: the bytes of each weight are those that
// compressed-tensors wrote where all had its scheme, and so are the groups, but for their modules.
func TestMixed(t *testing.T) {
	source := golden(t, "llama-bf16")
	byRecipes := recipesOf(source, func(module string) *scaling.Recipe {
		switch {
		case strings.HasSuffix(module, "o"):
			return nil
		case strings.Contains(module, "layers.0.mlp"):
			return mx(fp8.E4M3)
		}
		return mx(fp8.E2M1)
	})
	for name, c := range map[string]struct {
		recipes map[string]*scaling.Recipe
		from    func(module string) string
		formats map[string]string
	}{
		"by itself": {nil, func(module string) string {
			if strings.HasSuffix(module, "down_proj") {
				return "llama-ct-fp8-dynamic"
			}
			return "llama-ct-nvfp4a16"
		}, map[string]string{"float-quantized": "llama-ct-fp8-dynamic", "nvfp4-pack-quantized": "llama-ct-nvfp4a16"}},
		"by recipes": {byRecipes, func(module string) string {
			switch {
			case strings.HasSuffix(module, "o_proj"):
				return "llama-bf16"
			case strings.Contains(module, "layers.0.mlp"):
				return "llama-layer0-ct-mxfp8"
			}
			return "llama-ct-mxfp4"
		}, map[string]string{"mxfp8-quantized": "llama-layer0-ct-mxfp8", "mxfp4-pack-quantized": "llama-ct-mxfp4"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := checkpoint.PlanOptions{Recipes: c.recipes}
			if o.Recipes != nil {
				o.Arithmetic = "mx-rceil" // which they replace
			}
			plan, err := checkpoint.NewPlan(source, layout(t, "ct-mixed"), o)
			require.NoError(t, err)
			dir := t.TempDir()
			_, err = checkpoint.Convert(t.Context(), plan, dir, checkpoint.Options{})
			require.NoError(t, err)
			got, err := checkpoint.Open(dir)
			require.NoError(t, err)
			defer got.Close()
			found, err := got.Detect()
			require.NoError(t, err)
			require.Equal(t, "ct-mixed", found[0].Name)
			compared := 0
			for _, w := range got.Weights() {
				if !strings.HasSuffix(w.Name, "_proj.weight") {
					continue
				}
				for _, role := range []checkpoint.Role{checkpoint.Codes, checkpoint.Scales, checkpoint.Outer} {
					if !w.Has(role) {
						continue
					}
					part := w.Parts[role]
					from := golden(t, c.from(strings.TrimSuffix(w.Name, ".weight")))
					want, ok := from.Entry(part.Name)
					require.True(t, ok, part.Name)
					a, b := make([]byte, want.Bytes()), make([]byte, part.Bytes())
					require.NoError(t, from.ReadBytes(want, 0, a))
					require.NoError(t, got.ReadBytes(part, 0, b))
					require.Equal(t, a, b, part.Name)
					compared++
				}
			}
			require.Greater(t, compared, 20)
			requireGroups(t, dir, got, c.formats)
		})
	}
}

// requireGroups compares the groups of a configuration with those of golden ones, and wants each
// module in its own.
func requireGroups(t *testing.T, dir string, got *checkpoint.Checkpoint, formats map[string]string) {
	t.Helper()
	weights := func(group map[string]any) map[string]any { return group["weights"].(map[string]any) }
	type quantization struct {
		Groups map[string]map[string]any `json:"config_groups"`
		Format string
		Ignore []string
	}
	read := func(c checkpoint.Config) (q quantization) {
		require.NoError(t, json.Unmarshal(c.Model["quantization_config"], &q))
		return q
	}
	q := read(got.Config)
	require.Equal(t, "mixed-precision", q.Format)
	require.Len(t, q.Groups, len(formats))
	named := slices.Clone(q.Ignore)
	for _, group := range q.Groups {
		format := group["format"].(string)
		targets := group["targets"].([]any)
		for _, name := range targets {
			named = append(named, name.(string))
			w := got.Weight(name.(string) + ".weight")
			require.NotNil(t, w.Scheme, name)
			require.Equal(t, format == "mxfp4-pack-quantized" || format == "nvfp4-pack-quantized", w.Scheme.Format == fp8.E2M1, name)
		}
		golden := golden(t, formats[format]).Config
		if golden.Model == nil { // it is a part of a model
			require.Equal(t, "mxfp8-quantized", format)
			require.Equal(t, []any{8.0, 32.0, "group"}, []any{weights(group)["num_bits"], weights(group)["group_size"], weights(group)["strategy"]})
			continue
		}
		want := maps.Clone(read(golden).Groups["group_0"])
		want["targets"] = targets
		require.Equal(t, want, group, dir)
	}
	var all []string
	for _, w := range got.Weights() {
		if module, ok := strings.CutSuffix(w.Name, ".weight"); ok && (strings.HasSuffix(module, "_proj") || module == "lm_head") {
			all = append(all, module)
		}
	}
	require.ElementsMatch(t, all, named)
}

// TestRecipesRefused has recipes that a layout cannot have, and ones of another model.
func TestRecipesRefused(t *testing.T) {
	source := golden(t, "llama-bf16")
	const layer1 = "model.layers.1."
	for name, c := range map[string]struct {
		layout string
		change func(map[string]*scaling.Recipe)
		says   string
	}{
		"another scheme": {"deepseek-v3", func(map[string]*scaling.Recipe) {},
			`tensor "model.layers.0.mlp.down_proj.weight": layout deepseek-v3 does not have E4M3 in blocks of 1x32 by mx-compressed-tensors`},
		"a layout of values": {"bf16", func(map[string]*scaling.Recipe) {}, "layout bf16 has no codes"},
		"an arithmetic of other scales": {"ct-mxfp8", func(m map[string]*scaling.Recipe) {
			m[layer1+"mlp.down_proj"] = &scaling.Recipe{Profile: scaling.NVFP4ModelOpt, Format: fp8.E4M3, Block: mx(fp8.E4M3).Block}
		}, "this arithmetic is not for E4M3"},
		"a module too many": {"ct-mixed", func(m map[string]*scaling.Recipe) { m["model.layers.7.mlp.up_proj"] = nil },
			`there is no tensor "model.layers.7.mlp.up_proj.weight"`},
		"a module too few": {"ct-mixed", func(m map[string]*scaling.Recipe) { delete(m, layer1+"mlp.up_proj") },
			`tensor "model.layers.1.mlp.up_proj.weight": there is no recipe for it`},
		"a norm": {"ct-mixed", func(m map[string]*scaling.Recipe) { m["model.norm"] = mx(fp8.E4M3) },
			`tensor "model.norm.weight" of BF16 and shape [160] has a recipe, and layout ct-mixed can only leave it as it is`},
		"queries alone": {"ct-mixed", func(m map[string]*scaling.Recipe) { m[layer1+"self_attn.q_proj"] = mx(fp8.E2M1) },
			`tensor "model.layers.1.self_attn.q_proj.weight" has another recipe than "model.layers.1.self_attn.k_proj.weight"`},
		"a gate alone in BF16": {"ct-mxfp8", func(m map[string]*scaling.Recipe) { m[layer1+"mlp.gate_proj"] = nil },
			`has another recipe than "model.layers.1.mlp.gate_proj.weight"`},
		"nothing quantized": {"ct-mixed", func(m map[string]*scaling.Recipe) {
			for name := range m {
				m[name] = nil
			}
		}, "finds no weight to quantize"},
	} {
		t.Run(name, func(t *testing.T) {
			recipes := recipesOf(source, func(string) *scaling.Recipe { return mx(fp8.E4M3) })
			c.change(recipes)
			_, err := checkpoint.NewPlan(source, layout(t, c.layout), checkpoint.PlanOptions{Recipes: recipes})
			require.ErrorIs(t, err, checkpoint.ErrLayout)
			require.ErrorContains(t, err, c.says)
		})
	}
	_, err := checkpoint.NewPlan(source, layout(t, "ct-mxfp8"), checkpoint.PlanOptions{
		Recipes: recipesOf(source, func(string) *scaling.Recipe { return mx(fp8.E4M3) })})
	require.NoError(t, err)

	const name = "model.layers.0.mlp.experts.gate_up_proj"
	stack := model(t, `{}`, random(name, 1, 2, 64, 64), random("m.weight", 2, 64, 64))
	recipes := map[string]*scaling.Recipe{"m": mx(fp8.E4M3), name: mx(fp8.E4M3)}
	_, err = checkpoint.NewPlan(stack, layout(t, "ct-mixed"), checkpoint.PlanOptions{Recipes: recipes})
	require.ErrorIs(t, err, checkpoint.ErrLayout)
	require.ErrorContains(t, err, `tensor "`+name+`" of BF16 and shape [2 64 64] has a recipe`)
	recipes[name] = nil
	p, err := checkpoint.NewPlan(stack, layout(t, "ct-mixed"), checkpoint.PlanOptions{Recipes: recipes})
	require.NoError(t, err)
	require.Equal(t, []string{name}, p.Ignored)
}

// TestOneScheme has what loaders make one module of: vLLM's packed_modules_mapping and its FusedMoE.
func TestOneScheme(t *testing.T) {
	for a, b := range map[string]string{
		"l.0.q_proj": "l.0.v_proj", "l.0.mlp.gate_proj": "l.0.mlp.up_proj", "l.mlp.experts.0.up_proj": "l.mlp.experts.7.down_proj",
		"l.mlp.experts.gate_up_proj": "l.mlp.experts.down_proj",
	} {
		require.Equal(t, checkpoint.OneScheme(a), checkpoint.OneScheme(b))
	}
	for a, b := range map[string]string{
		"l.0.q_proj": "l.1.q_proj", "l.0.q_proj ": "l.0.o_proj", "l.mlp.up_proj": "l.mlp.down_proj", "l.0.mlp.experts.0.w1": "l.1.mlp.experts.0.w1",
		"l.mlp.shared_experts.up_proj": "l.mlp.experts.0.up_proj",
	} {
		require.NotEqual(t, checkpoint.OneScheme(a), checkpoint.OneScheme(b))
	}
}
