package checkpoint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// foreign are models of methods that are not read: tensors of one module q beside a plain one and
// q's bias, of which none but those of q are not understood.
var foreign = []struct {
	name, config string
	method       string // that is refused
	declared     bool
	contradicted bool
	tensors      []safetensors.Tensor
}{
	{"gptq", `"quantization_config":{"quant_method":"gptq","bits":4}`, "GPTQ", true, false, gptq},
	{"gptq, leftover", ``, "GPTQ", false, false, gptq},
	{"gptq without order", ``, "GPTQ", false, false, gptq[:3]},
	{"gptq as fp8", `"quantization_config":{"quant_method":"fp8","activation_scheme":"dynamic"}`, "GPTQ", false, false, gptq},
	{"gptq of another tool", `"quantization_config":{"quant_method":"auto-round","bits":4}`, "auto-round", true, false, gptq},
	{"awq", `"quantization_config":{"quant_method":"awq","bits":4}`, "AWQ", true, false, awq},
	{"awq, leftover", ``, "AWQ", false, false, awq},
	{"awq without scales", ``, "GPTQ or AWQ", false, false, awq[:2]},
	{"nf4", `"quantization_config":{"load_in_4bit":true}`, "bitsandbytes", true, false, nf4},
	{"nf4, leftover", ``, "bitsandbytes", false, false, nf4},
	{"nf4 of experts", ``, "bitsandbytes", false, false, []safetensors.Tensor{
		stored("q", safetensors.U8, 1, 512, 1), stored("q.absmax", safetensors.F32, 1, 16), stored("q.quant_map", safetensors.F32, 1, 16)}},
	{"int8", ``, "bitsandbytes", false, false, []safetensors.Tensor{
		stored("q.weight", safetensors.I8, 1, 32, 32), stored("q.SCB", safetensors.F32, 1, 32), stored("q.weight_format", safetensors.U8, 0)}},
	{"hqq", ``, "HQQ", false, false, []safetensors.Tensor{
		stored("q.W_q", safetensors.U8, 1, 16, 32), stored("q.scale", safetensors.F16, 1, 32, 1), stored("q.zero", safetensors.F16, 1, 32, 1)}},
	{"aqlm", ``, "AQLM", false, false, []safetensors.Tensor{
		stored("q.codes", safetensors.I16, 1, 32, 4, 1), stored("q.codebooks", safetensors.F16, 1, 1, 256, 1, 8), stored("q.scales", safetensors.F16, 1, 32, 1, 1, 1)}},
	{"eetq", ``, "EETQ", false, false, []safetensors.Tensor{
		stored("q.weight", safetensors.I8, 1, 32, 32), stored("q.weight_scales", safetensors.F16, 1, 32)}},
	{"quanto", ``, "quanto", false, false, []safetensors.Tensor{
		stored("q.weight._data", safetensors.I8, 1, 32, 32), stored("q.weight._scale", safetensors.F32, 1, 32, 1)}},
	{"torchao", `"quantization_config":{"quant_method":"torchao"}`, "torchao", true, false, []safetensors.Tensor{
		stored("q._weight_qdata", safetensors.I32, 1, 32, 4), stored("q._weight_scale", safetensors.BF16, 1, 32, 1)}},
	{"mlx", `"quantization":{"bits":4,"group_size":32}`, "MLX", true, false, []safetensors.Tensor{
		stored("q.weight", safetensors.U32, 1, 32, 4), stored("q.scales", safetensors.BF16, 1, 32, 1), stored("q.biases", safetensors.BF16, 1, 32, 1)}},
	{"gguf", ``, "GGUF", false, false, []safetensors.Tensor{
		stored("q.qweight", safetensors.U8, 1, 32, 18), stored("q.qweight_type", safetensors.U8, 2, 1)}},
	{"pack-quantized", `"quantization_config":{"quant_method":"compressed-tensors","format":"pack-quantized"}`, "compressed-tensors pack-quantized", true, false, []safetensors.Tensor{
		stored("q.weight_packed", safetensors.I32, 1, 32, 4), stored("q.weight_scale", safetensors.BF16, 1, 32, 1), stored("q.weight_shape", safetensors.I64, 1, 2)}},
	{"int-quantized", `"quantization_config":{"quant_method":"compressed-tensors","format":"int-quantized"}`, "compressed-tensors int-quantized", true, false, []safetensors.Tensor{
		stored("q.weight", safetensors.I8, 1, 32, 32), stored("q.weight_scale", safetensors.BF16, 1, 32, 1)}},
	{"modelopt awq", `"quantization_config":{"quant_method":"modelopt","quant_algo":"W4A16_AWQ"}`, "ModelOpt W4A16_AWQ", true, false, []safetensors.Tensor{
		stored("q.weight", safetensors.U8, 1, 16, 32), stored("q.weight_scale", safetensors.BF16, 1, 32, 1)}},
	{"no method", ``, checkpoint.UnknownMethod, false, false, []safetensors.Tensor{stored("q.weight", safetensors.U8, 1, 32, 16)}},
	{"unknown method of codes that are read", `"quantization_config":{"quant_method":"quark"}`, "quark", true, false, blocks},
	{"fp8 as gptq", `"quantization_config":{"quant_method":"gptq","bits":4}`, "GPTQ", true, true, blocks},
	{"values as gptq", `"quantization_config":{"quant_method":"gptq","bits":4}`, "GPTQ", true, true, nil},
}

