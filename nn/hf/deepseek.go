package hf

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
)

// Constants of DeepSeek-V3.
const (
	deepseekPositions = 4096

	// latentNormEps is added in norms of latents, whatever rms_norm_eps is.
	latentNormEps = 1e-6

	// biasRate is how fast biases are moved, of which the layout says nothing.
	biasRate = 0.001

	// groupScores is of how many scores the sum is by which groups of experts are chosen.
	groupScores = 2
)

// readDeepSeek reads the members that a Llama does not have.
func (d *described) readDeepSeek(f *fields) {
	d.MLA = readMLA(f)
	if d.NormEps != latentNormEps {
		d.MLA.NormEps = latentNormEps
	}
	if f.sizeOr("num_key_value_heads", d.Heads) != d.Heads {
		f.refuse("num_key_value_heads",
			strconv.Itoa(d.Heads)+", num_attention_heads: latent attention has keys of every head")
	}
	if f.sizeOr("head_dim", d.MLA.RoPE) != d.MLA.RoPE {
		f.refuse("head_dim", strconv.Itoa(d.MLA.RoPE)+", qk_rope_head_dim: no more is rotated")
	}
	d.interleaved = true
	f.read("rope_interleave", "true or false", &d.interleaved)
	d.predicted = f.countOr("num_nextn_predict_layers", 0)
	if dense := f.count("first_k_dense_replace"); dense < d.Layers {
		d.Dense, d.Experts = dense, readExperts(f)
	}
}

func readMLA(f *fields) *nn.MLAConfig {
	return &nn.MLAConfig{
		QueryRank: f.sizeOr("q_lora_rank", 0), KVRank: f.size("kv_lora_rank"),
		NoPE: f.size("qk_nope_head_dim"), RoPE: f.size("qk_rope_head_dim"),
		Value: f.size("v_head_dim"),
	}
}

func readExperts(f *fields) *nn.ExpertsConfig {
	const why = "package nn knows no other way to choose experts as DeepSeek-V3 does"
	f.only("scoring_func", why, "sigmoid")
	f.only("topk_method", why, "noaux_tc")
	if f.sizeOr("moe_layer_freq", 1) != 1 {
		f.refuse("moe_layer_freq", "1: package nn has experts in every layer that is not dense")
	}
	normalized := true
	f.read("norm_topk_prob", "true or false", &normalized)
	x := &nn.ExpertsConfig{
		Hidden: f.size("moe_intermediate_size"), Shared: f.countOr("n_shared_experts", 0),
		Router: nn.RouterConfig{
			Experts: f.size("n_routed_experts"), TopK: f.size("num_experts_per_tok"),
			Groups: f.size("n_group"), TopGroups: f.size("topk_group"),
			Scale: f.needed("routed_scaling_factor"), Unnormalized: !normalized,
			BiasRate: biasRate,
		},
	}
	if f.err == nil && !sameGroups(x.Router) {
		f.refuse("num_experts_per_tok", fmt.Sprintf("%d or %d: with groups, package nn sums "+
			"num_experts_per_tok/topk_group of their scores, and the layout %d",
			groupScores*x.Router.TopGroups, groupScores*x.Router.TopGroups+1, groupScores))
	}
	return x
}

// sameGroups reports whether package nn chooses the groups of experts that the layout's readers
// do: those with the largest sums of two scores.
func sameGroups(r nn.RouterConfig) bool {
	return r.TopGroups >= r.Groups || r.TopK/r.TopGroups == groupScores
}

// unsaved returns why no layout has a name for what a model with MLA or experts is, nil if there
// is nothing.
func unsaved(c nn.Config) error {
	switch {
	case c.MLA == nil && c.Experts == nil:
		return nil
	case c.MLA == nil:
		return saveError("Config.Experts without Config.MLA",
			"experts are written with DeepSeek-V3's attention alone")
	}
	if eps := cmp.Or(c.MLA.NormEps, c.NormEps); eps != latentNormEps {
		return saveError(fmt.Sprintf("a NormEps of %v in norms of latents", eps),
			"readers of DeepSeek-V3's layout have 1e-06 there: set Config.MLA.NormEps")
	}
	if c.Experts == nil {
		return nil
	}
	return unsavedExperts(*c.Experts)
}

// unsavedExperts is unsaved of experts.
func unsavedExperts(x nn.ExpertsConfig) error {
	switch r := x.Router; {
	case x.CapacityFactor != 0:
		return saveError(fmt.Sprintf("Config.Experts.CapacityFactor of %v", x.CapacityFactor),
			"DeepSeek-V3's layout has no name for it, and its readers drop nothing")
	case r.Score != nn.ScoreSigmoid:
		return saveError(fmt.Sprintf("Config.Experts.Router.Score %v", r.Score),
			"DeepSeek-V3's layout has sigmoid")
	case !sameGroups(r):
		return saveError(fmt.Sprintf("Config.Experts.Router with TopK %d and TopGroups %d of %d",
			r.TopK, r.TopGroups, r.Groups),
			"readers of DeepSeek-V3's layout choose groups by the sums of two scores, and these "+
				"by those of TopK/TopGroups")
	case r.Experts < groupScores*max(r.Groups, 1):
		return saveError(fmt.Sprintf("Config.Experts.Router with %d experts in %d groups",
			r.Experts, max(r.Groups, 1)), "DeepSeek-V3's layout has two or more in each")
	}
	return nil
}

func saveError(what, why string) error {
	return configError("the model", "it has %s: %s; checkpoints of package train keep every model",
		what, why)
}

// gateName is the end of the names of routers' weights, and biasName what takes the place of its
// "weight" in those of biases.
const (
	gateName = ".mlp.gate.weight"
	biasName = "e_score_correction_bias"
)

// biasOf returns the name of the biases of a router by that of its weight, or "" if it is of
// another layer.
func biasOf(weight string) string {
	if !strings.HasSuffix(weight, gateName) {
		return ""
	}
	return strings.TrimSuffix(weight, "weight") + biasName
}

// isPredicted reports whether a tensor is of the layers behind the last one, which predict
// tokens further on and take no part in what package nn computes.
func (d *described) isPredicted(name string) bool {
	rest, ok := strings.CutPrefix(name, "model.layers.")
	number, _, _ := strings.Cut(rest, ".")
	layer, err := strconv.Atoi(number)
	return ok && err == nil && layer >= d.Layers && layer-d.Layers < d.predicted
}
