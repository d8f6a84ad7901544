package nn

import (
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/parallel"
)

// Rotary rotates the pairs (0, 1), (2, 3), ... of a head's elements by angles that
// grow with the position (Su et al., arXiv 2104.09864): pair i of position p by
// p·theta^(-2i/dim), where dim elements of a head are rotated, the first ones, or all. It does
// not change and may be shared by the attention of all layers, and used concurrently.
type Rotary struct {
	headDim, dim, context int
	original              int       // the longest sequence that is rotated by short
	short, long           rotations // the same but for LongRoPE
}

// rotations are those of each position, [context, dim/2].
type rotations struct{ cos, sin []float32 }

const defaultRopeTheta = 1e4

// NewRotary returns the rotations of heads of headDim elements, which must be even,
// for positions below context, at most 10^6. A theta of 0 is 10000. The error is
// [ErrConfig].
func NewRotary(headDim, context int, theta float64) (*Rotary, error) {
	return NewScaledRotary(headDim, context, theta, RopeScaling{})
}

// NewScaledRotary is [NewRotary] with frequencies that are scaled.
func NewScaledRotary(headDim, context int, theta float64, s RopeScaling) (*Rotary, error) {
	if theta == 0 {
		theta = defaultRopeTheta
	}
	switch {
	case headDim <= 0 || headDim%2 != 0:
		return nil, configError("rotary positions of heads of %d elements: they must be a positive even number", headDim)
	case context <= 0 || context > elementary.SinCosLimit:
		return nil, configError("rotary positions: the context is %d: it must be from 1 to %d", context, int(elementary.SinCosLimit))
	case !validTheta(theta):
		return nil, configError("rotary positions: theta is %v: it must be from 1 to 1e12", theta)
	}
	if _, ok := product(context, headDim); !ok {
		return nil, configError("rotary positions of %d elements in a context of %d: that is too large", headDim, context)
	}
	if err := s.checkFor("RopeScaling", headDim, theta); err != nil {
		return nil, err
	}
	return newRotary(headDim, headDim, context, theta, s), nil
}

func validTheta(theta float64) bool { return theta >= 1 && theta <= 1e12 }

// newRotary returns the rotations of the first dim elements of heads.
func newRotary(headDim, dim, context int, theta float64, s RopeScaling) *Rotary {
	r := &Rotary{headDim: headDim, dim: dim, context: context, original: context}
	r.short = newRotations(dim, context, theta, s, false)
	r.long = r.short
	if s.Long != nil {
		r.original = s.Original
		r.long = newRotations(dim, context, theta, s, true)
	}
	return r
}

func newRotations(dim, context int, theta float64, s RopeScaling, long bool) rotations {
	half := dim / 2
	r := rotations{make([]float32, context*half), make([]float32, context*half)}
	for i, frequency := range s.frequencies(dim, theta, long) {
		for position := range context {
			sin, cos := elementary.SinCos(float64(float64(position) * frequency))
			if s.Attention != 0 {
				sin, cos = sin*s.Attention, cos*s.Attention
			}
			r.sin[position*half+i], r.cos[position*half+i] = float32(sin), float32(cos)
		}
	}
	return r
}

// of returns the rotations of sequences of a length.
func (r *Rotary) of(length int) *rotations {
	if length > r.original {
		return &r.long
	}
	return &r.short
}

// Rotate rotates x, [rows, heads·headDim], in place; the position of a row is its
// index modulo seq. Workers 0 is GOMAXPROCS. The error is [ErrInput].
func (r *Rotary) Rotate(x []float32, heads, seq, workers int) error {
	return r.checked(x, heads, seq, workers, 1)
}

// RotateFrom rotates x, [rows, heads·headDim], in place: rows of one sequence, the first of
// them at position first. Length is the number of tokens by which LongRoPE chooses its factors;
// 0: those up to the last row. Workers 0 is GOMAXPROCS. The error is [ErrInput].
func (r *Rotary) RotateFrom(x []float32, heads, first, length, workers int) error {
	width, ok := product(heads, r.headDim)
	switch {
	case !ok || width == 0 || uint64(len(x))%width != 0:
		return inputError("rotary positions: %d elements are not rows of %d heads of %d",
			len(x), heads, r.headDim)
	case first < 0 || first > r.context-int(uint64(len(x))/width):
		return inputError("rotary positions: %d rows from position %d on: there are positions for %d",
			uint64(len(x))/width, first, r.context)
	case workers < 0:
		return inputError("rotary positions: workers are %d: they must not be negative", workers)
	}
	if length == 0 {
		length = first + int(uint64(len(x))/width)
	}
	r.rotate(x, heads, first, max(r.context-first, 1), length, workers, 1)
	return nil
}

// RotateBack is the backward pass of Rotate: the transpose of a rotation is the rotation back.
// It undoes Rotate, but for the attention factor of a [RopeScaling], which is in both.
func (r *Rotary) RotateBack(x []float32, heads, seq, workers int) error {
	return r.checked(x, heads, seq, workers, -1)
}

func (r *Rotary) checked(x []float32, heads, seq, workers int, sign float32) error {
	width, ok := product(heads, r.headDim)
	switch {
	case !ok || width == 0 || uint64(len(x))%width != 0:
		return inputError("rotary positions: %d elements are not rows of %d heads of %d", len(x), heads, r.headDim)
	case seq <= 0 || seq > r.context:
		return inputError("rotary positions: seq is %d: it must be from 1 to %d", seq, r.context)
	case workers < 0:
		return inputError("rotary positions: workers are %d: they must not be negative", workers)
	}
	r.rotate(x, heads, 0, seq, seq, workers, sign)
	return nil
}

// rotate rotates by the angles times sign, which is 1 or -1: rows of sequences of seq, the first
// of each at position first, with the rotations of sequences of a length.
func (r *Rotary) rotate(x []float32, heads, first, seq, length, workers int, sign float32) {
	const grain = 16
	rows := len(x) / (heads * r.headDim)
	if rows <= grain { // so that a token takes no closure
		r.rotateRows(x, heads, 0, rows, first, seq, length, sign)
		return
	}
	parallel.For(rows, grain, workers, func(lo, hi int) {
		r.rotateRows(x, heads, lo, hi, first, seq, length, sign)
	})
}

// rotateRows is rotate of rows [lo, hi).
func (r *Rotary) rotateRows(x []float32, heads, lo, hi, first, seq, length int, sign float32) {
	width := heads * r.headDim
	for row := lo; row < hi; row++ {
		for h := range heads {
			at := row*width + h*r.headDim
			r.rotateHead(x[at:at+r.headDim], first+row%seq, length, sign)
		}
	}
}

func (r *Rotary) rotateHead(head []float32, position, length int, sign float32) {
	half, t := r.dim/2, r.of(length)
	cos, sin := t.cos[position*half:][:half], t.sin[position*half:][:half]
	for i, c := range cos {
		s := sin[i] * sign
		a, b := head[2*i], head[2*i+1]
		head[2*i] = float32(a*c) - float32(b*s)
		head[2*i+1] = float32(a*s) + float32(b*c)
	}
}
