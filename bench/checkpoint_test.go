package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/train"
)

// checkpointInterval is how many steps come with one checkpoint in [BenchmarkCheckpoint].
// The first of them has the snapshot, and those after it go beside the writing.
const checkpointInterval = 8

// BenchmarkCheckpoint is steps of training with a checkpoint every eighth, which is
// written before the next step (sync), copied before and written beside it (async), or
// copied and written beside it (beside). ns/op is that of eight steps and their
// checkpoint. plain-ms is the median of steps with nothing beside them, and stall-ms that
// of what the run waited for a checkpoint, at its step and, for the copy, before the next
// update; stall-% is the one as a share of the other. cost-% is all that a checkpoint
// costs as a share of a plain step: what eight steps with one take longer than eight plain
// ones, median. MB is the size of a checkpoint, and of the copy in memory.
func BenchmarkCheckpoint(b *testing.B) {
	for _, size := range []struct {
		width, hidden, layers, batch, seq int
	}{
		{128, 344, 4, 8, 128},
		{512, 1376, 2, 8, 128},
	} {
		recipe := nn.DefaultFP8()
		shape := nn.Config{
			Vocab: 256, Dim: size.width, Layers: size.layers, Heads: 4 * size.width / 128,
			Hidden: size.hidden, Context: size.seq, FP8: &recipe,
		}
		tokens := bytesOf(size.batch*size.seq, 1)
		targets := bytesOf(size.batch*size.seq, 2)
		for _, mode := range []string{"sync", "async", "beside"} {
			for _, ranks := range []int{1, 4} {
				name := fmt.Sprintf("width=%d/tokens=%d/mode=%s/ranks=%d", size.width, len(tokens), mode, ranks)
				b.Run(name, func(b *testing.B) {
					r := checkpointed{
						trainee:   newTrainee(b, shape, false),
						saver:     train.Saver{Sync: mode == "sync"},
						snapshot:  train.Snapshot{Beside: mode == "beside"},
						directory: train.Directory{Path: filepath.Join(b.TempDir(), "run"), Ranks: ranks},
					}
					r.interval(b, tokens, targets, size.batch, size.seq) // memory is there afterwards
					r.plain, r.stall, r.all = nil, nil, nil
					for b.Loop() {
						r.interval(b, tokens, targets, size.batch, size.seq)
					}
					r.report(b)
					if err := r.saver.Close(); err != nil {
						b.Fatal(err)
					}
				})
			}
		}
	}
}

// checkpointed is a run with checkpoints, and how long in ms each thing took.
type checkpointed struct {
	*trainee
	saver     train.Saver
	snapshot  train.Snapshot
	directory train.Directory
	steps     int

	plain, stall, all []float64 // all: of an interval
}

// interval is the steps from one checkpoint to the next.
func (r *checkpointed) interval(b *testing.B, tokens, targets []int32, batch, seq int) {
	writing := make(chan struct{})
	start := time.Now()
	_, err := r.saver.Save(b.Context(), func() error {
		return r.snapshot.Take(r.model, &r.optimizer, train.Position{Step: r.steps})
	}, func(ctx context.Context) error {
		defer close(writing)
		return r.directory.Save(ctx, &r.snapshot)
	})
	if err != nil {
		b.Fatal(err)
	}
	stall := milliseconds(start)
	r.update = func() {
		start := time.Now()
		r.snapshot.Wait()
		stall += milliseconds(start)
	}
	for range checkpointInterval {
		isPlain := isClosed(writing)
		start := time.Now()
		if err := r.step(b.Context(), tokens, targets, batch, seq); err != nil {
			b.Fatal(err)
		}
		if isPlain {
			r.plain = append(r.plain, milliseconds(start))
		}
		r.steps++
	}
	r.stall, r.all = append(r.stall, stall), append(r.all, milliseconds(start))
}

func milliseconds(since time.Time) float64 { return time.Since(since).Seconds() * 1e3 }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (r *checkpointed) report(b *testing.B) {
	median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
	stall := median(r.stall)
	b.ReportMetric(stall, "stall-ms")
	b.ReportMetric(float64(r.snapshot.Bytes())/1e6, "MB")
	if len(r.plain) == 0 {
		return // the disk is slower than eight steps
	}
	plain := median(r.plain)
	b.ReportMetric(plain, "plain-ms")
	b.ReportMetric(100*stall/plain, "stall-%")
	b.ReportMetric(100*(median(r.all)/plain-checkpointInterval), "cost-%")
}
