package nn

import (
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/swiglu"
)

// mlp is the SwiGLU feed-forward of Shazeer (arXiv 2002.05202):
// down(silu(gate(x)) · up(x)), its activation smoothed where the configuration
// says so.
type mlp struct {
	gate, up, down *Linear
	workers        int
	scratch        *scratch
	inputs         *inputs

	smooth   bool
	smoother swiglu.Smoother
	scales   swiglu.Scales // of the last forward; none unless smooth

	branches *branches
	cached   bool // the branches are kept in cache
	cache    swigluCache
}

func newMLP(prefix string, cfg Config, in *inputs, s *scratch) *mlp {
	m := &mlp{
		gate:     newLinear(prefix+"gate_proj.weight", cfg.Hidden, cfg.Dim, cfg, s),
		up:       newLinear(prefix+"up_proj.weight", cfg.Hidden, cfg.Dim, cfg, s),
		down:     newLinear(prefix+"down_proj.weight", cfg.Dim, cfg.Hidden, cfg, s),
		workers:  cfg.Workers,
		scratch:  s,
		inputs:   in,
		branches: s.branchesFor(cfg.Activations),
		cached:   !cfg.Activations.keepsBranches(),
	}
	m.cache = newSwiGLUCache(m.up, m.gate)
	if cfg.Smoothing != nil {
		m.smooth, m.smoother.Smoothing = true, *cfg.Smoothing
	}
	return m
}

// forward returns a slice like x, [rows, dim], that stays valid until the next
// call of any layer. It keeps x, which must stay as it is until keep or backward.
func (m *mlp) forward(x []float32, rows int) ([]float32, error) {
	n := rows * m.gate.Weight.Rows
	g, u := sized(&m.branches.g, n), sized(&m.branches.u, n)
	if err := m.gate.Forward(g, x, rows); err != nil {
		return nil, err
	}
	if err := m.up.Forward(u, x, rows); err != nil {
		return nil, err
	}
	if m.smooth {
		m.scales = m.smoother.Scales(u, m.gate.Weight.Rows)
	}
	m.multiply()
	out := sized(&m.scratch.branch, len(x))
	m.down.fold(m.scales)
	if err := m.down.Forward(out, m.inputs.product, rows); err != nil {
		return nil, err
	}
	swiglu.Unscale(out, m.scales)
	return out, nil
}

// multiply computes the product of the branches.
func (m *mlp) multiply() {
	u, g, hidden := m.branches.u, m.branches.g, m.gate.Weight.Rows
	z := sized(&m.inputs.product, len(u))
	parallel.For(len(z)/hidden, 16, m.workers, func(first, end int) {
		lo, hi := first*hidden, end*hidden
		swiglu.Forward(z[lo:hi], u[lo:hi], g[lo:hi], m.scales.Tokens(first, end))
	})
}

// keep keeps the inputs of the linear layers in FP8, that of down as the branches
// if so configured, after forward and before backward: their memory is free then.
func (m *mlp) keep() error {
	if err := keepInput(m.gate, m.up); err != nil {
		return err
	}
	if m.cached {
		m.down.x = nil // until restore
		return m.cache.keep(m.branches, m.gate.rows)
	}
	return keepInput(m.down)
}

// restore computes the input of down anew from the branches that were kept.
func (m *mlp) restore() {
	m.cache.restore(m.branches)
	m.multiply()
	m.down.x = m.inputs.product
}

// backward returns the gradient of x, valid until the next call of any layer, from
// that of what forward returned.
func (m *mlp) backward(dy []float32) ([]float32, error) {
	if m.cached {
		m.restore()
	}
	s, u, g, hidden := m.scratch, m.branches.u, m.branches.g, m.gate.Weight.Rows
	dScaled := sized(&s.dScaled, len(dy))
	copy(dScaled, dy)
	swiglu.Unscale(dScaled, m.scales)
	dg, du, dz := sized(&s.dg, len(g)), sized(&s.du, len(u)), sized(&s.dz, len(u))
	if err := m.down.Backward(dz, dScaled); err != nil {
		return nil, err
	}
	parallel.For(len(dz)/hidden, 16, m.workers, func(first, end int) {
		lo, hi := first*hidden, end*hidden
		swiglu.Backward(du[lo:hi], dg[lo:hi], dz[lo:hi], u[lo:hi], g[lo:hi], m.scales.Tokens(first, end))
	})
	dx, part := sized(&s.dx, len(dy)), sized(&s.part, len(dy))
	if err := m.gate.Backward(dx, dg); err != nil {
		return nil, err
	}
	if err := m.up.Backward(part, du); err != nil {
		return nil, err
	}
	add(dx, dx, part, m.workers)
	return dx, nil
}