var (
	gptq = []safetensors.Tensor{
		stored("q.qweight", safetensors.I32, 1, 4, 32), stored("q.qzeros", safetensors.I32, 1, 1, 4),
		stored("q.scales", safetensors.F16, 1, 1, 32), stored("q.g_idx", safetensors.I32, 0, 32),
	}
	awq = []safetensors.Tensor{
		stored("q.qweight", safetensors.I32, 1, 32, 4), stored("q.qzeros", safetensors.I32, 1, 1, 4), stored("q.scales", safetensors.F16, 1, 1, 32),
	}
	nf4 = []safetensors.Tensor{
		stored("q.weight", safetensors.U8, 1, 512, 1), stored("q.weight.absmax", safetensors.F32, 1, 16),
		stored("q.weight.quant_map", safetensors.F32, 1, 16), stored("q.weight.quant_state.bitsandbytes__nf4", safetensors.U8, 1, 80),
	}
	blocks = []safetensors.Tensor{stored("q.weight", safetensors.F8E4M3, 1, 32, 32), stored("q.weight_scale_inv", safetensors.F32, 0, 1, 1)}
)

// TestUnread: each method is named, with all of its tensors and no other, and no conversion of
// it is planned.
func TestUnread(t *testing.T) {
	for _, f := range foreign {
		t.Run(f.name, func(t *testing.T) {
			c := model(t, "{"+f.config+"}", append([]safetensors.Tensor{
				stored("p.weight", safetensors.BF16, 1, 32, 32), stored("q.bias", safetensors.BF16, 1, 32), stored("position_ids", safetensors.I32, 1, 1, 8),
			}, f.tensors...)...)
			want := checkpoint.Unread{Method: f.method, Declared: f.declared, Contradicted: f.contradicted}
			for _, e := range c.Entries() {
				if strings.HasPrefix(e.Name, "q") && e.Name != "q.bias" {
					want.Tensors = append(want.Tensors, e.Name)
				}
			}
			require.Len(t, want.Tensors, len(f.tensors))
			require.Equal(t, []checkpoint.Unread{want}, c.Unread())
			for _, to := range []string{"bf16", "f16", "deepseek-v3"} {
				_, err := checkpoint.NewPlan(c, layout(t, to), checkpoint.PlanOptions{})
				require.ErrorIs(t, err, checkpoint.ErrUnread)
				require.ErrorContains(t, err, f.method)
			}
		})
	}
	c := model(t, "{}", stored("p.weight", safetensors.BF16, 1, 32, 32), stored("table", safetensors.U8, 1, 8, 8))
	require.Equal(t, []checkpoint.Unread{{Tensors: []string{"table"}}}, c.Unread())
	_, err := checkpoint.NewPlan(c, layout(t, "f16"), checkpoint.PlanOptions{})
	require.NoError(t, err)
}

// TestUnreadNothing: golden models, other small ones and the honest exhibits are understood.
func TestUnreadNothing(t *testing.T) {
	n := 0
	for _, pattern := range [][]string{{"golden", "checkpoints", "*"}, {"models", "*"}, {"museum", "*", "honest"}} {
		dirs, err := filepath.Glob(filepath.Join(testutil.Shared(t), filepath.Join(pattern...)))
		require.NoError(t, err)
		for _, dir := range dirs {
			if stat, err := os.Stat(dir); err != nil || !stat.IsDir() || filepath.Base(dir) == "tokenizers" {
				continue
			}
			c, err := checkpoint.Open(dir)
			require.NoError(t, err)
			require.Empty(t, c.Unread(), dir)
			require.NoError(t, c.Close())
			n++
		}
	}
	require.Greater(t, n, 40)
}

