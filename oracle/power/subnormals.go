package power

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
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
				if scaled := v * scaleOf(t, i, k); number.IsFinite(scaled) {
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
		if !number.IsFinite(v) {
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
	var larger [3]bool // than they are, and not zero
	t := family{name: "subnormals", n: 6, chance: -1, lambda: make([]float64, 3), where: func(i int) string {
		read := " were zero"
		if larger[i] {
			read = " were larger, as with a leading 1"
		}
		return "as if subnormals of " + [...]string{"A", "B", "both operands"}[i] + read
	}}
	if p.flushed[0] == nil { // else they are known of an earlier result
		var err error
		if p.flushed, err = p.flushes(ctx); err != nil || p.flushed[0] == nil {
			return t, err
		}
	}
	for q, change := range p.flushed {
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
		larger[q] = sum < 0
		t.lambda[q] = max(normalized(sum, shared+p.ties.allowed(p.ties.near[0], weight), squares.squares()), p.crossed(f, change))
	}
	return t, nil
}

// crossed looks at the elements of a narrow result whose nearest number would be another if
// they changed so, and at those of which it would be if they changed the other way. Those
// that are on the other side of a tie are as many of either kind, by S, but for what T says
// of how many there are. It returns the λ of such a difference, by Chernoff's inequality.
func (p *population) crossed(f, change []float64) float64 {
	type near struct{ distance, way float64 }
	var all []near
	with, against := 0, 0
	for _, i := range p.first {
		toward, away := p.ties.above[i], p.ties.below[i]
		if change[i] < 0 {
			toward, away = away, toward
		}
		slack, reach := p.slack(i), math.Abs(change[i])
		way := math.Copysign(1, change[i])
		switch off := f[i] * way; {
		case reach <= slack || p.sigma[i] == 0:
		case toward > slack && toward <= reach:
			all = append(all, near{toward / p.sigma[i], 1})
			if off > 0 {
				with++
			}
		case away > slack && away <= reach:
			all = append(all, near{away / p.sigma[i], -1})
			if off < 0 {
				against++
			}
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return cmp.Compare(a.distance, b.distance) })
	sum, most := 0.0, 0.0
	for _, x := range all {
		sum += x.way
		most = max(most, sum)
	}
	n := float64(with + against)
	if n == 0 {
		return 0
	}
	// Of elements next to a tie no more than half are on its other side.
	a, b := float64(with)/n, min(0.5+most/(4*n), 1)
	if a <= b {
		return 0
	}
	divergence := a * math.Log(a/b)
	if a < 1 {
		divergence += (1 - a) * math.Log((1-a)/(1-b))
	}
	return math.Sqrt(2 * n * divergence)
}
