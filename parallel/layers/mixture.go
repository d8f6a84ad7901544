package layers

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// place is a rank of a group: which of how many.
type place struct{ Rank, Ranks int }

// mixture is [nn.Experts] expert parallel, and each expert tensor-parallel besides: ranks of
// one group share the experts out, as [Experts] says, and those of another the slices of each,
// as [MLP] says. All ranks have the router, and the slices of the shared experts. Each slice
// of an expert is an nn.MLP of its own. With one slice its bits are those of nn.Experts on
// the tokens of each rank, but for the gradients of experts' weights, which are sums over
// ranks.
type mixture struct {
	Router  *nn.Router
	Experts []*MLP // those of the rank
	Shared  *MLP   // nil: none

	Exchange Experts // how tokens go; set its fields but Count and Cols before the first pass

	// source, unless nil, is called before the backward pass of rows of a rank.
	source func(from int)

	config nn.ExpertsConfig
	first  int // of the rank's experts
	sent   *sentTokens
	last   []int // by expert of the rank: whose rows it saw last; -2: none

	chosen   []int32
	weights  []float32
	dWeights []float32
	part     []float32
}

// notSeen is in Mixture.last before any rows.
const notSeen = allRanks - 1

// newMixture returns what a rank has of experts, with weights of zero, which are named prefix
// and "gate.weight", "experts.3.slice.0.gate_proj.weight",
// "shared_experts.slice.0.gate_proj.weight" and so on. The routed experts have options of
// their own, so that their [nn.Shared] can be another: ranks then have the same histories
// in the one, and those of their experts in the other. The error is [collective.ErrInput] or that of
// package nn.
func newMixture(
	tensor, expert place, prefix string, c nn.ExpertsConfig, s collective.Slices, e Experts,
	o, experts nn.Options,
) (*mixture, error) {
	n := c.Router.Experts
	e.Count, e.Dispatch.Cols, e.Combine.Cols, e.Apart = n, c.Dim, c.Dim, true
	m := &mixture{Exchange: e, config: c, first: expert.Rank * n / expert.Ranks}
	var err error
	if m.Router, err = nn.NewRouter(prefix, c.Dim, c.Router, o); err != nil {
		return nil, err
	}
	for i := m.first; i < (expert.Rank+1)*n/expert.Ranks; i++ {
		name := fmt.Sprintf("%sexperts.%d.", prefix, i)
		x, err := NewMLP(tensor.Rank, tensor.Ranks, name, c.Dim, c.Hidden, s, experts)
		if err != nil {
			return nil, err
		}
		m.Experts, m.last = append(m.Experts, x), append(m.last, notSeen)
	}
	if c.Shared > 0 {
		name := prefix + "shared_experts."
		m.Shared, err = NewMLP(tensor.Rank, tensor.Ranks, name, c.Dim, c.Shared*c.Hidden, s, o)
	}
	return m, err
}

func (m *mixture) expertCuts() (cuts []cut) {
	for _, x := range m.Experts {
		cuts = append(cuts, x.cuts()...)
	}
	return cuts
}

func (m *mixture) sharedCuts() []cut {
	if m.Shared == nil {
		return nil
	}
	return m.Shared.cuts()
}

// Forward writes the result for x to y, both [batch·seq, dim] and the same on all ranks that
// share slices out. Expert is the rank among those that share experts out, which have tokens
// of their own. It keeps x, which must stay as it is until Backward. A CapacityFactor
// counts the tokens of the rank alone.
func (m *mixture) Forward(tensor, expert *collective.Rank, y, x []float32, batch, seq int) error {
	n := batch * seq * m.config.Router.TopK
	m.chosen, m.weights = make([]int32, n), resized(m.weights, n)
	if err := m.Router.Forward(tensor.Context(), m.chosen, m.weights, x, batch, seq); err != nil {
		return err
	}
	for i := range m.last {
		m.last[i] = notSeen
	}
	var err error
	if m.sent, err = sendTokens(expert, m.Exchange, x, m.routes(batch*seq)); err != nil {
		return err
	}
	err = m.sent.Forward(y, func(rows expertRows, y, x []float32) error {
		return m.expertForward(tensor, rows, y, x)
	})
	if err != nil || m.Shared == nil {
		return err
	}
	m.part = resized(m.part, len(y))
	if err := m.Shared.Forward(tensor, m.part, x, batch*seq); err != nil {
		return err
	}
	collective.AddTo(y, m.part)
	return nil
}

// routes returns where tokens go, without the choices that an expert has no room for.
func (m *mixture) routes(rows int) Routes {
	capacity, taken := rows, make([]int, m.config.Router.Experts)
	if f := m.config.CapacityFactor; f > 0 {
		capacity = int(min(math.Ceil(f*float64(len(m.chosen))/float64(len(taken))), float64(rows)))
	}
	routes := Routes{TopK: m.config.Router.TopK, Weights: m.weights}
	for _, e := range m.chosen {
		to := int(e)
		if taken[e]++; taken[e] > capacity {
			to = Dropped
		}
		routes.Experts = append(routes.Experts, to)
	}
	return routes
}

func (m *mixture) expertForward(tensor *collective.Rank, rows expertRows, y, x []float32) error {
	m.last[rows.Expert-m.first] = rows.From
	return m.Experts[rows.Expert-m.first].Forward(tensor, y, x, rows.Rows)
}

// Backward takes the gradient dy of what the last Forward wrote. It writes that of x to dx,
// which must not overlap it, and adds those of weights to their Grad; scale is as in
// [nn.Experts.Backward]. An expert that has seen rows of another rank since computes its
// forward pass again, as runPipeline does.
func (m *mixture) Backward(tensor, expert *collective.Rank, dx, dy []float32, scale float32) error {
	m.dWeights = resized(m.dWeights, len(m.weights))
	err := m.sent.Backward(dx, m.dWeights, dy, func(rows expertRows, dx, dy, x []float32) error {
		return m.expertBackward(tensor, rows, dx, dy, x)
	})
	if m.sent = nil; err != nil {
		return err
	}
	m.part = resized(m.part, len(dx))
	if m.Shared != nil {
		if err := m.Shared.Backward(tensor, m.part, dy); err != nil {
			return err
		}
		collective.AddTo(dx, m.part)
	}
	if err := m.Router.Backward(tensor.Context(), m.part, m.dWeights, scale); err != nil {
		return err
	}
	collective.AddTo(dx, m.part)
	return nil
}

func (m *mixture) expertBackward(tensor *collective.Rank, rows expertRows, dx, dy, x []float32) error {
	i := rows.Expert - m.first
	if m.last[i] != rows.From {
		if err := m.expertForward(tensor, rows, make([]float32, len(x)), x); err != nil {
			return err
		}
	}
	m.last[i] = notSeen
	if m.source != nil {
		m.source(rows.From)
	}
	return m.Experts[i].Backward(tensor, dx, dy)
}
