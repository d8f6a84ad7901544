package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// config has the sizes of a Llama.
type config struct {
	vocab, dim, hidden, layers, heads, kvHeads int
	theta                                      float64 // of the rotary positions
	untied                                     bool    // the head is not the embedding but a matrix of its own
}

// model is a Llama whose projections are FP8 weights, packed for products. It does
// not change once it is loaded, so that all sequences share it.
type model struct {
	config
	embedding, norm []float32
	head            *gemm.Packed
	blocks          []block
}

type block struct {
	attentionNorm, mlpNorm []float32
	q, k, v, o             *gemm.Packed
	gate, up, down         *gemm.Packed
}

// source gives the values of a parameter by its name in a Hugging Face checkpoint.
type source func(name string, shape ...int) ([]float32, error)

// fromFile reads parameters from a safetensors file.
func fromFile(f *safetensors.File) source {
	return func(name string, shape ...int) ([]float32, error) {
		values, err := f.Float32s(name)
		if err != nil {
			return nil, err
		}
		size := 1
		for _, n := range shape {
			size *= n
		}
		if len(values) != size {
			return nil, fmt.Errorf("%s has %d values, the model wants %v", name, len(values), shape)
		}
		return values, nil
	}
}

// random makes parameters up: norms of ones, and matrices whose products keep the
// size of their input.
func random(seed uint64) source {
	r := rand.New(rand.NewPCG(seed, 0))
	return func(_ string, shape ...int) ([]float32, error) {
		if len(shape) == 1 {
			ones := make([]float32, shape[0])
			for i := range ones {
				ones[i] = 1
			}
			return ones, nil
		}
		values := make([]float32, shape[0]*shape[1])
		for i := range values {
			values[i] = float32(r.NormFloat64() / math.Sqrt(float64(shape[1])))
		}
		return values, nil
	}
}

// configOf reads the sizes that a file's metadata gives, and whether it has a head.
func configOf(f *safetensors.File) (config, error) {
	c := config{theta: 10000}
	_, c.untied = f.Info("lm_head.weight")
	for _, field := range []struct {
		key string
		n   *int
	}{
		{"vocab_size", &c.vocab}, {"hidden_size", &c.dim}, {"intermediate_size", &c.hidden},
		{"num_hidden_layers", &c.layers}, {"num_attention_heads", &c.heads}, {"num_key_value_heads", &c.kvHeads},
	} {
		n, err := strconv.Atoi(f.Metadata()[field.key])
		if err != nil || n < 1 {
			return c, fmt.Errorf("the file's metadata does not say %s", field.key)
		}
		*field.n = n
	}
	if c.dim%c.heads != 0 || c.heads%c.kvHeads != 0 || c.dim/c.heads%2 != 0 {
		return c, fmt.Errorf("%d heads and %d key heads do not divide a width of %d", c.heads, c.kvHeads, c.dim)
	}
	return c, nil
}

// load quantizes and packs a model.
func load(ctx context.Context, c config, param source) (*model, error) {
	m := &model{config: c, blocks: make([]block, c.layers)}
	var err error
	vector := func(name string, shape ...int) (values []float32) {
		if err == nil {
			values, err = param(name, shape...)
		}
		return values
	}
	weight := func(name string, out, in int) (packed *gemm.Packed) {
		values := vector(name, out, in)
		if err == nil {
			packed, err = quantize(ctx, name, values, out, in)
		}
		return packed
	}

	kvDim := c.dim / c.heads * c.kvHeads
	m.embedding = vector("model.embed_tokens.weight", c.vocab, c.dim)
	for i := range m.blocks {
		prefix := fmt.Sprintf("model.layers.%d.", i)
		m.blocks[i] = block{
			attentionNorm: vector(prefix+"input_layernorm.weight", c.dim),
			q:             weight(prefix+"self_attn.q_proj.weight", c.dim, c.dim),
			k:             weight(prefix+"self_attn.k_proj.weight", kvDim, c.dim),
			v:             weight(prefix+"self_attn.v_proj.weight", kvDim, c.dim),
			o:             weight(prefix+"self_attn.o_proj.weight", c.dim, c.dim),
			mlpNorm:       vector(prefix+"post_attention_layernorm.weight", c.dim),
			gate:          weight(prefix+"mlp.gate_proj.weight", c.hidden, c.dim),
			up:            weight(prefix+"mlp.up_proj.weight", c.hidden, c.dim),
			down:          weight(prefix+"mlp.down_proj.weight", c.dim, c.hidden),
		}
	}
	m.norm = vector("model.norm.weight", c.dim)
	if c.untied {
		m.head = weight("lm_head.weight", c.vocab, c.dim)
	} else if err == nil {
		m.head, err = quantize(ctx, "lm_head", m.embedding, c.vocab, c.dim)
	}
	return m, err
}

// quantize encodes a weight in FP8, with a scale for each 128x128 block, and packs it.
func quantize(ctx context.Context, name string, values []float32, out, in int) (*gemm.Packed, error) {
	t := &tensor.Tensor{Name: name, Shape: []int{out, in}}
	if err := scaling.Quantize(ctx, t, values, scaling.Quantizer{Recipe: scaling.Default(scaling.Weight)}); err != nil {
		return nil, err
	}
	return gemm.Pack(t)
}
