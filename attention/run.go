package attention

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/internal/parallel"
)

// run is attentions that are computed together, by the same workers. It is reused.
type run struct {
	ctx     context.Context
	all     []computation
	format  PFormat
	splits  int
	queue   parallel.Queue
	merging bool // of splits: the second half

	// What splits left, one after the other: of each row O divided by its sum, its lse2
	// and its largest score.
	parts, partLSE, partMax []float32
	partRows                int // of all attentions
}

var runs = sync.Pool{New: func() any { return new(run) }}

func newRun() *run { return runs.Get().(*run) }

// add returns one more attention to be filled in.
func (r *run) add() *computation {
	if len(r.all) < cap(r.all) {
		r.all = r.all[:len(r.all)+1]
	} else {
		r.all = append(r.all, computation{})
	}
	return &r.all[len(r.all)-1]
}

// drop forgets what a refers to, but for memory that can be used again.
func (a *computation) drop() {
	*a = computation{tokenValues: tokenValues{vmax: a.vmax[:0]}}
}

// drop gives r back, and forgets what it refers to.
func (r *run) drop() {
	for i := range r.all {
		r.all[i].drop()
	}
	r.ctx, r.all = nil, r.all[:0]
	runs.Put(r)
}

// mostRows is how many rows of queries a job has at most: the more, the more often a tile of
// K and V that is decoded is used.
const mostRows = 128

// cut cuts all attentions into jobs, a few for each worker if there are so many rows, and
// makes room for what splits leave. It returns the number of jobs.
func (r *run) cut(workers int) int {
	workers = parallel.Workers(workers)
	jobs, elements := 0, 0
	r.partRows = 0
	for i := range r.all {
		a := &r.all[i]
		a.cut(r.splits, ceilDiv(workers, len(r.all)))
		a.firstJob = jobs
		jobs += a.jobs
		a.firstPart, a.partAt = r.partRows, elements
		r.partRows += a.sizes.Heads * a.sizes.Queries
		elements += a.sizes.Heads * a.sizes.Queries * a.sizes.ValueDim * r.splits
	}
	if r.splits > 1 {
		r.parts = grow(r.parts, elements)
		r.partLSE = grow(r.partLSE, r.partRows*r.splits)
		r.partMax = grow(r.partMax, r.partRows*r.splits)
	}
	return jobs
}

// cut cuts an attention into jobs, each some rows of a head of K and V in one split.
func (a *computation) cut(splits, workers int) {
	rows := a.rows()
	a.rowsOnce = min(mostRows, max(rows, 1))
	for a.rowsOnce > 8 && ceilDiv(rows, a.rowsOnce)*a.sizes.KVHeads*splits < workers {
		a.rowsOnce = ceilDiv(a.rowsOnce, 2)
	}
	a.rowJobs = ceilDiv(rows, a.rowsOnce)
	a.jobs = a.rowJobs * a.sizes.KVHeads * splits
}

// Work computes jobs until there are none left or the context has ended. It is for the
// queue.
func (r *run) Work(q *parallel.Queue) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	i := 0
	for job, ok := q.Next(); ok && r.ctx.Err() == nil; job, ok = q.Next() {
		if r.merging {
			r.merge(&r.all[job], s)
			continue
		}
		for i+1 < len(r.all) && r.all[i+1].firstJob <= job {
			i++
		}
		r.job(&r.all[i], job-r.all[i].firstJob, s)
	}
}

func grow[T any](buf []T, n int) []T { return slices.Grow(buf[:0], n)[:n] }

func inPackage(err error) error { return fmt.Errorf("attention: %w", err) }
