// Package workpool does tasks on several goroutines that each keep memory of their own.
package workpool

import (
	"sync"

	"github.com/octavo-fp8/octavo/internal/parallel"
)

// Each calls do for 0 to n-1 on several goroutines, as many as [parallel.Workers] says, each
// with a W of its own that begins as zero. It begins nothing more once there is an error, and
// returns that of the earliest that failed.
func Each[W any](n, workers int, do func(w *W, i int) error) error {
	workers = min(parallel.Workers(workers), n)
	if workers <= 1 {
		var w W
		for i := range n {
			if err := do(&w, i); err != nil {
				return err
			}
		}
		return nil
	}
	p := New(workers, func() *W { return new(W) })
	for i := range n {
		p.Give(func(w *W) error { return do(w, i) })
	}
	return p.Finish()
}

// Pool does tasks on several goroutines, each of which has its own W. One
// goroutine gives the tasks out.
type Pool[W any] struct {
	tasks   chan task[W]
	given   int
	pending sync.WaitGroup // tasks
	workers sync.WaitGroup

	mu       sync.Mutex
	err      error // of the earliest task that failed
	failedAt int   // its place
}

// task is something to do, and its place among all that were given.
type task[W any] struct {
	do    func(*W) error
	place int
}

// New starts n goroutines, each with a state of its own. They end with Finish.
func New[W any](n int, state func() *W) *Pool[W] {
	p := &Pool[W]{tasks: make(chan task[W])}
	for range n {
		p.workers.Go(func() {
			w := state()
			for t := range p.tasks {
				p.do(t, w)
			}
		})
	}
	return p
}

// do does a task unless an earlier one has failed: the error is then the same
// whichever goroutine is faster.
func (p *Pool[W]) do(t task[W], w *W) {
	defer p.pending.Done()
	if p.failedBefore(t.place) {
		return
	}
	if err := t.do(w); err != nil {
		p.fail(t.place, err)
	}
}

func (p *Pool[W]) fail(place int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil || place < p.failedAt {
		p.err, p.failedAt = err, place
	}
}

func (p *Pool[W]) failedBefore(place int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil && p.failedAt < place
}

// Give has a task done, and returns when one of the goroutines has taken it.
func (p *Pool[W]) Give(do func(*W) error) {
	p.pending.Add(1)
	p.tasks <- task[W]{do, p.given}
	p.given++
}

// Wait returns when all tasks given so far are done or, after an error, left out.
// The error is that of the earliest task that failed.
func (p *Pool[W]) Wait() error {
	p.pending.Wait()
	return p.err
}

// Finish is Wait, and ends the goroutines.
func (p *Pool[W]) Finish() error {
	close(p.tasks)
	p.workers.Wait()
	return p.err
}
