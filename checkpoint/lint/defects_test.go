package lint_test

import (
	"encoding/binary"
	"encoding/json"
	"maps"
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

// edited is a golden model in memory: one file unless it is kept in shards.
type edited struct {
	t        *testing.T
	shards   map[string][]safetensors.Tensor
	metadata map[string]map[string]string
	config   map[string]any
	index    *checkpoint.Index
	more     map[string]string // files of text
}

func load(t *testing.T, name string) *edited {
	t.Helper()
	return loadDir(t, testutil.Shared(t, "golden", "checkpoints", name))
}

func loadDir(t *testing.T, dir string) *edited {
	t.Helper()
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	e := &edited{t: t, shards: map[string][]safetensors.Tensor{}, metadata: map[string]map[string]string{}, index: c.Index, more: map[string]string{}}
	for _, file := range c.Files() {
		e.metadata[file] = c.File(file).Metadata()
		for _, info := range c.File(file).Tensors() {
			data, err := c.File(file).Bytes(info.Name)
			require.NoError(t, err)
			e.shards[file] = append(e.shards[file], safetensors.Tensor{Info: info, Data: data})
		}
	}
	if text, err := os.ReadFile(filepath.Join(c.Dir(), checkpoint.ConfigName)); err == nil {
		require.NoError(t, json.Unmarshal(text, &e.config))
	}
	return e
}

// find returns the tensor of a name and the name of its file.
func (e *edited) find(name string) (*safetensors.Tensor, string) {
	e.t.Helper()
	for file, list := range e.shards {
		for i := range list {
			if list[i].Name == name {
				return &list[i], file
			}
		}
	}
	require.Fail(e.t, "no tensor "+name)
	return nil, ""
}

func (e *edited) remove(name string) {
	e.t.Helper()
	_, file := e.find(name)
	e.shards[file] = slices.DeleteFunc(e.shards[file], func(s safetensors.Tensor) bool { return s.Name == name })
	if e.index != nil {
		delete(e.index.Files, name)
	}
}

// add adds a tensor to the first file, and to the index.
func (e *edited) add(name string, d safetensors.DType, shape []int, data ...byte) {
	info := safetensors.Info{Name: name, DType: d, Shape: shape}
	if data == nil {
		data = make([]byte, info.Bytes())
	}
	file := slices.Min(slices.Collect(maps.Keys(e.shards)))
	e.shards[file] = append(e.shards[file], safetensors.Tensor{Info: info, Data: data})
	if e.index != nil {
		e.index.Files[name] = file
	}
}

func (e *edited) rename(name, to string) {
	e.t.Helper()
	s, file := e.find(name)
	s.Name = to
	if e.index != nil {
		delete(e.index.Files, name)
		e.index.Files[to] = file
	}
}

func (e *edited) quantization() map[string]any {
	return e.config["quantization_config"].(map[string]any)
}

// number sets the first element of a tensor of float32.
func (e *edited) number(name string, x float64) {
	s, _ := e.find(name)
	copy(s.Data, float32s(x))
}

func float32s(list ...float64) (b []byte) {
	for _, x := range list {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	}
	return b
}

// save writes the model and makes total_size what it should be, unless that was edited.
func (e *edited) save(dir string) {
	size := int64(0)
	for file, list := range e.shards {
		require.NoError(e.t, safetensors.WriteFile(filepath.Join(dir, file), list, e.metadata[file]))
		for _, s := range list {
			if e.index != nil && !slices.Contains(slices.Collect(maps.Values(e.index.Files)), file) {
				continue
			}
			size += int64(len(s.Data))
		}
	}
	write := func(name string, v any) {
		text, err := json.Marshal(v)
		require.NoError(e.t, err)
		require.NoError(e.t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	if e.index != nil {
		if e.index.TotalSize > 1 {
			e.index.TotalSize = size
		}
		write(checkpoint.IndexName, e.index)
	}
	if e.config != nil {
		write(checkpoint.ConfigName, e.config)
	}
	for name, text := range e.more {
		require.NoError(e.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

const (
	layer0 = "model.layers.0."
	gate0  = layer0 + "mlp.gate_proj."
	up0    = layer0 + "mlp.up_proj."
	q0     = layer0 + "self_attn.q_proj."
	k0     = layer0 + "self_attn.k_proj."
	o0     = layer0 + "self_attn.o_proj."
	shard1 = "model-00001-of-00003.safetensors"
	shard2 = "model-00002-of-00003.safetensors"
)

// defects are models with one edit each, and what is found then: rules, and besides for a
// defect that brings others with it, those. Row is that of the table of known defects.
var defects = []struct {
	name, model string
	row         int
	edit        func(e *edited)
	want        []string // severity and rule
	says        string   // the first finding, somewhere
}{
	{"scale removed", "llama-deepseek-fp8", 1, func(e *edited) { e.remove(o0 + "weight_scale_inv") }, []string{"E scale-missing"}, "there is no " + o0 + "weight_scale_inv"},
	{"scale renamed", "llama-deepseek-fp8", 1, func(e *edited) { e.rename(o0+"weight_scale_inv", o0+"weight_scale") }, []string{"E scale-misnamed"}, "want " + o0 + "weight_scale_inv"},
	{"another spelling", "llama-ct-fp8-dynamic", 1, func(e *edited) { e.rename(o0+"weight_scale", o0+"scale_weight") }, []string{"E scale-misnamed"}, "there is " + o0 + "scale_weight"},
	{"packed without global scale", "llama-ct-nvfp4a16", 1, func(e *edited) { e.remove(o0 + "weight_global_scale") }, []string{"E scale-missing"}, "no " + o0 + "weight_global_scale"},
	{"scale without weight", "llama-deepseek-fp8", 1, func(e *edited) {
		e.add("model.layers.9.mlp.up_proj.weight_scale_inv", safetensors.F32, []int{1, 1}, float32s(1)...)
	}, []string{"E scale-orphan"}, "no weight of model.layers.9.mlp.up_proj"},
	{"two spellings", "llama-deepseek-fp8", 1, func(e *edited) { e.add(o0+"weight_scale", safetensors.F32, []int{}, float32s(1)...) }, []string{"E scale-twice"}, "has both"},
	{"input scale removed", "llama-fp8-static", 1, func(e *edited) { e.remove(o0 + "input_scale") }, []string{"E input-scale-missing"}, "no " + o0 + "input_scale"},
	{"unequal globals", "llama-ct-nvfp4a16", 2, func(e *edited) {
		s, _ := e.find(gate0 + "weight_global_scale")
		e.number(s.Name, 2*float64(math.Float32frombits(binary.LittleEndian.Uint32(s.Data))))
	}, []string{"W outer-unequal"}, "a factor of 2"},
	{"unequal globals of experts", "moe-ct-nvfp4a16", 2, func(e *edited) {
		s, _ := e.find("model.layers.1.mlp.experts.0.up_proj.weight_global_scale")
		e.number(s.Name, 4*float64(math.Float32frombits(binary.LittleEndian.Uint32(s.Data))))
	}, []string{"E outer-unequal"}, "a factor of 4"},
	{"reciprocal", "llama-ct-nvfp4a16", 3, func(e *edited) {
		s, _ := e.find(o0 + "weight_global_scale")
		e.number(s.Name, 1/float64(math.Float32frombits(binary.LittleEndian.Uint32(s.Data))))
	}, []string{"E outer-reciprocal"}, "with the reciprocal"},
	{"bias 0", "llama-ct-mxfp4", 4, func(e *edited) {
		s, _ := e.find(o0 + "weight_scale")
		for i := range s.Data {
			s.Data[i] -= min(s.Data[i], 90)
		}
	}, []string{"E e8m0-bias"}, "half of the scales"},
	{"bytes as numbers", "llama-deepseek-fp8", 4, func(e *edited) {
		s, _ := e.find(o0 + "weight_scale_inv")
		copy(s.Data, float32s(120, 119, 118, 121))
	}, []string{"E e8m0-as-numbers"}, "all 4 scales"},
	{"old writer", "llama-ct-mxfp4", 4, func(e *edited) { e.quantization()["version"] = "0.12.2" }, []string{"W e8m0-old-writer"}, "0.12.2"},
	{"NaN scale", "llama-deepseek-fp8", 5, func(e *edited) { e.number(o0+"weight_scale_inv", math.NaN()) }, []string{"E scale-invalid"}, "scale 0 is NaN"},
	{"negative scale", "llama-fp8-static", 5, func(e *edited) { e.number(o0+"weight_scale", -1) }, []string{"E scale-invalid"}, "scale 0 is -1"},
	{"infinite input scale", "llama-fp8-static", 5, func(e *edited) { e.number(o0+"input_scale", math.Inf(1)) }, []string{"E scale-invalid"}, "it is +Inf"},
	{"zero scale", "llama-fp8-static", 5, func(e *edited) { e.number(o0+"weight_scale", 0) }, []string{"E scale-zero"}, "scale 0 is 0"},
	{"zero global scale", "llama-ct-nvfp4a16", 5, func(e *edited) { e.number(o0+"weight_global_scale", 0) }, []string{"E scale-invalid"}, "it is 0"},
	{"NaN E4M3 scale", "llama-ct-nvfp4a16", 5, func(e *edited) { s, _ := e.find(o0 + "weight_scale"); s.Data[3] = 0x7F }, []string{"E scale-invalid"}, "scale 3 is NaN"},
	{"negative E4M3 scale", "llama-ct-nvfp4a16", 5, func(e *edited) { s, _ := e.find(o0 + "weight_scale"); s.Data[3] |= 0x80 }, []string{"E scale-invalid"}, "scale 3 is -"},
	{"zero E4M3 scale", "llama-ct-nvfp4a16", 5, func(e *edited) { s, _ := e.find(o0 + "weight_scale"); s.Data[1] = 0 }, []string{"E scale-zero"}, "scale 1 is 0"},
	{"NaN E8M0 scale", "llama-ct-mxfp4", 5, func(e *edited) { s, _ := e.find(o0 + "weight_scale"); s.Data[2] = 0xFF }, []string{"E scale-invalid"}, "scale 2 is NaN"},
	{"least E8M0 scale", "llama-ct-mxfp4", 5, func(e *edited) { s, _ := e.find(o0 + "weight_scale"); s.Data[2] = 0 }, []string{"W scale-zero"}, "scale 2 is 5.8"},
	{"ue8m0 promised", "llama-deepseek-fp8", 6, func(e *edited) {
		e.quantization()["scale_fmt"] = "ue8m0"
		for file, list := range e.shards { // all are powers of two but one
			for i := range list {
				if strings.HasSuffix(list[i].Name, "_scale_inv") {
					powers(e.shards[file][i].Data)
				}
			}
		}
		e.number(o0+"weight_scale_inv", 0x1.8p-12)
	}, append(slices.Repeat([]string{"E ue8m0-late"}, 13), "E ue8m0-broken"), "1 of 4 are no powers of two"},
	{"powers of two", "llama-deepseek-fp8", 6, func(e *edited) {
		for file, list := range e.shards {
			for i := range list {
				if strings.HasSuffix(list[i].Name, "_scale_inv") {
					powers(e.shards[file][i].Data)
				}
			}
		}
	}, append(slices.Repeat([]string{"E ue8m0-late"}, 14), "I ue8m0-undeclared"), "are powers of two"},
	{"router not ignored", "moe-ct-nvfp4a16", 7, func(e *edited) { e.quantization()["ignore"] = []string{"lm_head"} }, []string{"E ignore-missing"}, "model.layers.1.mlp.gate is BF16"},
	{"wrong prefix", "llama-ct-fp8-dynamic", 7, func(e *edited) {
		e.quantization()["ignore"] = []string{"lm_head", "language_model.layers.0.mlp"}
	}, []string{"W ignore-unmatched"}, "language_model"},
	{"ignored and quantized", "llama-ct-fp8-dynamic", 7, func(e *edited) { e.quantization()["ignore"] = []string{"lm_head", "re:.*0.*o_proj"} }, []string{"E ignore-quantized"}, "is listed and quantized"},
	{"half a group", "llama-ct-fp8-dynamic", 7, func(e *edited) {
		e.remove(k0 + "weight_scale")
		values(e, k0+"weight")
		e.quantization()["ignore"] = []string{"lm_head", strings.TrimSuffix(k0, ".")}
	}, []string{"E fused-mixed"}, "quantized; " + k0 + "weight: not"},
	{"router quantized", "moe-deepseek-fp8", 8, func(e *edited) {
		codes(e, "model.layers.1.mlp.gate.weight")
		e.add("model.layers.1.mlp.gate.weight_scale_inv", safetensors.F32, []int{1, 2}, float32s(0.001, 0.0011)...)
	}, []string{"W quantized-router"}, "model.layers.1.mlp.gate is F8_E4M3"},
	{"embedding quantized", "llama-deepseek-fp8", 8, func(e *edited) {
		codes(e, "model.embed_tokens.weight")
		e.add("model.embed_tokens.weight_scale_inv", safetensors.F32, []int{2, 2}, float32s(0.001, 0.0011, 0.0012, 0.0013)...)
	}, []string{"E quantized-embedding"}, "embed_tokens"},
	{"tied and stored", "tied-bf16", 9, func(e *edited) {
		s, _ := e.find("model.embed_tokens.weight")
		e.add("lm_head.weight", s.DType, s.Shape, s.Data...)
	}, []string{"W tied-head"}, "has the bytes of the embedding"},
	{"tied and other", "tied-bf16", 9, func(e *edited) { e.add("lm_head.weight", safetensors.BF16, []int{72, 64}) }, []string{"W tied-head"}, "has other bytes"},
	{"no head", "llama-bf16", 9, func(e *edited) { e.remove("lm_head.weight") }, []string{"W head-absent"}, "no lm_head"},
	{"transposed grid", "llama-deepseek-fp8", 10, func(e *edited) { s, _ := e.find(gate0 + "weight_scale_inv"); s.Shape = []int{2, 3} }, []string{"E scale-grid"}, "it is transposed"},
	{"floor of a grid", "llama-deepseek-fp8", 10, func(e *edited) {
		s, _ := e.find(gate0 + "weight_scale_inv")
		s.Shape, s.Data = []int{2, 1}, s.Data[:8]
	}, []string{"E scale-grid"}, "rounded down"},
	{"half width", "llama-ct-nvfp4a16", 10, func(e *edited) {
		s, _ := e.find(gate0 + "weight_scale")
		s.Shape, s.Data = []int{288, 5}, s.Data[:288*5]
	}, []string{"E scale-grid"}, "the packed shape"},
	{"wrong type of scales", "llama-ct-nvfp4a16", 10, func(e *edited) { s, _ := e.find(gate0 + "weight_scale"); s.DType = safetensors.I8 }, []string{"E scale-type"}, "is I8"},
	{"stack across gate and up", "llama-deepseek-fp8", 11, func(e *edited) {
		name := layer0 + "mlp.experts.gate_up_proj"
		e.add(name, safetensors.F8E4M3, []int{2, 192, 128})
		e.add(name+"_scale_inv", safetensors.F32, []int{2, 2, 1}, float32s(1, 1.1, 1.2, 1.3)...)
	}, []string{"W block-straddle"}, "gate and up have 96 rows each"},
	{"file absent", "llama-bf16", 12, func(e *edited) { delete(e.shards, shard2) }, []string{"E index-missing-file"}, "it is absent"},
	{"tensor absent", "llama-bf16", 12, func(e *edited) { e.index.Files["model.other.weight"] = shard1 }, []string{"E index-missing-tensor"}, "which lacks it"},
	{"another shard", "llama-bf16", 12, func(e *edited) { e.index.Files[q0+"weight"] = shard1 }, []string{"E index-wrong-file"}, "the index has it in " + shard1},
	{"not in the index", "llama-bf16", 12, func(e *edited) { delete(e.index.Files, q0+"weight") }, []string{"E index-lacks-tensor"}, "not in the index"},
	{"two shards", "llama-bf16", 13, func(e *edited) {
		s, _ := e.find(q0 + "weight")
		e.shards[shard1] = append(e.shards[shard1], *s)
	}, []string{"E tensor-duplicate"}, shard1 + " and " + shard2},
	{"file beside shards", "llama-bf16", 13, func(e *edited) {
		s, _ := e.find(q0 + "weight")
		e.shards["model.safetensors"] = []safetensors.Tensor{*s}
		e.metadata["model.safetensors"] = checkpoint.Metadata()
	}, []string{"E shard-unlisted"}, "1 of its tensors"},
	{"shards of an older set", "llama-bf16", 13, func(e *edited) {
		name := "model-00001-of-00001.safetensors"
		e.shards[name] = []safetensors.Tensor{{Info: safetensors.Info{Name: "x", DType: safetensors.BF16}, Data: make([]byte, 2)}}
		e.metadata[name] = checkpoint.Metadata()
	}, []string{"E shard-count", "E shard-unlisted"}, "there are files of 00001 and of 00003"},
	{"twin", "llama-ct-mxfp4", 13, func(e *edited) { e.add(o0+"weight", safetensors.BF16, []int{160, 160}) },
		[]string{"E ignore-missing", "E tensor-twin"}, "as BF16 and as U8 in .weight_packed"},
	{"no metadata", "llama-bf16", 14, func(e *edited) { e.metadata[shard2] = nil }, []string{"W metadata-format"}, "no format"},
	{"odd format", "llama-bf16", 14, func(e *edited) { e.metadata[shard2] = map[string]string{"format": "np"} }, []string{"W metadata-format"}, `format is "np"`},
	{"rare type", "llama-bf16", 15, func(e *edited) { e.add("table", safetensors.F4, []int{4}) }, []string{"W dtype-rare", "E config-absent", "E scale-missing"}, ""},
	{"KV scale absent", "llama-fp8-static", 16, func(e *edited) { e.remove(layer0 + "self_attn.k_scale") }, []string{"W kv-scale-missing"}, "no k_scale"},
	{"KV scale of another name", "llama-fp8-static", 16, func(e *edited) {
		e.add(layer0+"self_attn.kv_cache.k_scale", safetensors.F32, nil, float32s(1)...)
	}, []string{"W kv-scale-name"}, "no loader maps"},
	{"KV scale of 0", "llama-fp8-static", 16, func(e *edited) { e.number(layer0+"self_attn.v_scale", 0) }, []string{"W kv-scale-invalid"}, "it is 0"},
	{"KV scheme absent", "llama-fp8-static", 16, func(e *edited) { delete(e.quantization(), "kv_cache_scheme") }, []string{"I kv-scale-undeclared"}, "there are 4"},
	{"frozen", "llama-ct-fp8-dynamic", 17, func(e *edited) { e.quantization()["quantization_status"] = "frozen" }, []string{"E config-status"}, `"frozen"`},
	{"another format", "llama-ct-fp8-dynamic", 17, func(e *edited) { e.quantization()["format"] = "nvfp4-pack-quantized" }, []string{"E config-format"}, "of another"},
	{"two configurations", "llama-fp8-static", 17, func(e *edited) {
		q := e.quantization()
		delete(q, "ignored_layers")
		q["ignore"], q["quant_method"], q["quant_algo"] = []string{"lm_head"}, "modelopt", "FP8"
		e.more[checkpoint.ModelOptName] = `{"quantization":{"quant_algo":"NVFP4","kv_cache_quant_algo":"FP8","exclude_modules":["lm_head"]}}`
	}, []string{"E config-differs"}, "quant_algo: FP8 in config.json, NVFP4"},
	{"NaN code", "llama-deepseek-fp8", 18, func(e *edited) { s, _ := e.find(o0 + "weight"); s.Data[170] = 0xFF }, []string{"E codes-nan"}, "element 170 is NaN"},
	{"never scaled", "llama-fp8-static", 18, func(e *edited) {
		s, _ := e.find(o0 + "weight")
		for i := range s.Data {
			s.Data[i] &= 0xBF
		}
	}, []string{"W codes-low"}, "under 1 of 1 scales"},
	{"clipped", "llama-fp8-static", 18, func(e *edited) {
		s, _ := e.find(o0 + "weight")
		for i := range 2560 {
			s.Data[10*i] = 0x7E
		}
	}, []string{"W codes-clipped"}, "10."},
	{"total_size", "llama-bf16", 19, func(e *edited) { e.index.TotalSize = 1 }, []string{"W total-size"}, "total_size is 1"},
	{"no total_size", "llama-bf16", 19, func(e *edited) { e.index.TotalSize = -1 }, []string{"I total-size-absent"}, ""},
	{"leftover", "llama-bf16", 20, func(e *edited) {
		e.config["quantization_config"] = map[string]any{"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": []int{128, 128}}
	}, []string{"E config-leftover"}, `"fp8"`},
	{"undeclared", "llama-deepseek-fp8", 20, func(e *edited) { delete(e.config, "quantization_config") }, []string{"E config-absent"}, "14 tensors have codes"},
	{"codes of another method", "llama-deepseek-fp8", 20, func(e *edited) {
		e.config["quantization_config"] = map[string]any{"quant_method": "gptq", "bits": 4}
	}, []string{"E config-method"}, `the method is "gptq", and 28 tensors are none of GPTQ but in fp8-block`},
	{"no codes of another method", "llama-bf16", 20, func(e *edited) {
		e.config["quantization_config"] = map[string]any{"quant_method": "awq", "bits": 4}
	}, []string{"E config-leftover"}, `"awq"`},
	{"integers of GPTQ as fp8", "llama-fp8-static", 20, func(e *edited) {
		for _, suffix := range []string{"weight", "weight_scale", "input_scale"} {
			e.remove(o0 + suffix)
		}
		e.add(o0+"qweight", safetensors.I32, []int{20, 160}, make([]byte, 12800)...)
		e.add(o0+"qzeros", safetensors.I32, []int{1, 20}, make([]byte, 80)...)
		e.add(o0+"scales", safetensors.F16, []int{1, 160}, make([]byte, 320)...)
	}, []string{"E config-method"}, `the method is "fp8", and 3 tensors are quantized by GPTQ`},
	{"reciprocal rows", "llama-ct-fp8-dynamic", 3, func(e *edited) {
		s, _ := e.find(o0 + "weight_scale")
		for i := 0; i < len(s.Data); i += 2 {
			x := math.Float32frombits(uint32(binary.LittleEndian.Uint16(s.Data[i:])) << 16)
			binary.LittleEndian.PutUint16(s.Data[i:], uint16(math.Float32bits(1/x)>>16))
		}
	}, []string{"E scale-reciprocal"}, "with the reciprocal"},
	{"scales rounded late", "llama-deepseek-fp8", 6, func(e *edited) {
		for _, list := range e.shards {
			for _, s := range list {
				if strings.HasSuffix(s.Name, "_scale_inv") {
					powers(s.Data)
				}
			}
		}
		e.quantization()["scale_fmt"] = "ue8m0"
	}, slices.Repeat([]string{"E ue8m0-late"}, 14), "the largest code is 448"},
	{"another block", "llama-deepseek-fp8", 20, func(e *edited) {
		e.quantization()["weight_block_size"] = []int{64, 64}
	}, slices.Repeat([]string{"E scale-grid"}, 14), ""},
}

// powers makes numbers powers of two.
func powers(data []byte) {
	for i := 0; i < len(data); i += 4 {
		b := binary.LittleEndian.Uint32(data[i:])
		binary.LittleEndian.PutUint32(data[i:], b&^(1<<23-1))
	}
}

// values makes codes zeros in BF16, and codes the other way around large codes.
func values(e *edited, name string) {
	s, _ := e.find(name)
	s.DType, s.Data = safetensors.BF16, make([]byte, 2*len(s.Data))
}

func codes(e *edited, name string) {
	s, _ := e.find(name)
	s.DType, s.Data = safetensors.F8E4M3, s.Data[:len(s.Data)/2]
	for i := range s.Data {
		s.Data[i] = 0x70 + byte(i%12)
	}
}

// TestDefects checks that each defect is found where it is made, and nothing else but what
// follows from it.
func TestDefects(t *testing.T) {
	rows := map[int]bool{}
	for _, d := range defects {
		rows[d.row] = true
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			e := load(t, d.model)
			d.edit(e)
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
				require.NotEmpty(t, f.Loaders)
				require.NotEmpty(t, f.Mend)
				require.NotEmpty(t, f.Consequence)
				require.NotContains(t, f.Consequence, "\n")
			}
			require.ElementsMatch(t, d.want, got, said)
			require.Contains(t, said, d.says)
		})
	}
	for row := 1; row <= 20; row++ {
		require.True(t, rows[row], "no model has defect %d", row)
	}
}
