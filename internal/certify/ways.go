package certify

import (
	"fmt"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/parallel/layers"
	"github.com/octavo-fp8/octavo/parallel/twin"
)

// way is a way to do a run, and what it is compared with.
type way struct {
	varied, to string
	promised   bool
	run        twin.Run
	reference  named
}

type named struct {
	name string
	run  twin.Run
}

// Varied returns what can be varied, in the order in which it is done.
func Varied() []string {
	return []string{
		"workers", "level", "replicas", "ranks", "zero", "tensor", "layouts", "batch",
		"micro-batches", "order", "slices",
	}
}

// ways returns all, by what is varied.
func (j *job) ways() (all []way) {
	one := named{"1 replica", j.replicas(1, 1)}
	tree := named{"1 rank, a tree", j.ranks(1, collective.OrderTree)}
	slices := named{"1 rank, 8 slices", j.tensorParallel(1, sequences, false)}
	wholes := named{"8 slices", j.tensorParallel(1, sequences, true)}
	single := named{"1 at once", j.micro(1, true)}
	adding := named{"of 1 sequence", j.micro(1, false)}
	add := func(varied, to string, promised bool, reference named, run twin.Run) {
		all = append(all, way{varied, to, promised, run, reference})
	}
	add("workers", "3 workers", true, one, j.replicas(1, 3))
	for _, l := range cpu.Levels() {
		if l != cpu.Current() {
			add("level", levelName(l), true, one, atLevel(l, j.replicas(1, 1)))
		}
	}
	for _, n := range []int{2, 8} {
		add("replicas", fmt.Sprintf("%d replicas", n), true, one, j.replicas(n, 1))
	}
	for _, n := range []int{1, 2, 4, 8} {
		to := fmt.Sprintf("%s, in order", textout.Count(n, "rank"))
		add("ranks", to, true, one, j.ranks(n, collective.OrderRank))
	}
	for _, n := range []int{2, 4, 8} {
		add("ranks", fmt.Sprintf("%d ranks, a tree", n), true, tree, j.ranks(n, collective.OrderTree))
	}
	for stage := range 4 {
		o := layers.ZeroOptions{Stage: stage, Gradients: collective.Exchange{Order: collective.OrderScatter}}
		add("zero", fmt.Sprintf("8 ranks, stage %d", stage), true, one, j.zero(o))
	}
	for _, n := range []int{2, 4, 8} {
		to := fmt.Sprintf("%d ranks, 8 slices", n)
		add("tensor", to, true, slices, j.tensorParallel(n, sequences, false))
	}
	all = append(all, j.layoutWays(nil)...)
	for _, n := range []int{2, 4, 8} {
		add("batch", fmt.Sprintf("%d at once", n), alone(j.cfg.FP8), single, j.micro(n, true))
	}
	for _, n := range []int{2, 8} {
		add("micro-batches", fmt.Sprintf("of %d sequences", n), false, adding, j.micro(n, false))
	}
	add("order", "1 rank, a tree", false, one, j.ranks(1, collective.OrderTree))
	for _, n := range []int{2, 4} {
		to := fmt.Sprintf("%d ranks, %d slices", n, n)
		add("slices", to, false, wholes, j.tensorParallel(n, n, true))
	}
	return all
}

// levelName says what a level is.
func levelName(l cpu.Level) string {
	if l == cpu.Generic {
		return "generic, plain Go"
	}
	return l.String()
}
