package nn

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/swiglu"
)

// ExpertsConfig is the shape of [Experts].
type ExpertsConfig struct {
	Dim    int `json:"-"`      // of what goes in and comes out
	Hidden int `json:"hidden"` // width of each expert
	Shared int `json:"shared"` // experts that every token goes to, together an MLP of Shared·Hidden

	Router RouterConfig `json:"-"` // of the others

	// CapacityFactor, unless 0, drops choices: an expert takes no more than this times the
	// rows that each would have if all had as many, rounded up, those of the first
	// tokens. A choice that is dropped adds nothing to its token; the weights of its others
	// stay what they are. 0: nothing is dropped.
	CapacityFactor float64 `json:"capacity_factor"`
}

func (c ExpertsConfig) check(prefix string) error {
	switch {
	case c.Shared < 0:
		return configError("ExpertsConfig.Shared is %d: it must not be negative", c.Shared)
	case !(c.CapacityFactor >= 0 && c.CapacityFactor <= maxExperts):
		return configError("ExpertsConfig.CapacityFactor is %v: it must be from 0 to %d",
			c.CapacityFactor, maxExperts)
	}
	if err := checkMatrix(prefix+"experts.0.up_proj.weight", c.Hidden, c.Dim); err != nil {
		return err
	}
	if _, ok := product(c.Hidden, max(c.Shared, 1), c.Dim); !ok {
		return configError("ExpertsConfig.Shared is %d and Hidden %d: their MLP must have at most %d elements",
			c.Shared, c.Hidden, maxElements)
	}
	if err := c.Router.check(); err != nil {
		return err
	}
	if _, ok := product(c.Router.Experts, c.Hidden, c.Dim); !ok {
		return configError("%d experts of %d by %d: they must have at most %d elements",
			c.Router.Experts, c.Hidden, c.Dim, maxElements)
	}
	return nil
}

// Experts is a mixture of experts, each a SwiGLU feed-forward like an [MLP], in the way of
// DeepSeekMoE (arXiv 2401.06066): every token goes to the shared ones and to those that a
// [Router] chooses for it, and the result is that of the shared ones plus the weighted
// results of the chosen.
//
// Rows are sorted by expert, and in FP8 each of the three projections of all experts is one
// grouped product, in the forward pass and for both gradients. Results are those of each
// expert as an MLP on its rows, to the bit, and so are histories, what a Reporter hears and
// what taps see: operands have the expert's name, so
// "experts.3.gate_proj.input" counts Dim elements per token of expert 3 in the forward
// product. A token adds its results in the order of the experts, shared ones last.
type Experts struct {
	Router         *Router
	Gate, Up, Down []*Linear // of each expert; others may take their places, all of a kind alike
	Shared         *MLP      // nil: none

	config  ExpertsConfig
	layer   string
	workers int
	shared  *Shared
	scratch *scratch

	activation     Gate
	gate, up, down *linearGroup
	inputs         []*commonInput  // of gate and up of each expert
	inFP8          []*keptBranches // of each expert; nil: branches are kept in FP32
	policy         Policy
	in             []float32 // what Forward was given

	batch, seq int
	chosen     []int32   // [rows, TopK]
	weights    []float32 // of chosen
	places     []int     // of chosen: the row among those that are sorted by expert, or dropped
	choices    []int     // of each sorted row, its place in chosen
	counts     []int     // sorted rows of each expert
	filled     []int
	dWeights   []float32
	ready      bool

	input, output, product *[]float32 // sorted by expert
	branches               *branches
	own                    struct { // memory
		branches
		input, output, product []float32
		routed                 []float32 // the router's input, where the caller does not keep it
	}
}

// dropped is the place of a choice that its expert had no room for.
const dropped = -1

// NewExperts returns experts whose weights are zero, to be filled in. They are named, behind
// prefix, "gate.weight" of the router, "experts.0.gate_proj.weight", "up_proj.weight" and
// "down_proj.weight" and so on, and "shared_experts.gate_proj.weight" and so on; biases have
// ".bias" in place of ".weight". The error is [ErrConfig]. Options.Smoothing is not for experts.
func NewExperts(prefix string, c ExpertsConfig, o Options) (*Experts, error) {
	if err := c.check(prefix); err != nil {
		return nil, err
	}
	if c.Router.BiasRate > 0 && o.Shared == nil {
		return nil, errNoScaling
	}
	o, err := o.complete("Options")
	if err != nil {
		return nil, err
	}
	return newExperts(prefix, c, o)
}

