package quantize

import "sync"

// pool does tasks on several goroutines, each of which has its own W. One
// goroutine gives the tasks out.
type pool[W any] struct {
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

// newPool starts n goroutines, which end with finish.
func newPool[W any](n int, state func() *W) *pool[W] {
	p := &pool[W]{tasks: make(chan task[W])}
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
func (p *pool[W]) do(t task[W], w *W) {
	defer p.pending.Done()
	if p.failedBefore(t.place) {
		return
	}
	if err := t.do(w); err != nil {
		p.fail(t.place, err)
	}
}

func (p *pool[W]) fail(place int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil || place < p.failedAt {
		p.err, p.failedAt = err, place
	}
}

func (p *pool[W]) failedBefore(place int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil && p.failedAt < place
}

// give has a task done, and returns when one of the goroutines has taken it.
func (p *pool[W]) give(do func(*W) error) {
	p.pending.Add(1)
	p.tasks <- task[W]{do, p.given}
	p.given++
}

// wait returns when all tasks given so far are done or, after an error, left out.
// The error is that of the earliest task that failed.
func (p *pool[W]) wait() error {
	p.pending.Wait()
	return p.err
}

// finish is wait, and ends the goroutines.
func (p *pool[W]) finish() error {
	close(p.tasks)
	p.workers.Wait()
	return p.err
}
