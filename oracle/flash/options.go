package flash

import (
	"context"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/progress"
)

// Options of what computes rows. The zero value computes all rows on all processors.
type Options struct {
	// Rows are the rows to compute, in ascending order: row i of query head h is
	// h·Queries+i. Results have only those. Nil is all.
	Rows []int

	// Trace, unless nil, is the row of which Predict tells every tile. It must be among
	// those that are computed.
	Trace *Row

	Workers  int               // goroutines at most; 0 means GOMAXPROCS
	Progress progress.Reporter // unless nil, hears of rows
}

// Row is a row of the output.
type Row struct {
	Head  int `json:"head"`
	Query int `json:"query"`
}

// rows returns the rows to compute.
func (o *Options) rows(s attention.Sizes) ([]int, error) {
	n := s.Heads * s.Queries
	if o.Rows == nil {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all, o.checkTrace(s, all)
	}
	for i, r := range o.Rows {
		if r < 0 || r >= n {
			return nil, sentinel.Errorf(ErrRows, "flash: row %d of %d", r, n)
		}
		if i > 0 && r <= o.Rows[i-1] {
			return nil, sentinel.Errorf(ErrRows, "flash: row %d follows row %d: rows must ascend", r,
				o.Rows[i-1])
		}
	}
	return o.Rows, o.checkTrace(s, o.Rows)
}

func (o *Options) checkTrace(s attention.Sizes, rows []int) error {
	t := o.Trace
	if t == nil {
		return nil
	}
	if t.Head < 0 || t.Head >= s.Heads || t.Query < 0 || t.Query >= s.Queries {
		return sentinel.Errorf(ErrRows, "flash: trace of head %d, query %d of %d heads and %d queries",
			t.Head, t.Query, s.Heads, s.Queries)
	}
	for _, r := range rows {
		if r == t.Head*s.Queries+t.Query {
			return nil
		}
	}
	return sentinel.Errorf(ErrRows, "flash: head %d, query %d is traced and not computed", t.Head,
		t.Query)
}

// byHead calls head for each head of K and V that some rows use, with the places in rows
// [from, to) of those that do.
func byHead(rows []int, s attention.Sizes, head func(kv, from, to int) error) error {
	for from := 0; from < len(rows); {
		kv := s.KVHead(rows[from] / s.Queries)
		to := from
		for to < len(rows) && s.KVHead(rows[to]/s.Queries) == kv {
			to++
		}
		if err := head(kv, from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// each calls do for every number in [from, to) on several goroutines, until ctx ends.
// Each goroutine has a state of its own.
func each[W any](ctx context.Context, from, to, workers int, count *meter.Meter, state func() W,
	do func(w W, at int)) error {
	var next atomic.Int64
	next.Store(int64(from))
	n := min(parallel.Workers(workers), to-from)
	parallel.For(n, 1, n, func(lo, hi int) {
		for range hi - lo {
			w := state()
			for ctx.Err() == nil {
				at := int(next.Add(1)) - 1
				if at >= to {
					break
				}
				do(w, at)
				count.Add(1)
			}
		}
	})
	return meter.Err(ctx)
}
