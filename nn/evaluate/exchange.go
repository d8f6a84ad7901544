package evaluate

import (
	"context"
	"slices"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/nn"
)

// Exchanged says how the distribution of the next token changes where linear layers of a
// model do one thing in place of another. Each slice has a value for each target: a
// divergence in nats, and what the target's log-probability becomes larger by.
type Exchanged struct {
	Targets int
	Whole   Change   // all layers
	Layers  []Change // each layer that is exchanged, alone
}

// Change is what an exchange does to each target.
type Change struct {
	Name       string // of the linear layer, such as "model.layers.0.mlp.up_proj"
	KL         []float64
	Difference []float64
}

// head is the name of the layer that makes logits.
const head = "lm_head"

// Exchange runs a model on a text where each linear layer, the head too, rounds its operands
// as a says, and where some, those that b has something else for, do as b says: all of them,
// and each alone. Routers are in FP32, as all products. Of o only Context, Stride, Prefix and
// Progress count.
//
// What is done to the model meanwhile, and errors, are those of [Run].
func Exchange(ctx context.Context, m *nn.Llama, tokens []int32, a, b func(layer string) nn.Rounding, o Options) (*Exchanged, error) {
	c := m.Config()
	o.LayerTokens = -1
	o, err := o.complete(c)
	if err != nil {
		return nil, err
	}
	if err := checkTokens("the text", tokens, c.Vocab); err != nil {
		return nil, err
	}
	windows := cut(tokens, o.Context-len(o.Prefix), o.Stride, o.Prefix)
	if len(windows) == 0 {
		return nil, tokenError("%d tokens: at least one must follow another", len(tokens))
	}
	r, err := newRunner(m)
	if err != nil {
		return nil, err
	}
	defer r.restore()
	r.slots = append(r.slots, slot{layer: len(r.blocks), kind: head, name: head, of: &r.head, plain: r.head})
	x := exchange{evaluator: &evaluator{runner: r, Options: o, workers: c.Workers}, a: a, b: b}
	for _, s := range r.slots {
		if !alike(a(s.name), b(s.name)) {
			x.slots = append(x.slots, s)
			x.result.Layers = append(x.result.Layers, Change{Name: s.name})
		}
	}
	x.meter = meter.New(ctx, o.Progress, "evaluate", int64(len(windows)*(len(x.slots)+2)))
	shared := m.Shared()
	tap := shared.Tap
	shared.Tap = nil
	defer func() { shared.Tap = tap }()
	err = shared.Scaling().Inference(func() error {
		for _, w := range windows {
			if err := x.window(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
	return &x.result, err
}

// alike reports whether layers in inference do the same.
func alike(a, b nn.Rounding) bool {
	same := func(a, b nn.Narrowing) bool {
		x, y := a.Recipe, b.Recipe
		a.Recipe, b.Recipe = nil, nil
		return a == b && (x == nil) == (y == nil) && (x == nil || *x == *y)
	}
	return same(a.Input, b.Input) && same(a.Weight, b.Weight) && a.BF16Results == b.BF16Results
}

// exchange is an [Exchange].
type exchange struct {
	*evaluator
	a, b   func(string) nn.Rounding
	slots  []slot // that are exchanged
	result Exchanged
}

// set has layers do as a function says.
func (x *exchange) set(slots []slot, of func(string) nn.Rounding) error {
	options := func(s slot) nn.Options {
		rounding := of(s.name)
		return nn.Options{Rounding: &rounding}
	}
	return x.put(options, func(s slot) bool {
		return slices.ContainsFunc(slots, func(t slot) bool { return t.name == s.name })
	})
}

// window runs a window.
func (x *exchange) window(ctx context.Context, w window) error {
	if err := x.set(x.evaluator.slots, x.a); err != nil {
		return err
	}
	if err := x.runner.reference(ctx, &x.ref.values, w.tokens); err != nil {
		return err
	}
	x.ref.vocab = x.config.Vocab
	x.ref.measure(len(w.tokens), x.workers)
	if err := x.meter.Add(1); err != nil {
		return err
	}
	x.result.Targets += w.count
	for i, s := range x.slots {
		if err := x.apart(ctx, w, []slot{s}, s.layer, &x.result.Layers[i]); err != nil {
			return err
		}
	}
	return x.apart(ctx, w, x.slots, 0, &x.result.Whole)
}

// apart exchanges some layers, of which the first is in the given block.
func (x *exchange) apart(ctx context.Context, w window, slots []slot, block int, c *Change) error {
	if err := x.set(slots, x.b); err != nil {
		return err
	}
	if err := x.from(ctx, &x.got.values, block, len(w.tokens)); err != nil {
		return err
	}
	if err := x.set(slots, x.a); err != nil {
		return err
	}
	x.got.vocab = x.config.Vocab
	x.got.measure(len(w.tokens), x.workers)
	divergences := make([]divergence, len(w.targets))
	compare(divergences, &x.ref, &x.got, w.targets, x.workers)
	for row, target := range w.targets {
		if target == nn.IgnoreIndex {
			continue
		}
		loss := x.ref.logSums[row] - float64(x.ref.row(row)[target])
		c.KL = append(c.KL, divergences[row].kl)
		c.Difference = append(c.Difference, loss-divergences[row].loss)
	}
	return x.meter.Add(1)
}
