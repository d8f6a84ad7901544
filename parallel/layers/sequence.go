package layers

import (
	"fmt"

	"github.com/octavo-fp8/octavo/nn"
)

// Tokens returns the rows [lo, hi) of so many that a rank has where layers are sequence
// parallel (Korthikanti et al., arXiv 2205.05198): those of its slices, each of which has
// as many as another or one more.
func (s *Slices) Tokens(rows, rank, ranks int) (lo, hi int) {
	first, end := s.Of(rank, ranks)
	return first * rows / s.Count, end * rows / s.Count
}

// cutTokens returns where the rows of slices begin and end, in elements.
func (s *Slices) cutTokens(rows, cols int) (cuts []int) {
	for i := range s.Count + 1 {
		cuts = append(cuts, i*rows/s.Count*cols)
	}
	return cuts
}

// hosts returns the rank of each slice.
func (s *Slices) hosts(ranks int) (host []int) {
	for rank := range ranks {
		lo, hi := s.Of(rank, ranks)
		for range hi - lo {
			host = append(host, rank)
		}
	}
	return host
}

// checkRows returns an error unless a rank has so many elements of rows of Cols.
func (r *Rank) checkRows(s *Slices, whole, own int) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.Cols < 1 || whole%s.Cols != 0 {
		return inputError("%q: %d elements are not rows of Cols = %d", s.Name, whole, s.Cols)
	}
	if lo, hi := s.Tokens(whole/s.Cols, r.id, r.Ranks()); own != (hi-lo)*s.Cols {
		return inputError("%q: rank %d has %d elements: want those of rows %d to %d of %d",
			s.Name, r.id, own, lo, hi, s.Cols)
	}
	return nil
}

// ReduceScatterSlices writes the rank's rows, as [Slices.Tokens] says, of the sum of the
// terms of all slices to dst: what [Rank.AllReduceSlices] is, cut by rows, of Cols. The
// rows of each slice are a message of their own.
func (r *Rank) ReduceScatterSlices(s Slices, dst []float32, terms [][]float32) error {
	src, err := r.hostedTerms(&s, terms)
	if err != nil {
		return err
	}
	if len(terms) == 0 {
		return inputError("%q: rank %d has none of %d slices", s.Name, r.id, s.Count)
	}
	if err := r.checkRows(&s, src.n, len(dst)); err != nil {
		return err
	}
	s.cuts = s.cutTokens(src.n/s.Cols, s.Cols)
	first, _ := s.Of(r.id, r.Ranks())
	return r.reduce(&s.Exchange, src, true, func(part, lo, hi int, p *parcel) {
		if src.host[part] == r.id {
			p.decode(dst[lo-s.cuts[first] : hi-s.cuts[first]])
		}
	})
}

// AllGatherSlices writes the rows of all ranks, as [Slices.Tokens] says, to dst, given the
// rank's own, src. The rows of each slice are a message of their own, which is rounded
// even where it stays.
func (r *Rank) AllGatherSlices(s Slices, dst, src []float32) error {
	if err := r.checkRows(&s, len(dst), len(src)); err != nil {
		return err
	}
	return r.gatherCuts(&s, s.cutTokens(len(dst)/s.Cols, s.Cols), dst, src)
}

// gatherCuts gathers what slices have, each a message of its own, between cuts.
func (r *Rank) gatherCuts(s *Slices, cuts []int, dst, src []float32) error {
	host, has := s.hosts(r.Ranks()), make([]*parcel, s.Count)
	size := func(slice int) int { return cuts[slice+1] - cuts[slice] }
	for slice := range has {
		n := size(slice)
		if host[slice] != r.id || n == 0 {
			continue
		}
		var err error
		if has[slice], err = s.gathered(r.ctx, src[:n], slice); err != nil {
			return err
		}
		src = src[n:]
	}
	if err := r.deliver(opGather, s.Name, spread(s.Order, host, r.Ranks()), size, has); err != nil {
		return err
	}
	for slice, p := range has {
		if p != nil {
			p.decode(dst[cuts[slice]:cuts[slice+1]])
		}
	}
	return nil
}

// rmsNorm is an [nn.RMSNorm] sequence parallel: each rank normalizes the rows of its slices,
// as [Slices.Tokens] says, and all get the results of all. Each slice is an nn.RMSNorm of
// its own, with the same gain, whose gradient is the sum over slices.
type rmsNorm struct {
	Slices   Slices        // of rows; how results are gathered
	Gradient Exchange      // how gradients of the gain are summed
	Parts    []*nn.RMSNorm // of the rank's slices, with gains whose values are the same memory

	normed []float32
}

