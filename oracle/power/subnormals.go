package power

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/tensor"
)

// small is a subnormal of an operand.
type small struct {
	k     int
	value float64 // with its scale
}

// smalls lists the subnormals of each row of t.
func smalls(t *tensor.Tensor) [][]small {
	rows, _ := t.Dims()
	all := make([][]small, rows)
	for i := range rows {
		for k, c := range t.Row(i) {
			if v := float64(t.Format.Float32(c)); v != 0 && math.Abs(v) < float64(t.Format.MinNormal()) {
				if scaled := v * scaleOf(t, i, k); finite(scaled) {
					all[i] = append(all[i], small{k, scaled})
				}
			}
		}
	}
	return all
}

// flushes returns what C would change by if subnormals of A, of B and of both were
// zero; nil where there are none.
func (p *population) flushes(ctx context.Context) (changes [3][]float64, err error) {
	x, y := smalls(p.a), smalls(p.b)
	any := [2]bool{}
	for i, rows := range [][][]small{x, y} {
		for _, r := range rows {
			any[i] = any[i] || len(r) > 0
		}
	}
	if !any[0] && !any[1] {
		return changes, nil
	}
	for i := range changes {
		changes[i] = make([]float64, p.m*p.n)
	}
	at := func(t *tensor.Tensor, i, k int) float64 {
		v := float64(t.Format.Float32(t.Row(i)[k])) * scaleOf(t, i, k)
		if !finite(v) {
			return 0
		}
		return v
	}
	for i := range p.m {
		if err := meter.Err(ctx); err != nil {
			return changes, fmt.Errorf("power: %w", err)
		}
		for j := range p.n {
			var fromA, fromB, twice float64
			for _, s := range x[i] {
				fromA -= float64(s.value * at(p.b, j, s.k))
				if v := p.b.Format.Float32(p.b.Row(j)[s.k]); v != 0 && math.Abs(float64(v)) < float64(p.b.Format.MinNormal()) {
					twice += float64(s.value * at(p.b, j, s.k))
				}
			}
			for _, s := range y[j] {
				fromB -= float64(s.value * at(p.a, i, s.k))
			}
			e := i*p.n + j
			changes[0][e], changes[1][e], changes[2][e] = fromA, fromB, fromA+fromB+twice
		}
	}
	return changes, nil
}

// subnormals tests whether deviations are what flushing of subnormals would make.
func (p *population) subnormals(ctx context.Context, f []float64, o *Options) (family, error) {
	t := family{name: "subnormals", n: 3, chance: -1, lambda: make([]float64, 3), where: func(i int) string {
		return "as if subnormals of " + [...]string{"A", "B", "both operands"}[i] + " were zero"
	}}
	changes, err := p.flushes(ctx)
	if err != nil || changes[0] == nil {
		return t, err
	}
	for q, change := range changes {
		var sum, shared float64
		squares := p.newSquarer()
		weight := func(at int) float64 {
			if p.spread[at] == 0 {
				return 0
			}
			return change[at] / p.spread[at]
		}
		for i, x := range f {
			w := weight(i)
			shared += float64(math.Abs(w) * p.shared[i])
			sum += float64(w * x)
			squares.add(i, float64(w*x))
		}
		t.lambda[q] = normalized(sum, shared+p.ties.allowed(p.ties.near[0], weight), squares.squares())
	}
	return t, nil
}
