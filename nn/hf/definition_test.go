package hf_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// definition is a model as files have it, and what it computes by the equations of transformers
// (models/*/modeling_*.py), those of DeepSeek-V3 by its report's (arXiv 2412.19437, sections 2.1.1
// and 2.1.2), in float64. Of the members that classes have defaults for, all must be there.
type definition struct {
	config  map[string]any
	weights map[string][]float64
}

func (d *definition) kind() string { return cmp.Or(d.text("model_type"), "deepseek_v3") }

func (d *definition) text(key string) string {
	s, _ := d.config[key].(string)
	return s
}

func (d *definition) number(key string) float64 { return number(d.config, key) }

func number(m map[string]any, key string) float64 {
	x, _ := m[key].(float64)
	return x
}

func (d *definition) size(key string) int { return int(d.number(key)) }

func (d *definition) sizeOr(key string, otherwise int) int { return cmp.Or(d.size(key), otherwise) }

// linear returns x·Wᵀ, plus a bias where there is one, for the weight of a name.
func (d *definition) linear(name string, x []float64) []float64 {
	w, bias := d.weights[name+".weight"], d.weights[name+".bias"]
	y := make([]float64, len(w)/len(x))
	copy(y, bias)
	for i := range y {
		sum := 0.0
		for j, v := range w[i*len(x):][:len(x)] {
			sum += v * x[j]
		}
		y[i] += sum
	}
	return y
}

func (d *definition) norm(name string, x []float64, eps float64) []float64 {
	square := 0.0
	for _, v := range x {
		square += v * v
	}
	y := slices.Clone(x)
	for i := range y {
		gain := d.weights[name+".weight"][i]
		if d.kind() == "gemma3_text" {
			gain++
		}
		y[i] *= gain / math.Sqrt(square/float64(len(x))+eps)
	}
	return y
}

// slides reports whether a layer's attention has a window.
func (d *definition) slides(layer int) bool {
	switch d.kind() {
	case "mistral", "mixtral", "phi3", "qwen3_moe":
		return d.config["sliding_window"] != nil && d.config["use_sliding_window"] != false
	}
	types, _ := d.config["layer_types"].([]any)
	return types != nil && types[layer] == "sliding_attention"
}

// rope returns the frequencies of a layer for sequences of a length, of dim elements that are
// rotated, and what rotated elements are multiplied by.
func (d *definition) rope(layer, dim, length int) (frequencies []float64, factor float64) {
	p, _ := d.config["rope_parameters"].(map[string]any)
	if p == nil {
		p = map[string]any{}
		scaling, _ := d.config["rope_scaling"].(map[string]any)
		for key, value := range scaling {
			p[strings.Replace("="+key, "=type", "rope_type", 1)] = value
			p[key] = value
		}
		p["rope_theta"] = d.config["rope_theta"]
	}
	if of := p["full_attention"]; of != nil {
		if d.slides(layer) {
			of = p["sliding_attention"]
		}
		p = of.(map[string]any)
	}
	factor = 1
	scale, original, theta := number(p, "factor"), number(p, "original_max_position_embeddings"), number(p, "rope_theta")
	original = cmp.Or(d.number("original_max_position_embeddings"), original, d.number("max_position_embeddings"))
	for i := range dim / 2 {
		frequencies = append(frequencies, math.Pow(theta, -2*float64(i)/float64(dim)))
	}
	sharp := func(by float64) float64 {
		if scale <= 1 {
			return 1
		}
		return 0.1*by*math.Log(scale) + 1
	}
	switch p["rope_type"] {
	case "linear":
		for i := range frequencies {
			frequencies[i] /= scale
		}
	case "llama3":
		low, high := number(p, "low_freq_factor"), number(p, "high_freq_factor")
		for i, f := range frequencies {
			wavelength := 2 * math.Pi / f
			switch {
			case wavelength > original/low:
				frequencies[i] = f / scale
			case wavelength >= original/high:
				smooth := (original/wavelength - low) / (high - low)
				frequencies[i] = (1-smooth)*f/scale + smooth*f
			}
		}
	case "yarn":
		if factor = sharp(1); number(p, "mscale") != 0 && number(p, "mscale_all_dim") != 0 {
			factor = sharp(number(p, "mscale")) / sharp(number(p, "mscale_all_dim"))
		}
		factor = cmp.Or(number(p, "attention_factor"), factor)
		turns := func(n float64) float64 {
			return float64(dim) * math.Log(original/(n*2*math.Pi)) / (2 * math.Log(theta))
		}
		low, high := turns(cmp.Or(number(p, "beta_fast"), 32)), turns(cmp.Or(number(p, "beta_slow"), 1))
		if p["truncate"] != false {
			low, high = math.Floor(low), math.Ceil(high)
		}
		low, high = math.Max(low, 0), math.Min(high, float64(dim-1))
		if low == high {
			high += 0.001
		}
		for i, f := range frequencies {
			ramp := math.Min(math.Max((float64(i)-low)/(high-low), 0), 1)
			frequencies[i] = f/scale*ramp + f*(1-ramp)
		}
	case "longrope":
		ratio := cmp.Or(scale, d.number("max_position_embeddings")/original)
		if ratio > 1 {
			factor = math.Sqrt(1 + math.Log(ratio)/math.Log(original))
		}
		factor = cmp.Or(number(p, "attention_factor"), factor)
		by := p["short_factor"]
		if float64(length) > original {
			by = p["long_factor"]
		}
		for i, x := range by.([]any) {
			frequencies[i] /= x.(float64)
		}
	}
	return frequencies, factor
}

