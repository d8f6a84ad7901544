package judge

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/tensor"
)

// suspect is an element and how far it is from octavo's own product.
type suspect struct {
	at       int
	distance float64
}

// before orders suspects, the farthest first.
func before(x, y suspect) int {
	return cmp.Or(cmp.Compare(y.distance, x.distance), cmp.Compare(x.at, y.at))
}

// suspects returns the elements of got, up to so many, that are farthest from the product
// of package gemm, and the distance of the next. That is no proof against any of them,
// but tells where to look: of a kernel's faults most change elements by far more than
// rounding does, and gemm multiplies all of C in the time that the oracle takes for some.
func suspects[T gemm.Output](ctx context.Context, j *job, got, old []T, most int) (far []suspect, rest float64, err error) {
	c := make([]T, len(got))
	copy(c, old)
	if err := gemm.Multiply(ctx, c, j.a, j.b, j.options); err != nil {
		return nil, 0, err
	}
	u := unitOf{norms(j.a), norms(j.b)}
	var mu sync.Mutex
	const band = 16
	parallel.For(j.m, band, j.options.Workers, func(lo, hi int) {
		f := farthest{most: most + 1}
		for i := lo; i < hi; i++ {
			for k := range j.n {
				if at := i*j.n + k; got[at] != c[at] { // NaN, too
					f.add(at, distance(number.Float64(got[at]), number.Float64(c[at]), ulp(c[at]), u, i, k))
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		far = append(far, f.all...)
	})
	slices.SortFunc(far, before)
	if len(far) > most {
		rest = far[most].distance
		far = far[:most]
	}
	return far, rest, nil
}

// unitOf is what distances are in: 2^-24 of the lengths of an element's two rows, about
// what a rounding of float32 does to a sum of their products.
type unitOf struct{ a, b []float64 }

// distance is how far got is from c, half of whose last place is allowed: 0 where they
// are the same, +Inf where only one is a number.
func distance(got, c, lastPlace float64, u unitOf, i, j int) float64 {
	if got == c || got != got && c != c {
		return 0
	}
	d := math.Abs(got-c) / (float64(0x1p-24*u.a[i]*u.b[j]) + lastPlace/2)
	if d != d {
		return math.Inf(1)
	}
	return d
}

// norms returns the length of each row of t. Codes and scales that are not finite do not
// count.
func norms(t *tensor.Tensor) []float64 {
	rows, _ := t.Dims()
	height, width := t.Block.Extents(t.Dims())
	var squares [256]float64
	for c := range squares {
		if v := float64(t.Format.Float32(byte(c))); v == v && !math.IsInf(v, 0) {
			squares[c] = v * v
		}
	}
	n := make([]float64, rows)
	for i := range n {
		scales, total := t.ScaleRow(i/height), 0.0
		for q, codes := 0, t.Row(i); len(codes) > 0; q++ {
			part := codes[:min(width, len(codes))]
			sum := 0.0
			for _, c := range part {
				sum += squares[c]
			}
			if s := float64(scales[q]); s == s {
				total += float64(float64(s*s) * sum)
			}
			codes = codes[len(part):]
		}
		n[i] = math.Sqrt(total) * float64(t.Outer.Factor(i))
	}
	return n
}

// farthest keeps the suspects of the largest distances.
type farthest struct {
	most  int
	all   []suspect
	least float64 // that can still be among them
}

func (f *farthest) add(at int, distance float64) {
	if !(distance > f.least) {
		return
	}
	f.all = append(f.all, suspect{at, distance})
	if len(f.all) < 2*f.most {
		return
	}
	slices.SortFunc(f.all, before)
	f.all = f.all[:f.most]
	f.least = f.all[f.most-1].distance
}
