package checkpoint

import (
	"fmt"
	"regexp"

	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// Patterns of names of weights.
var (
	routedExpert   = regexp.MustCompile(`\.experts\.\d+\.`)
	lastProjection = regexp.MustCompile(`\.(down_proj|w2)\.weight$`)
	stackedExpert  = regexp.MustCompile(`\.experts\.[a-z0-9_]+$`)
)

// layouts are all layouts. Where a model's tensors fit several and its configuration says
// nothing, the first of them counts.
var layouts = []*Layout{
	{Name: "bf16", About: "values in bfloat16", Plain: safetensors.BF16},
	{Name: "f16", About: "values in IEEE binary16", Plain: safetensors.F16},
	{Name: "f32", About: "values in float32", Plain: safetensors.F32},
	{
		Name: "deepseek-v3-ue8m0", About: "DeepSeek-V3.1 and V3.2: as deepseek-v3, scales are powers of two",
		When:        []Condition{{"quant_method", "fp8"}, {"weight_block_size", "*"}, {"scale_fmt", "ue8m0"}},
		Rules:       []Rule{{Scheme: fp8Block, Arithmetic: Arithmetic(scaling.DeepGEMMUE8M0)}},
		Documents:   []Document{deepSeekConfig(`,"scale_fmt":"ue8m0"`)},
		PowersOfTwo: true,
	},
	{
		Name: "deepseek-v3", About: "DeepSeek-V3 and transformers: E4M3, float32 weight_scale_inv for 128x128",
		When:      []Condition{{"quant_method", "fp8"}, {"weight_block_size", "*"}},
		Rules:     []Rule{{Scheme: fp8Block, Arithmetic: Arithmetic(scaling.DeepGEMM)}},
		Documents: []Document{deepSeekConfig("")},
	},
	{
		Name: "deepseek-v4", About: "DeepSeek-V4: E4M3 under E8M0 scales for 128x128, routed experts in E2M1 for 1x32",
		When: []Condition{{"quant_method", "fp8"}, {"weight_block_size", "*"}, {"scale_fmt", "ue8m0"}},
		Rules: []Rule{
			{Match: routedExpert, Scheme: fp4GroupE8M0, Arithmetic: Arithmetic(scaling.DeepGEMMFP4UE8M0)},
			{Scheme: fp8BlockE8M0, Arithmetic: Arithmetic(scaling.DeepGEMMUE8M0)},
		},
		Documents: []Document{deepSeekConfig(`,"scale_fmt":"ue8m0"`)},
		Top:       map[string]any{"expert_dtype": "fp4"},
	},
	{
		Name: "fp8", About: "vLLM's fp8: E4M3, one float32 weight_scale for each weight",
		When:       []Condition{{"quant_method", "fp8"}, {"weight_block_size", ""}},
		Rules:      []Rule{{Scheme: fp8Tensor, Arithmetic: AutoFP8}},
		Calibrated: Optional,
		KV:         [2]string{"k_scale", "v_scale"},
		Documents: []Document{{
			File: ConfigName, Key: quantizationKey, Ignore: "ignored_layers",
			JSON:   `{"activation_scheme":"dynamic","quant_method":"fp8"}`,
			Static: `{"activation_scheme":"static","quant_method":"fp8"}`,
			KV:     "kv_cache_scheme", KVJSON: `"static"`,
		}},
	},
	{
		Name: "ct-fp8", About: "compressed-tensors FP8: E4M3, one weight_scale and one input_scale for each weight",
		When:       ctWhen("float-quantized", "tensor", "*"),
		Rules:      []Rule{{Scheme: ctTensor, Arithmetic: CompressedTensors}},
		Share:      true,
		Calibrated: Calibrated,
		KV:         [2]string{"k_scale", "v_scale"},
		Documents: []Document{ctConfig("float-quantized",
			ctArgs{bits: 8, strategy: "tensor"}, &ctArgs{bits: 8, strategy: "tensor", observer: "static_minmax"})},
	},
	{
		Name: "ct-fp8-dynamic", About: "compressed-tensors FP8_DYNAMIC: E4M3, one weight_scale for each row",
		When:  ctWhen("float-quantized", "channel", "*"),
		Rules: []Rule{{Scheme: ctChannel, Arithmetic: CompressedTensors}},
		Documents: []Document{ctConfig("float-quantized",
			ctArgs{bits: 8, strategy: "channel"}, &ctArgs{bits: 8, strategy: "token", dynamic: "true"})},
	},
	{
		Name: "ct-fp8-block", About: "compressed-tensors FP8_BLOCK: E4M3, weight_scale for 128x128",
		When:  ctWhen("float-quantized", "block", "*"),
		Rules: []Rule{{Scheme: ctBlock, Arithmetic: CompressedTensors}},
		Documents: []Document{ctConfig("float-quantized",
			ctArgs{bits: 8, strategy: "block", block: "[128,128]"}, &ctArgs{bits: 8, strategy: "group", group: 128, dynamic: "true"})},
	},
	{
		Name: "ct-mxfp8", About: "compressed-tensors MXFP8: E4M3, E8M0 scales for 1x32",
		When:  ctWhen("mxfp8-quantized", "group", "*"),
		Rules: []Rule{{Scheme: ctMXFP8, Arithmetic: Arithmetic(scaling.MXCompressedTensors)}},
		Documents: []Document{ctConfig("mxfp8-quantized",
			ctArgs{bits: 8, strategy: "group", group: 32, scale: "torch.uint8"},
			&ctArgs{bits: 8, strategy: "group", group: 32, scale: "torch.uint8", dynamic: "true"})},
	},
	{
		Name: "ct-mxfp4", About: "compressed-tensors MXFP4: E2M1, E8M0 scales for 1x32",
		When:  ctWhen("mxfp4-pack-quantized", "group", "*"),
		Rules: []Rule{{Scheme: ctMXFP4, Arithmetic: Arithmetic(scaling.MXCompressedTensors)}},
		Documents: []Document{ctConfig("mxfp4-pack-quantized",
			ctArgs{bits: 4, strategy: "group", group: 32, scale: "torch.uint8"},
			&ctArgs{bits: 4, strategy: "group", group: 32, scale: "torch.uint8", dynamic: "true"})},
	},
	{
		Name: "ct-nvfp4a16", About: "compressed-tensors NVFP4A16: E2M1, UE4M3 scales for 1x16, a global divisor; inputs as they are",
		When:      ctWhen("nvfp4-pack-quantized", "tensor_group", ""),
		Rules:     []Rule{{Scheme: ctNVFP4, Arithmetic: CompressedTensors}},
		Share:     true,
		Documents: []Document{ctConfig("nvfp4-pack-quantized", nvfp4Args, nil)},
	},
	{
		Name: "ct-mixed", About: "compressed-tensors with a scheme for each module, of --recipe-file; by itself ct-nvfp4a16, with down_proj as ct-fp8-dynamic",
		When: []Condition{{"quant_method", "compressed-tensors"}, {"format", "mixed-precision"}},
		Rules: []Rule{
			{Match: lastProjection, Scheme: ctChannel, Arithmetic: CompressedTensors},
			{Scheme: ctNVFP4, Arithmetic: CompressedTensors},
			{Scheme: ctMXFP4, Arithmetic: Arithmetic(scaling.MXCompressedTensors)},
			{Scheme: ctMXFP8, Arithmetic: Arithmetic(scaling.MXCompressedTensors)},
			{Scheme: ctBlock, Arithmetic: CompressedTensors},
		},
		Mixed: true, Share: true,
		Documents: []Document{{
			File: ConfigName, Key: quantizationKey, Ignore: "ignore", Groups: true, JSON: ctJSON("mixed-precision", ""),
		}},
	},
	{
		Name: "ct-nvfp4", About: "compressed-tensors NVFP4: as ct-nvfp4a16, with a global divisor of the input",
		When:       ctWhen("nvfp4-pack-quantized", "tensor_group", "*"),
		Rules:      []Rule{{Scheme: ctNVFP4, Arithmetic: CompressedTensors}},
		Share:      true,
		Calibrated: Calibrated,
		KV:         [2]string{"k_scale", "v_scale"},
		Documents: []Document{ctConfig("nvfp4-pack-quantized", nvfp4Args,
			&ctArgs{bits: 4, strategy: "tensor_group", group: 16, scale: "torch.float8_e4m3fn", dynamic: `"local"`, observer: "static_minmax"})},
	},
	{
		Name: "modelopt-fp8", About: "ModelOpt FP8: E4M3, one float32 weight_scale and input_scale for each weight",
		When:       []Condition{{"quant_method", "modelopt"}, {"quant_algo", "FP8"}},
		Rules:      []Rule{{Scheme: fp8Tensor, Arithmetic: ModelOpt}},
		Share:      true,
		Calibrated: Calibrated,
		KV:         [2]string{"k_proj.k_scale", "v_proj.v_scale"},
		Documents: modelOptConfigs("FP8", "",
			`{"dynamic":false,"num_bits":8,"type":"float"}`),
	},
	{
		Name: "modelopt-nvfp4", About: "ModelOpt NVFP4: E2M1, UE4M3 scales for 1x16, a global multiplier",
		When:       []Condition{{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}},
		Rules:      []Rule{{Scheme: modelOptNVFP4, Arithmetic: Arithmetic(scaling.NVFP4ModelOpt)}},
		Share:      true,
		Calibrated: Calibrated,
		KV:         [2]string{"k_proj.k_scale", "v_proj.v_scale"},
		Documents: modelOptConfigs("NVFP4", `,"group_size":16`,
			`{"dynamic":false,"num_bits":4,"type":"float","group_size":16}`),
	},
	{
		Name: "gpt-oss", About: "gpt-oss MXFP4: stacks of experts in E2M1, E8M0 scales for 1x32",
		When:  []Condition{{"quant_method", "mxfp4"}},
		Rules: []Rule{{Match: stackedExpert, Scheme: gptOSS, Arithmetic: Arithmetic(scaling.MXRCeil)}},
		Documents: []Document{{
			File: ConfigName, Key: quantizationKey, JSON: `{"quant_method":"mxfp4"}`, Ignore: "modules_to_not_convert",
			Ignored: []string{"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"},
		}},
	},
	{
		Name: "torchao", About: "torchao Float8Tensor: E4M3, one scale for each row or weight; is read only",
		When:  []Condition{{"quant_method", "torchao"}},
		Rules: []Rule{{Scheme: torchAOChannel}, {Scheme: torchAOTensor}},
	},
}

// deepSeekConfig is the configuration of DeepSeek's layouts, with more members. Heads,
// routers and what else their models never quantize is not in it.
func deepSeekConfig(more string) Document {
	return Document{
		File: ConfigName, Key: quantizationKey, Ignore: "modules_to_not_convert", Unlisted: true,
		JSON: `{"activation_scheme":"dynamic","fmt":"e4m3","quant_method":"fp8","weight_block_size":[128,128]` + more + `}`,
	}
}

// ctVersion is the version of compressed-tensors whose configuration is written.
const ctVersion = "0.18.0"

// ctArgs are QuantizationArgs of compressed-tensors. Weights are observed by
// memoryless_minmax.
type ctArgs struct {
	bits     int
	strategy string
	group    int
	block    string
	scale    string
	dynamic  string
	observer string
}

var nvfp4Args = ctArgs{bits: 4, strategy: "tensor_group", group: 16, scale: "torch.float8_e4m3fn"}

func (a ctArgs) json() string {
	orNull := func(text string, quoted bool) string {
		switch {
		case text == "":
			return "null"
		case quoted:
			return `"` + text + `"`
		}
		return text
	}
	group := ""
	if a.group > 0 {
		group = fmt.Sprint(a.group)
	}
	dynamic := a.dynamic
	if dynamic == "" {
		dynamic = "false"
	}
	return fmt.Sprintf(`{"actorder":null,"block_structure":%s,"dynamic":%s,"group_size":%s,"num_bits":%d,"observer":%s,`+
		`"observer_kwargs":{},"scale_dtype":%s,"strategy":%q,"symmetric":true,"type":"float","zp_dtype":null}`,
		orNull(a.block, false), dynamic, orNull(group, false), a.bits, orNull(a.observer, true), orNull(a.scale, true), a.strategy)
}

// ctConfig is the configuration of a layout of compressed-tensors.
func ctConfig(format string, weights ctArgs, input *ctArgs) Document {
	weights.observer = "memoryless_minmax"
	activations := "null"
	if input != nil {
		activations = input.json()
	}
	kv := ctArgs{bits: 8, strategy: "tensor", observer: "static_minmax"}
	return Document{
		File: ConfigName, Key: quantizationKey, Ignore: "ignore", KV: "kv_cache_scheme", KVJSON: kv.json(),
		JSON: ctJSON(format, fmt.Sprintf(`"group_0":{"format":%q,"input_activations":%s,"output_activations":null,"targets":["Linear"],"weights":%s}`,
			format, activations, weights.json())),
	}
}

// ctJSON is the configuration of compressed-tensors, with groups.
func ctJSON(format, groups string) string {
	return fmt.Sprintf(`{"config_groups":{%s},"format":%q,"global_compression_ratio":null,"ignore":[],"kv_cache_scheme":null,`+
		`"quant_method":"compressed-tensors","quantization_status":"compressed","transform_config":{},"version":%q}`, groups, format, ctVersion)
}

// ctWhen is what the configuration of a layout of compressed-tensors says.
func ctWhen(format, strategy, activations string) []Condition {
	return []Condition{
		{"quant_method", "compressed-tensors"},
		{"format", format},
		{"config_groups.*.weights.strategy", strategy},
		{"config_groups.*.input_activations", activations},
	}
}

// modelOptConfigs are the two configurations of ModelOpt.
func modelOptConfigs(algo, group, args string) []Document {
	const producer = `{"name":"modelopt","version":"0.37.0"}`
	return []Document{
		{
			File: ConfigName, Key: quantizationKey, Ignore: "ignore",
			JSON: fmt.Sprintf(`{"config_groups":{"group_0":{"input_activations":%s,"weights":%[1]s,"targets":["Linear"]}},`+
				`"ignore":[],"quant_algo":%q,"producer":%s,"quant_method":"modelopt"}`, args, algo, producer),
			KV: "kv_cache_scheme", KVJSON: `{"dynamic":false,"num_bits":8,"type":"float"}`,
		},
		{
			File: ModelOptName, Ignore: "quantization.exclude_modules",
			JSON: fmt.Sprintf(`{"producer":%s,"quantization":{"quant_algo":%q,"kv_cache_quant_algo":null%s,"exclude_modules":[]}}`, producer, algo, group),
			KV:   "quantization.kv_cache_quant_algo", KVJSON: `"FP8"`,
		},
	}
}
