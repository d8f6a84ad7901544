package beam

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/telemetry"
)

func init() {
	register.DoFn3x1[context.Context, int, func(Result), error](new(convertFn))
	register.DoFn2x1[context.Context, Result, error](new(finishFn))
	register.Emitter1[Result]()
}

// Convert adds a conversion to a pipeline: the shards of the source, each converted where the
// runner likes, then all else. It plans, and makes the directory, before it returns how many
// shards there are; what is wrong with the job or with the source is an error here, and nothing
// has been written then. Out must be absent, empty, or left by a pipeline of the same job that
// was cut off. If the model is there already Convert adds nothing and returns 0; no statistics
// are written then.
func Convert(s sdk.Scope, job Job) (shards int, err error) {
	return convert(s, job, new(convertFn), new(finishFn))
}

// worker is a DoFn of a job.
type worker interface{ set(j Job) }

// convert is Convert by DoFns from numbers of shards to Results and from the whole of these to
// nothing.
func convert(s sdk.Scope, job Job, each, finish worker) (shards int, err error) {
	if err := job.absolute(); err != nil {
		return 0, err
	}
	job.Plan = ""
	source, plan, err := job.open()
	if err != nil {
		return 0, err
	}
	defer source.Close()
	if done, err := job.resume(); done || err != nil {
		return 0, err
	}
	if err := job.claim(); err != nil {
		return 0, err
	}
	numbers := make([]int, len(plan.Shards))
	for i := range numbers {
		numbers[i] = i
	}
	each.set(job)
	finish.set(job)
	s = s.Scope("octavo.Convert")
	spread := sdk.Reshuffle(s, sdk.CreateList(s, numbers)) // or one worker would have them all
	results := sdk.ParDo(s, each, spread)
	sdk.ParDo0(s, finish, sdk.Combine(s, new(Merge), results))
	return len(numbers), nil
}

// convertFn converts shards. A bundle may be repeated, also while it runs.
type convertFn struct {
	Job Job

	source  *checkpoint.Checkpoint
	plan    *checkpoint.Plan
	options checkpoint.Options
}

func (f *convertFn) set(j Job) { f.Job = j }

// Setup opens the source.
func (f *convertFn) Setup(context.Context) (err error) {
	f.source, f.plan, err = f.Job.open()
	f.options = f.Job.options()
	return err
}

// Teardown closes it.
func (f *convertFn) Teardown() error {
	if f.source == nil {
		return nil
	}
	return f.source.Close()
}

// ProcessElement converts a shard.
func (f *convertFn) ProcessElement(ctx context.Context, shard int, emit func(Result)) error {
	r, err := checkpoint.ConvertShard(ctx, f.plan, f.Job.stage(), shard, f.options)
	if err != nil {
		return err
	}
	emit(resultOf(shard, r))
	return nil
}

// finishFn makes a model of shards that are complete. It, too, may be repeated.
type finishFn struct{ Job Job }

func (f *finishFn) set(j Job) { f.Job = j }

// ProcessElement writes all but the shards and moves everything to its place.
func (f *finishFn) ProcessElement(ctx context.Context, all Result) error {
	source, plan, err := f.Job.open()
	if err != nil {
		return err
	}
	defer source.Close()
	if err := f.writeStatistics(all.Events); err != nil {
		return err
	}
	cert, err := f.Job.complete()
	if err != nil {
		return err
	}
	if cert == nil {
		cert, err = f.finish(ctx, plan)
	}
	if err != nil {
		return err
	}
	for _, s := range all.Shards {
		if !slices.Contains(cert.Files, s.File) {
			return fmt.Errorf("%s: workers have written different bytes: start the conversion again", s.File.Name)
		}
	}
	return f.Job.adopt(cert)
}

// finish makes the model in the stage. Where another worker has moved it meanwhile, which
// fails here and may leave an empty stage, its certificate is as good.
func (f *finishFn) finish(ctx context.Context, p *checkpoint.Plan) (*checkpoint.Certificate, error) {
	cert, err := checkpoint.Finish(ctx, p, f.Job.stage(), f.Job.options())
	if err != nil {
		if moved, _ := f.Job.complete(); moved != nil {
			return moved, nil
		}
	}
	return cert, err
}

// writeStatistics writes the file of statistics.
func (f *finishFn) writeStatistics(events []telemetry.Event) error {
	if f.Job.Statistics == "" {
		return nil
	}
	var text bytes.Buffer
	sink := telemetry.JSONLines(&text)
	for _, e := range events {
		if err := sink.Event(e); err != nil {
			return err
		}
	}
	return atomicfile.Write(f.Job.Statistics, func(w io.Writer) error {
		_, err := w.Write(text.Bytes())
		return err
	})
}
