package lint_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/checkpoint/lint"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

const expert0 = "model.layers.1.mlp.experts.0."

// variants are defects in layouts of which there is no golden model: golden ones are converted,
// edited, and have what is wanted then.
var variants = []struct {
	row             int
	name, model, to string
	edit            func(e *edited)
	want            []string
}{
	{1, "v4 scale renamed weight_scale_inv", "moe-bf16", "deepseek-v4", func(e *edited) { e.rename(o0+"scale", o0+"weight_scale_inv") }, []string{"E scale-misnamed", "W dtype-rare"}},
	{1, "v4 expert scale removed", "moe-bf16", "deepseek-v4", func(e *edited) { e.remove(expert0 + "up_proj.scale") }, []string{"E scale-missing"}},
	{1, "modelopt nvfp4 weight_scale_2 removed", "llama-bf16", "modelopt-nvfp4", func(e *edited) { e.remove(o0 + "weight_scale_2") }, []string{"E scale-missing"}},
	{1, "modelopt nvfp4 weight_scale removed", "llama-bf16", "modelopt-nvfp4", func(e *edited) { e.remove(o0 + "weight_scale") }, []string{"E scale-missing"}},
	{1, "modelopt fp8 input removed", "llama-bf16", "modelopt-fp8", func(e *edited) { e.remove(o0 + "input_scale") }, []string{"E input-scale-missing"}},
	{1, "ct-nvfp4 input removed", "llama-bf16", "ct-nvfp4", func(e *edited) { e.remove(o0 + "input_global_scale") }, []string{"E input-scale-missing"}},
	{1, "ct-fp8 weight gone, scale stays", "llama-bf16", "ct-fp8", func(e *edited) { e.remove(o0 + "weight") }, []string{"E scale-orphan", "E scale-orphan"}},
	{1, "mxfp4 scale gone", "llama-bf16", "ct-mxfp4", func(e *edited) { e.remove(o0 + "weight_scale") }, []string{"E scale-missing"}},
	{1, "no config, no index: scale gone", "llama-bf16", "deepseek-v3", func(e *edited) {
		e.config = nil
		e.index = nil
		e.remove(o0 + "weight_scale_inv")
	}, []string{"E scale-missing"}},
	{1, "a name of its own", "llama-bf16", "deepseek-v3", func(e *edited) { e.rename(o0+"weight_scale_inv", o0+"scales") }, []string{"E scale-missing"}},
	{1, "quark names", "llama-bf16", "fp8", func(e *edited) { e.rename(o0+"weight_scale", o0+"weight_quantizer.scale") }, []string{"E scale-missing"}},
	{1, "e5m2 unscaled", "llama-bf16", "fp8", func(e *edited) {
		e.remove(o0 + "weight_scale")
		e.remove(o0 + "input_scale")
		of(e, o0+"weight").DType = safetensors.F8E5M2
	}, []string{"E scale-missing"}},
	{2, "modelopt q/k", "llama-bf16", "modelopt-nvfp4", func(e *edited) { e.number(q0+"weight_scale_2", 1e-4) }, []string{"W outer-unequal"}},
	{2, "modelopt input", "llama-bf16", "modelopt-nvfp4", func(e *edited) { e.number(q0+"input_scale", 1e-4) }, []string{"W outer-unequal"}},
	{2, "expert w1/w3", "moe-bf16", "ct-nvfp4a16", func(e *edited) {
		for _, x := range []string{"weight_packed", "weight_scale", "weight_global_scale"} {
			e.rename(expert0+"gate_proj."+x, "model.layers.1.block_sparse_moe.experts.0.w1."+x)
			e.rename(expert0+"up_proj."+x, "model.layers.1.block_sparse_moe.experts.0.w3."+x)
		}
		e.number("model.layers.1.block_sparse_moe.experts.0.w1.weight_global_scale", 3000)
	}, []string{"E outer-unequal"}},
	{3, "modelopt reciprocal", "llama-bf16", "modelopt-nvfp4", func(e *edited) {
		s := of(e, o0+"weight_scale_2")
		e.number(s.Name, 1/first(s))
	}, []string{"E outer-reciprocal"}},
	{3, "ct all reciprocal", "llama-bf16", "ct-nvfp4a16", func(e *edited) {
		each(e, "weight_global_scale", func(s *safetensors.Tensor) { e.number(s.Name, 1/first(s)) })
	}, slices.Repeat([]string{"E outer-reciprocal"}, 13)},
	{4, "E8M0 v4 bias", "moe-bf16", "deepseek-v4", func(e *edited) {
		s := of(e, o0+"scale")
		for i := range s.Data {
			s.Data[i] += 100
		}
	}, []string{"E e8m0-bias"}},
	{4, "bias 0 whole model mx8", "llama-bf16", "ct-mxfp8", func(e *edited) {
		each(e, "weight_scale", func(s *safetensors.Tensor) {
			for i := range s.Data {
				s.Data[i] -= min(30, s.Data[i])
			}
		})
	}, slices.Repeat([]string{"E e8m0-bias"}, 14)},
	{4, "bf16 numbers ct block", "llama-bf16", "ct-fp8-block", func(e *edited) {
		s := of(e, o0+"weight_scale")
		for i := 0; i < len(s.Data); i += 2 {
			s.Data[i], s.Data[i+1] = 0xF0, 0x42
		}
	}, []string{"E e8m0-as-numbers"}},
	{4, "v4 F32 scale of bytes", "moe-bf16", "deepseek-v4", func(e *edited) { numbered(of(e, o0+"scale")) }, []string{"E e8m0-as-numbers", "E ue8m0-broken"}},
	{4, "mxfp4 scales as F32", "llama-bf16", "ct-mxfp4", func(e *edited) { numbered(of(e, o0+"weight_scale")) }, []string{"E scale-type"}},
	{5, "modelopt NaN block", "llama-bf16", "modelopt-nvfp4", func(e *edited) { of(e, o0+"weight_scale").Data[5] = 0x7F }, []string{"E scale-invalid"}},
	{5, "bf16 ct inf", "llama-bf16", "ct-fp8-dynamic", func(e *edited) {
		d := of(e, o0+"weight_scale").Data
		d[0], d[1] = 0x80, 0x7F
	}, []string{"E scale-invalid"}},
	{5, "E8M0 v4 FF", "moe-bf16", "deepseek-v4", func(e *edited) { of(e, expert0+"up_proj.scale").Data[3] = 0xFF }, []string{"E scale-invalid"}},
	{5, "input 0 modelopt", "llama-bf16", "modelopt-fp8", func(e *edited) { e.number(o0+"input_scale", 0) }, []string{"E scale-invalid"}},
	{7, "router unlisted modelopt", "moe-bf16", "modelopt-fp8", func(e *edited) {
		e.quantization()["ignore"] = []string{"lm_head"}
		e.more[checkpoint.ModelOptName] = strings.ReplaceAll(e.more[checkpoint.ModelOptName], `"model.layers.1.mlp.gate"`, `"lm_head"`)
	}, []string{"E ignore-missing"}},
	{7, "only in hf_quant", "moe-bf16", "modelopt-fp8", func(e *edited) { delete(e.config, "quantization_config") }, nil},
	{7, "fp8: bf16 o_proj unlisted", "llama-bf16", "fp8", func(e *edited) {
		e.remove(o0 + "weight_scale")
		e.remove(o0 + "input_scale")
		values(e, o0+"weight")
	}, []string{"E ignore-missing"}},
	{7, "head of another name", "llama-bf16", "ct-fp8-dynamic", func(e *edited) { e.rename("lm_head.weight", "embed_out.weight") }, []string{"E ignore-missing", "W head-absent"}},
	{7, "lookahead", "llama-bf16", "ct-fp8-dynamic", func(e *edited) { e.quantization()["ignore"] = []string{"re:^(?!model).*"} }, nil},
	{7, "re unmatched", "llama-bf16", "ct-fp8-dynamic", func(e *edited) { e.quantization()["ignore"] = []string{"lm_head", "re:.*vision.*"} }, []string{"I ignore-unmatched"}},
	{8, "norm quantized", "llama-bf16", "fp8", func(e *edited) {
		s := of(e, "model.norm.weight")
		s.DType = safetensors.F8E4M3
		s.Data = s.Data[:len(s.Data)/2]
	}, []string{"E scale-missing", "W quantized-router"}},
	{8, "shared_expert_gate q", "moe-bf16", "ct-fp8-dynamic", func(e *edited) {
		e.rename("model.layers.1.mlp.gate.weight", "model.layers.1.mlp.shared_expert_gate.weight")
		codes(e, "model.layers.1.mlp.shared_expert_gate.weight")
	}, []string{"E scale-missing", "W quantized-router"}},
	{9, "tied, quantized head", "tied-bf16", "ct-fp8-dynamic", func(e *edited) {
		e.add("lm_head.weight", safetensors.F8E4M3, []int{72, 64}, someCodes(72*64)...)
		e.add("lm_head.weight_scale", safetensors.BF16, []int{72, 1}, someCodes(144)...)
	}, []string{"W tied-head"}},
	{10, "ct block transposed", "llama-bf16", "ct-fp8-block", func(e *edited) {
		s := of(e, gate0+"weight_scale")
		s.Shape = []int{2, 3}
	}, []string{"E scale-grid"}},
	{10, "mxfp4 floor", "llama-bf16", "ct-mxfp4", func(e *edited) {
		s := of(e, o0+"weight_scale")
		s.Shape[1]--
		s.Data = s.Data[:s.Shape[0]*s.Shape[1]]
	}, []string{"E scale-grid"}},
	{10, "channel scales transposed", "llama-bf16", "ct-fp8-dynamic", func(e *edited) {
		s := of(e, o0+"weight_scale")
		s.Shape = []int{1, s.Shape[0]}
	}, []string{"E scale-grid"}},
	{10, "tensor scale of rows in fp8", "llama-bf16", "fp8", func(e *edited) {
		s := of(e, o0+"weight_scale")
		s.Shape = []int{160}
		s.Data = make([]byte, 640)
	}, []string{"E scale-grid"}},
	{10, "stack one grid", "llama-bf16", "deepseek-v3", func(e *edited) {
		n := layer0 + "mlp.experts.down_proj"
		e.add(n, safetensors.F8E4M3, []int{4, 160, 128}, someCodes(4*160*128)...)
		e.add(n+"_scale_inv", safetensors.F32, []int{5, 1}, float32s(1, 1.1, 1.2, 1.3, 1.4)...)
	}, []string{"E scale-grid"}},
	{10, "modelopt half", "llama-bf16", "modelopt-nvfp4", func(e *edited) {
		s := of(e, gate0+"weight_scale")
		s.Shape = []int{288, 5}
		s.Data = s.Data[:288*5]
	}, []string{"E scale-grid"}},
	{13, "twin under name .weight modelopt", "llama-bf16", "ct-nvfp4a16", func(e *edited) { e.add(o0+"weight", safetensors.F8E4M3, []int{160, 160}, someCodes(25600)...) }, []string{"E tensor-twin", "E config-format", "E scale-misnamed"}},
	{13, "consolidated beside", "llama-bf16", "bf16", func(e *edited) {
		s := *of(e, q0+"weight")
		s.Name = "layers.0.attention.wq.weight"
		e.shards["consolidated.safetensors"] = []safetensors.Tensor{s}
		e.metadata["consolidated.safetensors"] = checkpoint.Metadata()
	}, []string{"I shard-unlisted"}},
	{13, "no index, single + shards", "llama-bf16", "bf16", func(e *edited) {
		e.index = nil
		s := *of(e, q0+"weight")
		e.shards["model.safetensors"] = []safetensors.Tensor{s}
		e.metadata["model.safetensors"] = checkpoint.Metadata()
	}, []string{"E tensor-duplicate"}},
	{16, "modelopt k_scale missing", "llama-bf16", "modelopt-fp8", func(e *edited) { e.remove(layer0 + "self_attn.k_proj.k_scale") }, []string{"W kv-scale-missing"}},
	{16, "ct both missing", "llama-bf16", "ct-fp8", func(e *edited) {
		e.remove(layer0 + "self_attn.k_scale")
		e.remove(layer0 + "self_attn.v_scale")
	}, []string{"W kv-scale-missing"}},
	{17, "mixed precision", "llama-bf16", "ct-nvfp4a16", func(e *edited) { e.quantization()["format"] = "mixed-precision" }, nil},
	{1, "mixed precision, scale removed", "llama-bf16", "ct-nvfp4a16", func(e *edited) {
		e.quantization()["format"] = "mixed-precision"
		e.remove(o0 + "weight_scale")
	}, []string{"E scale-missing"}},
	{17, "dense", "llama-bf16", "ct-fp8-dynamic", func(e *edited) { e.quantization()["format"] = "dense" }, []string{"E config-format"}},
	{17, "naive", "llama-bf16", "ct-mxfp4", func(e *edited) { e.quantization()["format"] = "naive-quantized" }, []string{"E config-format"}},
	{17, "exclude differs", "llama-bf16", "modelopt-nvfp4", func(e *edited) {
		e.more[checkpoint.ModelOptName] = strings.ReplaceAll(e.more[checkpoint.ModelOptName], `"lm_head"`, `"head"`)
	}, []string{"E config-differs", "W ignore-unmatched"}},
	{17, "kv differs", "llama-bf16", "modelopt-nvfp4", func(e *edited) { delete(e.quantization(), "kv_cache_scheme") }, []string{"E config-differs"}},
	{18, "raw cast", "llama-bf16", "deepseek-v3", func(e *edited) {
		s := of(e, o0+"weight")
		for i := range s.Data {
			if s.Data[i]&0x7F > 0x40 {
				s.Data[i] -= 0x38
			}
		}
	}, []string{"W codes-low"}},
	{18, "nan mxfp8", "llama-bf16", "ct-mxfp8", func(e *edited) { of(e, o0+"weight").Data[9] = 0x7F }, []string{"E codes-nan"}},
	{18, "nan stack", "llama-bf16", "deepseek-v3", func(e *edited) {
		n := layer0 + "mlp.experts.down_proj"
		d := someCodes(4 * 160 * 128)
		d[30000] = 0x7F
		e.add(n, safetensors.F8E4M3, []int{4, 160, 128}, d...)
		e.add(n+"_scale_inv", safetensors.F32, []int{4, 2, 1}, float32s(1, 1.1, 1.2, 1.3, 1.4, 1, 1, 1)...)
	}, []string{"E codes-nan"}},
	{18, "clipped block", "llama-bf16", "deepseek-v3", func(e *edited) {
		s := of(e, o0+"weight")
		for i := 0; i < len(s.Data); i += 10 {
			s.Data[i] = 0x7E
		}
	}, []string{"W codes-clipped"}},
	{20, "nvfp4 no config", "llama-bf16", "modelopt-nvfp4", func(e *edited) {
		delete(e.config, "quantization_config")
		delete(e.more, checkpoint.ModelOptName)
	}, []string{"E config-absent", "I kv-scale-undeclared"}},
	{20, "leftover modelopt file", "llama-bf16", "bf16", func(e *edited) {
		e.more[checkpoint.ModelOptName] = `{"quantization":{"quant_algo":"FP8","exclude_modules":["lm_head"]}}`
	}, []string{"E config-leftover"}},
	{20, "bf16 weights left, mxfp4 config", "llama-bf16", "bf16", func(e *edited) { e.config["quantization_config"] = map[string]any{"quant_method": "mxfp4"} }, []string{"E config-leftover"}},
}

