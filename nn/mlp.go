package nn

import (
	"context"
	"strings"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// MLP is the SwiGLU feed-forward of Shazeer (arXiv 2002.05202),
// down(silu(gate(x)) · up(x)), with Smooth-SwiGLU (Fishman et al., arXiv 2409.12517)
// where its options have a Smoothing, and another [Gate] where they have one.
type MLP struct {
	Gate, Up, Down *Linear

	layer       string // its name in taps
	dim, hidden int
	workers     int
	shared      *Shared
	scratch     *scratch

	gate     Gate
	smoother *swiglu.Smoother // nil: plain SwiGLU
	scales   swiglu.Scales    // of the last Forward; none without a smoother

	input    *commonInput // of gate and up
	x        []float32    // what Forward was given
	branches *branches    // up and gate
	product  *[]float32   // what SwiGLU makes of them
	inFP8    *keptBranches
	rows     int
	ready    bool

	policy Policy
	own    struct { // memory
		branches
		product []float32
	}
}

// NewMLP returns an MLP whose weights are zero, to be filled in. They are named
// prefix+"gate_proj.weight", "up_proj.weight" and "down_proj.weight", and biases
// "gate_proj.bias" and so on. The error is [ErrConfig].
func NewMLP(prefix string, dim, hidden int, o Options) (*MLP, error) {
	if err := checkMatrix(prefix+"up_proj.weight", hidden, dim); err != nil {
		return nil, err
	}
	o, err := o.complete("Options")
	if err != nil {
		return nil, err
	}
	return newMLP(prefix, dim, hidden, o)
}

func newMLP(prefix string, dim, hidden int, o Options) (*MLP, error) {
	m := &MLP{
		layer: strings.TrimSuffix(prefix, "."), dim: dim, hidden: hidden,
		workers: o.Workers, shared: o.Shared, scratch: &o.Shared.scratch,
		input: newCommonInput(o), policy: o.keeping(), gate: o.Gate,
	}
	err := newLinears(prefix,
		linearSpec{&m.Gate, "gate_proj.weight", hidden, dim, o.roundInput(), o.Biases.MLP},
		linearSpec{&m.Up, "up_proj.weight", hidden, dim, o.roundInput(), o.Biases.MLP},
		linearSpec{&m.Down, "down_proj.weight", dim, hidden, o.roundGradient(), o.Biases.MLP},
	)
	if err != nil {
		return nil, err
	}
	o.keepNorm(m.policy, m.Gate, m.Up)
	o.keepInput(m.Down, m.policy.Product)
	if r := o.Activations.branchRecipe(); r != nil {
		m.inFP8 = newKeptBranches(m.Up, m.Gate, *r)
	}
	if o.Smoothing != nil {
		m.smoother, err = o.Shared.scaling.smoother(m.layer, *o.Smoothing)
	}
	return m, err
}

// Params returns the weights, each before its bias: gate, up, down.
func (m *MLP) Params() []*Param { return paramsOf(m.linears()...) }

func (m *MLP) linears() []*Linear { return []*Linear{m.Gate, m.Up, m.Down} }

// outputs returns the projections back to the residual stream.
func (m *MLP) outputs() []*Linear { return []*Linear{m.Down} }

func (m *MLP) forward(ctx context.Context, y, x []float32, batch, seq int) error {
	return m.Forward(ctx, y, x, batch*seq)
}

func (m *MLP) backward(ctx context.Context, dx, dy []float32, _ float32) error {
	return m.Backward(ctx, dx, dy)
}

// Forward writes the result for x to y, both [rows, dim]; they must not overlap. The
// layer keeps x, which must stay as it is until [MLP.Backward], but with FP8
// activations, of which it makes a copy in FP8.
func (m *MLP) Forward(ctx context.Context, y, x []float32, rows int) error {
	m.ready = false
	if _, ok := product(rows, m.hidden); !ok || !fits(rows, m.dim, x) || len(y) != len(x) {
		return inputError("%s: an input of %d and an output of %d elements are not %d rows of %d", m.layer, len(x), len(y), rows, m.dim)
	}
	training := m.shared.training()
	m.branches = choose(training && m.policy.Branches == Keep, &m.own.branches, &m.scratch.branches)
	m.product = choose(training && m.policy.Product == Keep, &m.own.product, &m.scratch.product)
	m.x, m.rows = x, rows
	if err := m.branch(ctx); err != nil {
		return err
	}
	g, u := m.branches.g, m.branches.u
	m.chooseScales(u)
	m.multiply()
	m.shared.tap(m.layer, ".swiglu.gate", g, rows)
	m.shared.tap(m.layer, ".swiglu.up", u, rows)
	m.shared.tap(m.layer, ".swiglu.product", *m.product, rows)
	if err := m.Down.multiply(ctx, y, *m.product, rows, m.scales, nil); err != nil {
		return err
	}
	err := m.keep(ctx)
	swiglu.Unscale(y, m.scales)
	m.ready = err == nil && training
	return err
}

// branch computes the branches of what Forward was given.
func (m *MLP) branch(ctx context.Context) error {
	n := m.rows * m.hidden
	m.input.begin()
	if err := m.Gate.forward(ctx, sized(&m.branches.g, n), m.x, m.rows, m.input); err != nil {
		return err
	}
	return m.Up.forward(ctx, sized(&m.branches.u, n), m.x, m.rows, m.input)
}

// keep keeps, in training, the input of down, or the branches that it is computed from
// again.
func (m *MLP) keep(ctx context.Context) error {
	switch {
	case m.inFP8 == nil:
		return m.Down.keep(ctx, *m.product, m.rows, nil)
	case m.shared.training():
		return m.inFP8.keep(ctx, m.shared, m.branches, m.rows, m.hidden)
	}
	return nil
}

// chooseScales sets the smoothing scales for the linear branch u.
func (m *MLP) chooseScales(u []float32) {
	switch {
	case m.smoother == nil:
	case m.shared.training():
		m.scales = m.smoother.Scales(u, m.hidden)
	default:
		m.scales = m.smoother.Peek(u, m.hidden)
	}
}

// multiply computes the product of the branches.
func (m *MLP) multiply() {
	u, g := m.branches.u, m.branches.g
	z := sized(m.product, len(u))
	parallel.For(m.rows, 16, m.workers, func(first, end int) {
		lo, hi := first*m.hidden, end*m.hidden
		m.gate.multiply(z[lo:hi], u[lo:hi], g[lo:hi], m.scales.Tokens(first, end))
	})
}

// Backward takes the gradient dy of what the last Forward wrote. It writes that of x
// to dx, which must not overlap dy, and adds those of the weights to their Grad.
func (m *MLP) Backward(ctx context.Context, dx, dy []float32) error {
	if err := checkGradients(m.ready, m.layer, dx, dy, m.rows, m.dim); err != nil {
		return err
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	m.ready = false
	if err := m.restore(ctx); err != nil {
		return err
	}
	s, u, g := m.scratch, m.branches.u, m.branches.g
	dScaled := sized(&s.dScaled, len(dy))
	copy(dScaled, dy)
	swiglu.Unscale(dScaled, m.scales)
	dg, du, dz := sized(&s.dg, len(g)), sized(&s.du, len(u)), sized(&s.dz, len(u))
	if err := m.Down.Backward(ctx, dz, dScaled); err != nil {
		return err
	}
	parallel.For(m.rows, 16, m.workers, func(first, end int) {
		lo, hi := first*m.hidden, end*m.hidden
		m.gate.backward(du[lo:hi], dg[lo:hi], dz[lo:hi], u[lo:hi], g[lo:hi], m.scales.Tokens(first, end))
	})
	m.input.begin()
	if err := m.Gate.backward(ctx, dx, dg, m.input); err != nil {
		return err
	}
	part := sized(&s.part, len(dx))
	if err := m.Up.backward(ctx, part, du, m.input); err != nil {
		return err
	}
	add(dx, dx, part, m.workers)
	return nil
}

// restore computes again what is not kept. For branches the input must be as it was.
func (m *MLP) restore(ctx context.Context) error {
	switch m.policy.Branches {
	case Recompute:
		if err := m.shared.repeat(func() error { return m.branch(ctx) }); err != nil {
			return err
		}
	case KeepFP8:
		m.inFP8.restore(m.branches)
	}
	if m.policy.Product == Recompute {
		m.multiply()
		m.Down.restore(*m.product, m.rows)
	}
	return nil
}

// countActivations counts what is kept, but for inputs of linear layers in FP8.
func (m *MLP) countActivations(n *ActivationBytes) {
	n.floats(m.scales.Values)
	if m.policy.Product == Keep {
		n.floats(*m.product)
	}
	switch m.policy.Branches {
	case Keep:
		n.floats(m.branches.u, m.branches.g)
	case KeepFP8:
		n.tensors(&m.inFP8.u, &m.inFP8.g)
	}
}

// keptBranches are the inputs of SwiGLU in FP8, [rows, hidden] each.
type keptBranches struct {
	quantizeU, quantizeG quantized
	u, g                 tensor.Tensor
}

// newKeptBranches keeps the results of up and gate.
func newKeptBranches(up, gate *Linear, r scaling.Recipe) *keptBranches {
	return &keptBranches{quantizeU: keptOutput(up, r), quantizeG: keptOutput(gate, r)}
}

// keptOutput quantizes the result of a layer.
func keptOutput(l *Linear, r scaling.Recipe) quantized {
	return quantized{
		name:      l.layer + ".output",
		quantizer: scaling.Quantizer{Recipe: r, Options: tensor.Options{Op: opSwiGLU, Workers: l.workers}},
	}
}

func (k *keptBranches) keep(ctx context.Context, s *Shared, b *branches, rows, hidden int) error {
	if _, err := k.quantizeU.quantize(ctx, s, &k.u, b.u, rows, hidden); err != nil {
		return err
	}
	_, err := k.quantizeG.quantize(ctx, s, &k.g, b.g, rows, hidden)
	return err
}

// restore gives the branches the values that were kept.
func (k *keptBranches) restore(b *branches) {
	tensor.Dequantize(sized(&b.u, k.u.Len()), &k.u)
	tensor.Dequantize(sized(&b.g, k.g.Len()), &k.g)
}
