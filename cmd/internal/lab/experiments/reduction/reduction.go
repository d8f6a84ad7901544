// Package reduction asks where gradients that workers add in FP8 should be divided.
package reduction

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
	"github.com/octavo-fp8/octavo/cmd/internal/trial"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/train"
)

// Experiment is octavo lab reduction.
var Experiment = lab.Experiment{
	Name:  "reduction",
	Title: "Gradients summed over workers in FP8: where should one divide?",
	Claim: "Divided by the number of workers before they are added, FP8 gradients underflow; divided after, they overflow; " +
		"an automatic factor avoids both (FP8-LM, Peng et al., arXiv 2310.18313, section 2.2), with one scale that all workers share. " +
		"MS-AMP's released code divides by its root before and again after.",
	Measure: measure,
}

// scope is how much of it is done.
type scope struct {
	worlds []int
	steps  int // of training on all sequences, for automatic factors to adapt

	team      int // workers that train
	teamSteps int

	sawtooth int // steps of the factor of one small tensor
}

// study is all that is measured.
type study struct {
	scope
	o      lab.Options
	corpus *train.Corpus
	run    *trial.Run

	worlds []*world
	teams  []*team

	differing int // values that differ between numbers of replicas
	compared  int
	factors   []float64 // of the small tensor, by step
}

// team trains with its gradients reduced in one way.
type team struct {
	way    way
	losses []float64
	last   float64 // mean loss of the last quarter
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	size := lab.Pick(o,
		scope{worlds: []int{2, 4, 8, 16, 32, 64}, steps: 12, team: 8, teamSteps: 48, sawtooth: 3500}, scope{worlds: []int{2, 4, 8, 16, 32, 64}, steps: 12, team: 8, teamSteps: 48, sawtooth: 3500},
		scope{worlds: []int{2, 8}, steps: 3, team: 2, teamSteps: 4, sawtooth: 2100})

	r := &study{scope: size, o: o}
	var err error
	if r.corpus, err = training.Corpus(o); err != nil {
		return nil, err
	}
	if r.run, err = r.newRun("shards"); err != nil {
		return nil, err
	}
	parts := []func(context.Context, *lab.Steps) error{r.worldsAdapt, r.replicasAgree, r.factorSwings, r.teamsTrain}
	p.Expect(r.work())
	for _, part := range parts {
		if err := part(ctx, p); err != nil {
			return nil, err
		}
	}
	return r.report(), nil
}

// What things take, in thirds of what the gradients of a sequence do: to reduce one of
// the gradients takes about one.
const (
	sequenceWork = 3
	reduceWork   = 1
	replicasWork = (1 + 1 + 1) * replicasSequences * sequenceWork
	factorWork   = 6 * sequenceWork
)

// work is that of all parts.
func (r *study) work() int64 {
	steps := int64(replicasWork + factorWork + len(teamWays)*r.teamSteps*r.team*sequenceWork)
	for step := range r.steps {
		steps += r.worldsWork(step)
	}
	return steps
}

// worldsWork is that of a step of all worlds.
func (r *study) worldsWork(step int) int64 {
	reductions := 0
	for _, size := range r.scope.worlds {
		for _, w := range ways() {
			if r.reduces(w, step) {
				reductions += len(kinds) * size
			}
		}
	}
	return int64(slices.Max(r.scope.worlds)*sequenceWork + reductions*reduceWork)
}

// reduces reports whether worlds of a way reduce the gradients of a step.
func (r *study) reduces(w way, step int) bool {
	return w.division == train.DivideAuto || step == r.steps-1
}

// newRun returns a model in FP8, always with the same first weights.
func (r *study) newRun(name string) (*trial.Run, error) {
	recipes := nn.DefaultFP8()
	return trial.New(name, training.SmallLlama(r.o, &recipes), r.o.Seed)
}

// worldsAdapt trains on as many sequences as the largest world has workers, and lets
// all worlds reduce their gradients: those of automatic factors in every step, the
// others in the last.
func (r *study) worldsAdapt(ctx context.Context, p *lab.Steps) error {
	for _, k := range kinds {
		for _, size := range r.scope.worlds {
			for _, w := range ways() {
				r.worlds = append(r.worlds, newWorld(k, size, w, r.o.Workers))
			}
		}
	}
	all := slices.Max(r.scope.worlds)
	params := r.run.Model.Params()
	g := newStepGradients(params, all)
	for step := range r.steps {
		if err := r.gradients(ctx, g, step, all); err != nil {
			return err
		}
		for _, w := range r.worlds {
			if !r.reduces(w.way, step) {
				continue
			}
			if err := w.step(ctx, g); err != nil {
				return err
			}
		}
		for i, param := range params {
			copy(param.Grad, g.mean[i])
		}
		if _, err := r.run.Optimizer.Step(ctx, params, training.Schedule(r.steps).At(step)); err != nil {
			return err
		}
		if err := p.Done(ctx, "worlds", r.worldsWork(step)); err != nil {
			return err
		}
	}
	return nil
}

