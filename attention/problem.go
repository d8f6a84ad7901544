package attention

import (
	"fmt"
	"math"
)

// Problem is one attention. Query head h uses head h/(Heads/KVHeads) of K and V, as in
// grouped-query attention (Ainslie et al., arXiv 2305.13245); one such head for all is
// multi-query attention, and MLA as it is decoded: V is then the first columns of K, as
// [tensor.Tensor.ColRange] gives them.
//
// It may be used by many goroutines at once while nobody changes it.
type Problem struct {
	Q Operand // [Heads, queries, D]
	K Operand // [KVHeads, keys, D]; KVHeads divides Heads
	V Operand // [KVHeads, keys, DV]

	// Keys is how many keys count: those from there on may be anything, NaN too. 0 is all.
	Keys int

	// Scale multiplies scores before the softmax; 0 is 1/sqrt(D).
	Scale float32

	// Cap, unless 0, bounds scaled scores x of keys, before the mask: they become
	// Cap·tanh(x/Cap), as in Gemma 2.
	Cap float32

	Mask Mask

	// Sinks has a score, in natural units and not scaled, for each query head, that takes
	// part in the sum of every softmax but has no value; nil is none.
	Sinks []float32
}

// Sizes are the extents of a [Problem].
type Sizes struct {
	Heads, KVHeads int
	Queries, Keys  int
	Dim, ValueDim  int
}

// Sizes returns the problem's extents. They mean nothing unless Check accepts it.
func (p *Problem) Sizes() Sizes {
	var s Sizes
	s.Heads, s.Queries, s.Dim = p.Q.Dims()
	s.KVHeads, s.Keys, _ = p.K.Dims()
	_, _, s.ValueDim = p.V.Dims()
	if p.Keys > 0 {
		s.Keys = p.Keys
	}
	return s
}

// KVHead returns the head of K and V that query head h uses.
func (s Sizes) KVHead(h int) int { return h / (s.Heads / s.KVHeads) }

// SoftmaxScale returns what scores are multiplied with: Scale, or 1/sqrt(D) rounded once.
func (p *Problem) SoftmaxScale() float32 {
	if p.Scale != 0 {
		return p.Scale
	}
	_, _, dim := p.Q.Dims()
	return float32(1 / math.Sqrt(float64(dim)))
}

// Check reports what is wrong with the problem: [ErrShape], [ErrScales], [ErrMask], or an
// error of package tensor. It looks at all scales and at no codes.
func (p *Problem) Check() error {
	for _, o := range []struct {
		name    string
		operand Operand
	}{{"Q", p.Q}, {"K", p.K}, {"V", p.V}} {
		if err := o.operand.check(o.name); err != nil {
			return err
		}
	}
	if err := p.checkShapes(); err != nil {
		return err
	}
	return p.checkNumbers()
}

func (p *Problem) checkShapes() error {
	heads, _, dim := p.Q.Dims()
	kvHeads, keys, keyDim := p.K.Dims()
	vHeads, vKeys, _ := p.V.Dims()
	switch {
	case dim != keyDim:
		return fmt.Errorf("%w: rows of Q have %d elements, of K %d", ErrShape, dim, keyDim)
	case dim == 0:
		return fmt.Errorf("%w: rows of Q and K have no elements", ErrShape)
	case kvHeads != vHeads:
		return fmt.Errorf("%w: K has %d heads, V %d", ErrShape, kvHeads, vHeads)
	case keys != vKeys:
		return fmt.Errorf("%w: K has %d tokens, V %d", ErrShape, keys, vKeys)
	case kvHeads == 0 || heads%kvHeads != 0:
		return fmt.Errorf("%w: %d heads of K and V do not divide %d of Q", ErrShape, kvHeads, heads)
	case p.Keys < 0 || p.Keys > keys:
		return fmt.Errorf("%w: Keys is %d of %d", ErrShape, p.Keys, keys)
	}
	return nil
}

func (p *Problem) checkNumbers() error {
	heads, _, _ := p.Q.Dims()
	if s := float64(p.Scale); !(s >= 0) || math.IsInf(s, 0) {
		return fmt.Errorf("%w: Scale is %v: it must be positive and finite", ErrScales, p.Scale)
	}
	if c := float64(p.Cap); !(c >= 0) || math.IsInf(c, 0) {
		return fmt.Errorf("%w: Cap is %v: it must be positive and finite, or 0", ErrScales, p.Cap)
	}
	if p.Sinks != nil && len(p.Sinks) != heads {
		return fmt.Errorf("%w: %d sinks for %d query heads", ErrMask, len(p.Sinks), heads)
	}
	for h, s := range p.Sinks {
		if math.IsNaN(float64(s)) || math.IsInf(float64(s), 1) {
			return fmt.Errorf("%w: the sink of head %d is %v", ErrMask, h, s)
		}
	}
	return nil
}
