package swiglu

import (
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/number"
)

// Scales are smoothing scales: one for each channel or for each token. The zero
// Scales smooth nothing and make the functions of this package plain SwiGLU's.
// [Smoother.Scales] chooses them.
type Scales struct {
	Axis   Axis
	Values []float32
}

// Tokens returns the scales of rows [lo, hi), which share s's memory. It panics if s is
// per token and has no such rows.
func (s Scales) Tokens(lo, hi int) Scales {
	s.mustBeKnown()
	if s.Axis == PerToken && s.Values != nil {
		if lo < 0 || hi < lo || hi > len(s.Values) {
			panic(noRows)
		}
		s.Values = s.Values[lo:hi:hi]
	}
	return s
}

// unscaled is the scale of a row without one.
var unscaled = []float32{1}

// row returns the scales of the elements of a row: per channel one each, per
// token and for no scales one for all.
func (s Scales) row(token int) []float32 {
	switch {
	case s.Values == nil:
		return unscaled
	case s.Axis == PerToken:
		return s.Values[token : token+1]
	}
	return s.Values
}

func (s Scales) mustBeKnown() {
	if !axes.Valid(s.Axis) {
		panic(unknownAxis)
	}
}

// width returns the number of channels of n elements.
func (s Scales) width(n int) int {
	s.mustBeKnown()
	width := n
	switch {
	case s.Values == nil:
		return n
	case s.Axis == PerChannel:
		width = len(s.Values)
	case len(s.Values) > 0:
		width = n / len(s.Values)
	}
	if width*s.rows(n, width) != n {
		panic(wrongScales)
	}
	return width
}

func (s Scales) rows(n, width int) int {
	switch {
	case s.Axis == PerToken:
		return len(s.Values)
	case width == 0:
		return 0
	}
	return n / width
}

const (
	unequal     = "swiglu: slices are not of the same length"
	wrongScales = "swiglu: scales do not divide the elements into rows"
	unknownAxis = "swiglu: unknown axis"
	noRows      = "swiglu: there are no scales of such rows"
)

// Forward writes z = (s·u)·silu(g), each product rounded to float32, where u and
// g are [tokens, channels] and so is z, which may be one of them. It panics if
// the lengths differ, or s does not fit them or is of an unknown axis. A NaN is
// 7FC00000 whatever gave it. Safe for concurrent use on distinct z.
func Forward(z, u, g []float32, s Scales) {
	if len(u) != len(z) || len(g) != len(z) {
		panic(unequal)
	}
	width := s.width(len(z))
	for token, lo := 0, 0; lo < len(z); token, lo = token+1, lo+width {
		hi := lo + width
		elementary.SwiGLU(z[lo:hi], u[lo:hi], g[lo:hi], s.row(token))
	}
}

// Backward writes the gradients of u and g from dz, that of what [Forward] wrote
// with the same scales:
//
//	du = (s·dz)·silu(g)    dg = ((s·u)·silu'(g))·dz
//
// du and dg may each be any of the inputs, but not each other. It panics as
// Forward does, and its NaN are 7FC00000 as well. Safe for concurrent use on distinct du and dg.
func Backward(du, dg, dz, u, g []float32, s Scales) {
	n := len(dz)
	if len(du) != n || len(dg) != n || len(u) != n || len(g) != n {
		panic(unequal)
	}
	width := s.width(n)
	for token, lo := 0, 0; lo < n; token, lo = token+1, lo+width {
		hi := lo + width
		elementary.SwiGLUGrad(du[lo:hi], dg[lo:hi], dz[lo:hi], u[lo:hi], g[lo:hi], s.row(token))
	}
}

// FoldDown writes the down projection w, [out, channels], with the inverse of
// the scales of each channel folded in, w/s, to dst, which may be w. The same
// takes the gradient of the folded weight back to that of w. Scales per token,
// and none, copy w, bits of NaN included; otherwise a NaN becomes 7FC00000. It panics
// if the lengths do not fit or the axis is unknown.
func FoldDown(dst, w []float32, s Scales) {
	if len(dst) != len(w) {
		panic(unequal)
	}
	s.mustBeKnown()
	if s.Values == nil || s.Axis == PerToken {
		copy(dst, w)
		return
	}
	width := s.width(len(w))
	for lo := 0; lo < len(w); lo += width {
		for i, scale := range s.Values {
			dst[lo+i] = number.Canonical(w[lo+i] / scale)
		}
	}
}

// FoldUp writes the linear branch's weight w, [channels, in], with the scale of
// each channel folded in, s·w, to dst, which may be w: the merge for inference
// of the paper, after which plain SwiGLU gives what Smooth-SwiGLU gave. Only
// scales per channel can be merged; it panics for others and if the lengths do
// not fit. A NaN becomes 7FC00000.
func FoldUp(dst, w []float32, s Scales) {
	if len(dst) != len(w) {
		panic(unequal)
	}
	if s.Axis != PerChannel || len(s.Values) == 0 || len(w)%len(s.Values) != 0 {
		panic(wrongScales)
	}
	in := len(w) / len(s.Values)
	for channel, scale := range s.Values {
		for i := channel * in; i < (channel+1)*in; i++ {
			dst[i] = number.Canonical(scale * w[i])
		}
	}
}

// Unscale divides the rows of y, [tokens, out], by the scales of their tokens,
// in place; the same takes the gradient of y back. Scales per channel, and none,
// leave y as it is; otherwise a NaN becomes 7FC00000. It panics if y is not of that
// many rows or the axis is unknown.
func Unscale(y []float32, s Scales) {
	s.mustBeKnown()
	if s.Values == nil || s.Axis == PerChannel {
		return
	}
	width := s.width(len(y))
	for token, scale := range s.Values {
		for i := token * width; i < (token+1)*width; i++ {
			y[i] = number.Canonical(y[i] / scale)
		}
	}
}
