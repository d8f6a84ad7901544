package beam

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/progress"
)

// Beam's embedded runner neither repeats nor duplicates bundles: it fails with the first. What
// other runners do is simulated here inside of DoFns, by calling ours as these would.

func init() {
	register.DoFn3x1[context.Context, int, func(Result), error](new(faultyConvert))
	register.DoFn3x1[context.Context, int, func(Result), error](new(failingConvert))
	register.DoFn2x1[context.Context, Result, error](new(faultyFinish))
}

// instance calls do with a convertFn of its own, as another worker has.
func instance(ctx context.Context, job Job, do func(f *convertFn) error) error {
	f := &convertFn{Job: job}
	if err := f.Setup(ctx); err != nil {
		return err
	}
	return errors.Join(do(f), f.Teardown())
}

// cutOff converts a part of a shard: its worker is stopped at a report of progress.
func cutOff(ctx context.Context, job Job, shard int, report int32) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heard := int32(0)
	err := instance(ctx, job, func(f *convertFn) error {
		f.options.Progress = progress.Func(func(string, int64, int64) {
			if atomic.AddInt32(&heard, 1) == report {
				cancel()
			}
		})
		f.options.Strip = 1 << 12
		return f.ProcessElement(ctx, shard, func(Result) {})
	})
	if heard < report {
		return errors.New("it was never stopped")
	}
	if !errors.Is(err, context.Canceled) {
		return errors.New("it should have failed")
	}
	return nil
}

// faultyConvert converts a shard after attempts that were cut off at two places and one that
// was killed, by two workers at once, and once more after that. Of all results one counts.
type faultyConvert struct{ convertFn }

func (f *faultyConvert) ProcessElement(ctx context.Context, shard int, emit func(Result)) error {
	for report := range int32(2) {
		if err := cutOff(ctx, f.Job, shard, 1+5*report); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(f.Job.stage(), f.plan.Shards[shard].Name)); err == nil {
			return errors.New("half a shard is there")
		}
	}
	if err := os.WriteFile(filepath.Join(f.Job.stage(), ".octavo-killed"), []byte("half"), 0o666); err != nil {
		return err
	}
	var results [2]Result
	var errs [2]error
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			errs[i] = instance(ctx, f.Job, func(f *convertFn) error {
				return f.ProcessElement(ctx, shard, func(r Result) { results[i] = r })
			})
		})
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	emit(results[1])
	return f.convertFn.ProcessElement(ctx, shard, func(Result) {})
}

// faultyFinish finishes a model after an attempt that was stopped, by two workers at once, of
// which one may fail because the other has moved its files, and once more after that.
type faultyFinish struct{ finishFn }

func (f *faultyFinish) ProcessElement(ctx context.Context, all Result) error {
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	_ = f.finishFn.ProcessElement(stopped, all) // which fails where it reads the model back
	var errs [2]error
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			errs[i] = (&finishFn{Job: f.Job}).ProcessElement(ctx, all)
			if _, err := os.Stat(filepath.Join(f.Job.Out, checkpoint.CertificateName)); errs[i] == nil && err != nil {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	if errs[0] != nil && errs[1] != nil {
		return errors.Join(errs[:]...)
	}
	return f.finishFn.ProcessElement(ctx, all)
}

// TestFaults repeats, stops and duplicates every bundle.
func TestFaults(t *testing.T) {
	for _, test := range []struct{ from, layout string }{
		{"llama-bf16", "ct-nvfp4a16"}, {"moe-bf16", "deepseek-v3"}, {"llama-bf16", "f32"},
	} {
		t.Run(test.from+" "+test.layout, func(t *testing.T) {
			job := newJob(t, test.from, test.layout)
			job.Statistics = filepath.Join(t.TempDir(), "faults.jsonl")
			require.NoError(t, run(t.Context(), job, new(faultyConvert), new(faultyFinish)))
			same(t, job)
			calm := newJob(t, test.from, test.layout)
			calm.Statistics = filepath.Join(t.TempDir(), "calm.jsonl")
			require.NoError(t, run(t.Context(), calm, new(convertFn), new(finishFn)))
			want, err := os.ReadFile(calm.Statistics)
			require.NoError(t, err)
			got, err := os.ReadFile(job.Statistics)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
			if test.layout != "f32" {
				require.NotEmpty(t, want)
			}
		})
	}
}

// failingConvert fails with the last shard, after it has converted half of it.
type failingConvert struct{ convertFn }

func (f *failingConvert) ProcessElement(ctx context.Context, shard int, emit func(Result)) error {
	if shard == len(f.plan.Shards)-1 {
		return errors.Join(cutOff(ctx, f.Job, shard, 2), errors.New("the disk is full"))
	}
	return f.convertFn.ProcessElement(ctx, shard, emit)
}

// TestFailedPipeline: what has failed, or was cancelled, leaves no model, and is gone on with.
func TestFailedPipeline(t *testing.T) {
	job := newJob(t, "llama-bf16", "deepseek-v3")
	err := run(t.Context(), job, new(failingConvert), new(finishFn))
	require.ErrorContains(t, err, "the disk is full")
	source, plan, err := job.open()
	require.NoError(t, err)
	defer source.Close()
	require.Equal(t, []string{filepath.Base(job.stage())}, entries(t, job.Out))
	require.NoFileExists(t, filepath.Join(job.stage(), plan.Shards[2].Name))

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, run(cancelled, job, new(convertFn), new(finishFn)))
	require.NoFileExists(t, filepath.Join(job.Out, checkpoint.CertificateName))

	require.NoError(t, run(t.Context(), job, new(convertFn), new(finishFn)))
	same(t, job)
}

// TestHalfMoved: the last step is cut off while it moves files, and the next pipeline has only
// that left to do.
func TestHalfMoved(t *testing.T) {
	job := newJob(t, "moe-bf16", "ct-nvfp4a16")
	require.NoError(t, run(t.Context(), job, new(convertFn), new(finishFn)))
	source, plan, err := job.open() // which sets its digest
	require.NoError(t, err)
	defer source.Close()
	names := plan.Files()
	for moved := range names {
		require.NoError(t, os.Mkdir(job.stage(), 0o777))
		for _, name := range names[moved:] {
			require.NoError(t, os.Rename(filepath.Join(job.Out, name), filepath.Join(job.stage(), name)))
		}
		require.NoFileExists(t, filepath.Join(job.Out, checkpoint.CertificateName))
		require.NoError(t, run(t.Context(), job, new(failingConvert), new(finishFn)))
		same(t, job)
	}
}

// TestMovedMeanwhile: a worker that comes to finish a model which another has moved leaves no
// stage behind.
func TestMovedMeanwhile(t *testing.T) {
	job := newJob(t, "moe-bf16", "ct-nvfp4a16")
	require.NoError(t, run(t.Context(), job, new(convertFn), new(finishFn)))
	source, plan, err := job.open() // which sets its digest
	require.NoError(t, err)
	defer source.Close()
	cert, err := (&finishFn{Job: job}).finish(t.Context(), plan)
	require.NoError(t, err)
	require.NoError(t, job.adopt(cert))
	same(t, job)
}
