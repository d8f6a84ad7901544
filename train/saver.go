package train

import (
	"context"
	"errors"

	"github.com/octavo-fp8/octavo/internal/meter"
)

// Saver writes checkpoints while a run goes on: Save takes a snapshot, for which the
// run waits, and leaves writing it to a goroutine. One is written at a time and none
// waits, so that one [Snapshot], taken and saved by the functions that Save is given, is
// all the memory it needs. The zero value is ready to use.
//
// A run that is killed goes on from the last checkpoint that was written to the end. That
// is the newest one that was begun, or the one before.
//
// Not safe for concurrent use.
type Saver struct {
	// Sync makes Save write before it returns: the run waits, and loses nothing but the
	// steps since.
	Sync bool

	// Skip is what becomes of a checkpoint while the one before is being written: it is
	// left out. Otherwise Save waits for that.
	Skip bool

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
	if take == nil || write == nil {
		return false, inputError("train: Saver.Save without a function that takes or writes a snapshot")
	}
	if s.closed {
		return false, inputError("train: Saver.Save after Close")
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
	if s.Sync {
		if err := write(ctx); err != nil {
			return false, err
		}
		return true, nil
	}
	s.start(ctx, write)
	return true, nil
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
	s.closed = true
	return s.wait(context.Background())
}