func newExperts(prefix string, c ExpertsConfig, o Options) (x *Experts, err error) {
	if o.Smoothing != nil {
		return nil, configError("Options.Smoothing: experts have none: leave it out")
	}
	c.Router = c.Router.withDefaults()
	experts := c.Router.Experts
	x = &Experts{
		config: c, layer: strings.TrimSuffix(prefix, "."), workers: o.Workers,
		shared: o.Shared, scratch: &o.Shared.scratch, policy: o.keeping(),
		counts: make([]int, experts), filled: make([]int, experts),
	}
	x.activation = o.Gate
	if x.Router, err = newRouter(prefix, c.Dim, c.Router, o); err != nil {
		return nil, err
	}
	for _, p := range []struct {
		group   **linearGroup
		layers  *[]*Linear
		name    string
		out, in int
		options Options
	}{
		{&x.gate, &x.Gate, "gate_proj.weight", c.Hidden, c.Dim, o.roundInput()},
		{&x.up, &x.Up, "up_proj.weight", c.Hidden, c.Dim, o.roundInput()},
		{&x.down, &x.Down, "down_proj.weight", c.Dim, c.Hidden, o.roundGradient()},
	} {
		*p.group, err = newLinearGroup(experts, prefix+"experts.", p.name, p.out, p.in, o.Biases.MLP, p.options)
		if err != nil {
			return nil, err
		}
		*p.layers = (*p.group).layers
	}
	for e := range experts {
		o.keepNorm(x.policy, x.Gate[e], x.Up[e])
		o.keepInput(x.Down[e], x.policy.Product)
	}
	for e := range experts {
		x.inputs = append(x.inputs, newCommonInputIn(&x.scratch.expert(e).inputMemory, o))
		if r := o.Activations.branchRecipe(); r != nil {
			x.inFP8 = append(x.inFP8, newKeptBranches(x.Up[e], x.Gate[e], *r))
		}
	}
	if c.Shared > 0 {
		x.Shared, err = newMLP(prefix+"shared_experts.", c.Dim, c.Shared*c.Hidden, o)
	}
	return x, err
}

// Params returns the weights, each before its bias: the router's, those of each expert, and of the
// shared ones.
func (x *Experts) Params() []*Param {
	return append(paramsOf(x.Router.Gate), paramsOf(x.linears()...)...)
}

// linears returns the linear layers but for the router's.
func (x *Experts) linears() (layers []*Linear) {
	for e := range x.Gate {
		layers = append(layers, x.Gate[e], x.Up[e], x.Down[e])
	}
	if x.Shared != nil {
		layers = append(layers, x.Shared.linears()...)
	}
	return layers
}

// outputs returns the projections back to the residual stream.
func (x *Experts) outputs() []*Linear {
	if x.Shared == nil {
		return x.Down
	}
	return slices.Concat(x.Shared.outputs(), x.Down)
}

func (x *Experts) forward(ctx context.Context, y, in []float32, batch, seq int) error {
	return x.Forward(ctx, y, in, batch, seq)
}

func (x *Experts) backward(ctx context.Context, dx, dy []float32, scale float32) error {
	return x.Backward(ctx, dx, dy, scale)
}

// Dropped returns the number of choices that the last Forward dropped.
func (x *Experts) Dropped() int { return len(x.chosen) - len(x.choices) }

