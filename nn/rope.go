package nn

import (
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/parallel"
)

// rope rotates the pairs (0, 1), (2, 3), ... of a head's elements by angles that
// grow with the position (Su et al., arXiv 2104.09864).
type rope struct {
	headDim  int
	cos, sin []float32 // [context, headDim/2]
	workers  int
}

func newRope(cfg Config) *rope {
	half := cfg.headDim() / 2
	r := &rope{
		headDim: cfg.headDim(),
		cos:     make([]float32, cfg.Context*half),
		sin:     make([]float32, cfg.Context*half),
		workers: cfg.Workers,
	}
	for i := range half {
		frequency := elementary.Pow(cfg.RopeTheta, -float64(i)/float64(half))
		for position := range cfg.Context {
			sin, cos := elementary.SinCos(float64(float64(position) * frequency))
			r.sin[position*half+i], r.cos[position*half+i] = float32(sin), float32(cos)
		}
	}
	return r
}

// forward rotates x, [rows, heads·headDim], in place; the position of a row is
// its index modulo seq.
func (r *rope) forward(x []float32, heads, seq int) { r.rotate(x, heads, seq, 1) }

// backward rotates the gradient back, which is the transposed rotation.
func (r *rope) backward(dx []float32, heads, seq int) { r.rotate(dx, heads, seq, -1) }

// rotate rotates by the angles times sign, which is 1 or -1.
func (r *rope) rotate(x []float32, heads, seq int, sign float32) {
	width := heads * r.headDim
	parallel.For(len(x)/width, 16, r.workers, func(lo, hi int) {
		for row := lo; row < hi; row++ {
			for h := range heads {
				at := row*width + h*r.headDim
				r.rotateHead(x[at:at+r.headDim], row%seq, sign)
			}
		}
	})
}

func (r *rope) rotateHead(head []float32, position int, sign float32) {
	half := r.headDim / 2
	cos, sin := r.cos[position*half:][:half], r.sin[position*half:][:half]
	for i, c := range cos {
		s := sin[i] * sign
		a, b := head[2*i], head[2*i+1]
		head[2*i] = float32(a*c) - float32(b*s)
		head[2*i+1] = float32(a*s) + float32(b*c)
	}
}
