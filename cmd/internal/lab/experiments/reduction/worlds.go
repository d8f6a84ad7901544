package reduction

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
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

// divisionNames are those of train's divisions.
var divisionNames = [...]string{collective.DividePost: "post", collective.DividePre: "pre", collective.DivideRoot: "root", collective.DivideAuto: "auto"}

// way is how workers reduce their gradients.
type way struct {
	fp8      bool
	division collective.Division
}

func (w way) String() string { return w.format() + " " + divisionNames[w.division] }

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
		for division := range divisionNames {
			all = append(all, way{eight, collective.Division(division)})
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

func (w *world) String() string { return fmt.Sprintf("%d workers, %s, %v", w.size, w.kind.name, w.way) }
