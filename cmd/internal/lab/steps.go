package lab

import (
	"context"
	"sync"

	"github.com/octavo-fp8/octavo/progress"
)

// Steps counts what of an experiment is done. The zero value tells nobody. Done may be
// called by several goroutines at once.
type Steps struct {
	reporter progress.Reporter

	mu          sync.Mutex
	total, done int64
}

// Expect says how many steps there will be. It is called once, before the first.
func (s *Steps) Expect(steps int) { s.total = int64(steps) }

// Done says that a step is done, of what is named, and returns an error if it was the
// last one because ctx has ended.
func (s *Steps) Done(ctx context.Context, what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
	if s.reporter != nil && s.telling() {
		s.reporter.Progress(what, s.done, s.total)
	}
	return context.Cause(ctx)
}

// perTotal is how often at most a reporter hears of the steps of an experiment.
const perTotal = 400

// telling reports whether the step just done is one that the reporter hears of.
func (s *Steps) telling() bool {
	return s.done == s.total || s.done*perTotal/s.total != (s.done-1)*perTotal/s.total
}
