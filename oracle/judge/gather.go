package judge

import (
	"context"
	"sync"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/subset"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// gather returns elements of c.
func gather[T any](c []T, at []int) []T {
	part := make([]T, len(at))
	for i, place := range at {
		part[i] = c[place]
	}
	return part
}

// newWanted computes what the elements at the given places, in ascending order, or all if at
// is nil, are compared with.
func newWanted[T gemm.Output](ctx context.Context, j *job, old []T, at []int) (*wanted[T], error) {
	n := len(at)
	if at == nil {
		n = j.m * j.n
	}
	w := &wanted[T]{at: at, exact: make([]T, n), bound: make([]float64, n), bits: j.claim.Want != Exact}
	w.claimed = w.exact
	bound := w.bound
	if j.claim.Want == Predicted {
		bound = nil // it comes with the prediction
	}
	if err := oracle.ExactAt(ctx, w.exact, bound, old, at, j.a, j.b, j.claim.accumulation(), j.options); err != nil || !w.bits {
		return w, err
	}
	w.claimed = make([]T, n)
	if at != nil {
		return w, w.claimRows(ctx, j, old)
	}
	copy(w.claimed, old)
	return w, claim(ctx, j, w.claimed, w.bound, j.a, j.b, j.options)
}

// claim computes elements that are claimed bit for bit, and the bounds of those that are
// predicted. c begins as the old C.
func claim[T gemm.Output](ctx context.Context, j *job, c []T, bound []float64, a, b *tensor.Tensor, o oracle.Options) error {
	if j.claim.Want == Canonical {
		return gemm.Multiply(ctx, c, a, b, o)
	}
	return oracle.Predict(ctx, c, bound, a, b, j.claim.Kernel, o)
}

// claimRows computes the elements that are claimed bit for bit, those of a row of C at a time.
func (w *wanted[T]) claimRows(ctx context.Context, j *job, old []T) error {
	rows := rowsOf(w.at, j.n)
	var m meter.Meter
	m.Start(ctx, j.options.Progress, "claim", int64(len(w.at)))
	var mu sync.Mutex
	var first error // of the rows, in their order
	failed := len(rows)
	parallel.For(len(rows), 1, j.options.Workers, func(lo, hi int) {
		for at, r := range rows[lo:hi] {
			err := w.row(ctx, j, old, r)
			if err == nil {
				err = m.Add(int64(r.hi - r.lo))
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				if lo+at < failed {
					first, failed = err, lo+at
				}
				return
			}
		}
	})
	return first
}

// rowOf is the part of a sample that is in one row of C: elements [lo, hi).
type rowOf struct{ row, lo, hi int }

// rowsOf cuts a sample of a C of n columns into rows.
func rowsOf(at []int, n int) (rows []rowOf) {
	for lo := 0; lo < len(at); {
		r := rowOf{at[lo] / n, lo, lo + 1}
		for r.hi < len(at) && at[r.hi]/n == r.row {
			r.hi++
		}
		rows = append(rows, r)
		lo = r.hi
	}
	return rows
}

// row computes what is claimed of the elements of a row.
func (w *wanted[T]) row(ctx context.Context, j *job, old []T, r rowOf) error {
	at := w.at[r.lo:r.hi]
	cols := make([]int, len(at))
	for i, place := range at {
		cols[i] = place % j.n
	}
	a, b := subset.Rows(j.a, []int{r.row}), subset.Rows(j.b, cols)
	o := j.options
	o.Workers, o.Progress = 1, nil
	if o.Bias != nil {
		o.Bias = gather(o.Bias, cols)
	}
	claimed := w.claimed[r.lo:r.hi]
	if old != nil {
		copy(claimed, gather(old, at))
	}
	return claim(ctx, j, claimed, w.bound[r.lo:r.hi], a, b, o)
}

// spread returns up to most of the total indices below n for which wrong holds: spread
// over all of them, the same every time.
func spread(n, total, most int, wrong func(i int) bool) (some []int) {
	sample := Sample{Elements: most}
	ranks, _ := sample.places(1, total)
	rank := 0
	for i := 0; i < n && len(some) < len(ranks); i++ {
		if !wrong(i) {
			continue
		}
		if rank == ranks[len(some)] {
			some = append(some, i)
		}
		rank++
	}
	return some
}
