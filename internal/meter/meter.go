// Package meter is how the loops of long operations stop when their context ends,
// and say how far they are.
package meter

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/progress"
)

// Meter counts the finished work of one operation. Start it first; Add is then safe
// for concurrent use. It may be started again, and allocates nothing.
type Meter struct {
	ctx      context.Context
	reporter progress.Reporter
	op       string
	total    int64
	step     int64 // worth a report
	done     atomic.Int64

	mu       sync.Mutex
	reported int64
}

// New returns a Meter of an operation that begins; see [Meter.Start].
func New(ctx context.Context, r progress.Reporter, op string, total int64) *Meter {
	m := new(Meter)
	m.Start(ctx, r, op, total)
	return m
}

// Start begins an operation of the given number of units. A nil reporter is silent. A
// nil context panics here, before workers have begun.
func (m *Meter) Start(ctx context.Context, r progress.Reporter, op string, total int64) {
	mustBe(ctx)
	m.ctx, m.reporter, m.op, m.total, m.step = ctx, r, op, total, max(total/200, 1)
	m.done.Store(0)
	m.reported = 0
}

// Stop lets go of the context and the reporter.
func (m *Meter) Stop() { m.ctx, m.reporter = nil, nil }

// Add counts n units as done, and reports them where enough have come together. It
// returns [Err] of the operation's context. Call it a few thousand times a second at
// most.
func (m *Meter) Add(n int64) error {
	done := m.done.Add(n)
	if m.reporter != nil {
		m.report(done)
	}
	return Err(m.ctx)
}

// Err returns [Err] of the operation's context.
func (m *Meter) Err() error { return Err(m.ctx) }

func (m *Meter) report(done int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if done-m.reported >= m.step || done == m.total && done > m.reported {
		m.reported = done
		m.reporter.Progress(m.op, done, m.total)
	}
}

// Err returns nil while ctx goes on. Afterwards it returns an error that is
// [context.Canceled] or [context.DeadlineExceeded], and the cause if there is
// another, for [errors.Is]. It panics if ctx is nil.
func Err(ctx context.Context) error {
	mustBe(ctx)
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != err {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

func mustBe(ctx context.Context) {
	if ctx == nil {
		panic("octavo: nil context")
	}
}