// Forward writes the result for x to y, both [batch·seq, dim], sequence after sequence; they
// must not overlap. The layer keeps x, which must stay as it is until [Experts.Backward],
// but with FP8 activations, where it makes copies: in FP8, and in FP32 for the router.
func (x *Experts) Forward(ctx context.Context, y, in []float32, batch, seq int) error {
	x.ready = false
	rows, ok := product(batch, seq)
	_, fit := product(int(rows), x.config.Router.TopK, max(x.config.Dim, x.config.Hidden))
	if !ok || !fit || batch <= 0 || seq <= 0 || !fits(int(rows), x.config.Dim, in) || len(y) != len(in) {
		return inputError("%s: an input of %d and an output of %d elements are not %d sequences of %d rows of %d",
			x.layer, len(in), len(y), batch, seq, x.config.Dim)
	}
	x.batch, x.seq, x.in = batch, seq, in
	if err := x.route(ctx, in); err != nil {
		return err
	}
	x.sort(int(rows))
	if err := x.compute(ctx); err != nil {
		return err
	}
	x.combine(y, *x.output, x.weights)
	if x.Shared != nil {
		part := sized(&x.scratch.sharedOutput, len(y))
		if err := x.Shared.Forward(ctx, part, in, int(rows)); err != nil {
			return err
		}
		add(y, y, part, x.workers)
	}
	x.ready = x.shared.training()
	return nil
}

// route chooses experts for the rows of in.
func (x *Experts) route(ctx context.Context, in []float32) error {
	n := x.batch * x.seq * x.config.Router.TopK
	x.chosen = slices.Grow(x.chosen[:0], n)[:n]
	if x.shared.training() && x.policy.Norms == KeepFP8 {
		copy(sized(&x.own.routed, len(in)), in)
		in = x.own.routed
	}
	return x.Router.Forward(ctx, x.chosen, sized(&x.weights, n), in, x.batch, x.seq)
}

// sort gives each choice a row among those that are sorted by expert, unless it is dropped.
func (x *Experts) sort(rows int) {
	experts := len(x.counts)
	most := rows
	if f := x.config.CapacityFactor; f > 0 {
		most = capacity(f, len(x.chosen), experts, rows)
	}
	for e, n := range x.Router.load {
		x.counts[e] = min(n, most)
	}
	first := 0
	for e, n := range x.counts {
		x.filled[e] = first
		first += n
	}
	x.choices = slices.Grow(x.choices[:0], first)[:first]
	x.places = slices.Grow(x.places[:0], len(x.chosen))[:len(x.chosen)]
	end := slices.Clone(x.filled)
	for e, n := range x.counts {
		end[e] += n
	}
	for i, e := range x.chosen {
		x.places[i] = dropped
		if at := x.filled[e]; at < end[e] {
			x.places[i], x.choices[at] = at, i
			x.filled[e]++
		}
	}
}

// capacity returns how many of so many choices an expert takes at most.
func capacity(factor float64, choices, experts, rows int) int {
	return int(min(math.Ceil(factor*float64(choices)/float64(experts)), float64(rows)))
}

// compute gives each expert its rows.
func (x *Experts) compute(ctx context.Context) error {
	training, s := x.shared.training(), x.scratch
	x.input = choose(training && x.policy.Norms == Keep, &x.own.input, &s.expertInput)
	x.output = choose(training && x.policy.Outputs == Keep, &x.own.output, &s.expertOutput)
	x.branches = choose(training && x.policy.Branches == Keep, &x.own.branches, &s.branches)
	x.product = choose(training && x.policy.Product == Keep, &x.own.product, &s.product)
	x.gather()
	if err := x.branch(ctx); err != nil {
		return err
	}
	x.multiply()
	x.tapBranches()
	if err := x.giveOutput(ctx); err != nil {
		return err
	}
	return x.keep(ctx)
}

// gather sorts rows of what Forward was given by expert.
func (x *Experts) gather() {
	sorted := sized(x.input, len(x.choices)*x.config.Dim)
	x.eachRow(func(row, token int) { copy(x.rowOf(sorted, row), x.rowOf(x.in, token)) })
}

// branch computes the branches of the sorted rows.
func (x *Experts) branch(ctx context.Context) error {
	rows, sorted := len(x.choices), *x.input
	g, u := sized(&x.branches.g, rows*x.config.Hidden), sized(&x.branches.u, rows*x.config.Hidden)
	for _, input := range x.inputs {
		input.begin()
	}
	for _, p := range []struct {
		*linearGroup
		to []float32
	}{{x.gate, g}, {x.up, u}} {
		if err := p.multiply(ctx, p.to, sorted, x.counts, x.inputs); err != nil {
			return err
		}
		if err := p.keep(ctx, sorted, x.counts, x.inputs); err != nil {
			return err
		}
	}
	return nil
}

