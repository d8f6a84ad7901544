package nn

import (
	"context"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
)

// RMSNorm is root mean square normalization (Zhang & Sennrich, arXiv 1910.07467),
// row by row: y = gain · x / r with r = √(mean(x²) + eps).
type RMSNorm struct {
	Gain *Param // [1, dim], ones at first; with Norms.PlusOne zeros, to which 1 is added

	bias    *Param // of a LayerNorm, which has its input centered; nil: none
	layer   string
	eps     float64
	shared  *Shared
	workers int
	rounder *resultRounder // of results and gradients
	sums    sums

	loop    parallel.Loop
	forward func(lo, hi int) // forwardRows: a closure, made once

	plusOne bool
	gains   []float32 // what rows are multiplied by
	summed  []float32 // memory of it

	x, y    []float32 // what Forward was given; y until it returns
	inverse []float32 // 1/r of each row
	ready   bool
}

// NewRMSNorm returns a norm of rows of dim values. Name is that of the gain, such as
// "model.norm.weight". An eps of 0 is 1e-5. The error is [ErrConfig].
func NewRMSNorm(name string, dim int, eps float64, o Options) (*RMSNorm, error) {
	if err := checkMatrix(name, 1, dim); err != nil {
		return nil, err
	}
	if eps == 0 {
		eps = defaultNormEps
	}
	if !validEps(eps) {
		return nil, configError("%s: eps is %v: it must be above 0 and at most 1", name, eps)
	}
	o, err := o.complete("Options")
	if err != nil {
		return nil, err
	}
	return newRMSNorm(name, dim, eps, o), nil
}

const defaultNormEps = 1e-5

func validEps(eps float64) bool { return eps > 0 && eps <= 1 }

func newRMSNorm(name string, dim int, eps float64, o Options) *RMSNorm {
	n := &RMSNorm{
		Gain: newGain(name, dim), layer: strings.TrimSuffix(name, ".weight"),
		eps: eps, plusOne: o.Norms.PlusOne, shared: o.Shared, workers: o.Workers,
		rounder: newResultRounder(o.Operators.Normalization, 1), sums: newSums(o.Operators.Reductions),
	}
	if n.plusOne {
		clear(n.Gain.Value)
	}
	return n
}

// setGains sets what rows are multiplied by.
func (n *RMSNorm) setGains() {
	n.gains = n.Gain.Value
	if n.plusOne {
		n.gains = sized(&n.summed, n.Gain.Cols)
		for i, w := range n.Gain.Value {
			n.gains[i] = 1 + w
		}
	}
}

// Forward writes the norm of each row of x, [rows, dim], to y, which is as long and
// must not overlap it. The layer keeps x, which must stay as it is until
// [RMSNorm.Backward].
func (n *RMSNorm) Forward(ctx context.Context, y, x []float32) error {
	if err := n.check(y, x); err != nil {
		return err
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	dim := n.Gain.Cols
	rows := len(x) / dim
	sized(&n.inverse, rows)
	if n.forward == nil {
		n.forward = n.forwardRows
	}
	n.x, n.y = x, y
	n.setGains()
	n.loop.For(rows, 16, n.workers, n.forward)
	n.y = nil
	n.shared.tap(n.layer, ".output", y, rows)
	n.ready = n.shared.training()
	return nil
}

// forwardRows is Forward of rows [lo, hi).
func (n *RMSNorm) forwardRows(lo, hi int) {
	dim := n.Gain.Cols
	for r := lo; r < hi; r++ {
		x, y := n.x[r*dim:(r+1)*dim], n.y[r*dim:(r+1)*dim]
		mean := float64(n.sums.dot(x, x)) / float64(dim)
		n.inverse[r] = float32(1 / math.Sqrt(mean+n.eps))
		normalizeRow(y, x, n.gains, n.inverse[r])
		if n.bias != nil {
			addTo(y, y, n.bias.Value)
		}
		n.rounder.roundRow(y)
	}
}

// check begins a forward pass: it forgets the last and checks lengths.
func (n *RMSNorm) check(y, x []float32) error {
	n.ready = false
	if dim := n.Gain.Cols; len(x)%dim != 0 || len(y) != len(x) {
		return inputError("%s: an input of %d and an output of %d elements are not the same rows of %d", n.layer, len(x), len(y), dim)
	}
	return nil
}

func normalizeRow(y, x, gain []float32, inverse float32) {
	y, gain = y[:len(x)], gain[:len(x)]
	for i, v := range x {
		y[i] = v * inverse * gain[i]
	}
}

// Backward takes the gradient dy of what the last Forward wrote. It writes that of x
// to dx, which must not overlap dy, and adds that of the gain to Gain.Grad.
func (n *RMSNorm) Backward(ctx context.Context, dx, dy []float32) error {
	if !n.ready {
		return noForward(n.layer)
	}
	if len(dx) != len(n.x) || len(dy) != len(n.x) {
		return inputError("%s: gradients of %d input and %d output elements are not the %d of Forward", n.layer, len(dx), len(dy), len(n.x))
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	n.ready = false
	n.setGains()
	n.gainBackward(dy)
	if n.bias != nil {
		addRows(n.bias.Grad, dy, n.workers)
	}
	dim := n.Gain.Cols
	parallel.For(len(n.inverse), 16, n.workers, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			a, b := r*dim, (r+1)*dim
			normalizeRowBackward(dx[a:b], dy[a:b], n.x[a:b], n.gains, n.inverse[r], n.sums)
			if n.bias != nil {
				n.center(dx[a:b], dx[a:b])
			}
			n.rounder.roundRow(dx[a:b])
		}
	})
	return nil
}

// normalizeRowBackward writes (g - x·Σ(g·x)/(dim·r²))/r with g = gain·dy to dx.
func normalizeRowBackward(dx, dy, x, gain []float32, inverse float32, s sums) {
	dx, dy, gain = dx[:len(x)], dy[:len(x)], gain[:len(x)]
	for i, g := range gain {
		dx[i] = g * dy[i]
	}
	along := s.dot(dx, x) * inverse * inverse / float32(len(x))
	for i, v := range x {
		dx[i] = (dx[i] - float32(v*along)) * inverse
	}
}

// gainBackward adds dy·x/r, summed over the rows in order, to the gradient of
// the gain. Workers share out columns, so that each sum is one worker's.
func (n *RMSNorm) gainBackward(dy []float32) {
	dim := n.Gain.Cols
	parallel.For(dim, 16, n.workers, func(lo, hi int) {
		grad := n.Gain.Grad[lo:hi]
		for r, inverse := range n.inverse {
			x := n.x[r*dim+lo : r*dim+hi]
			for i, d := range dy[r*dim+lo : r*dim+hi] {
				grad[i] += float32(d * float32(x[i]*inverse))
			}
		}
	})
}
