package main

import "sync"

// crew does tasks on several goroutines, each of which brings its own W. One
// goroutine gives the tasks out.
type crew[W any] struct {
	tasks   chan task[W]
	given   int
	pending sync.WaitGroup // tasks
	members sync.WaitGroup

	mu       sync.Mutex
	err      error // of the earliest task that failed
	failedAt int   // its place
}

// task is something to do, and its place among all that were given.
type task[W any] struct {
	do    func(*W) error
	place int
}

// newCrew starts n goroutines, which end with finish.
func newCrew[W any](n int, member func() *W) *crew[W] {
	c := &crew[W]{tasks: make(chan task[W])}
	for range n {
		c.members.Go(func() {
			w := member()
			for t := range c.tasks {
				c.do(t, w)
			}
		})
	}
	return c
}

// do does a task unless an earlier one has failed: the error is then the same
// whichever goroutine is faster.
func (c *crew[W]) do(t task[W], w *W) {
	defer c.pending.Done()
	if c.failedBefore(t.place) {
		return
	}
	if err := t.do(w); err != nil {
		c.fail(t.place, err)
	}
}

func (c *crew[W]) fail(place int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil || place < c.failedAt {
		c.err, c.failedAt = err, place
	}
}

func (c *crew[W]) failedBefore(place int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil && c.failedAt < place
}

// give has a task done, and returns when one of the goroutines has taken it.
func (c *crew[W]) give(do func(*W) error) {
	c.pending.Add(1)
	c.tasks <- task[W]{do, c.given}
	c.given++
}

// wait returns when all tasks given so far are done or, after an error, left out.
// The error is that of the earliest task that failed.
func (c *crew[W]) wait() error {
	c.pending.Wait()
	return c.err
}

// finish is wait, and ends the goroutines.
func (c *crew[W]) finish() error {
	close(c.tasks)
	c.members.Wait()
	return c.err
}
