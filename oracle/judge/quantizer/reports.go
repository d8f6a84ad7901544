package quantizer

import (
	"regexp"
	"strings"
)

// reportedAs is what reports of kinds of fault with several ways are of, as patterns of their words;
// others are of all of a kind.
var reportedAs = map[Kind]map[string]*regexp.Regexp{
	"zero-block":         {"THUDM/slime#2256": regexp.MustCompile(`scale 0, .* NaN`)},
	"scale-exponent-off": {"ROCm/FlyDSL#590": regexp.MustCompile(`one too low`)},
	"scale-rounded-otherwise": {
		"vllm-project/vllm#43557":  regexp.MustCompile(`rounded down to a power of two`),
		"jax-ml/ml_dtypes#298":     regexp.MustCompile(`amax/.* rounded to the nearest power of two`),
		"ROCm/aiter#3212":          regexp.MustCompile(`amax, rounded to the nearest power of two .*, over`),
		"deepseek-ai/FlashMLA#184": regexp.MustCompile(`rounded (up|down) to a power of two`),
	},
	"scale-largest":       {"ROCm/aiter#3212": regexp.MustCompile(`amax, rounded to the nearest power of two .*, over`)},
	"scale-stored-narrow": {"kekzl/imp#250": regexp.MustCompile(`a power of two|the nearest power of two`)},
	"scale-layout":        {"ROCm/rocm-libraries#12232": regexp.MustCompile(`128x4`)},
	"double-rounding": {
		"flashinfer-ai/flashinfer#5128": regexp.MustCompile(`\bbfloat16`),
		"triton-lang/triton#11753":      regexp.MustCompile(`\bfloat16`),
	},
}

// seen are the public reports of a change.
func (c *Change) seen() (all []string) {
	for _, k := range Known() {
		for _, report := range k.Reports {
			way := reportedAs[c.Kind][report]
			if k.Kind == string(c.Kind) && (way == nil || way.MatchString(c.Words)) {
				all = append(all, report)
			}
		}
	}
	return all
}

// seenIn says in which public reports a change was seen.
func (c *Change) seenIn() string {
	if all := c.seen(); len(all) > 0 {
		return " (seen in " + strings.Join(all, ", ") + ")"
	}
	return ""
}
