package world

import (
	"context"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/parallel/layers"
)

// A layer that is cut: an MLP whose hidden channels are in slices of a block of 128, so that
// blocks of scales are the same however it is cut.
const (
	slicedDim    = 128
	slicedHidden = 1024
	slicedRows   = 32
	sliceCount   = 8
)

var slicedRanks = []int{1, 2, 4, 8}

// slicedKind is how a layer that is cut multiplies, and in what its slices' results are
// sent and summed.
type slicedKind struct {
	name string
	fp8  bool
	wire string
}

var (
	slicedFP32 = slicedKind{"products in FP32", false, "fp32"}
	slicedFP8  = slicedKind{"products in FP8", true, "fp32"}
	slicedBF16 = slicedKind{"products in FP8, sums in BF16", true, "bf16"}

	slicedKinds = []slicedKind{slicedFP32, slicedFP8, slicedBF16}
)

// sliced is a layer in training on some ranks, compared with its twin on one: with as many
// slices, or without, where there are as many slices as ranks.
type sliced struct {
	kind  slicedKind
	fixed bool // a fixed number of slices
	ranks int

	results [][]float32 // what it gave and passed back in each step, and its weights

	elements, differ int
	apart            float64 // distance of all results from the twin's
	bytes            int64   // sent
}

const slicedStepWork = 18 // in about milliseconds

func (s *sample) slicesWork() int64 {
	return int64(len(slicedKinds) * 2 * len(slicedRanks) * s.sliceSteps * slicedStepWork)
}

// measureSlices trains the layer in all ways.
func (s *sample) measureSlices(ctx context.Context, p *lab.Steps) error {
	for _, kind := range slicedKinds {
		for _, fixed := range []bool{true, false} {
			var twin *sliced
			for _, ranks := range slicedRanks {
				l := &sliced{kind: kind, fixed: fixed, ranks: ranks}
				if err := s.trainSlices(ctx, l); err != nil {
					return err
				}
				if twin == nil {
					twin = l
				}
				l.compare(twin)
				s.slices = append(s.slices, l)
				if err := s.done(ctx, p, "slices", int64(s.sliceSteps*slicedStepWork)); err != nil {
					return err
				}
			}
			twin.results = nil
		}
	}
	return nil
}

// compare sets how far results are from a twin's.
func (l *sliced) compare(twin *sliced) {
	for i, want := range twin.results {
		l.elements += len(want)
		for j, v := range want {
			if math.Float32bits(v) != math.Float32bits(l.results[i][j]) {
				l.differ++
			}
		}
	}
	l.apart = apart(l.results, twin.results)
	if l != twin {
		l.results = nil
	}
}

// trainSlices trains the layer toward random results. Every rank sees all rows.
func (s *sample) trainSlices(ctx context.Context, l *sliced) error {
	how := collective.Slices{Count: sliceCount, Align: 128}
	if !l.fixed {
		how.Count = l.ranks
	}
	how.Order, how.Wire = collective.OrderTree, wire(l.kind.wire)
	weights := s.slicedWeights()
	results, trained := make([][]float32, 2*s.sliceSteps), make([][]float32, len(weights))
	for i, w := range weights {
		trained[i] = make([]float32, len(w))
	}
	traffic, err := collective.Run(ctx, l.ranks, func(r *collective.Rank) error {
		o := nn.Options{Shared: new(nn.Shared), Workers: 1}
		if l.kind.fp8 {
			recipes := nn.DefaultFP8()
			o.FP8 = &recipes
		}
		m, err := layers.NewMLP(r.ID(), l.ranks, "mlp.", slicedDim, slicedHidden, how, o)
		if err != nil {
			return err
		}
		if err := m.Load(weights[0], weights[1], weights[2]); err != nil {
			return err
		}
		for step := range s.sliceSteps {
			y, dx, err := s.slicedStep(r, m, step)
			if err != nil {
				return err
			}
			if r.ID() == 0 {
				results[2*step], results[2*step+1] = y, dx
			}
		}
		first, _ := how.Of(r.ID(), l.ranks)
		for k, part := range m.Parts {
			lo, hi := how.Range(slicedHidden, first+k)
			put(trained, part, lo, hi)
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.results, l.bytes = append(results, trained...), traffic.Bytes()
	return nil
}

// put writes a slice's weights, those of hidden channels [lo, hi), to whole ones.
func put(whole [][]float32, part *nn.MLP, lo, hi int) {
	copy(whole[0][lo*slicedDim:], part.Gate.Weight.Value)
	copy(whole[1][lo*slicedDim:], part.Up.Weight.Value)
	for row := range slicedDim {
		copy(whole[2][row*slicedHidden+lo:row*slicedHidden+hi], part.Down.Weight.Value[row*(hi-lo):])
	}
}

// slicedWeights returns the first weights: gate and up, [hidden, dim], and down.
func (s *sample) slicedWeights() [][]float32 {
	deviation := 1 / math.Sqrt(slicedDim)
	return [][]float32{
		s.normal(0, slicedDim*slicedHidden, deviation), s.normal(1, slicedDim*slicedHidden, deviation),
		s.normal(2, slicedDim*slicedHidden, 1/math.Sqrt(slicedHidden)),
	}
}

// normal returns normal numbers of a stream.
func (s *sample) normal(stream uint64, n int, deviation float64) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(deviation * float64(random.Normal(s.o.Seed, stream, uint64(i))))
	}
	return values
}

// slicedStep does a step, and returns what the layer gave and passed back.
func (s *sample) slicedStep(r *collective.Rank, m *layers.MLP, step int) (y, dx []float32, err error) {
	const n = slicedRows * slicedDim
	x := s.normal(uint64(10+2*step), n, 1)
	wanted := s.normal(uint64(11+2*step), n, 1)
	y, dx = make([]float32, n), make([]float32, n)
	if err := m.Forward(r, y, x, slicedRows); err != nil {
		return nil, nil, err
	}
	dy := make([]float32, n)
	for i := range dy {
		dy[i] = (y[i] - wanted[i]) / slicedRows
	}
	params := m.Params()
	nn.ZeroGrad(params)
	if err := m.Backward(r, dx, dy); err != nil {
		return nil, nil, err
	}
	for _, p := range params {
		for i, g := range p.Grad {
			p.Value[i] -= float32(0.1 * g)
		}
	}
	return y, dx, nil
}

// slicedOf returns the layers of a kind, in the order of ranks.
func (s *sample) slicedOf(kind slicedKind, fixed bool) (all []*sliced) {
	for _, l := range s.slices {
		if l.kind == kind && l.fixed == fixed {
			all = append(all, l)
		}
	}
	return all
}

// differ is how many results of all ranks and seeds are not those of the twin.
func (s *study) differ(kind slicedKind, fixed bool) (n float64) {
	for _, of := range s.samples {
		for _, l := range of.slicedOf(kind, fixed) {
			n += float64(l.differ)
		}
	}
	return n
}

// leastDiffer is the smallest share of results that are not those of the twin, in percent,
// over several ranks and seeds.
func (s *study) leastDiffer(kind slicedKind, fixed bool) float64 {
	var shares []float64
	for _, of := range s.samples {
		for _, l := range of.slicedOf(kind, fixed) {
			if l.ranks > 1 {
				shares = append(shares, 100*float64(l.differ)/float64(l.elements))
			}
		}
	}
	return slices.Min(shares)
}