// newRMSNorm returns the slices of a norm that a rank has, with gains of 1, named like
// "model.norm.slice.3.weight". The error is [ErrInput] or that of [nn.NewRMSNorm].
func newRMSNorm(
	rank, ranks int, name string, dim int, eps float64, s Slices, o nn.Options,
) (*rmsNorm, error) {
	n := &rmsNorm{Slices: s, Gradient: s.Exchange}
	layer := layerOf(name)
	n.Slices.Name, n.Gradient.Name = layer, layer+".gradient"
	n.Slices.Cols, n.Gradient.Cols = dim, 0
	err := eachSlice(&s, rank, ranks, dim, func(i, _, _ int) error {
		part, err := nn.NewRMSNorm(fmt.Sprintf("%s.slice.%d.weight", layer, i), dim, eps, o)
		if err != nil {
			return err
		}
		if n.Parts = append(n.Parts, part); len(n.Parts) > 1 {
			part.Gain.Value = n.Parts[0].Gain.Value
		}
		return nil
	})
	return n, err
}

// Forward writes the norms of all rows to y, [rows, dim], given x, those that the rank has.
// They must not overlap, and x must stay as it is until Backward.
func (n *rmsNorm) Forward(r *Rank, y, x []float32) error {
	if err := r.checkRows(&n.Slices, len(y), len(x)); err != nil {
		return err
	}
	n.normed = resized(n.normed, len(x))
	err := n.each(r, len(y), func(p *nn.RMSNorm, lo, hi int) error {
		return p.Forward(r.ctx, n.normed[lo:hi], x[lo:hi])
	})
	if err != nil {
		return err
	}
	return r.AllGatherSlices(n.Slices, y, n.normed)
}

// each calls f for each of the rank's slices, with its elements of those that the rank has.
func (n *rmsNorm) each(r *Rank, whole int, f func(p *nn.RMSNorm, lo, hi int) error) error {
	cuts := n.Slices.cutTokens(whole/n.Slices.Cols, n.Slices.Cols)
	first, _ := n.Slices.Of(r.id, r.Ranks())
	for k, p := range n.Parts {
		if err := f(p, cuts[first+k]-cuts[first], cuts[first+k+1]-cuts[first]); err != nil {
			return err
		}
	}
	return nil
}

// Backward takes the gradient dy of the rank's rows of what Forward wrote, which a
// reduce-scatter makes; whole is the number of elements of all rows. It writes that of x
// to dx, and adds those of gains to the slices' Grad: rmsNorm.sumGradients adds
// them up.
func (n *rmsNorm) Backward(r *Rank, dx, dy []float32, whole int) error {
	if err := r.checkRows(&n.Slices, whole, len(dy)); err != nil {
		return err
	}
	if len(dx) != len(dy) {
		return inputError("%q: gradients of %d and of %d elements", n.Slices.Name, len(dx), len(dy))
	}
	return n.each(r, whole, func(p *nn.RMSNorm, lo, hi int) error { return p.Backward(r.ctx, dx[lo:hi], dy[lo:hi]) })
}

// sumGradients gives all slices the sum of the gradients of their gains.
func (n *rmsNorm) sumGradients(r *Rank) error {
	var gains []*nn.Param
	for _, p := range n.Parts {
		gains = append(gains, p.Gain)
	}
	return sumCopies(r, n.Slices, n.Gradient, gains)
}

// sumCopies gives parameters, one of each of the rank's slices, the sum of the gradients of
// all slices.
func sumCopies(r *Rank, s Slices, x Exchange, copies []*nn.Param) error {
	s.Exchange = x
	var terms [][]float32
	for _, p := range copies {
		terms = append(terms, p.Grad)
	}
	if len(copies) == 0 {
		return inputError("%q: rank %d has no slices of %d", x.Name, r.id, s.Count)
	}
	sum := make([]float32, len(copies[0].Grad))
	if err := r.AllReduceSlices(s, sum, terms); err != nil {
		return err
	}
	for _, p := range copies {
		copy(p.Grad, sum)
	}
	return nil
}

// resized returns memory of n elements, old if it is enough.
func resized(old []float32, n int) []float32 {
	if cap(old) < n {
		return make([]float32, n)
	}
	return old[:n]
}
