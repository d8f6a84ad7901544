package world

import (
	"context"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// sumFormat is a form in which gradients are summed.
type sumFormat struct {
	name     string
	wire     string
	rounding collective.Rounding
}

// Formats that goals are about. BF16 is summed as NCCL does, each partial sum rounded
// where it is formed; in the others what is sent is rounded, and a rank adds in FP32.
var (
	sumFP32  = sumFormat{"FP32", "fp32", collective.RoundSent}
	sumBF16  = sumFormat{"BF16", "bf16", collective.RoundStored}
	sumE4M3  = sumFormat{"E4M3 1x128", "e4m3-block", collective.RoundSent}
	sumMXFP8 = sumFormat{"MXFP8", "mxfp8", collective.RoundSent}
	sumNVFP4 = sumFormat{"NVFP4", "nvfp4", collective.RoundSent}

	sumFormats = []sumFormat{sumFP32, sumBF16, sumE4M3, sumMXFP8, sumNVFP4}
	sumOrders  = []collective.Order{
		collective.OrderRing, collective.OrderTree, collective.OrderHalving, collective.OrderScatter,
	}
)

// Kinds of operands. Each element has its mean and its deviation over measured gradients.
const (
	withMean = "as measured" // normal, with mean and deviation
	noise    = "noise"       // with the deviation alone: sums grow like the root of ranks
	measured = "measured"    // the gradients themselves
)

// sum is a sum of gradients, by simulation of the sum alone.
type sum struct {
	operands string
	ranks    int
	order    collective.Order
	format   sumFormat
	err      collective.SumError
}

// gradients are what operands are made of, by element.
type gradients struct {
	measured        [][]float32 // of sequences
	mean, deviation []float64
}

// What sums take, in about milliseconds for a thousand operands.
const sumWork = 57

func (s *sample) sumsWork() (work int64) {
	work = measuredSequences * sequenceWork
	for _, ranks := range s.scope.sums {
		work += int64(2*len(sumOrders)*len(sumFormats)) * s.sumWork(ranks)
	}
	return work + int64(len(sumFormats))*s.sumWork(measuredSequences)
}

func (s *sample) sumWork(ranks int) int64 { return int64(1 + ranks*sumWork/1000) }

// measureSums sums gradients over all numbers of ranks, in all orders and formats.
func (s *sample) measureSums(ctx context.Context, p *lab.Steps) error {
	g, err := s.measuredGradients(ctx)
	if err != nil {
		return err
	}
	if err := s.done(ctx, p, "gradients", measuredSequences*sequenceWork); err != nil {
		return err
	}
	most := slices.Max(s.scope.sums)
	made := s.made(g, most)
	for _, operands := range []string{withMean, noise} {
		for _, ranks := range s.scope.sums {
			for _, order := range sumOrders {
				for _, f := range sumFormats {
					operand := func(dst []float32, rank int) {
						copy(dst, made[rank*s.elements:])
						if operands == withMean {
							for i := range dst {
								dst[i] += float32(g.mean[i])
							}
						}
					}
					k := &sum{operands: operands, ranks: ranks, order: order, format: f}
					if err := s.sum(ctx, p, k, operand); err != nil {
						return err
					}
				}
			}
		}
	}
	for _, f := range sumFormats {
		operand := func(dst []float32, rank int) { copy(dst, g.measured[rank]) }
		k := &sum{operands: measured, ranks: measuredSequences, order: collective.OrderTree, format: f}
		if err := s.sum(ctx, p, k, operand); err != nil {
			return err
		}
	}
	return nil
}

// sum does one sum.
func (s *sample) sum(
	ctx context.Context, p *lab.Steps, k *sum, operand func(dst []float32, rank int),
) error {
	simulation := collective.Simulation{
		Exchange: collective.Exchange{
			Name: "gradient", Order: k.order, Wire: wire(k.format.wire), Rounding: k.format.rounding,
		},
		Ranks: k.ranks, Elements: s.elements, Operand: operand,
	}
	var err error
	if _, k.err, err = simulation.Run(ctx); err != nil {
		return err
	}
	s.sums = append(s.sums, k)
	return s.done(ctx, p, "sums of gradients", s.sumWork(k.ranks))
}

// made returns normal numbers with the deviations of elements, rank after rank.
func (s *sample) made(g *gradients, ranks int) []float32 {
	values := make([]float32, ranks*s.elements)
	for i := range values {
		rank, element := uint64(i/s.elements), i%s.elements
		z := random.Normal(s.o.Seed, rank, uint64(element))
		values[i] = float32(g.deviation[element] * float64(z))
	}
	return values
}

// summedWeight is the one whose gradient is summed: its first elements, row by row.
const summedWeight = "model.layers.0.mlp.down_proj.weight"

// measuredGradients computes the gradients of sequences one by one, on a model that has been
// trained.
func (s *sample) measuredGradients(ctx context.Context) (*gradients, error) {
	g := &gradients{mean: make([]float64, s.elements), deviation: make([]float64, s.elements)}
	tokens, targets, err := s.corpus.Batch(s.teamSteps, measuredSequences, teamContext)
	if err != nil {
		return nil, err
	}
	for i := range measuredSequences {
		lo, hi := i*teamContext, (i+1)*teamContext
		s.trained.ZeroGrad()
		if _, err := s.trained.Loss(ctx, tokens[lo:hi], targets[lo:hi], 1, teamContext); err != nil {
			return nil, err
		}
		if err := s.trained.Backward(ctx); err != nil {
			return nil, err
		}
		g.measured = append(g.measured, slices.Clone(s.trained.Param(summedWeight).Grad[:s.elements]))
	}
	g.describe()
	return g, nil
}

// describe computes means and deviations.
func (g *gradients) describe() {
	n := float64(len(g.measured))
	for i := range g.mean {
		var sum, squares float64
		for _, m := range g.measured {
			sum += float64(m[i])
		}
		g.mean[i] = sum / n
		for _, m := range g.measured {
			d := float64(m[i]) - g.mean[i]
			squares += float64(d * d)
		}
		g.deviation[i] = math.Sqrt(squares / (n - 1))
	}
}

// sumOf returns the error of a sum.
func (s *sample) sumOf(operands string, ranks int, order collective.Order, f sumFormat) collective.SumError {
	i := slices.IndexFunc(s.sums, func(k *sum) bool {
		return k.operands == operands && k.ranks == ranks && k.order == order && k.format == f
	})
	return s.sums[i].err
}