// gradients fills g with those of each sequence of a step on its own.
func (r *study) gradients(ctx context.Context, g *stepGradients, step, n int) error {
	shards, err := r.shards(step, n)
	if err != nil {
		return err
	}
	for i, s := range shards {
		r.run.Model.ZeroGrad()
		if _, err := r.run.Model.Loss(ctx, s.Tokens, s.Targets, 1, training.SmallContext); err != nil {
			return err
		}
		if err := r.run.Model.Backward(ctx); err != nil {
			return err
		}
		for k, param := range r.run.Model.Params() {
			copy(g.shards[i][k], param.Grad)
		}
	}
	return g.average(ctx)
}

// shards cuts the batch of a step into sequences.
func (r *study) shards(step, n int) (all []train.Shard, err error) {
	tokens, targets, err := r.corpus.Batch(step, n, training.SmallContext)
	if err != nil {
		return nil, err
	}
	for i := range n {
		lo, hi := i*training.SmallContext, (i+1)*training.SmallContext
		all = append(all, train.Shard{Tokens: tokens[lo:hi], Targets: targets[lo:hi]})
	}
	return all, nil
}

// replicasSequences are those whose gradients replicas compute.
const replicasSequences = 5

// replicasAgree compares the bits of what one, two and three replicas reduce.
func (r *study) replicasAgree(ctx context.Context, p *lab.Steps) error {
	shards, err := r.shards(0, replicasSequences)
	if err != nil {
		return err
	}
	var want [][]float32
	for replicas := 1; replicas <= 3; replicas++ {
		d, err := train.NewDataParallel(r.run.Model, replicas, r.run.Model.Replica)
		if err != nil {
			return err
		}
		d.Reducer = train.Reducer{FP8: true, Division: train.DivideAuto}
		if _, _, err := d.Gradients(ctx, len(shards), train.LlamaGradients(shards, 1, training.SmallContext)); err != nil {
			return err
		}
		for i, param := range r.run.Model.Params() {
			if replicas == 1 {
				want = append(want, slices.Clone(param.Grad))
				continue
			}
			r.compared += len(param.Grad)
			r.differing += differing(want[i], param.Grad)
		}
	}
	return p.Done(ctx, "replicas", replicasWork)
}

// differing returns how many values have other bits.
func differing(a, b []float32) (n int) {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			n++
		}
	}
	return n
}

// sawtoothWorkers is the number of workers of the small tensor, and sawtoothValues
// how many it has.
const (
	sawtoothWorkers = 16
	sawtoothValues  = 1024
)

// factorSwings follows an automatic factor on a part of one gradient that stays what
// it is, for as long as it takes to grow.
func (r *study) factorSwings(ctx context.Context, p *lab.Steps) error {
	gradient := r.run.Model.Param("model.layers.0.mlp.down_proj.weight").Grad[:sawtoothValues]
	shards := slices.Repeat([][]float32{gradient}, sawtoothWorkers)
	reducer := train.Reducer{FP8: true, Division: train.DivideAuto}
	mean := make([]float32, sawtoothValues)
	for range r.sawtooth {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		r.factors = append(r.factors, reducer.Mean(0, mean, shards).Factor)
	}
	return p.Done(ctx, "factor", factorWork)
}

// teamWays are those in which a model is trained; divisions hardly matter in FP32.
var teamWays = []way{
	{false, train.DividePost}, {true, train.DividePost}, {true, train.DividePre}, {true, train.DivideRoot}, {true, train.DivideAuto},
}

// teamsTrain trains a model for each of teamWays on the same batches.
func (r *study) teamsTrain(ctx context.Context, p *lab.Steps) error {
	for _, w := range teamWays {
		t := &team{way: w}
		if err := r.train(ctx, t, p); err != nil {
			return fmt.Errorf("%v: %w", w, err)
		}
		r.teams = append(r.teams, t)
	}
	return nil
}

func (r *study) train(ctx context.Context, t *team, p *lab.Steps) error {
	run, err := r.newRun(t.way.String())
	if err != nil {
		return err
	}
	d, err := train.NewDataParallel(run.Model, 2, run.Model.Replica)
	if err != nil {
		return err
	}
	d.Reducer = train.Reducer{FP8: t.way.fp8, Division: t.way.division, Workers: r.o.Workers}
	schedule := training.Schedule(r.teamSteps)
	for step := range r.teamSteps {
		shards, err := r.shards(step, r.team)
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
		if err := p.Done(ctx, "training, "+t.way.String(), int64(r.team*sequenceWork)); err != nil {
			return err
		}
	}
	last := t.losses[len(t.losses)-len(t.losses)/4:]
	for _, loss := range last {
		t.last += loss / float64(len(last))
	}
	return nil
}

// world returns one of those measured.
func (r *study) world(k kind, size int, w way) *world {
	for _, a := range r.worlds {
		if a.kind.name == k.name && a.size == size && a.way == w {
			return a
		}
	}
	return nil
}
