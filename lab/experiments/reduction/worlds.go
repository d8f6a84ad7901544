package reduction

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/train"
)

// kind is how the gradients of workers are alike.
type kind struct {
	name string

	// shard returns what worker i has of a step.
	shard func(g *stepGradients, i int) [][]float32
}

var (
	// sequences are the gradients of one sequence for each worker: mostly noise, so
	// that sums grow like √n.
	sequences = kind{"a sequence each", func(g *stepGradients, i int) [][]float32 { return g.shards[i] }}

	// alike are workers with batches so large that they have the same gradients: the
	// mean of all sequences, so that sums grow like n.
	alike = kind{"all the same", func(g *stepGradients, _ int) [][]float32 { return g.mean }}

	kinds = []kind{sequences, alike}
)

// stepGradients are the gradients of a step.
type stepGradients struct {
	shards [][][]float32 // by sequence and parameter
	mean   [][]float32   // by parameter, rounded from float64
}

func newStepGradients(params []*nn.Param, sequences int) *stepGradients {
	g := &stepGradients{shards: make([][][]float32, sequences)}
	for _, p := range params {
		g.mean = append(g.mean, make([]float32, len(p.Grad)))
		for i := range g.shards {
			g.shards[i] = append(g.shards[i], make([]float32, len(p.Grad)))
		}
	}
	return g
}

// average computes the mean of all shards, or returns an error once ctx has ended.
func (g *stepGradients) average(ctx context.Context) error {
	for i, mean := range g.mean {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		for j := range mean {
			mean[j] = float32(exactMean(g.shards, i, j))
		}
	}
	return nil
}

// exactMean returns the mean of value j of a parameter over shards in float64.
func exactMean(shards [][][]float32, param, j int) (mean float64) {
	for _, s := range shards {
		mean += float64(s[param][j])
	}
	return mean / float64(len(shards))
}

var divisions = []collective.Division{collective.DividePost, collective.DividePre, collective.DivideRoot, collective.DivideAuto}

// way is how workers reduce their gradients.
type way struct {
	fp8      bool
	division collective.Division
}

func (w way) String() string { return w.format() + " " + w.division.String() }

func (w way) format() string {
	if w.fp8 {
		return "FP8"
	}
	return "FP32"
}

var (
	post = way{true, collective.DividePost}
	pre  = way{true, collective.DividePre}
	root = way{true, collective.DivideRoot}
	auto = way{true, collective.DivideAuto}
)

// ways are all of them, those of FP32 first.
func ways() (all []way) {
	for _, eight := range []bool{false, true} {
		for _, division := range divisions {
			all = append(all, way{eight, division})
		}
	}
	return all
}

// world is a number of workers that reduce their gradients in one way.
type world struct {
	kind kind
	size int
	way  way

	reducer   collective.Reducer
	factors   []float64 // by step, the median over parameters
	saturated []float64 // by step, as perValue
	reduced             // by the last step
}

// reduced is what became of all gradients in a step.
type reduced struct {
	encode, sum fp8.Stats
	err         float64           // root of the squared errors of the mean over that of the mean
	factor      float64           // median over parameters
	tensors     []tensorReduction // by parameter
}

// tensorReduction is what became of one parameter's.
type tensorReduction struct {
	collective.Reduction
	squaredError, squares float64
}

func newWorld(k kind, size int, w way, workers int) *world {
	return &world{kind: k, size: size, way: w, reducer: collective.Reducer{FP8: w.fp8, Division: w.division, Workers: workers}}
}

// step reduces the gradients of a step, or returns an error once ctx has ended.
func (w *world) step(ctx context.Context, g *stepGradients) error {
	shards := make([][][]float32, w.size)
	for i := range shards {
		shards[i] = w.kind.shard(g, i)
	}
	w.reduced = reduced{tensors: make([]tensorReduction, len(g.mean))}
	var factors []float64
	var squaredError, squares float64
	for param := range g.mean {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		r := w.reduce(shards, param)
		w.tensors[param] = r
		w.encode.Merge(&r.Encode)
		w.sum.Merge(&r.Sum)
		squaredError += r.squaredError
		squares += r.squares
		factors = append(factors, r.Factor)
	}
	w.err = math.Sqrt(squaredError / squares)
	w.factor = statistics.Median(factors)
	w.factors = append(w.factors, w.factor)
	w.saturated = append(w.saturated, w.perValue(g.mean))
	return nil
}

// reduce reduces the gradients of one parameter and compares the result with the
// mean in float64.
func (w *world) reduce(shards [][][]float32, param int) tensorReduction {
	of := make([][]float32, len(shards))
	for i, s := range shards {
		of[i] = s[param]
	}
	mean := make([]float32, len(of[0]))
	r := tensorReduction{Reduction: w.reducer.Mean(param, mean, of)}
	for j, v := range mean {
		exact := exactMean(shards, param, j)
		d := float64(v) - exact
		r.squaredError += float64(d * d)
		r.squares += float64(exact * exact)
	}
	return r
}

// underflow is the share of values that are not zero and became it.
func (r reduced) underflow() float64 {
	return float64(r.encode.Flushed) / float64(max(r.encode.Elements-r.encode.Zeros, 1))
}

// overflow is the share of values and partial sums that saturated.
func (r reduced) overflow() float64 {
	return float64(r.encode.Saturated()+r.sum.Saturated()) / float64(max(r.encode.Elements+r.sum.Elements, 1))
}

// perValue is how many values and partial sums saturated for each value of a gradient:
// what an automatic factor compares with its threshold, tensor by tensor.
func (r reduced) perValue(gradient [][]float32) float64 {
	values := 0
	for _, g := range gradient {
		values += len(g)
	}
	return float64(r.encode.Saturated()+r.sum.Saturated()) / float64(values)
}

// bytes is what a worker sends for each value: the codes, and in FP8 for each tensor
// the amax by which all agree on a scale.
func (w *world) bytes(params []*nn.Param) float64 {
	if !w.way.fp8 {
		return 4
	}
	values := 0
	for _, p := range params {
		values += len(p.Value)
	}
	return 1 + float64(4*len(params))/float64(values)
}

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
