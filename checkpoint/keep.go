package checkpoint

import (
	"regexp"
	"strings"
)

// keepRule is what layouts leave as it is, by the name of the module.
type keepRule struct {
	match *regexp.Regexp

	// listed says that loaders take the module for one that is quantized unless the
	// configuration lists it.
	listed bool
}

// keepRules are modules that stay as they are by default: what loaders do not expect to be
// quantized, and what is small and hurts.
var keepRules = []keepRule{
	{regexp.MustCompile(`(^|\.)(embed|embed_tokens|embed_in|wte|wpe)$`), false},
	{regexp.MustCompile(`(^|[._])embeddings?$`), false},
	{regexp.MustCompile(`norm[0-9]*$`), false},
	{regexp.MustCompile(`(^|\.)(lm_head|head|embed_out|output|score|classifier|shared_head\.head)$`), true},
	{regexp.MustCompile(`(^|\.)(gate|router|shared_expert_gate)$`), true},
	{regexp.MustCompile(`(^|\.)router\.`), true},
	{regexp.MustCompile(`(^|\.)(eh_proj|indexer\.weights_proj)$`), true},
	{regexp.MustCompile(`(^|\.)(visual|vision_(tower|model|encoder)|audio_tower)\.`), true},
	{regexp.MustCompile(`(^|\.)multi_modal_projector\.`), true},
}

// Kept reports whether a module stays as it is by default, and whether configurations have to
// list it then.
func Kept(module string) (keep, listed bool) {
	for _, rule := range keepRules {
		if rule.match.MatchString(module) {
			return true, rule.listed
		}
	}
	return false, true
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
