package moe

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
)

// comparison is of an arm with FP32 at the same weights and biases, over the batches.
type comparison struct {
	changed   []int // by mixture: choices that FP32 does not make
	choices   int   // of each mixture
	gradients []gradientError
}

// gradientError is the error of the gradient of a weight of a linear layer.
type gradientError struct {
	weight       string
	off, squares float64 // of the errors, and of the true gradient
}

// relative is the length of the errors over that of the gradient; NaN where that is 0.
func (e gradientError) relative() float64 { return math.Sqrt(e.off / e.squares) }

// parts of a model that a weight may be in.
var parts = []string{"attention", "dense MLP", "shared expert", "experts", "router"}

// partOf returns the part of a weight, and "" for what is no linear layer of a block.
func partOf(weight string) string {
	_, rest, ok := strings.Cut(weight, "model.layers.")
	_, rest, _ = strings.Cut(rest, ".")
	switch {
	case !ok || strings.Contains(rest, "norm."):
		return ""
	case strings.HasPrefix(rest, "self_attn."):
		return "attention"
	case strings.HasPrefix(rest, "mlp.experts."):
		return "experts"
	case strings.HasPrefix(rest, "mlp.shared_experts."):
		return "shared expert"
	case rest == "mlp.gate.weight":
		return "router"
	}
	return "dense MLP"
}

// pass runs a batch after those of the training forward and back.
func (r *seedRun) pass(ctx context.Context, m *nn.Llama, i int) error {
	tokens, targets, err := r.in.Corpus.Batch(r.steps+i, r.batch, r.seq)
	if err != nil {
		return err
	}
	m.ZeroGrad()
	if _, err := m.Loss(ctx, tokens, targets, r.batch, r.seq); err != nil {
		return err
	}
	return m.Backward(ctx)
}

// twin returns a model with the weights and biases of another, in other arithmetic.
func (r *seedRun) twin(of *nn.Llama, use func(*nn.Config)) (*nn.Llama, error) {
	c := r.config()
	c.Workers = r.workers
	use(&c)
	m, err := nn.NewZeroLlama(c)
	if err != nil {
		return nil, err
	}
	for i, p := range of.Params() {
		copy(m.Params()[i].Value, p.Value)
	}
	state := m.Shared().Scaling().State()
	state.Routers = of.Shared().Scaling().State().Routers
	return m, m.Shared().Scaling().Restore(state)
}

// compare compares all arms with FP32, at the weights of a model.
func (r *seedRun) compare(ctx context.Context, at *nn.Llama) ([]comparison, error) {
	exact, err := r.twin(at, func(*nn.Config) {})
	if err != nil {
		return nil, err
	}
	all := make([]comparison, len(compared()))
	for i := range r.batches {
		if err := r.pass(ctx, exact, i); err != nil {
			return nil, err
		}
		for j, a := range compared() {
			twin, err := r.twin(at, a.use)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", a.name, err)
			}
			if err := r.pass(ctx, twin, i); err != nil {
				return nil, fmt.Errorf("%s: %w", a.name, err)
			}
			all[j].count(twin, exact)
			if err := r.done("comparison", passUnits); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// count adds what differs in a batch.
func (c *comparison) count(got, want *nn.Llama) {
	if c.changed == nil {
		c.changed = make([]int, len(mixturesOf(want)))
		for _, p := range want.Params() {
			if partOf(p.Name) != "" {
				c.gradients = append(c.gradients, gradientError{weight: p.Name})
			}
		}
	}
	for i, x := range mixturesOf(want) {
		k := want.Config().Experts.Router.TopK
		chosen := mixturesOf(got)[i].Router.Chosen()
		c.changed[i] += changed(chosen, x.Router.Chosen(), k)
		if i == 0 {
			c.choices += len(chosen)
		}
	}
	for i := range c.gradients {
		e := &c.gradients[i]
		e.add(got.Param(e.weight).Grad, want.Param(e.weight).Grad)
	}
}

// changed returns how many choices, k of each token, are not among those wanted.
func changed(got, want []int32, k int) (n int) {
	for i, expert := range got {
		token := i / k * k
		if !slices.Contains(want[token:token+k], expert) {
			n++
		}
	}
	return n
}

// add counts the gradient of a batch.
func (e *gradientError) add(got, want []float32) {
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		e.off += float64(d * d)
		e.squares += float64(float64(w) * float64(w))
	}
}
