package plan

import (
	"cmp"
	"regexp"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/tensor"
)

// recipesOf are the recipes that count the bytes of weights in layouts of package checkpoint.
var recipesOf = map[string]string{
	"deepseek-v3": "deepseek-v3", "deepseek-v3-ue8m0": "deepseek-v3", "ct-fp8-block": "deepseek-v3",
	"fp8": "te-current", "ct-fp8": "te-current", "modelopt-fp8": "te-current",
	"ct-fp8-dynamic": "fp8-rows", "ct-mxfp8": "mxfp8", "ct-mxfp4": "mxfp4", "gpt-oss": expertsOnly,
	"ct-nvfp4": "nvfp4", "ct-nvfp4a16": "nvfp4", "modelopt-nvfp4": "nvfp4",
}

const expertsOnly = "mxfp4-experts"

// published returns what a configuration says that weights are published in.
func (f *configFields) published(c checkpoint.Config) string {
	if c.Quantization == nil && c.ModelOpt == nil {
		var dtype, newer string
		f.read("torch_dtype", "a name", &dtype)
		f.read("dtype", "a name", &newer)
		if cmp.Or(newer, dtype) == "bfloat16" {
			return "bf16"
		}
		return ""
	}
	for _, l := range checkpoint.Layouts() {
		recipe := recipesOf[l.Name]
		if recipe == "" || !l.Declared(c) {
			continue
		}
		block, ok := c.Block()
		switch {
		case recipe == "deepseek-v3" && ok && block != (tensor.Block{Rows: 128, Cols: 128}):
			return c.Method() + " of blocks of " + block.String()
		case recipe != expertsOnly && skips(c):
			return c.Method() + " of some layers"
		}
		return recipe
	}
	return cmp.Or(c.Method(), "a quantization of no name")
}

// alwaysWhole are modules that no recipe quantizes.
var alwaysWhole = regexp.MustCompile(`(lm_head|embed_tokens|gate|router|norm)[*$]*$`)

// skips reports whether layers that a recipe quantizes are left as they are.
func skips(c checkpoint.Config) bool {
	inner, _ := c.ModelOpt["quantization"].(map[string]any)
	for _, declaration := range []map[string]any{c.Quantization, inner} {
		for _, key := range []string{"ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules"} {
			list, _ := declaration[key].([]any)
			for _, module := range list {
				if name, _ := module.(string); !alwaysWhole.MatchString(name) {
					return true
				}
			}
		}
	}
	return false
}