// rotate rotates the pairs of the first elements of x by the angles of a position.
func (d *definition) rotate(x []float64, position int, frequencies []float64, factor float64) []float64 {
	y, n := slices.Clone(x), len(frequencies)
	interleaved := d.kind() == "glm" || d.kind() == "glm4" || d.kind() == "deepseek_v2" ||
		d.kind() == "deepseek_v3" && d.config["rope_interleave"] != false
	for i, f := range frequencies {
		a, b := 2*i, 2*i+1
		if !interleaved {
			a, b = i, i+n
		}
		sin, cos := math.Sincos(float64(position) * f)
		y[a], y[b] = factor*(x[a]*cos-x[b]*sin), factor*(x[a]*sin+x[b]*cos)
	}
	return y
}

// attention returns that of a layer's normalized stream.
func (d *definition) attention(layer int, stream [][]float64) (out [][]float64) {
	prefix := fmt.Sprintf("model.layers.%d.self_attn.", layer)
	heads := d.size("num_attention_heads")
	project, groups, scale := d.project, cmp.Or(heads/d.sizeOr("num_key_value_heads", heads), 1), 0.0
	if d.size("kv_lora_rank") > 0 {
		project = d.latents
	}
	var keys, values [][][]float64 // of each token, by heads
	for t, x := range stream {
		queries, key, value := project(layer, x, t, len(stream))
		keys, values = append(keys, key), append(values, value)
		scale = math.Pow(float64(len(queries[0])), -0.5)
		if d.kind() == "gemma3_text" {
			scale = math.Pow(d.number("query_pre_attn_scalar"), -0.5)
		}
		if p, ok := d.config["rope_parameters"].(map[string]any); ok && d.size("kv_lora_rank") > 0 && number(p, "mscale_all_dim") != 0 {
			scale *= math.Pow(0.1*number(p, "mscale_all_dim")*math.Log(number(p, "factor"))+1, 2)
		}
		first := 0
		if d.slides(layer) {
			first = max(t-d.size("sliding_window")+1, 0)
		}
		var mixed []float64
		for h, query := range queries {
			weights, total := make([]float64, t+1), 0.0
			for j := first; j <= t; j++ {
				sum, key := 0.0, keys[j][h/groups]
				for i, v := range query {
					sum += v * key[i]
				}
				weights[j] = math.Exp(sum * scale)
				total += weights[j]
			}
			if sinks := d.weights[prefix+"sinks"]; sinks != nil {
				total += math.Exp(sinks[h])
			}
			o := make([]float64, len(values[0][0]))
			for j := first; j <= t; j++ {
				w := weights[j] / total
				for i, v := range values[j][h/groups] {
					o[i] += w * v
				}
			}
			mixed = append(mixed, o...)
		}
		out = append(out, d.linear(prefix+"o_proj", mixed))
	}
	return out
}

// project returns queries, keys and values of a token, by heads.
func (d *definition) project(layer int, x []float64, position, length int) (q, k, v [][]float64) {
	prefix := fmt.Sprintf("model.layers.%d.self_attn.", layer)
	heads, kv := d.size("num_attention_heads"), d.sizeOr("num_key_value_heads", d.size("num_attention_heads"))
	dim := d.sizeOr("head_dim", d.size("hidden_size")/heads)
	all := d.linear(prefix+"qkv_proj", x)
	if len(all) == 0 {
		all = slices.Concat(d.linear(prefix+"q_proj", x), d.linear(prefix+"k_proj", x), d.linear(prefix+"v_proj", x))
	}
	of := slices.Collect(slices.Chunk(all, dim))
	q, k, v = of[:heads], of[heads:heads+kv], of[heads+kv:]
	rotated := dim
	p, _ := d.config["rope_parameters"].(map[string]any)
	if partial := cmp.Or(number(p, "partial_rotary_factor"), d.number("partial_rotary_factor")); partial > 0 {
		rotated = int(float64(dim) * partial)
	}
	frequencies, factor := d.rope(layer, rotated, length)
	for name, of := range map[string][][]float64{"q_norm": q, "k_norm": k} {
		for h := range of {
			if d.weights[prefix+name+".weight"] != nil {
				of[h] = d.norm(prefix+name, of[h], d.number("rms_norm_eps"))
			}
			of[h] = d.rotate(of[h], position, frequencies, factor)
		}
	}
	return q, k, v
}

