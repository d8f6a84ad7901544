package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// counter counts how often each job is done, and by how many workers.
type counter struct {
	lock    sync.Mutex
	jobs    map[int]int
	workers int
}

func (c *counter) Work(q *Queue) {
	c.lock.Lock()
	c.workers++
	c.lock.Unlock()
	last := -1
	for job, ok := q.Next(); ok; job, ok = q.Next() {
		c.lock.Lock()
		c.jobs[job]++
		if job <= last {
			c.jobs[-1]++ // not in order
		}
		c.lock.Unlock()
		last = job
	}
}

func TestQueue(t *testing.T) {
	var q Queue
	for jobs := range 20 {
		for workers := range 8 {
			c := counter{jobs: map[int]int{}}
			q.Run(jobs, workers, &c)
			want := map[int]int{}
			for job := range jobs {
				want[job] = 1
			}
			require.Equal(t, want, c.jobs)
			require.Equal(t, min(jobs, Workers(workers)), c.workers)
		}
	}
}

// together is done when so many workers run at the same time.
type together struct{ running, want atomic.Int32 }

func (w *together) Work(*Queue) {
	w.running.Add(1)
	for w.running.Load() < w.want.Load() {
		runtime.Gosched()
	}
}

func TestQueueConcurrent(t *testing.T) {
	var q Queue
	var w together
	w.want.Store(4)
	q.Run(4, 4, &w)
	require.Equal(t, int32(4), w.running.Load())
}
