package generate

import (
	"cmp"
	"context"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
)

// mlp is a gated feed-forward.
type mlp struct{ gate, up, down linear }

func (p *packer) mlp(from *nn.MLP) *mlp {
	return &mlp{p.linear(from.Gate), p.linear(from.Up), p.linear(from.Down)}
}

func (f *mlp) linears() []*linear { return []*linear{&f.gate, &f.up, &f.down} }

func (f *mlp) forward(ctx context.Context, g *Generator, y []float32) error {
	return f.of(ctx, g, y, &g.memory.input)
}

// of writes to y what it makes of an input.
func (f *mlp) of(ctx context.Context, g *Generator, y []float32, in *input) error {
	m, workers := &g.memory, g.config.Workers
	gate, up := grow(&m.gate, in.rows*f.gate.out), grow(&m.up, in.rows*f.up.out)
	err := cmp.Or(f.gate.multiply(ctx, gate, in, workers), f.up.multiply(ctx, up, in, workers))
	if err != nil {
		return err
	}
	if m.act == nil {
		m.act = func(lo, hi int) {
			up := m.up[lo:hi]
			g.config.Gate.Multiply(up, up, m.gate[lo:hi])
		}
	}
	m.loop.For(len(up), elementGrain, workers, m.act)
	if err := m.inner.set(ctx, up, in.rows, g.options.FP8, workers); err != nil {
		return err
	}
	return f.down.multiply(ctx, y, &m.inner, workers)
}

// experts is a mixture of experts, as [nn.Experts].
type experts struct {
	router *nn.Router
	gate   linear // of the router, for its size
	each   []*mlp
	shared *mlp // nil: none
}

func (p *packer) experts(from *nn.Experts) *experts {
	if p.err != nil {
		return nil
	}
	gate := from.Router.Gate.Weight
	values := p.read(gate, false)
	if p.err != nil {
		return nil
	}
	c := p.g.config.Experts.Router
	c.BalanceLoss, c.Rounding = 0, nil // which are for training, and a recipe
	o := nn.Options{Shared: &p.g.shared, Workers: p.g.options.Workers}
	to := &experts{gate: linear{out: gate.Rows, in: gate.Cols, values: gate.Value}}
	to.router, p.err = nn.NewRouter(strings.TrimSuffix(gate.Name, "gate.weight"), gate.Cols, c, o)
	if p.err != nil {
		return nil
	}
	p.err = p.count.Add(int64(len(values)))
	to.router.Gate.Weight, to.router.Gate.Bias = gate, from.Router.Gate.Bias
	to.gate.bias = p.vector(from.Router.Gate.Bias)
	for e := range from.Gate {
		to.each = append(to.each,
			&mlp{p.linear(from.Gate[e]), p.linear(from.Up[e]), p.linear(from.Down[e])})
	}
	if from.Shared != nil {
		to.shared = p.mlp(from.Shared)
	}
	return to
}

func (x *experts) linears() []*linear {
	layers := []*linear{&x.gate}
	for _, f := range x.each {
		layers = append(layers, f.linears()...)
	}
	if x.shared != nil {
		layers = append(layers, x.shared.linears()...)
	}
	return layers
}

// forward gives each expert the rows that the router chooses it for. A row adds its results in
// the order of the experts, shared ones last.
func (x *experts) forward(ctx context.Context, g *Generator, y []float32) error {
	m, c := &g.memory, &g.config
	rows, k := m.input.rows, c.Experts.Router.TopK
	chosen, weights := grow(&m.chosen, rows*k), grow(&m.weights, rows*k)
	if err := x.router.Forward(ctx, chosen, weights, m.input.values, 1, rows); err != nil {
		return err
	}
	clear(y)
	for e, f := range x.each {
		if err := x.add(ctx, g, f, int32(e), y); err != nil {
			return err
		}
	}
	if x.shared == nil {
		return nil
	}
	part := grow(&m.part, len(y))
	if err := x.shared.of(ctx, g, part, &m.input); err != nil {
		return err
	}
	addTimes(y, part, 1)
	return nil
}

// add adds to y what an expert makes of its rows, weighted.
func (x *experts) add(ctx context.Context, g *Generator, f *mlp, e int32, y []float32) error {
	m, dim, k := &g.memory, g.config.Dim, g.config.Experts.Router.TopK
	sorted := grow(&m.sorted, len(y))[:0]
	for i, of := range m.chosen {
		if of == e {
			sorted = append(sorted, m.input.values[i/k*dim:][:dim]...)
		}
	}
	if len(sorted) == 0 {
		return nil
	}
	rows := len(sorted) / dim
	part := grow(&m.part, len(sorted))
	if err := m.sortedInput.set(ctx, sorted, rows, g.options.FP8, g.config.Workers); err != nil {
		return err
	}
	if err := f.of(ctx, g, part, &m.sortedInput); err != nil {
		return err
	}
	for i, of := range m.chosen {
		if of == e {
			addTimes(y[i/k*dim:][:dim], part, m.weights[i])
			part = part[dim:]
		}
	}
	return nil
}

// addTimes adds w·x to y.
func addTimes(y, x []float32, w float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += float32(w * x[i])
	}
}