// latents is project of latent attention.
func (d *definition) latents(layer int, x []float64, position, length int) (q, k, v [][]float64) {
	const eps = 1e-6 // of latents
	prefix := fmt.Sprintf("model.layers.%d.self_attn.", layer)
	rank, nope, rope := d.size("kv_lora_rank"), d.size("qk_nope_head_dim"), d.size("qk_rope_head_dim")
	frequencies, factor := d.rope(layer, rope, length)
	var all []float64
	if d.size("q_lora_rank") > 0 {
		all = d.linear(prefix+"q_b_proj", d.norm(prefix+"q_a_layernorm", d.linear(prefix+"q_a_proj", x), eps))
	} else {
		all = d.linear(prefix+"q_proj", x)
	}
	for query := range slices.Chunk(all, nope+rope) {
		q = append(q, slices.Concat(query[:nope], d.rotate(query[nope:], position, frequencies, factor)))
	}
	down := d.linear(prefix+"kv_a_proj_with_mqa", x)
	shared := d.rotate(down[rank:], position, frequencies, factor)
	up := d.linear(prefix+"kv_b_proj", d.norm(prefix+"kv_a_layernorm", down[:rank], eps))
	for of := range slices.Chunk(up, nope+d.size("v_head_dim")) {
		k, v = append(k, slices.Concat(of[:nope], shared)), append(v, of[nope:])
	}
	return q, k, v
}

// gated returns the product of the branches of an MLP.
func (d *definition) gated(gate, up []float64) []float64 {
	y := slices.Clone(up)
	act := cmp.Or(d.text("hidden_activation"), d.text("hidden_act"))
	clamped, limit, alpha := d.kind() == "gpt_oss", d.number("swiglu_limit"), d.number("swiglu_alpha")
	for i, g := range gate {
		switch {
		case clamped:
			g, u := math.Min(g, limit), math.Max(math.Min(up[i], limit), -limit)
			y[i] = (u + 1) * g / (1 + math.Exp(-g*alpha))
		case act == "gelu":
			y[i] *= 0.5 * g * (1 + math.Erf(g/math.Sqrt2))
		case strings.HasPrefix(act, "gelu"):
			y[i] *= 0.5 * g * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g)))
		default:
			y[i] *= g / (1 + math.Exp(-g))
		}
	}
	return y
}

func (d *definition) mlp(prefix string, x []float64) []float64 {
	g, u := d.linear(prefix+"gate_proj", x), d.linear(prefix+"up_proj", x)
	if both := d.linear(prefix+"gate_up_proj", x); len(both) > 0 {
		g, u = both[:len(both)/2], both[len(both)/2:]
	}
	return d.linear(prefix+"down_proj", d.gated(g, u))
}

