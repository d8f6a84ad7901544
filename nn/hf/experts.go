package hf

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/octavo-fp8/octavo/nn"
)

const (
	// biasRate is how fast biases are moved, of which configurations say nothing.
	biasRate = 0.001

	// groupScores is of how many scores the sum is by which groups of experts are chosen.
	groupScores = 2
)

// sizeOf reads a size that has one of two names.
func (f *fields) sizeOf(key, other string) int {
	f.know(key, other)
	if _, ok := f.values[key]; f.raw(other) != nil && (!ok || f.raw(key) == nil) {
		key = other
	}
	return f.size(key)
}

// mixtralExperts are as wide as an MLP.
var mixtralExperts = feature{
	func(d *described, f *fields) {
		d.Experts = &nn.ExpertsConfig{Hidden: d.Hidden, Router: nn.RouterConfig{
			Experts: f.sizeOf("num_local_experts", "num_experts"), TopK: f.size("num_experts_per_tok"),
			Score: nn.ScoreSoftmax,
		}}
	},
	func(c nn.Config, v members) {
		if x := c.Experts; x != nil {
			v["intermediate_size"] = x.Hidden
			v["num_local_experts"], v["num_experts_per_tok"] = x.Router.Experts, x.Router.TopK
		}
	},
}

var gptOSSExperts = feature{
	func(d *described, f *fields) {
		mixtralExperts.read(d, f)
		d.Sinks, d.Biases.MLP, d.Biases.Router = true, true, true
		d.Gate = nn.Gate{
			Activation: nn.GateClamped, Alpha: f.needed("swiglu_alpha"), Limit: f.needed("swiglu_limit"),
		}
		if f.sizeOr("experts_per_token", d.Experts.Router.TopK) != d.Experts.Router.TopK {
			f.refuse("experts_per_token", strconv.Itoa(d.Experts.Router.TopK)+", num_experts_per_tok")
		}
	},
	func(c nn.Config, v members) {
		mixtralExperts.write(c, v)
		v["swiglu_alpha"], v["swiglu_limit"] = c.Gate.Alpha, c.Gate.Limit
		v["hidden_act"] = "silu"
		if v[scalingKey] == nil {
			v[scalingKey] = members{"rope_type": "default"} // which is not what null is
		}
	},
}

// qwenExperts are in layers that are neither listed nor between others.
var qwenExperts = feature{
	func(d *described, f *fields) {
		const want = "a list of indices of layers"
		experts, normalized := f.sizeOf("num_local_experts", "num_experts"), f.truth("norm_topk_prob")
		x := &nn.ExpertsConfig{Hidden: f.size("moe_intermediate_size"), Router: nn.RouterConfig{
			Experts: experts, TopK: f.size("num_experts_per_tok"),
			Score: nn.ScoreSoftmax, Unnormalized: !normalized,
		}}
		var listed []int
		f.read("mlp_only_layers", want, &listed)
		step := f.size("decoder_sparse_step")
		if f.countOr("shared_expert_intermediate_size", 0) != 0 {
			f.refuse("shared_expert_intermediate_size", "0: experts of this architecture are not shared")
		}
		if f.err != nil || d.Layers > 1<<20 {
			return
		}
		var dense []int
		for layer := range d.Layers {
			if slices.Contains(listed, layer) || (layer+1)%step != 0 {
				dense = append(dense, layer)
			}
		}
		first := 0
		for first < len(dense) && dense[first] == first {
			first++
		}
		if first < d.Layers {
			d.Experts, d.Dense, d.DenseLayers = x, first, slices.Clone(dense[first:])
		}
	},
	func(c nn.Config, v members) {
		v["decoder_sparse_step"] = 1
		dense := slices.Clone(c.DenseLayers)
		for layer := range c.Dense {
			dense = append(dense, layer)
		}
		slices.Sort(dense)
		v["mlp_only_layers"] = dense
		if x := c.Experts; x != nil {
			v["moe_intermediate_size"], v["norm_topk_prob"] = x.Hidden, !x.Router.Unnormalized
			v["num_experts"], v["num_experts_per_tok"] = x.Router.Experts, x.Router.TopK
		}
	},
}

