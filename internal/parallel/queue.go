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

// Loop is [For] for who does the same again and again: it allocates nothing then, if f is kept
// too. The zero value is ready. Not for concurrent use.
type Loop struct {
	queue   Queue
	n, step int
	f       func(lo, hi int)
}

// For is the function For.
func (l *Loop) For(n, grain, workers int, f func(lo, hi int)) {
	if n <= 0 {
		return
	}
	grains := (n + grain - 1) / grain
	w := min(Workers(workers), grains)
	l.n, l.step, l.f = n, (grains+w-1)/w*grain, f
	l.queue.Run((n+l.step-1)/l.step, w, l)
	l.f = nil
}

// Work calls f. It is for the queue.
func (l *Loop) Work(q *Queue) {
	for i, ok := q.Next(); ok; i, ok = q.Next() {
		l.f(i*l.step, min((i+1)*l.step, l.n))
	}
}
