// Package certify is the work of octavo certify: it trains a small model in ways that
// differ in how the batch is cut, in ranks, workers and engine, and says which have the
// same bits, and where others first differ. It also does faults to a rank and says what
// finds them.
package certify

import (
	"context"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/parallel/twin"
	"github.com/octavo-fp8/octavo/progress"
)

// Options say what is done.
type Options struct {
	Recipe Recipe
	Steps  int // at least 1
	Seed   uint64

	Vary     []string // of [Varied]; nil: all
	Cut      *Cut     // nothing but this layout; nil: what Vary says
	Progress progress.Reporter
}

// Report is what comes of it.
type Report struct {
	Equal  bool   `json:"equal"` // wherever that is promised
	Recipe Recipe `json:"recipe"`
	Steps  int    `json:"steps"`
	Seed   uint64 `json:"seed"`
	Level  string `json:"level"`

	Certificates []Certificate `json:"certificates"`
}

// heading says what was trained.
func heading(steps int, r Recipe, seed uint64) string {
	return fmt.Sprintf("%s of a Llama of %d layers, width %d, recipe %v, seed %d, level %v",
		textout.Count(steps, "step"), depth, dim, r, seed, cpu.Product())
}

// Certificate says what came of one way to do a run.
type Certificate struct {
	Varied    string `json:"varied"`
	To        string `json:"to"`
	Reference string `json:"reference"`
	Promised  bool   `json:"promised"` // that all bits are the same
	twin.Result
}

// Failed counts certificates that break a promise.
func (r *Report) Failed() (n int) {
	for _, c := range r.Certificates {
		if c.Promised && c.First != nil {
			n++
		}
	}
	return n
}

// Run compares all ways.
func Run(ctx context.Context, o Options) (*Report, error) {
	j, err := newJob(o.Recipe, o.Steps, o.Seed)
	if err != nil {
		return nil, err
	}
	r := &Report{Recipe: o.Recipe, Steps: o.Steps, Seed: o.Seed, Level: cpu.Product().String()}
	var ways []way
	all := j.ways()
	if o.Cut != nil {
		all = j.layoutWays(o.Cut)
	}
	for _, w := range all {
		if o.Vary == nil || slices.Contains(o.Vary, w.varied) {
			ways = append(ways, w)
		}
	}
	var done meter.Meter
	done.Start(ctx, o.Progress, "certify", int64(len(ways)))
	trails := map[string]*twin.Trail{}
	for _, w := range ways {
		t := trails[w.reference.name]
		if t == nil {
			if t, err = twin.Record(ctx, w.reference.run); err != nil {
				return nil, fmt.Errorf("%s: %w", w.reference.name, err)
			}
			trails[w.reference.name] = t
		}
		result, err := t.Compare(ctx, w.run)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", w.varied, w.to, err)
		}
		c := Certificate{w.varied, w.to, w.reference.name, w.promised, result}
		r.Certificates = append(r.Certificates, c)
		if err := done.Add(1); err != nil {
			return nil, err
		}
	}
	r.Equal = r.Failed() == 0
	return r, nil
}
