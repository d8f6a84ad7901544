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

// Expect says how much work there will be, in units of any kind, so that shares of it are
// about shares of the time. It is called once, before the first step.
func (s *Steps) Expect(work int64) {
	s.total = work
	if s.reporter != nil {
		s.reporter.Progress("beginning", 0, work)
	}
}

// Done says that a step is done, of what is named and how much work, and returns an error
// if it was the last one because ctx has ended.
func (s *Steps) Done(ctx context.Context, what string, work int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.done
	s.done += work
	if s.reporter != nil && s.telling(before) {
		s.reporter.Progress(what, s.done, s.total)
	}
	return context.Cause(ctx)
}

// perTotal is how often at most a reporter hears of the steps of an experiment.
const perTotal = 400

// telling reports whether the step just done, before which so much was, is one that the
// reporter hears of.
func (s *Steps) telling(before int64) bool {
	part := float64(s.total) / perTotal
	return s.done == s.total || int64(float64(s.done)/part) != int64(float64(before)/part)
}
