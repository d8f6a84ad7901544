// Package inspect is what octavo inspect does: it says what is in safetensors files and
// what FP8 would do to it.
package inspect

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"runtime"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/counter"
	"github.com/octavo-fp8/octavo/internal/loss"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/internal/workpool"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/scaling"
)

// stripBytes is how much of a tensor is read at a time, unless one row of blocks is
// more: what stays in a core's cache while all recipes are tried on it.
const stripBytes = 1 << 19

// Job says what to inspect, and how.
type Job struct {
	Inputs   []Input
	Format   fp8.Format        // that recipes encode to
	Profiles []scaling.Profile // to try, as for weights; none: all that a file allows
	Only     *regexp.Regexp    // matches the names of the tensors to report; nil: all
	Progress progress.Reporter // hears of bytes read; nil: silent

	workers int   // 0: GOMAXPROCS
	strip   int64 // bytes; 0: stripBytes
}

// Run inspects all selected tensors. If ctx ends meanwhile, the report is of those that
// were finished, and there is an error too.
func (j Job) Run(ctx context.Context) (*Report, error) {
	asked := len(j.Profiles) > 0
	if !asked {
		j.Profiles = tensorfile.ProfilesFor(j.Format)
	}
	in := &inspector{ctx: ctx, strip: cmp.Or(j.strip, stripBytes), decoder: loss.NewDecoder(j.Format)}
	in.recipes, in.all = j.recipes(j.Profiles), j.recipes(tensorfile.ProfilesFor(j.Format))
	all, total := j.selected()
	if j.Only != nil && len(all) == 0 {
		return nil, fmt.Errorf("no tensor has a name that matches --only %q", j.Only)
	}
	in.progress = counter.New(j.Progress, "inspecting", total)
	in.pool = workpool.New(cmp.Or(j.workers, runtime.GOMAXPROCS(0)), newWorker)
	for _, m := range all {
		if in.inspect(m) != nil {
			break
		}
	}
	err := in.pool.Finish()
	return j.report(all, in.recipes, asked), err
}

// recipes returns those of profiles for weights.
func (j *Job) recipes(profiles []scaling.Profile) (recipes []scaling.Recipe) {
	for _, p := range profiles {
		r := p.Recipe(scaling.Weight)
		r.Format = j.Format
		recipes = append(recipes, r)
	}
	return recipes
}

// selected returns the tensors to report in the order of their files, and their bytes.
func (j *Job) selected() (all []*measurement, total int64) {
	for i := range j.Inputs {
		for _, info := range j.Inputs[i].File.Tensors() {
			if tensorfile.Selects(j.Only, info.Name) {
				all = append(all, newMeasurement(&j.Inputs[i], info))
				total += info.Bytes()
			}
		}
	}
	return all, total
}

// inspector inspects tensors in strips, several at once: a strip is read and tried under
// all recipes by one goroutine.
type inspector struct {
	ctx      context.Context
	recipes  []scaling.Recipe // to try
	all      []scaling.Recipe // that could be
	decoder  *loss.Decoder
	strip    int64 // bytes
	progress *counter.Counter
	pool     *workpool.Pool[worker]
}

// inspect has a tensor inspected. It is read twice where recipes have one scale for all
// of several strips.
func (in *inspector) inspect(m *measurement) error {
	err := m.readScales()
	if err != nil {
		in.give(m, func(*worker) error { return err })
		return err
	}
	if m.plan, err = newPlan(m, in.recipes, in.all, in.strip); err != nil {
		in.give(m, func(*worker) error { return err })
		return err
	}
	m.begin(len(in.recipes))
	if !m.plan.readable {
		in.progress.Add(m.info.Bytes())
	}
	for i, s := range m.plan.strips() {
		in.give(m, func(w *worker) error { return in.survey(w, m, i, s) })
	}
	if len(m.plan.late) == 0 {
		return nil
	}
	if err := in.pool.Wait(); err != nil {
		return err
	}
	in.give(m, func(*worker) error { return m.settle(in.recipes) })
	if err := in.pool.Wait(); err != nil {
		return err
	}
	for i, s := range m.plan.strips() {
		in.give(m, func(w *worker) error { return in.encodeLate(w, m, i, s) })
	}
	return nil
}

// give has the pool do a task, unless the context has ended.
func (in *inspector) give(m *measurement, task func(*worker) error) {
	in.pool.Give(func(w *worker) error {
		if in.ctx.Err() != nil {
			return fmt.Errorf("inspect: %w", context.Cause(in.ctx))
		}
		if err := task(w); err != nil {
			return fmt.Errorf("%s: %w", m.input.Path, err)
		}
		m.left.Add(-1)
		return nil
	})
}
