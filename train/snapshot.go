package train

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/progress"
)

// Snapshot is a copy of a run at the end of a step, from which checkpoints are saved
// while the run goes on. The zero value is ready to use, and keeps its memory: after
// the first Take of a run, further ones of the same run take no more.
//
// Take reads the run, which must not step meanwhile; all else touches the copy alone,
// and may go on beside the run. The methods of one Snapshot must not be called
// concurrently, but for Wait.
type Snapshot struct {
	// Beside makes Take return before parameters and moments are copied, which takes a
	// while: goroutines do it while the run computes its next gradients, and the
	// optimizer, which alone may change them, waits for that before it moves them
	// ([optim.AdamW.Hold]). Whoever changes them otherwise calls Wait first. So does
	// whatever saves or restores the snapshot.
	Beside bool

	// Position is the one that Take was given. It may be changed until the snapshot is
	// saved, such as to add notes that take time to compute.
	Position Position

	Progress progress.Reporter // hears how far a save is; nil: nobody
	Workers  int               // goroutines that copy; 0: GOMAXPROCS, or 1 beside the run

	contents contents
	copying  chan struct{}     // closed when the copy is whole; nil: it is
	memory   []arrays.Elements // by share
	chunks   []snapshotChunk
	taken    bool
}

// snapshotChunk is elements of a share that are copied at once.
type snapshotChunk struct{ share, lo, hi int }

const snapshotChunkElements = 1 << 16

// Take makes s a copy of a run: parameters, moments, scaling state and position.
// Gradients are not in it. The errors are those of [SaveCheckpoint] but for values that
// are not finite, which are looked for when s is saved; s is then as it was.
func (s *Snapshot) Take(m Model, o *optim.AdamW, position Position) error {
	c, err := contentsOf(m, o, position)
	return s.take(c, err, o)
}

// take makes the contents of s those of c, unless there was an error.
func (s *Snapshot) take(c contents, err error, o *optim.AdamW) error {
	if err != nil {
		return fmt.Errorf("train: taking a snapshot: %w", err)
	}
	s.Wait()
	s.copyOf(c, o)
	s.Position, s.taken = c.state.Position, true
	return nil
}

// copyOf makes the contents of s those of c, in memory of its own, which o may move
// afterwards.
func (s *Snapshot) copyOf(c contents, o *optim.AdamW) {
	source := make([]arrays.Elements, len(c.all))
	memory := make([]arrays.Elements, len(c.all))
	s.chunks = s.chunks[:0]
	for i := range c.all {
		var old arrays.Elements
		if i < len(s.memory) {
			old = s.memory[i]
		}
		x := c.all[i].Elements
		source[i], memory[i] = x, x.Like(old)
		for lo := 0; lo < x.Count(); lo += snapshotChunkElements {
			s.chunks = append(s.chunks, snapshotChunk{i, lo, min(lo+snapshotChunkElements, x.Count())})
		}
		c.all[i].Elements = memory[i]
	}
	s.contents, s.memory = c, memory
	if !s.Beside {
		copyChunks(memory, source, s.chunks, s.Workers)
		return
	}
	copying, release := make(chan struct{}), o.Hold()
	s.copying = copying
	chunks, workers := s.chunks, max(s.Workers, 1)
	go func() {
		defer close(copying)
		defer release()
		copyChunks(memory, source, chunks, workers)
	}()
}

func copyChunks(dst, src []arrays.Elements, chunks []snapshotChunk, workers int) {
	parallel.For(len(chunks), 1, workers, func(lo, hi int) {
		for _, c := range chunks[lo:hi] {
			src[c.share].CopyTo(dst[c.share], c.lo, c.hi)
		}
	})
}

// Wait returns when all is copied, at once unless s copies beside the run. It may be
// called while s is being saved.
func (s *Snapshot) Wait() {
	if s.copying != nil {
		<-s.copying
	}
}

// Restore makes m and o what they were when the snapshot of a whole run was taken, as
// [Checkpoint.Restore] does from a file, with its errors about models and options that are
// others. Values that are not finite come back as they were.
func (s *Snapshot) Restore(ctx context.Context, m Model, o *optim.AdamW) error {
	if !s.taken || !s.contents.part.isWhole() {
		return inputError("train: restoring a snapshot: it was not taken of a whole run")
	}
	s.Wait()
	c := Checkpoint{source: copies{s.contents}, state: s.contents.state}
	if err := c.restore(ctx, m, o); err != nil {
		return fmt.Errorf("train: restoring a snapshot: %w", err)
	}
	return nil
}

// Bytes returns what the copies of parameters and moments take: of a whole run 4 bytes
// for each parameter and [optim.AdamW.MomentBytes]. The scaling state comes on top.
func (s *Snapshot) Bytes() int64 { return sizeOf(s.contents.all) }

// Save writes a file as [SaveCheckpoint] does, with the same errors, from the snapshot of
// a whole run.
func (s *Snapshot) Save(ctx context.Context, path string) error {
	c, err := s.saved()
	if err == nil && !c.part.isWhole() {
		err = inputError("the snapshot is rank %d's part of %d: a file of its own has all", c.part.Rank, c.part.Ranks)
	}
	if err == nil {
		err = c.save(ctx, s.Progress, path)
	}
	return savingError(err)
}

// saved returns the contents as they are to be saved.
func (s *Snapshot) saved() (contents, error) {
	if !s.taken {
		return contents{}, inputError("nothing was taken")
	}
	s.Wait()
	c := s.contents
	if s.Position.Step < 0 {
		return c, inputError("Position.Step is %d: it must not be negative", s.Position.Step)
	}
	c.state.Position = s.Position
	return c, nil
}

func savingError(err error) error {
	if err != nil {
		return fmt.Errorf("train: saving a snapshot: %w", err)
	}
	return nil
}