// giveOutput computes the results of the experts from the product of the branches.
func (x *Experts) giveOutput(ctx context.Context) error {
	y := sized(x.output, len(x.choices)*x.config.Dim)
	return x.down.multiply(ctx, y, *x.product, x.counts, nil)
}

// rowOf returns a row of dim values.
func (x *Experts) rowOf(values []float32, row int) []float32 {
	return values[row*x.config.Dim:][:x.config.Dim]
}

// eachRow calls do for each sorted row and its token.
func (x *Experts) eachRow(do func(row, token int)) {
	parallel.For(len(x.choices), max(elementGrain/x.config.Dim, 1), x.workers, func(lo, hi int) {
		for row := lo; row < hi; row++ {
			do(row, x.choices[row]/x.config.Router.TopK)
		}
	})
}

// multiply computes the product of the branches.
func (x *Experts) multiply() {
	u, g := x.branches.u, x.branches.g
	z := sized(x.product, len(u))
	parallel.For(len(u), elementGrain, x.workers, func(lo, hi int) {
		x.activation.Multiply(z[lo:hi], u[lo:hi], g[lo:hi])
	})
}

func (x *Experts) tapBranches() {
	if x.shared.Tap == nil {
		return
	}
	first := 0
	for e, n := range x.counts {
		layer := x.layer + ".experts." + strconv.Itoa(e)
		for _, b := range []struct {
			which  string
			values []float32
		}{
			{".swiglu.gate", x.branches.g}, {".swiglu.up", x.branches.u}, {".swiglu.product", *x.product},
		} {
			x.shared.tap(layer, b.which, rowsOf(b.values, first, n, x.config.Hidden), n)
		}
		first += n
	}
}

// keep keeps, in training, the inputs of down, or the branches that they are computed from
// again.
func (x *Experts) keep(ctx context.Context) error {
	switch {
	case x.inFP8 == nil:
		return x.down.keep(ctx, *x.product, x.counts, nil)
	case x.shared.training():
		first := 0
		for e, rows := range x.counts {
			b := x.branchesOf(first, rows)
			if err := x.inFP8[e].keep(ctx, x.shared, &b, rows, x.config.Hidden); err != nil {
				return err
			}
			first += rows
		}
	}
	return nil
}

// branchesOf returns the branches of so many sorted rows.
func (x *Experts) branchesOf(first, rows int) branches {
	h := x.config.Hidden
	return branches{rowsOf(x.branches.u, first, rows, h), rowsOf(x.branches.g, first, rows, h)}
}

// combine writes to each token of y the sum of its sorted rows, weighted unless weights are
// nil, in the order of the experts.
func (x *Experts) combine(y, sorted, weights []float32) {
	k := x.config.Router.TopK
	parallel.For(x.batch*x.seq, max(elementGrain/(k*x.config.Dim), 1), x.workers, func(lo, hi int) {
		for token := lo; token < hi; token++ {
			to := x.rowOf(y, token)
			clear(to)
			for i := token * k; i < (token+1)*k; i++ {
				switch row := x.places[i]; {
				case row == dropped:
				case weights == nil:
					addTo(to, to, x.rowOf(sorted, row))
				default:
					addTimes(to, x.rowOf(sorted, row), weights[i])
				}
			}
		}
	})
}

// addTimes adds w·x to y.
func addTimes(y, x []float32, w float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += float32(w * x[i])
	}
}

