// Package experiments lists the experiments of octavo lab. Each reproduces a claim about
// training in FP8 with the library's own parts, in a folder of its own.
package experiments

import (
	"fmt"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/experiments/accumulation"
	"github.com/octavo-fp8/octavo/lab/experiments/attention"
	"github.com/octavo-fp8/octavo/lab/experiments/faults"
	"github.com/octavo-fp8/octavo/lab/experiments/fp4"
	"github.com/octavo-fp8/octavo/lab/experiments/granularity"
	"github.com/octavo-fp8/octavo/lab/experiments/law"
	"github.com/octavo-fp8/octavo/lab/experiments/memory"
	"github.com/octavo-fp8/octavo/lab/experiments/moe"
	"github.com/octavo-fp8/octavo/lab/experiments/outliers"
	"github.com/octavo-fp8/octavo/lab/experiments/parity"
	"github.com/octavo-fp8/octavo/lab/experiments/reduction"
	"github.com/octavo-fp8/octavo/lab/experiments/sensitivity"
	"github.com/octavo-fp8/octavo/lab/experiments/world"
)

// All returns the experiments in the order in which they are shown. A new one is a folder
// beside the others and a line here.
func All() []lab.Experiment {
	return []lab.Experiment{
		parity.Experiment,
		outliers.Experiment,
		granularity.Experiment,
		accumulation.Experiment,
		sensitivity.Experiment,
		law.Experiment,
		memory.Experiment,
		reduction.Experiment,
		world.Experiment,
		faults.Experiment,
		fp4.Experiment,
		attention.Experiment,
		moe.Experiment,
	}
}

// Find returns the experiment of a name.
func Find(name string) (lab.Experiment, error) {
	for _, e := range All() {
		if e.Name == name {
			return e, nil
		}
	}
	return lab.Experiment{}, fmt.Errorf("there is no experiment %q", name)
}
