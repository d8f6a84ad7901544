package lab

import (
	"context"
	"sync"
)

// Progress tells somebody how far an experiment is. Its functions may be nil, and
// so may a Progress. They are not called by two goroutines at once.
type Progress struct {
	Total func(steps int)   // how many steps there will be
	Done  func(what string) // one is done, of what is named

	mu sync.Mutex
}

func (p *Progress) total(steps int) {
	if p != nil && p.Total != nil {
		p.Total(steps)
	}
}

// done says that a step is done, and returns an error if it was the last one
// because ctx has ended.
func (p *Progress) done(ctx context.Context, what string) error {
	if p != nil && p.Done != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.Done(what)
	}
	return context.Cause(ctx)
}
