package hf_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// deepseek is a model in DeepSeek-V3's layout, and what it computes by the equations of its
// report (arXiv 2412.19437, sections 2.1.1 and 2.1.2) in float64.
type deepseek struct {
	config  map[string]any
	weights map[string][]float64
}

func (d *deepseek) number(key string) float64 {
	x, _ := d.config[key].(float64)
	return x
}

func (d *deepseek) size(key string) int { return int(d.number(key)) }

// linear returns x·Wᵀ for the weight of a name.
func (d *deepseek) linear(name string, x []float64) []float64 {
	w := d.weights[name+".weight"]
	y := make([]float64, len(w)/len(x))
	for i := range y {
		for j := range x {
			y[i] += w[i*len(x)+j] * x[j]
		}
	}
	return y
}

func (d *deepseek) norm(name string, x []float64, eps float64) []float64 {
	square := 0.0
	for _, v := range x {
		square += v * v
	}
	y := slices.Clone(x)
	for i := range y {
		y[i] *= d.weights[name+".weight"][i] / math.Sqrt(square/float64(len(x))+eps)
	}
	return y
}

// rotate rotates the pairs of x by the angles of a position.
func (d *deepseek) rotate(x []float64, position int) []float64 {
	y, n := slices.Clone(x), len(x)
	interleaved := d.config["rope_interleave"] != false
	for i := range n / 2 {
		a, b := 2*i, 2*i+1
		if !interleaved {
			a, b = i, i+n/2
		}
		angle := float64(position) * math.Pow(d.number("rope_theta"), -2*float64(i)/float64(n))
		sin, cos := math.Sincos(angle)
		y[a], y[b] = x[a]*cos-x[b]*sin, x[a]*sin+x[b]*cos
	}
	return y
}

func (d *deepseek) attention(prefix string, stream [][]float64) (out [][]float64) {
	const eps = 1e-6 // of latents
	heads, rank := d.size("num_attention_heads"), d.size("kv_lora_rank")
	nope, rope, value := d.size("qk_nope_head_dim"), d.size("qk_rope_head_dim"), d.size("v_head_dim")
	var keys, values [][]float64 // of each token, all heads
	for t, x := range stream {
		var q []float64
		if d.size("q_lora_rank") > 0 {
			q = d.linear(prefix+"q_b_proj", d.norm(prefix+"q_a_layernorm", d.linear(prefix+"q_a_proj", x), eps))
		} else {
			q = d.linear(prefix+"q_proj", x)
		}
		down := d.linear(prefix+"kv_a_proj_with_mqa", x)
		shared := d.rotate(down[rank:], t)
		up := d.linear(prefix+"kv_b_proj", d.norm(prefix+"kv_a_layernorm", down[:rank], eps))
		var key, val []float64
		for h := range heads {
			of := up[h*(nope+value):][:nope+value]
			key = append(append(key, of[:nope]...), shared...)
			val = append(val, of[nope:]...)
		}
		keys, values = append(keys, key), append(values, val)
		var mixed []float64
		for h := range heads {
			n := nope + rope
			query := q[h*n:][:n]
			query = append(slices.Clone(query[:nope]), d.rotate(query[nope:], t)...)
			weights, total := make([]float64, t+1), 0.0
			for j := range weights {
				for i, v := range query {
					weights[j] += v * keys[j][h*n+i]
				}
				weights[j] = math.Exp(weights[j] / math.Sqrt(float64(n)))
				total += weights[j]
			}
			o := make([]float64, value)
			for j, w := range weights {
				for i := range o {
					o[i] += w / total * values[j][h*value+i]
				}
			}
			mixed = append(mixed, o...)
		}
		out = append(out, d.linear(prefix+"o_proj", mixed))
	}
	return out
}

func (d *deepseek) mlp(prefix string, x []float64) []float64 {
	g, u := d.linear(prefix+"gate_proj", x), d.linear(prefix+"up_proj", x)
	for i := range u {
		u[i] *= g[i] / (1 + math.Exp(-g[i]))
	}
	return d.linear(prefix+"down_proj", u)
}

// chosen returns the experts of a token: of the groups with the largest sums of two scores.
func (d *deepseek) chosen(scores []float64) []int {
	groups, size := d.size("n_group"), len(scores)/d.size("n_group")
	sums := make([]float64, groups)
	for g := range groups {
		of := slices.Sorted(slices.Values(scores[g*size : (g+1)*size]))
		sums[g] = of[size-1] + of[size-2]
	}
	largest := func(values []float64, of []int, n int) []int {
		slices.SortFunc(of, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
		return of[:n]
	}
	var all, experts []int
	for g := range groups {
		all = append(all, g)
	}
	for _, g := range largest(sums, all, d.size("topk_group")) {
		for e := range size {
			experts = append(experts, g*size+e)
		}
	}
	return largest(scores, experts, d.size("num_experts_per_tok"))
}

func (d *deepseek) experts(prefix string, x []float64) []float64 {
	scores := d.linear(prefix+"gate", x)
	biased := make([]float64, len(scores))
	for e := range scores {
		scores[e] = 1 / (1 + math.Exp(-scores[e]))
		biased[e] = scores[e] + d.weights[prefix+"gate.e_score_correction_bias"][e]
	}
	chosen, total := d.chosen(biased), 1.0
	if d.config["norm_topk_prob"] != false {
		total = 0
		for _, e := range chosen {
			total += scores[e]
		}
	}
	y := make([]float64, len(x))
	if d.size("n_shared_experts") > 0 {
		y = d.mlp(prefix+"shared_experts.", x)
	}
	for _, e := range chosen {
		w := scores[e] / total * d.number("routed_scaling_factor")
		for i, v := range d.mlp(fmt.Sprintf("%sexperts.%d.", prefix, e), x) {
			y[i] += w * v
		}
	}
	return y
}

// logits returns those of all tokens.
func (d *deepseek) logits(tokens []int32) (all []float32) {
	dim, eps := d.size("hidden_size"), d.number("rms_norm_eps")
	var stream [][]float64
	for _, id := range tokens {
		stream = append(stream, slices.Clone(d.weights["model.embed_tokens.weight"][int(id)*dim:][:dim]))
	}
	normed := func(name string) (all [][]float64) {
		for _, x := range stream {
			all = append(all, d.norm(name, x, eps))
		}
		return all
	}
	add := func(branch [][]float64) {
		for t := range stream {
			for i := range stream[t] {
				stream[t][i] += branch[t][i]
			}
		}
	}
	for layer := range d.size("num_hidden_layers") {
		prefix := fmt.Sprintf("model.layers.%d.", layer)
		add(d.attention(prefix+"self_attn.", normed(prefix+"input_layernorm")))
		branch := normed(prefix + "post_attention_layernorm")
		for t, x := range branch {
			if layer < d.size("first_k_dense_replace") {
				branch[t] = d.mlp(prefix+"mlp.", x)
			} else {
				branch[t] = d.experts(prefix+"mlp.", x)
			}
		}
		add(branch)
	}
	for _, x := range normed("model.norm") {
		for _, v := range d.linear("lm_head", x) {
			all = append(all, float32(v))
		}
	}
	return all
}
