package train

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

	smooth   bool
	smoother swiglu.Smoother
	scales   swiglu.Scales // of the last forward; none unless smooth

	g, u, z, out []float32 // z is the product that goes into down
	dg, du, dz   []float32
	dx, part     []float32
	dScaled      []float32 // the output's gradient before its rows were unscaled
}

func newMLP(prefix string, cfg Config) *mlp {
	m := &mlp{
		gate:    newLinear(prefix+"gate_proj.weight", cfg.Hidden, cfg.Dim, cfg),
		up:      newLinear(prefix+"up_proj.weight", cfg.Hidden, cfg.Dim, cfg),
		down:    newLinear(prefix+"down_proj.weight", cfg.Dim, cfg.Hidden, cfg),
		workers: cfg.Workers,
	}
	if cfg.Smoothing != nil {
		m.smooth, m.smoother.Smoothing = true, *cfg.Smoothing
	}
	return m
}

// forward returns a slice like x, [rows, dim], that stays valid until the next
// call. It keeps x, which must stay as it is until backward.
func (m *mlp) forward(x []float32, rows int) ([]float32, error) {
	n := rows * m.gate.Weight.Rows
	g, u, z := sized(&m.g, n), sized(&m.u, n), sized(&m.z, n)
	if err := m.gate.Forward(g, x, rows); err != nil {
		return nil, err
	}
	if err := m.up.Forward(u, x, rows); err != nil {
		return nil, err
	}
	hidden := m.gate.Weight.Rows
	if m.smooth {
		m.scales = m.smoother.Scales(u, hidden)
	}
	parallel.For(rows, 16, m.workers, func(first, end int) {
		lo, hi := first*hidden, end*hidden
		swiglu.Forward(z[lo:hi], u[lo:hi], g[lo:hi], m.scales.Tokens(first, end))
	})
	out := sized(&m.out, len(x))
	m.down.fold(m.scales)
	if err := m.down.Forward(out, z, rows); err != nil {
		return nil, err
	}
	swiglu.Unscale(out, m.scales)
	return out, nil
}

// backward returns the gradient of x, valid until the next call, from that of
// what forward returned.
func (m *mlp) backward(dy []float32) ([]float32, error) {
	n, hidden := len(m.z), m.gate.Weight.Rows
	dg, du, dz := sized(&m.dg, n), sized(&m.du, n), sized(&m.dz, n)
	dScaled := sized(&m.dScaled, len(dy))
	copy(dScaled, dy)
	swiglu.Unscale(dScaled, m.scales)
	if err := m.down.Backward(dz, dScaled); err != nil {
		return nil, err
	}
	parallel.For(n/hidden, 16, m.workers, func(first, end int) {
		lo, hi := first*hidden, end*hidden
		swiglu.Backward(du[lo:hi], dg[lo:hi], dz[lo:hi], m.u[lo:hi], m.g[lo:hi], m.scales.Tokens(first, end))
	})
	dx, part := sized(&m.dx, len(dy)), sized(&m.part, len(dy))
	if err := m.gate.Backward(dx, dg); err != nil {
		return nil, err
	}
	if err := m.up.Backward(part, du); err != nil {
		return nil, err
	}
	add(dx, dx, part, m.workers)
	return dx, nil
}