// Backward takes the gradient dy of what the last Forward wrote. It writes that of its input
// to dx, which must not overlap dy, and adds those of the weights to their Grad, of the
// router's also those of scale times its balance loss: scale is what the loss was multiplied
// by of which dy is the gradient.
func (x *Experts) Backward(ctx context.Context, dx, dy []float32, scale float32) error {
	if err := checkGradients(x.ready, x.layer, dx, dy, x.batch*x.seq, x.config.Dim); err != nil {
		return err
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	x.ready = false
	if err := x.restore(ctx); err != nil {
		return err
	}
	x.distribute(dy)
	sorted, err := x.expertsBackward(ctx)
	if err != nil {
		return err
	}
	x.combine(dx, sorted, nil)
	part := sized(&x.scratch.sharedOutput, len(dx))
	if x.Shared != nil {
		if err := x.Shared.Backward(ctx, part, dy); err != nil {
			return err
		}
		add(dx, dx, part, x.workers)
	}
	if err := x.Router.Backward(ctx, part, x.dWeights, scale); err != nil {
		return err
	}
	add(dx, dx, part, x.workers)
	return nil
}

// restore computes again what is not kept. For the sorted rows the input must be as it was.
func (x *Experts) restore(ctx context.Context) error {
	p := x.policy
	if p.Norms == Recompute || p.Norms == KeepFP8 && p.Branches == Recompute {
		x.gather()
	}
	if p.Norms == Recompute {
		x.gate.restore(*x.input, x.counts)
		x.up.restore(*x.input, x.counts)
	}
	switch p.Branches {
	case Recompute:
		if err := x.shared.repeat(func() error { return x.branch(ctx) }); err != nil {
			return err
		}
	case KeepFP8:
		x.decodeBranches()
	}
	if p.Product == Recompute || p.Product == KeepFP8 && p.Outputs == Recompute {
		x.multiply()
	}
	if p.Product == Recompute {
		x.down.restore(*x.product, x.counts)
	}
	if p.Outputs == Recompute {
		return x.shared.repeat(func() error { return x.giveOutput(ctx) })
	}
	return nil
}

// decodeBranches gives the branches the values that were kept in FP8.
func (x *Experts) decodeBranches() {
	n := len(x.choices) * x.config.Hidden
	sized(&x.branches.u, n)
	sized(&x.branches.g, n)
	first := 0
	for e, rows := range x.counts {
		b := x.branchesOf(first, rows)
		x.inFP8[e].restore(&b)
		first += rows
	}
}

// distribute makes of dy the gradients of what the experts gave, sorted, and of weights.
func (x *Experts) distribute(dy []float32) {
	d := sized(&x.scratch.dExpertOutput, len(x.choices)*x.config.Dim)
	clear(sized(&x.dWeights, len(x.weights)))
	x.eachRow(func(row, token int) {
		i, from := x.choices[row], x.rowOf(dy, token)
		x.dWeights[i] = sums{}.dot(from, x.rowOf(*x.output, row))
		to := x.rowOf(d, row)
		for j, v := range from {
			to[j] = x.weights[i] * v
		}
	})
}

// expertsBackward returns the gradients of what the experts were given, sorted.
func (x *Experts) expertsBackward(ctx context.Context) ([]float32, error) {
	s, u, g := x.scratch, x.branches.u, x.branches.g
	dg, du, dz := sized(&s.dg, len(g)), sized(&s.du, len(u)), sized(&s.dz, len(u))
	if err := x.down.backward(ctx, dz, s.dExpertOutput, x.counts, nil); err != nil {
		return nil, err
	}
	parallel.For(len(u), elementGrain, x.workers, func(lo, hi int) {
		x.activation.backward(du[lo:hi], dg[lo:hi], dz[lo:hi], u[lo:hi], g[lo:hi], swiglu.Scales{})
	})
	for _, input := range x.inputs {
		input.begin()
	}
	dx := sized(&s.dExpertInput, len(x.choices)*x.config.Dim)
	if err := x.gate.backward(ctx, dx, dg, x.counts, x.inputs); err != nil {
		return nil, err
	}
	part := sized(&s.part, len(dx))
	if err := x.up.backward(ctx, part, du, x.counts, x.inputs); err != nil {
		return nil, err
	}
	add(dx, dx, part, x.workers)
	return dx, nil
}

func (x *Experts) countActivations(n *ActivationBytes) {
	n.floats(x.Router.scores, x.weights, x.own.routed, x.own.input, x.own.output, x.own.product)
	n.floats(x.own.u, x.own.g)
	for _, k := range x.inFP8 {
		n.tensors(&k.u, &k.g)
	}
	if x.Shared != nil {
		x.Shared.countActivations(n)
	}
}