// sigmoidExperts are those of DeepSeek-V3, with biases for choosing.
var sigmoidExperts = feature{
	func(d *described, f *fields) {
		d.readExperts(f, func(r *nn.RouterConfig) {
			const why = "models of this architecture choose experts in no other way"
			f.word("scoring_func", why, "sigmoid")
			f.word("topk_method", why, "noaux_tc")
			r.Score, r.Unnormalized, r.BiasRate = nn.ScoreSigmoid, !f.truth("norm_topk_prob"), biasRate
			if r.Groups, r.TopGroups = f.size("n_group"), f.size("topk_group"); r.Groups > 1 {
				r.GroupScores = groupScores
			}
			if f.err == nil && r.Experts < groupScores*r.Groups {
				f.refuse("n_group", "groups of two experts at least: they are chosen by the sums of two scores")
			}
		})
		d.scored = d.Experts != nil
	},
	func(c nn.Config, v members) { writeExperts(c, v, "noaux_tc") },
}

// softmaxExperts are those of DeepSeek-V2.
var softmaxExperts = feature{
	func(d *described, f *fields) {
		d.readExperts(f, func(r *nn.RouterConfig) {
			const why = "models of this architecture choose experts in no other way"
			const limited = "group_limited_greedy"
			f.word("scoring_func", why, "softmax")
			r.Score, r.Unnormalized = nn.ScoreSoftmax, true
			if f.know("n_group", "topk_group"); f.word("topk_method", why, "greedy", limited) == limited {
				r.Groups, r.TopGroups, r.GroupScores = f.size("n_group"), f.size("topk_group"), 1
			}
		})
	},
	func(c nn.Config, v members) {
		method := "greedy"
		if c.Experts != nil && c.Experts.Router.Groups > 1 {
			method = "group_limited_greedy"
		}
		writeExperts(c, v, method)
	},
}

// readExperts reads those of all layers behind the first dense ones.
func (d *described) readExperts(f *fields, more func(*nn.RouterConfig)) {
	d.predicted = f.countOr("num_nextn_predict_layers", 0)
	dense := f.count("first_k_dense_replace")
	if f.sizeOr("moe_layer_freq", 1) != 1 {
		f.refuse("moe_layer_freq", "1: models of this architecture have experts in every layer that is not dense")
	}
	if dense >= d.Layers {
		f.know("moe_intermediate_size", "n_shared_experts", "n_routed_experts", "num_experts_per_tok",
			"routed_scaling_factor", "scoring_func", "topk_method", "norm_topk_prob", "n_group", "topk_group")
		return
	}
	x := &nn.ExpertsConfig{
		Hidden: f.size("moe_intermediate_size"), Shared: f.countOr("n_shared_experts", 0),
		Router: nn.RouterConfig{
			Experts: f.sizeOf("n_routed_experts", "num_experts"), TopK: f.size("num_experts_per_tok"),
			Scale: f.needed("routed_scaling_factor"),
		},
	}
	more(&x.Router)
	d.Dense, d.Experts = dense, x
}

func writeExperts(c nn.Config, v members, method string) {
	x := c.Experts
	if x == nil {
		v["first_k_dense_replace"] = c.Layers
		return
	}
	r := x.Router
	v["first_k_dense_replace"], v["moe_layer_freq"], v["moe_intermediate_size"] = c.Dense, 1, x.Hidden
	v["n_routed_experts"], v["n_shared_experts"], v["num_experts_per_tok"] = r.Experts, x.Shared, r.TopK
	v["n_group"], v["topk_group"] = cmp.Or(r.Groups, 1), cmp.Or(r.TopGroups, 1)
	v["norm_topk_prob"], v["routed_scaling_factor"] = !r.Unnormalized, cmp.Or(r.Scale, 1)
	v["scoring_func"], v["topk_method"] = r.Score.String(), method
}
