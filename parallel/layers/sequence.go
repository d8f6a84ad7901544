package layers

import (
	"fmt"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// rmsNorm is an [nn.RMSNorm] sequence parallel: each rank normalizes the rows of its slices,
// as [collective.Slices.Tokens] says, and all get the results of all. Each slice is an
// nn.RMSNorm of its own, with the same gain, whose gradient is the sum over slices.
// The values of gains are the same memory.
type rmsNorm struct {
	inSlices[nn.RMSNorm]
	normed []float32
}

// newRMSNorm returns the slices of a norm that a rank has, with gains of 1, named like
// "model.norm.slice.3.weight". The error is [collective.ErrInput] or that of [nn.NewRMSNorm].
func newRMSNorm(
	rank, ranks int, name string, dim int, eps float64, s collective.Slices, o nn.Options,
) (*rmsNorm, error) {
	layer := layerOf(name)
	s.Align = 0
	l, err := newInSlices(rank, ranks, s.Count, dim, s, func(i, _, _ int) (*nn.RMSNorm, error) {
		return nn.NewRMSNorm(fmt.Sprintf("%s.slice.%d.weight", layer, i), dim, eps, o)
	})
	for _, part := range l.Parts {
		part.Gain.Value = l.Parts[0].Gain.Value
	}
	l.name(layer, layer+".gradient")
	l.Slices.Cols, l.Gradient.Cols = dim, 0
	return &rmsNorm{inSlices: l}, err
}

// Forward writes the norms of all rows to y, [rows, dim], given x, those that the rank has.
// They must not overlap, and x must stay as it is until Backward.
func (n *rmsNorm) Forward(r *collective.Rank, y, x []float32) error {
	n.normed = resized(n.normed, len(x))
	err := n.each(r, len(y), func(p *nn.RMSNorm, lo, hi int) error {
		return p.Forward(r.Context(), n.normed[lo:hi], x[lo:hi])
	})
	if err != nil {
		return err
	}
	return r.AllGatherSlices(n.Slices, y, n.normed)
}

// each calls f for each of the rank's slices, with its elements of those that the rank has.
func (n *rmsNorm) each(r *collective.Rank, whole int, f func(p *nn.RMSNorm, lo, hi int) error) error {
	s, cols := &n.Slices, n.Slices.Cols
	lo, _ := s.Tokens(whole/cols, r.ID(), r.Ranks())
	first, _ := s.Of(r.ID(), r.Ranks())
	for k, p := range n.Parts {
		from, to := s.Tokens(whole/cols, first+k, s.Count)
		if err := f(p, (from-lo)*cols, (to-lo)*cols); err != nil {
			return err
		}
	}
	return nil
}

// Backward takes the gradient dy of the rank's rows of what Forward wrote, which a
// reduce-scatter makes; whole is the number of elements of all rows. It writes that of x
// to dx, and adds those of gains to the slices' Grad: rmsNorm.sumGradients adds
// them up.
func (n *rmsNorm) Backward(r *collective.Rank, dx, dy []float32, whole int) error {
	return n.each(r, whole, func(p *nn.RMSNorm, lo, hi int) error { return p.Backward(r.Context(), dx[lo:hi], dy[lo:hi]) })
}