// chosen returns the experts of a token: of the groups with the largest sums of some scores.
func (d *definition) chosen(scores []float64) []int {
	groups, top, of := d.sizeOr("n_group", 1), d.sizeOr("topk_group", 1), 2
	if d.kind() == "deepseek_v2" {
		if of = 1; d.text("topk_method") != "group_limited_greedy" {
			groups, top = 1, 1
		}
	}
	size := len(scores) / groups
	sums := make([]float64, groups)
	for g := range groups {
		sorted := slices.Sorted(slices.Values(scores[g*size : (g+1)*size]))
		for _, x := range sorted[size-min(of, size):] {
			sums[g] += x
		}
	}
	largest := func(values []float64, of []int, n int) []int {
		slices.SortFunc(of, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
		return of[:n]
	}
	var all, experts []int
	for g := range groups {
		all = append(all, g)
	}
	for _, g := range largest(sums, all, top) {
		for e := range size {
			experts = append(experts, g*size+e)
		}
	}
	return largest(scores, experts, d.size("num_experts_per_tok"))
}

// route returns the experts of a token, and the weights of their results by experts.
func (d *definition) route(prefix string, x []float64) (chosen []int, weights []float64) {
	name := prefix + "gate"
	if d.kind() == "gpt_oss" {
		name = prefix + "router"
	}
	scores := d.linear(name, x)
	bias := d.weights[name+".e_score_correction_bias"]
	total := 0.0
	for e, s := range scores {
		if scores[e] = math.Exp(s); bias != nil {
			scores[e] = 1 / (1 + math.Exp(-s))
		}
		total += scores[e]
	}
	choice := slices.Clone(scores)
	for e := range scores {
		if bias == nil {
			scores[e] /= total
			choice[e] = scores[e]
		} else {
			choice[e] += bias[e]
		}
	}
	chosen, total = d.chosen(choice), 1
	if d.config["norm_topk_prob"] != false && d.kind() != "deepseek_v2" {
		total = 0
		for _, e := range chosen {
			total += scores[e]
		}
	}
	scale := cmp.Or(d.number("routed_scaling_factor"), 1)
	for e := range scores {
		scores[e] *= scale / total
	}
	return chosen, scores
}

// expert returns the result of one.
func (d *definition) expert(prefix string, e int, x []float64) []float64 {
	if down := d.weights[prefix+"experts.down_proj"]; d.kind() == "gpt_oss" {
		dim, hidden := len(x), d.size("intermediate_size")
		both := slices.Clone(d.weights[prefix+"experts.gate_up_proj_bias"][e*2*hidden:][:2*hidden])
		w := d.weights[prefix+"experts.gate_up_proj"][e*dim*2*hidden:]
		for i := range both {
			for j := range x {
				both[i] += x[j] * w[j*2*hidden+i]
			}
		}
		gate, up := make([]float64, hidden), make([]float64, hidden)
		for i := range hidden {
			gate[i], up[i] = both[2*i], both[2*i+1]
		}
		y := slices.Clone(d.weights[prefix+"experts.down_proj_bias"][e*dim:][:dim])
		for j, v := range d.gated(gate, up) {
			for i := range y {
				y[i] += v * down[(e*hidden+j)*dim+i]
			}
		}
		return y
	}
	prefix = fmt.Sprintf("%sexperts.%d.", prefix, e)
	if d.kind() == "mixtral" {
		return d.linear(prefix+"w2", d.gated(d.linear(prefix+"w1", x), d.linear(prefix+"w3", x)))
	}
	return d.mlp(prefix, x)
}

// feedForward returns the result of an MLP, or of experts where a layer has a router.
func (d *definition) feedForward(layer int, x []float64) []float64 {
	prefix := fmt.Sprintf("model.layers.%d.mlp.", layer)
	if d.kind() == "mixtral" {
		prefix = fmt.Sprintf("model.layers.%d.block_sparse_moe.", layer)
	}
	if d.weights[prefix+"gate.weight"] == nil && d.weights[prefix+"router.weight"] == nil {
		return d.mlp(prefix, x)
	}
	y := make([]float64, len(x))
	if d.size("n_shared_experts") > 0 {
		y = d.mlp(prefix+"shared_experts.", x)
	}
	chosen, weights := d.route(prefix, x)
	for _, e := range chosen {
		for i, v := range d.expert(prefix, e, x) {
			y[i] += weights[e] * v
		}
	}
	return y
}

// logits returns those of all tokens.
func (d *definition) logits(tokens []int32) (all []float32) {
	dim, eps := d.size("hidden_size"), d.number("rms_norm_eps")
	gemma, after := d.kind() == "gemma3_text", d.kind() == "gemma3_text" || d.kind() == "glm4"
	var stream [][]float64
	for _, id := range tokens {
		x := slices.Clone(d.weights["model.embed_tokens.weight"][int(id)*dim:][:dim])
		for i := range x {
			if gemma {
				x[i] *= float64(float32(math.Sqrt(float64(dim))))
			}
		}
		stream = append(stream, x)
	}
	normed := func(name string, of [][]float64) (all [][]float64) {
		for _, x := range of {
			all = append(all, d.norm(name, x, eps))
		}
		return all
	}
	add := func(branch [][]float64, name string) {
		if after {
			branch = normed(name, branch)
		}
		for t := range stream {
			for i := range stream[t] {
				stream[t][i] += branch[t][i]
			}
		}
	}
	for layer := range d.size("num_hidden_layers") {
		prefix := fmt.Sprintf("model.layers.%d.", layer)
		between, afterAttention, afterMLP := "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm"
		if gemma {
			between, afterAttention, afterMLP = "pre_feedforward_layernorm", "post_attention_layernorm", "post_feedforward_layernorm"
		}
		add(d.attention(layer, normed(prefix+"input_layernorm", stream)), prefix+afterAttention)
		branch := normed(prefix+between, stream)
		for t, x := range branch {
			branch[t] = d.feedForward(layer, x)
		}
		add(branch, prefix+afterMLP)
	}
	head := "lm_head"
	if d.weights[head+".weight"] == nil {
		head = "model.embed_tokens"
	}
	for _, x := range normed("model.norm", stream) {
		for _, v := range d.linear(head, x) {
			if limit := d.number("final_logit_softcapping"); limit > 0 {
				v = limit * math.Tanh(v/limit)
			}
			all = append(all, float32(v))
		}
	}
	return all
}
