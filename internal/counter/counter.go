// Package counter counts work that several goroutines do, and reports how far it is.
package counter

import (
	"sync"

	"github.com/octavo-fp8/octavo/progress"
)

// Counter tells a [progress.Reporter] how much of a total is done, at most once in
// every percent. Several goroutines may add to it at once.
type Counter struct {
	reporter progress.Reporter // nil: nobody is told
	op       string
	total    int64

	mu             sync.Mutex
	done, reported int64
}

// New returns a Counter of an operation. r may be nil.
func New(r progress.Reporter, op string, total int64) *Counter {
	return &Counter{reporter: r, op: op, total: total}
}

// Add counts n units of work.
func (c *Counter) Add(n int64) {
	if c.reporter == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += n
	if c.done == c.total || c.done-c.reported > c.total/100 {
		c.reported = c.done
		c.reporter.Progress(c.op, c.done, c.total)
	}
}
