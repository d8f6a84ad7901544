package checkpoint

import (
	"regexp"
	"strings"
)

// Part is a part of models of which no weight is quantized unless it is asked for: by layouts, by
// octavo quantize, and by the advice of octavo inspect. octavo lint finds some that were.
type Part struct {
	Name   string // "embedding"; several take an s
	Why    string // it stays: "looked up, not multiplied"
	Listed bool   // loaders take its modules for quantized ones unless the configuration lists them

	bare   bool           // names of tensors match, too
	module *regexp.Regexp // matches the name of a module, that of its weight without .weight
}

// parts are what loaders do not expect to be quantized, and what is small and hurts. Of those that
// match the first counts.
var parts = []Part{
	{"embedding", "looked up, not multiplied", false, false, regexp.MustCompile(`(^|\.)(embed(_in|_tokens|_tokens_per_layer|_positions)?|emb|wte|wpe|shared|relative_attention_bias)$|(^|[._])embeddings?$`)},
	{"norm", "a gain of all that passes", false, false, regexp.MustCompile(`norm[0-9]*$|(^|\.)ln_[a-z0-9]+$`)},
	{"router", "rounding it may send tokens to other experts", true, false, regexp.MustCompile(`(^|\.)(gate(\.wg)?|shared_expert_gate)$|(^|[._])router$|(^|\.)router\.`)},
	{"head", "rounding it moves every logit", true, false, regexp.MustCompile(`(^|\.)(lm_head|head|embed_out|output|output_layer|score|classifier(\.dense|\.out_proj)?|qa_outputs|cls\.predictions\.decoder)$`)},
	{"projection of MTP", "loaders expect no codes", true, false, regexp.MustCompile(`(^|\.)(eh_proj|mtp\.fc)$`)},
	{"projection of the indexer", "loaders expect no codes", true, false, regexp.MustCompile(`(^|\.)indexer\.weights_proj$`)},
	{"vision or audio weight", "loaders expect no codes", true, true, regexp.MustCompile(`(^|\.)(visual|vision(_tower|_model|_encoder|_backbone|_language_adapter)?|embed_vision|vpm|resampler|audio_tower|(multi_modal_)?projector)\.|^mlp1\.`)},
	{"bias vector", "added, not multiplied", false, true, regexp.MustCompile(`(^|[._])bias$`)},
	{"sink", "added, not multiplied", false, true, regexp.MustCompile(`(^|\.)sinks$`)},
}

// ofAttention matches projections, as RWKV has them, whose last names are those of parts.
var ofAttention = regexp.MustCompile(`(^|\.)(attention|attn|att|self_attn)\.(output|gate|head)$`)

// Kept returns the part of a model that a tensor is by its name, nil if it is none: only names
// MODULE.weight tell, but for biases, sinks and towers.
func Kept(tensor string) *Part {
	module, isModule := stem(tensor)
	if ofAttention.MatchString(module) {
		return nil
	}
	for i := range parts {
		if p := &parts[i]; (isModule || p.bare) && p.module.MatchString(module) {
			return p
		}
	}
	return nil
}

// fused are the last names of modules that loaders make one of.
var fused = [][]string{
	{"q_proj", "k_proj", "v_proj"},
	{"gate_proj", "up_proj"},
	{"q_a_proj", "kv_a_proj_with_mqa"},
	{"w1", "w3"},
}

// FusedName returns one name for all modules that a loader fuses with the given one: its own
// if it is fused with none.
func FusedName(module string) string {
	at := strings.LastIndexByte(module, '.') + 1
	for _, names := range fused {
		for _, name := range names {
			if module[at:] == name {
				return module[:at] + strings.Join(names, "+")
			}
		}
	}
	return module
}

// kvScale matches scales of cached keys and values.
var kvScale = regexp.MustCompile(`\.([kv]_scale|[kv]_proj\.([kv]|output)_scale|kv_scale)$`)
