// Package selftest runs the kernels of every level of this machine against plain
// Go, on inputs that kernels get wrong, and finds the first wrong bit. It is for
// a machine whose memory, processor or build is suspect.
//
// A level is in force for the whole process, so all processors work at one level
// at a time: first at the generic level, for what is wanted, then at each level,
// the generic one once more, with the cases dealt to other goroutines.
package selftest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/progress"
)

// Options say how to test.
type Options struct {
	Seed uint64 // of the first case of each check; the next has the next seed
	Time time.Duration
	// Progress, unless nil, hears how many milliseconds of Time are over.
	Progress progress.Reporter
}

// tester is a self test at work.
type tester struct {
	Options
	levels  []cpu.Level
	checks  []check
	workers int

	// fault, unless nil, changes what a check gave at a level, in tests of the
	// self test. repeat says that the level is run to be compared.
	fault func(l cpu.Level, repeat bool, name string, outputs []output)
}

// check runs kernels on random inputs and returns all that they gave. It depends
// on nothing but its random numbers.
type check struct {
	name string
	run  func(*rand.Rand) []output
}

// Run tests until the time is over, at least one round of all checks at all
// levels, or until there is a failure or the context ends: then the result is of what was
// tested until then, to the end of the round, a fraction of a second. The level in use
// must not be changed meanwhile.
func Run(ctx context.Context, o Options) (*Result, error) {
	t := tester{Options: o, levels: cpu.Levels(), checks: checks, workers: runtime.GOMAXPROCS(0)}
	return t.run(ctx)
}

func (t *tester) run(ctx context.Context) (*Result, error) {
	r := t.newResult()
	start := time.Now()
	total := t.Time.Milliseconds()
	for rounds := 0; ; rounds++ {
		failure, err := t.round(r, t.Seed+uint64(rounds*t.workers))
		if err != nil {
			return nil, err
		}
		r.Failure = failure
		elapsed := time.Since(start)
		if t.Progress != nil {
			t.Progress.Progress("selftest", min(elapsed.Milliseconds(), total), total)
		}
		if failure != nil || ctx.Err() != nil || elapsed >= t.Time {
			r.Seconds = elapsed.Seconds()
			r.Pass = failure == nil
			return r, nil
		}
	}
}

// round runs each check once for every worker, from the given seed on.
func (t *tester) round(r *Result, seed uint64) (*Failure, error) {
	want, err := t.all(cpu.Generic, false, seed, 0)
	if err != nil {
		return nil, err
	}
	for shift, l := range t.levels {
		got, err := t.all(l, true, seed, shift+1)
		if err != nil {
			return nil, err
		}
		for i := range want {
			if f := compare(want[i], got[i]); f != nil {
				f.Check, f.Level, f.Seed = t.checks[i/t.workers].name, l.String(), seed+uint64(i%t.workers)
				return f, nil
			}
			if shift == 0 {
				r.count(i/t.workers, want[i])
			}
		}
	}
	return nil, nil
}

// dealt returns the place of the cases that a worker does, so that not the same one
// does a case at every level.
func (t *tester) dealt(worker, shift int) int { return (worker + shift) % t.workers }

// all runs the cases of a round at a level.
func (t *tester) all(l cpu.Level, repeat bool, seed uint64, shift int) ([][]output, error) {
	restore, err := cpu.Force(l)
	if err != nil {
		return nil, err
	}
	defer restore()
	results := make([][]output, len(t.checks)*t.workers)
	var wait sync.WaitGroup
	for w := range t.workers {
		wait.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			place := t.dealt(w, shift)
			for i, c := range t.checks {
				outputs := c.safely(seed + uint64(place))
				if t.fault != nil {
					t.fault(l, repeat, c.name, outputs)
				}
				results[i*t.workers+place] = outputs
			}
		})
	}
	wait.Wait()
	return results, nil
}

// safely runs a case, of which a panic is a result as well.
func (c check) safely(seed uint64) (outputs []output) {
	defer func() {
		if p := recover(); p != nil {
			outputs = []output{{what: panicked, size: 1, data: fmt.Append(nil, p)}}
		}
	}()
	h := fnv.New64a()
	h.Write([]byte(c.name))
	return c.run(rand.New(rand.NewPCG(seed, h.Sum64())))
}
