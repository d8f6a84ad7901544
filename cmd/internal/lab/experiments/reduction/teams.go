package reduction

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/train"
)

// teamKind is a way for workers that train together to reduce their gradients.
type teamKind struct {
	name string
	way  way

	// first is the automatic factor of the first step; 0: 1.
	first float64
}

// starving is an automatic factor from which it takes 1000 steps for each doubling: the
// largest gradient becomes 448·2^-16, 3.5 times the least number of E4M3.
const starving = 0x1p-16

// teamKinds are those in which a model is trained; divisions hardly matter in FP32, which
// is the first.
var teamKinds = []teamKind{
	{name: "FP32", way: way{false, collective.DividePost}},
	{name: "post", way: post},
	{name: "pre", way: pre},
	{name: "root", way: root},
	{name: "auto", way: auto},
	{name: "starved", way: auto, first: starving},
}

// reducer returns one for a model of so many parameters.
func (k teamKind) reducer(params, workers int) collective.Reducer {
	r := collective.Reducer{FP8: k.way.fp8, Division: k.way.division, Workers: workers}
	if k.first != 0 {
		r.Mu = slices.Repeat([]float64{k.first}, params)
	}
	return r
}

// team trains with its gradients reduced in one way.
type team struct {
	kind   teamKind
	losses []float64 // by step
}

// last is the mean loss of the last quarter of the steps, at least one.
func (t *team) last() float64 {
	return statistics.Mean(t.losses[len(t.losses)-max(len(t.losses)/4, 1):])
}

// excess is by how many percent the loss of a team is above that in FP32.
func (s *sample) excess(t *team) float64 { return 100 * (t.last()/s.teams[0].last() - 1) }

// teamOf returns the team of a name.
func (s *sample) teamOf(name string) *team {
	return s.teams[slices.IndexFunc(s.teams, func(t *team) bool { return t.kind.name == name })]
}

// teamsTrain trains a model for each of teamKinds on the same batches.
func (s *sample) teamsTrain(ctx context.Context, p *lab.Steps) error {
	for _, k := range teamKinds {
		t := &team{kind: k}
		if err := s.train(ctx, t, p); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		s.teams = append(s.teams, t)
	}
	return nil
}

func (s *sample) train(ctx context.Context, t *team, p *lab.Steps) error {
	run, err := s.newRun(t.kind.name)
	if err != nil {
		return err
	}
	d, err := train.NewDataParallel(run.Model, 1, run.Model.Replica)
	if err != nil {
		return err
	}
	d.Reducer = t.kind.reducer(len(run.Model.Params()), s.o.Workers)
	schedule := training.Schedule(s.teamSteps)
	for step := range s.teamSteps {
		shards, err := training.Shards(s.corpus, step, s.team, 1, training.SmallContext)
		if err != nil {
			return err
		}
		loss, _, err := d.Gradients(ctx, len(shards), train.LlamaGradients(shards, 1, training.SmallContext))
		if err != nil {
			return err
		}
		if _, err := run.Optimizer.Step(ctx, run.Model.Params(), schedule.At(step)); err != nil {
			return err
		}
		t.losses = append(t.losses, float64(loss))
		if err := p.Done(ctx, fmt.Sprintf("training, %s, seed %d", t.kind.name, s.o.Seed), int64(s.team*sequenceWork)); err != nil {
			return err
		}
	}
	if last := t.last(); math.IsNaN(last) {
		return fmt.Errorf("loss is %v", last)
	}
	return nil
}