// TestUnreadDiff: of a method that is not read the same bytes are the same under the same
// configuration alone, and others are not called different.
func TestUnreadDiff(t *testing.T) {
	for _, f := range foreign {
		if f.tensors == nil {
			continue
		}
		other := append([]safetensors.Tensor(nil), f.tensors...)
		last := &other[0]
		last.Data = append([]byte(nil), last.Data...)
		last.Data[0] ^= 3
		plain := stored("p.weight", safetensors.BF16, 1, 32, 32)
		config := "{" + f.config + "}"
		a := model(t, config, append([]safetensors.Tensor{plain}, f.tensors...)...)
		for name, d := range differ(t, a, model(t, config, append([]safetensors.Tensor{plain}, f.tensors...)...), checkpoint.Options{}) {
			require.Equal(t, checkpoint.SameBytes, d.Same, "%s: %s", f.name, name)
			require.Equal(t, name != "p.weight", d.Unread != "", f.name)
		}
		weight := a.Weight(last.Name).Name
		for name, d := range differ(t, a, model(t, config, append([]safetensors.Tensor{plain}, other...)...), checkpoint.Options{}) {
			require.Equal(t, name == weight, d.Same == checkpoint.Incomparable, "%s: %s", f.name, name)
			require.NotEqual(t, checkpoint.Different, d.Same)
			if name == weight {
				require.Contains(t, d.Why, "not judged: "+f.method)
				require.False(t, d.Within(checkpoint.Tolerance{Largest: 1e9}))
			}
		}
		changed := model(t, `{"quantization_config":{"quant_method":"gptq","bits":8}}`, append([]safetensors.Tensor{plain}, f.tensors...)...)
		for name, d := range differ(t, a, changed, checkpoint.Options{}) {
			require.Equal(t, name != "p.weight", d.Same == checkpoint.Incomparable, "%s: %s", f.name, name)
		}
		proofs, err := checkpoint.Lossless(t.Context(), []checkpoint.Difference{differ(t, a, changed, checkpoint.Options{})[weight]}, checkpoint.Options{})
		require.NoError(t, err)
		require.Empty(t, proofs)
	}
}

// TestUnreadCertificate: matrices of integers that may be codes are copied, listed, and keep the
// certificate from being one; with Lossless nothing is planned.
func TestUnreadCertificate(t *testing.T) {
	plain := stored("p.weight", safetensors.F16, 1, 32, 32)
	for want, tensors := range map[string][]safetensors.Tensor{
		"table": {plain, stored("table", safetensors.U8, 1, 8, 8)},
		"":      {plain, stored("position_ids", safetensors.I32, 1, 1, 8), stored("attn.bias", safetensors.U8, 1, 8, 8), stored("batches", safetensors.I64, 1)},
	} {
		c := model(t, "{}", tensors...)
		p, err := checkpoint.NewPlan(c, layout(t, "f16"), checkpoint.PlanOptions{})
		require.NoError(t, err)
		cert, err := checkpoint.Convert(t.Context(), p, t.TempDir(), checkpoint.Options{})
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(cert.NotUnderstood, " "))
		require.Equal(t, want == "", cert.Lossless)
		require.Equal(t, want == "", cert.Proof != "")
		_, err = checkpoint.NewPlan(c, layout(t, "f16"), checkpoint.PlanOptions{Lossless: true})
		require.Equal(t, want != "", err != nil)
	}
}

// TestUnreadCodes: codes of eight bits and fewer without scales are not copied as values.
func TestUnreadCodes(t *testing.T) {
	for _, d := range []safetensors.DType{safetensors.F8E4M3, safetensors.F8E5M2, safetensors.F8E4M3FNUZ, safetensors.F8E5M2FNUZ, safetensors.F4} {
		c := model(t, "{}", stored("p.weight", d, 1, 32, 32))
		_, err := checkpoint.NewPlan(c, layout(t, "f16"), checkpoint.PlanOptions{})
		require.ErrorIs(t, err, checkpoint.ErrLayout)
		require.ErrorContains(t, err, "codes without scales")
	}
}

// TestUnreadAlone: a weight that the other has in a method that is not read is not called
// different, nor is its bias.
func TestUnreadAlone(t *testing.T) {
	plain := []safetensors.Tensor{stored("q.weight", safetensors.F16, 1, 32, 32), stored("q.bias", safetensors.F16, 1, 32), stored("p.weight", safetensors.F16, 1, 32, 32)}
	a, b := model(t, "{}", plain...), model(t, "{}", append(plain[1:2:2], gptq...)...)
	for _, pair := range [][2]*checkpoint.Checkpoint{{a, b}, {b, a}} {
		for name, d := range differ(t, pair[0], pair[1], checkpoint.Options{}) {
			switch name {
			case "q.bias":
				require.Equal(t, checkpoint.SameBytes, d.Same)
			case "p.weight":
				require.Contains(t, d.Why, "it is only in")
				require.Empty(t, d.Unread)
			default:
				require.Equal(t, "GPTQ", d.Unread, name)
			}
		}
	}
}

// TestLeftOut: scales of inputs and caches for which a layout has no place are listed.
func TestLeftOut(t *testing.T) {
	c := golden(t, "llama-fp8-static")
	var want []string
	for _, e := range c.Entries() {
		if strings.HasSuffix(e.Name, ".input_scale") || strings.HasSuffix(e.Name, ".k_scale") || strings.HasSuffix(e.Name, ".v_scale") {
			want = append(want, e.Name)
		}
	}
	require.Len(t, want, 18)
	for to, want := range map[string][]string{"f32": want, "fp8": nil} {
		p, err := checkpoint.NewPlan(c, layout(t, to), checkpoint.PlanOptions{})
		require.NoError(t, err)
		cert, err := checkpoint.Convert(t.Context(), p, t.TempDir(), checkpoint.Options{})
		require.NoError(t, err)
		require.ElementsMatch(t, want, cert.LeftOut)
	}
}
