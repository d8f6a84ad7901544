package main

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// sequence answers one request. It has the keys and values of the tokens so far and
// room to work in; only one goroutine may use it.
type sequence struct {
	*model
	keys, values [][]float32 // for each layer, a row for each token

	x, normed, attended, projected []float32
	q, scores, gate, up, logits    []float32
	operand                        tensor.Tensor
	quantizer                      scaling.Quantizer
}

func newSequence(m *model) *sequence {
	return &sequence{
		model: m,
		keys:  make([][]float32, m.layers), values: make([][]float32, m.layers),
		x: make([]float32, m.dim), normed: make([]float32, m.dim),
		attended: make([]float32, m.dim), projected: make([]float32, m.dim),
		q: make([]float32, m.dim), gate: make([]float32, m.hidden), up: make([]float32, m.hidden),
		logits:    make([]float32, m.vocab),
		quantizer: scaling.Quantizer{Recipe: scaling.Default(scaling.Input)},
	}
}

// generate returns the n tokens that follow a prompt, each the likeliest one.
func (s *sequence) generate(ctx context.Context, prompt []int, n int) ([]int, error) {
	var answer []int
	for position := 0; len(answer) < n; position++ {
		token := 0
		if position < len(prompt) {
			token = prompt[position]
		} else {
			token = answer[len(answer)-1]
		}
		if err := s.step(ctx, token, position); err != nil {
			return nil, err
		}
		if position >= len(prompt)-1 {
			answer = append(answer, largest(s.logits))
		}
	}
	return answer, nil
}

// step runs one token through the model and leaves what may come next in logits.
func (s *sequence) step(ctx context.Context, token, position int) error {
	copy(s.x, s.embedding[token*s.dim:])
	for i := range s.blocks {
		if err := s.attention(ctx, i, position); err != nil {
			return err
		}
		if err := s.mlp(ctx, i); err != nil {
			return err
		}
	}
	rmsNorm(s.normed, s.x, s.norm)
	return s.project(ctx, s.logits, s.normed, s.head)
}

func (s *sequence) attention(ctx context.Context, layer, position int) error {
	b := &s.blocks[layer]
	headDim := s.dim / s.heads
	kvDim := headDim * s.kvHeads
	s.keys[layer] = append(s.keys[layer], make([]float32, kvDim)...)
	s.values[layer] = append(s.values[layer], make([]float32, kvDim)...)
	keys, values := s.keys[layer], s.values[layer]
	key := keys[position*kvDim:]

	rmsNorm(s.normed, s.x, b.attentionNorm)
	if err := s.project(ctx, s.q, s.normed, b.q); err != nil {
		return err
	}
	if err := s.project(ctx, key, s.normed, b.k); err != nil {
		return err
	}
	if err := s.project(ctx, values[position*kvDim:], s.normed, b.v); err != nil {
		return err
	}
	rotate(s.q, headDim, position, s.theta)
	rotate(key, headDim, position, s.theta)

	for h := range s.heads {
		shared := h / (s.heads / s.kvHeads) * headDim // heads share keys and values in groups
		q := s.q[h*headDim:][:headDim]
		s.scores = s.scores[:0]
		for t := range position + 1 {
			s.scores = append(s.scores, dot(q, keys[t*kvDim+shared:])/float32(math.Sqrt(float64(headDim))))
		}
		softmax(s.scores)
		out := s.attended[h*headDim:][:headDim]
		clear(out)
		for t, weight := range s.scores {
			for i := range out {
				out[i] += float32(weight * values[t*kvDim+shared+i])
			}
		}
	}
	if err := s.project(ctx, s.projected, s.attended, b.o); err != nil {
		return err
	}
	add(s.x, s.projected)
	return nil
}

func (s *sequence) mlp(ctx context.Context, layer int) error {
	b := &s.blocks[layer]
	rmsNorm(s.normed, s.x, b.mlpNorm)
	if err := s.project(ctx, s.gate, s.normed, b.gate); err != nil {
		return err
	}
	if err := s.project(ctx, s.up, s.normed, b.up); err != nil {
		return err
	}
	swiglu.Forward(s.gate, s.up, s.gate, swiglu.Scales{})
	if err := s.project(ctx, s.projected, s.gate, b.down); err != nil {
		return err
	}
	add(s.x, s.projected)
	return nil
}

// project multiplies a weight with an activation, which it quantizes to FP8 with a
// scale for each 128 values.
func (s *sequence) project(ctx context.Context, y, x []float32, weight *gemm.Packed) error {
	s.operand.Shape = append(s.operand.Shape[:0], 1, len(x))
	if err := scaling.Quantize(ctx, &s.operand, x, s.quantizer); err != nil {
		return err
	}
	// One goroutine: the requests are what runs side by side here.
	return gemm.Multiply(ctx, y, &s.operand, weight, gemm.Options{Workers: 1})
}

func rmsNorm(y, x, weight []float32) {
	scale := float32(1 / math.Sqrt(float64(dot(x, x))/float64(len(x))+1e-5))
	for i := range y {
		y[i] = x[i] * scale * weight[i]
	}
}

// rotate turns each pair of neighbours in every head by an angle that grows with the
// position.
func rotate(x []float32, headDim, position int, theta float64) {
	for i := 0; i < len(x); i += 2 {
		sin, cos := math.Sincos(float64(position) * math.Pow(theta, -float64(i%headDim)/float64(headDim)))
		a, b := float64(x[i]), float64(x[i+1])
		x[i], x[i+1] = float32(a*cos-b*sin), float32(a*sin+b*cos)
	}
}

func softmax(x []float32) {
	most := x[largest(x)]
	var sum float64
	for i, v := range x {
		e := math.Exp(float64(v - most))
		x[i] = float32(e)
		sum += e
	}
	for i := range x {
		x[i] = float32(float64(x[i]) / sum)
	}
}

func largest(x []float32) int {
	at := 0
	for i, v := range x {
		if v > x[at] {
			at = i
		}
	}
	return at
}

// dot takes as many values of b as there are in a.
func dot(a, b []float32) float32 {
	var sum float32
	for i, v := range a {
		sum += float32(v * b[i])
	}
	return sum
}

func add(x, y []float32) {
	for i, v := range y {
		x[i] += v
	}
}