// of returns the tensor of a name.
func of(e *edited, name string) *safetensors.Tensor {
	s, _ := e.find(name)
	return s
}

// first returns the first element of a tensor of float32.
func first(s *safetensors.Tensor) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(s.Data)))
}

// each calls do for all tensors whose names have a suffix.
func each(e *edited, suffix string, do func(s *safetensors.Tensor)) {
	for _, list := range e.shards {
		for i := range list {
			if strings.HasSuffix(list[i].Name, suffix) {
				do(&list[i])
			}
		}
	}
}

// numbered stores bytes as float32 of the same numbers.
func numbered(s *safetensors.Tensor) {
	var list []float64
	for _, b := range s.Data {
		list = append(list, float64(b))
	}
	s.DType, s.Data = safetensors.F32, float32s(list...)
}

// someCodes returns codes in E4M3, the largest among them.
func someCodes(n int) []byte {
	codes := make([]byte, n)
	for i := range codes {
		codes[i] = 0x30 + byte(i*7%79)
	}
	return codes
}

// converted returns a golden model in another layout, all of whose scales are known.
func converted(t *testing.T, model, to, dir string) {
	t.Helper()
	c, err := checkpoint.Open(testutil.Shared(t, "golden", "checkpoints", model))
	require.NoError(t, err)
	defer c.Close()
	l, err := checkpoint.ParseLayout(to)
	require.NoError(t, err)
	p, err := checkpoint.NewPlan(c, l, checkpoint.PlanOptions{Amax: amaxOf(c)})
	require.NoError(t, err)
	_, err = checkpoint.Convert(t.Context(), p, dir, checkpoint.Options{})
	require.NoError(t, err)
}

// TestVariants checks that each is found where it is made, and nothing else but what follows
// from it.
func TestVariants(t *testing.T) {
	dirs := map[string]string{}
	for _, v := range variants {
		from := v.model + v.to
		if dirs[from] == "" {
			dirs[from] = t.TempDir()
			converted(t, v.model, v.to, dirs[from])
		}
		t.Run(v.name+" in "+v.to, func(t *testing.T) {
			t.Parallel()
			e := loadDir(t, dirs[from])
			if text, err := os.ReadFile(filepath.Join(dirs[from], checkpoint.ModelOptName)); err == nil {
				e.more[checkpoint.ModelOptName] = string(text)
			}
			v.edit(e)
			dir := t.TempDir()
			e.save(dir)
			r, err := lint.Check(t.Context(), dir, lint.Options{})
			require.NoError(t, err)
			var got []string
			said := ""
			for _, f := range r.Findings {
				if f.Rule == "block-ragged" {
					continue // as the golden models are
				}
				letter, err := f.Severity.MarshalText()
				require.NoError(t, err)
				got = append(got, string(letter)+" "+f.Rule)
				said += f.What + "\n"
			}
			require.ElementsMatch(t, v.want, got, said)
		})
	}
}
