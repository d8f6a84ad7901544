// Package attention asks what attention loses in FP8, and what of that can be had back.
package attention

import (
	"context"
	_ "embed"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/oracle/flash"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Experiment is octavo lab attention.
var Experiment = lab.Experiment{
	Name:  "attention",
	Title: "Attention in FP8: what is lost, where, and what mends it?",
	Claim: "Lifting P by 2^8 while the maximum may lag by 2^4 saturates it, and the error grows to 36 % with the spread of scores; a lift of 2^4 keeps it at 2 to 3 % " +
		"(Dao-AILab/flash-attention, pull request 2694). Without a lift a share Φ(Δ+δ-6.93-ln S) of P vanishes behind attention sinks (arXiv 2606.06521). " +
		"Hopper's accumulator fails a search at 128k tokens, 13 % against 91 %, and adding in FP32 mends it (vLLM, 2026). " +
		"Rotating Q and K and scaling blocks lowers the error 2.6 times (FlashAttention-3, arXiv 2407.08608). " +
		"Smoothing K costs nothing and helps (SageAttention, arXiv 2411.10958). " +
		"A cache in E4M3 typically only minimally degrades accuracy (documentation of vLLM 0.6.4, which has scales per tensor, 1 where there are none; later versions have scales per head).",
	Declaration: declared,
	Measure:     measure,
}

//go:embed declaration.toml
var declarationFile []byte

var declared = declaration.OnUse(declarationFile)

// job is a part of the study. Its work is counted in products.
type job struct {
	name string
	work int
	run  func(ctx context.Context) error
}

// study is what came of all parts: of random operands that of one seed, or of the means over
// draws, which are those of several.
type study struct {
	o         lab.Options
	draws     []*study
	spreads   []spread
	flushes   []flush
	growths   []growth
	rotations []rotation
	smoothing []smoothed
	scales    []scaled
	caching   *caching
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	s := &study{o: o}
	var err error
	if s.caching, err = newCaching(o); err != nil {
		return nil, err
	}
	var jobs []job
	for i := range lab.Pick(o, 12, 2, 1) {
		d := &study{o: o}
		d.o.Seed += uint64(i)
		s.draws = append(s.draws, d)
		for _, of := range []func() []job{d.spreadJobs, d.flushJobs, d.growthJobs, d.rotationJobs, d.smoothingJobs, d.scaleJobs} {
			jobs = append(jobs, of()...)
		}
	}
	models := make([][]job, len(s.caching.models))
	total := work(jobs)
	for i := range models {
		models[i] = s.caching.jobs(i)
		total += work(models[i])
	}
	p.Expect(total)
	if err := do(ctx, p, jobs); err != nil {
		return nil, err
	}
	err = training.SideBySide(ctx, o, len(models), func(ctx context.Context, i, workers int) error {
		s.caching.models[i].workers = workers
		return do(ctx, p, models[i])
	})
	if err != nil {
		return nil, err
	}
	s.average()
	return s.report(), nil
}

func work(jobs []job) (all int64) {
	for _, j := range jobs {
		all += int64(j.work)
	}
	return all
}

func do(ctx context.Context, p *lab.Steps, jobs []job) error {
	for _, j := range jobs {
		if err := j.run(ctx); err != nil {
			return err
		}
		if err := p.Done(ctx, j.name, int64(j.work)); err != nil {
			return err
		}
	}
	return nil
}

// by returns a figure of each draw.
func (s *study) by(figure func(d *study) float64) []float64 { return statistics.Each(s.draws, figure) }

// average makes what came of random operands the means over the draws.
func (s *study) average() {
	s.spreads = averages(s.draws, func(d *study) []spread { return d.spreads }, func(x *spread) []*float64 { return []*float64{&x.relative, &x.saturated} })
	s.flushes = averages(s.draws, func(d *study) []flush { return d.flushes }, func(x *flush) []*float64 { return []*float64{&x.forward, &x.reverse, &x.ratio} })
	s.growths = averages(s.draws, func(d *study) []growth { return d.growths }, func(x *growth) []*float64 { return []*float64{&x.relative, &x.bias, &x.root} })
	s.smoothing = averages(s.draws, func(d *study) []smoothed { return d.smoothing }, func(x *smoothed) []*float64 { return []*float64{&x.plain, &x.smooth, &x.rotated} })
	s.scales = averages(s.draws, func(d *study) []scaled { return d.scales }, func(x *scaled) []*float64 { return []*float64{&x.relative} })
	s.rotations = slices.Clone(s.draws[0].rotations)
	for i := range s.rotations {
		s.rotations[i].roots = nil
		for _, d := range s.draws {
			s.rotations[i].roots = append(s.rotations[i].roots, d.rotations[i].roots...)
		}
	}
}

// averages returns a list of which the figures are the means of those in the lists of draws.
func averages[T any](draws []*study, of func(*study) []T, figures func(*T) []*float64) []T {
	all := slices.Clone(of(draws[0]))
	for i := range all {
		for j, to := range figures(&all[i]) {
			*to = 0
			for _, d := range draws {
				x := of(d)[i]
				*to += *figures(&x)[j] / float64(len(draws))
			}
		}
	}
	return all
}

// operands are Q, [queries, dim], K, [keys, dim], and V, [keys, valueDim], of one head.
type operands struct {
	queries, keys, dim, valueDim int
	q, k, v                      []float32
}

// random draws operands whose values are next's.
func random(queries, keys, dim, valueDim int, next func() float64) *operands {
	draw := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(next())
		}
		return x
	}
	return &operands{queries, keys, dim, valueDim, draw(queries * dim), draw(keys * dim), draw(keys * valueDim)}
}

