package nn

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/parallel"
)

// rmsNorm is RMSNorm (Zhang & Sennrich, arXiv 1910.07467): y = gain · x / r with
// r = √(mean(x²) + eps), row by row.
type rmsNorm struct {
	gain    *Param
	eps     float64
	workers int

	x       []float32 // what forward was given
	inverse []float32 // 1/r of each row

	out, dx *[]float32 // memory for results, which may be shared
}

func newRMSNorm(name string, cfg Config) *rmsNorm {
	return &rmsNorm{gain: newGain(name, cfg.Dim), eps: cfg.NormEps, workers: cfg.Workers, out: new([]float32), dx: new([]float32)}
}

// forward returns a slice like x that stays valid until the next call. It keeps
// x, which must stay as it is until backward.
func (n *rmsNorm) forward(x []float32) []float32 {
	n.x = x
	dim := n.gain.Cols
	rows := len(x) / dim
	out, inverse := sized(n.out, len(x)), sized(&n.inverse, rows)
	parallel.For(rows, 16, n.workers, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row := x[r*dim : (r+1)*dim]
			mean := float64(canonical.Dot(row, row)) / float64(dim)
			inverse[r] = float32(1 / math.Sqrt(mean+n.eps))
			normalizeRow(out[r*dim:(r+1)*dim], row, n.gain.Value, inverse[r])
		}
	})
	return out
}

func normalizeRow(y, x, gain []float32, inverse float32) {
	y, gain = y[:len(x)], gain[:len(x)]
	for i, v := range x {
		y[i] = v * inverse * gain[i]
	}
}

// backward returns the gradient of x, valid until the next call, and adds that
// of the gain to its Grad.
func (n *rmsNorm) backward(dy []float32) []float32 {
	n.gainBackward(dy)
	dim := n.gain.Cols
	dx := sized(n.dx, len(dy))
	parallel.For(len(n.inverse), 16, n.workers, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			a, b := r*dim, (r+1)*dim
			normalizeRowBackward(dx[a:b], dy[a:b], n.x[a:b], n.gain.Value, n.inverse[r])
		}
	})
	return dx
}

// normalizeRowBackward writes (g - x·Σ(g·x)/(dim·r²))/r with g = gain·dy to dx.
func normalizeRowBackward(dx, dy, x, gain []float32, inverse float32) {
	dx, dy, gain = dx[:len(x)], dy[:len(x)], gain[:len(x)]
	for i, g := range gain {
		dx[i] = g * dy[i]
	}
	along := canonical.Dot(dx, x) * inverse * inverse / float32(len(x))
	for i, v := range x {
		dx[i] = (dx[i] - float32(v*along)) * inverse
	}
}

// gainBackward adds dy·x/r, summed over the rows in order, to the gradient of
// the gain. Workers share out columns, so that each sum is one worker's.
func (n *rmsNorm) gainBackward(dy []float32) {
	dim := n.gain.Cols
	parallel.For(dim, 16, n.workers, func(lo, hi int) {
		grad := n.gain.Grad[lo:hi]
		for r, inverse := range n.inverse {
			x := n.x[r*dim+lo : r*dim+hi]
			for i, d := range dy[r*dim+lo : r*dim+hi] {
				grad[i] += float32(d * float32(x[i]*inverse))
			}
		}
	})
}
