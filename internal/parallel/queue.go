package parallel

import (
	"sync"
	"sync/atomic"
)

// Worker takes jobs from a queue until there are none.
type Worker interface{ Work(q *Queue) }

// Queue hands out jobs by number, in order, to whoever is free. It may be used
// again and then allocates nothing. The zero value is ready.
type Queue struct {
	next   atomic.Int64
	jobs   int64
	wait   sync.WaitGroup
	worker Worker
	work   func()
}

// Run has at most Workers(workers) goroutines, and no more than there are jobs,
// call w.Work, and returns when all have. Not for concurrent use.
func (q *Queue) Run(jobs, workers int, w Worker) {
	if jobs <= 0 {
		return
	}
	q.next.Store(0)
	q.jobs, q.worker = int64(jobs), w
	if q.work == nil {
		q.work = func() {
			defer q.wait.Done()
			q.worker.Work(q)
		}
	}
	others := min(Workers(workers), jobs) - 1
	q.wait.Add(others)
	for range others {
		go q.work()
	}
	w.Work(q)
	q.wait.Wait()
	q.worker = nil
}

// Next returns the number of a job, or false if none is left.
func (q *Queue) Next() (job int, ok bool) {
	n := q.next.Add(1) - 1
	return int(n), n < q.jobs
}