// generator returns the random numbers of a seed and of what they are for.
func generator(seed, purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, purpose)) }

// What random numbers are for.
const (
	forSpreads = 100 + iota
	forFlushes
	forGrowths
	forRotations
	forSmoothing
	forScales
)

// round makes values those of E4M3, and returns their codes under the scale 1.
func round(values []float32, tokens int) attention.Operand {
	t := &tensor.Tensor{Shape: []int{1, tokens, len(values) / tokens}, Codes: make([]byte, len(values)), Scales: []float32{1}}
	fp8.Encode(t.Codes, values, t.Format, fp8.Policy{}, nil)
	fp8.Decode(values, t.Codes, t.Format)
	return attention.Operand{Codes: t}
}

// rounded makes the operands those of E4M3, and returns their problem.
func (a *operands) rounded(scale float64) *attention.Problem {
	return &attention.Problem{Q: round(a.q, a.queries), K: round(a.k, a.keys), V: round(a.v, a.keys), Scale: float32(scale)}
}

// exact returns attention in float64.
func (a *operands) exact(scale float64, mask attention.Mask, workers int) []float64 {
	out := make([]float64, a.queries*a.valueDim)
	parallel.For(a.queries, 1, parallel.Workers(workers), func(from, to int) {
		weights := make([]float64, a.keys)
		for i := from; i < to; i++ {
			lo, hi := mask.Range(i, a.queries, a.keys)
			a.exactRow(out[i*a.valueDim:][:a.valueDim], a.q[i*a.dim:][:a.dim], scale, lo, hi, weights)
		}
	})
	return out
}

func (a *operands) exactRow(out []float64, q []float32, scale float64, lo, hi int, weights []float64) {
	largest := math.Inf(-1)
	for j := lo; j < hi; j++ {
		k := a.k[j*a.dim:][:len(q)]
		var sum float64
		for d, x := range q {
			sum += float64(x) * float64(k[d])
		}
		weights[j] = scale * sum
		largest = max(largest, weights[j])
	}
	var all float64
	for j := lo; j < hi; j++ {
		w := math.Exp(weights[j] - largest)
		all += w
		for d, v := range a.v[j*a.valueDim:][:a.valueDim] {
			out[d] += w * float64(v)
		}
	}
	for d := range out {
		out[d] /= all
	}
}

// predict returns what a kernel returns.
func (s *study) predict(ctx context.Context, p *attention.Problem, k flash.Kernel) (*flash.Prediction, error) {
	return flash.Predict(ctx, p, k, flash.Options{Workers: s.o.Workers})
}

// deviation is how far results are from the exact ones.
type deviation struct {
	relative float64 // root of the sum of squared errors over that of squares
	root     float64 // root mean square of errors
	bias     float64 // sum of errors over sum of magnitudes; above 0 where results are too large
}

func deviationOf(got []float32, exact []float64) deviation {
	var errors, squares, sum, magnitudes float64
	for i, want := range exact {
		e := float64(got[i]) - want
		errors += e * e
		squares += want * want
		sum += math.Copysign(1, want) * e
		magnitudes += math.Abs(want)
	}
	return deviation{math.Sqrt(errors / squares), math.Sqrt(errors / float64(len(exact))), sum / magnitudes}
}

// recipe is a way to quantize Q, K and V, and to lift P.
type recipe struct {
	name   string
	of     attention.Recipe
	offset float32
}

// blocks shares scales among 128 tokens of K and V. Of Q there are fewer rows.
func blocks() attention.Recipe {
	return attention.Recipe{K: attention.PerBlock, V: attention.PerBlock, Block: 128}
}

// tokens gives every token a scale.
func tokens() attention.Recipe {
	return attention.Recipe{Q: attention.PerToken, K: attention.PerToken, V: attention.PerToken}
}

// rotated is a recipe with Q and K rotated.
func rotated(r attention.Recipe) attention.Recipe {
	r.Hadamard = true
	return r
}

// problem quantizes operands to E4M3.
func (r recipe) problem(ctx context.Context, a *operands, scale float64, seed uint64, workers int) (*attention.Problem, error) {
	r.of.Profile, r.of.Seed = scaling.TECurrent, seed
	p := &attention.Problem{Scale: float32(scale)}
	sizes := attention.Sizes{Heads: 1, KVHeads: 1, Queries: a.queries, Keys: a.keys, Dim: a.dim, ValueDim: a.valueDim}
	return p, r.of.Quantize(ctx, p, a.q, a.k, a.v, sizes, tensor.Options{Workers: workers})
}

// kernel is exact but for P: what is lost is lost by quantizing.
func (r recipe) kernel() flash.Kernel {
	return flash.Kernel{Tile: 128, Descending: true, Offset: r.offset, P: flash.E4M3}
}

// loss returns how far a recipe's output is from attention of the values themselves.
func (s *study) loss(ctx context.Context, r recipe, a *operands, scale float64, mask attention.Mask, exact []float64, seed uint64) (deviation, error) {
	p, err := r.problem(ctx, a, scale, seed, s.o.Workers)
	if err != nil {
		return deviation{}, err
	}
	p.Mask = mask
	got, err := s.predict(ctx, p, r.kernel())
	if err != nil {
		return deviation{}, err
	}
	return deviationOf(got.Out, exact), nil
}
