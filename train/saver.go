package train

import (
	"context"
	"errors"

	"github.com/octavo-fp8/octavo/internal/guard"
	"github.com/octavo-fp8/octavo/internal/meter"
)

// Saver writes checkpoints while a run goes on: Save takes a snapshot, for which the
// run waits, and leaves writing it to a goroutine. One is written at a time and none
// waits, so that one [Snapshot], taken and saved by the functions that Save is given, is
// all the memory it needs. The zero value is ready to use.
//
// A run that is killed goes on from the last checkpoint that was written to the end. That
// is the newest one that was begun, or the one before. So a run that calls Save every C
// steps, in time, loses at most 2·C steps, wherever it is killed: what it has done by then
// less what the checkpoint has. Where writing takes longer than C steps it waits in Save.
// Interval and [Saver.Due] choose C for a promise.
//
// Not safe for concurrent use: Save or Close while either goes on is [optim.ErrConcurrent].
type Saver struct {
	// Interval, unless 0, is the most steps that a kill at any moment loses, of a run that
	// calls Save after each step that is [Saver.Due] and before it begins the next, and
	// stops at an error. However long writing takes, the promise holds: the run does not
	// wait as long as it takes at most Interval/2 steps, and otherwise for the rest. With
	// Interval 1 Save is Sync. Skip breaks the promise, and is an error of Save.
	Interval int

	// Sync makes Save write before it returns: the run waits, and loses nothing but the
	// steps since.
	Sync bool

	// Skip is what becomes of a checkpoint while the one before is being written: it is
	// left out. Otherwise Save waits for that.
	Skip bool

	guard   guard.Guard
	writing chan error // has what became of the last write; nil: that is known
	closed  bool
}

// Save calls take and then, in a goroutine of its own, write with ctx, unless one is
// being written and s is to Skip. It reports whether it did.
//
// It first returns the error of the write before, if that failed: then, and if take
// fails, nothing is written, and the next call begins anew. If ctx ends while Save waits,
// it returns ctx's error; if it ends later, that is write's to notice, and such an error
// the next Save's or Close's to return. A run whose last checkpoint is wanted after ctx
// has ended gives Save one without cancellation.
func (s *Saver) Save(ctx context.Context, take func() error, write func(context.Context) error) (saved bool, err error) {
	if err := s.guard.Enter(saverName); err != nil {
		return false, err
	}
	defer s.guard.Leave()
	if take == nil || write == nil {
		return false, inputError("train: Saver.Save without a function that takes or writes a snapshot")
	}
	if err := s.check(); err != nil {
		return false, err
	}
	if s.Skip && s.busy() {
		return false, nil
	}
	if err := s.wait(ctx); err != nil {
		return false, err
	}
	if err := take(); err != nil {
		return false, err
	}
	if s.sync() {
		if err := write(ctx); err != nil {
			return false, err
		}
		return true, nil
	}
	s.start(ctx, write)
	return true, nil
}

const saverName = "train: a Saver"

// Due reports whether Save is to be called after so many steps, for the promise of Interval:
// every Interval/2 steps, rounded down, since one checkpoint may be lost while it is
// written; with Sync, which loses none, every Interval steps. Without Interval it never is.
func (s *Saver) Due(steps int) bool { return s.Interval > 0 && steps%s.every() == 0 }

// every returns the steps from one Save to the next.
func (s *Saver) every() int {
	if s.sync() {
		return s.Interval
	}
	return s.Interval / 2
}

func (s *Saver) sync() bool { return s.Sync || s.Interval == 1 }

// check returns an error unless s may save.
func (s *Saver) check() error {
	switch {
	case s.closed:
		return inputError("train: Saver.Save after Close")
	case s.Interval < 0:
		return inputError("train: Saver.Interval is %d: it must not be negative", s.Interval)
	case s.Interval > 0 && s.Skip:
		return inputError("train: Saver.Interval is %d and Skip is set: "+
			"a checkpoint that is left out breaks the promise", s.Interval)
	}
	return nil
}

// busy reports whether a write goes on.
func (s *Saver) busy() bool { return s.writing != nil && len(s.writing) == 0 }

func (s *Saver) start(ctx context.Context, write func(context.Context) error) {
	writing := make(chan error, 1)
	s.writing = writing
	go func() {
		err := errUnfinished // a write may end its goroutine
		defer func() { writing <- err }()
		err = write(ctx)
	}()
}

var errUnfinished = errors.New("train: writing a checkpoint ended its goroutine")

// wait returns what became of the last write, once.
func (s *Saver) wait(ctx context.Context) error {
	if s.writing == nil {
		return meter.Err(ctx)
	}
	select {
	case err := <-s.writing:
		s.writing = nil
		if err != nil {
			return err
		}
		return meter.Err(ctx)
	case <-ctx.Done():
		return meter.Err(ctx)
	}
}

// Close waits for what is being written, and returns its error unless Save has. After
// that Save returns an error.
func (s *Saver) Close() error {
	if err := s.guard.Enter(saverName); err != nil {
		return err
	}
	defer s.guard.Leave()
	s.closed = true
	return s.wait(context.Background())
}
