package quantize

import (
	"sync"

	"github.com/octavo-fp8/octavo/progress"
)

// counter tells a Reporter how many bytes have been written. Several goroutines may
// add to it at once.
type counter struct {
	reporter progress.Reporter // nil: nobody is told
	total    int64

	mu             sync.Mutex
	done, reported int64
}

func newCounter(r progress.Reporter, total int64) *counter {
	return &counter{reporter: r, total: total}
}

// add counts n bytes, and reports them when there is at least another percent.
func (c *counter) add(n int64) {
	if c.reporter == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += n
	if c.done == c.total || c.done-c.reported >= c.total/100 {
		c.reported = c.done
		c.reporter.Progress("quantizing", c.done, c.total)
	}
}
