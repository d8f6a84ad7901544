// Package fp4 asks which part of the recipes for training with four bits matters.
package fp4

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
)

// Experiment is octavo lab fp4.
var Experiment = lab.Experiment{
	Name:  "fp4",
	Title: "What does training with four bits need?",
	Claim: "NVFP4 trains within 1 to 1.5 % of the loss of higher precision, with weights scaled in blocks of 16x16, a random Hadamard transform of the weight gradient's operands, " +
		"gradients rounded at random and the last layers in higher precision, all of which it needs (NVIDIA, arXiv 2509.25149). " +
		"Stochastic rounding loses more than twice what an unbiased way of rounding to nearest does (Quartet II, arXiv 2601.22813). " +
		"Multiplying by the reciprocal of a scale instead of dividing changes no code of random data, and 4.76 % of those on boundaries of rounding (arch-com, issue 905).",
	Declaration: declared,
	Measure:     measure,
}

//go:embed declaration.toml
var declarationFile []byte

var declared = declaration.OnUse(declarationFile)

// way is a way to multiply in linear layers.
type way struct {
	name  string
	means string
	use   func(c *nn.Config, seed uint64)
}

// The ways, by their places in ways.
const (
	bf16Way = iota
	fp8Way
	mxfp8Way
	nvfp4Way
	firstPart // nvfp4 without a part, for each of fourParts

	partCount = 4
)

// Further ways.
const (
	plainWay = firstPart + partCount + iota // nvfp4 without all parts
	fourOverSixWay
	mxfp4Way
	plainMXFP4Way
)

func ways() []way {
	bf16 := training.BF16()
	list := []way{{bf16.Name, "operands and results of linear layers rounded to BF16", func(c *nn.Config, _ uint64) { bf16.Use(c) }}}
	add := func(means, recipe string, without ...nn.Part) {
		r, err := nn.ParseRecipe(recipe)
		if err != nil {
			panic(err) // of a name in this file
		}
		all := r.Parts()
		r = r.Without(without...)
		if len(without) > 1 && len(without) >= len(all) {
			r.Name = recipe + " without all parts"
		}
		list = append(list, way{r.Name, means, r.Apply})
	}
	add("E4M3, scales of 1x128 and of 128x128 for weights: the default recipe in FP8, and not deepseek-v3", "fp8")
	add("E4M3, E8M0 scales of 32 values", "mxfp8")
	add("E2M1, UE4M3 scales of 16 values under one float32 of the tensor, with the four parts below", "nvfp4")
	for _, p := range fourParts {
		add(withoutPart[p], "nvfp4", p)
	}
	add("none of the four", "nvfp4", fourParts...)
	add("nvfp4, inputs and weights under the better of two scales, by which the largest value of a block becomes 4 or 6", "nvfp4-4over6")
	add("E2M1, E8M0 scales of 32 values, with hadamard, stochastic and bf16-last", "mxfp4")
	add("none of the three", "mxfp4", fourParts...)
	return list
}

// fourParts are those of nvfp4.
var fourParts = []nn.Part{nn.PartHadamard, nn.PartStochastic, nn.PartSquareWeights, nn.PartBF16Last}

// withoutPart says what a recipe does instead of a part.
var withoutPart = [partCount]string{
	nn.PartHadamard:      "operands of the weight gradient are quantized as they are, not after a random Hadamard transform of 16 tokens",
	nn.PartStochastic:    "gradients are rounded to nearest, not at random",
	nn.PartSquareWeights: "weights are scaled by rows of 16 values along each product's sum, not by squares of 16x16 that are the same for both",
	nn.PartBF16Last:      "the last layers multiply in four bits too, not in BF16",
}

// study is what came of all runs, and of rounding by itself.
type study struct {
	setup  training.Setup
	model  nn.Config // of all ways, but for what they multiply in
	ways   []way
	seeds  []uint64
	curves []training.Curve // by seed, and for each by way

	roundings [][]rounding // by seed
	divisions []division
}

func (s *study) curve(seed, way int) training.Curve { return s.curves[seed*len(s.ways)+way] }

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	s := &study{ways: ways(), setup: training.Setup{
		Steps: lab.Pick(o, 240, 240, 6), Batch: lab.Pick(o, 4, 4, 2), Seq: lab.Pick(o, 64, 64, 32),
		Rate: lab.Pick(o, 2e-3, 2e-3, 4e-3), Judged: lab.Pick(o, 32, 32, 2),
	}}
	s.model = training.Llama(lab.Pick(o, 64, 64, 32), lab.Pick(o, 4, 4, 2), s.setup.Seq)
	var jobs []training.Job
	for i := range lab.Pick(o, 36, 4, 2) {
		seed := o.Seed + uint64(i)
		l, err := training.NewSetup(o, seed, s.setup)
		if err != nil {
			return nil, err
		}
		s.seeds = append(s.seeds, seed)
		for _, w := range s.ways {
			config := s.model
			w.use(&config, seed)
			jobs = append(jobs, training.Job{Name: fmt.Sprintf("%s, seed %d", w.name, seed), Config: config, Seed: seed, Setup: l})
		}
	}
	values, draws, samples := lab.Pick(o, 1<<13, 1<<13, 1<<11), lab.Pick(o, 64, 64, 16), lab.Pick(o, 8, 8, 2)
	p.Expect(training.Work(jobs) + int64(samples)*roundingWork(values, draws) + divisionWork(lab.Pick(o, 4000, 4000, 40)))
	var err error
	for i := range samples {
		of, err := measureRoundings(ctx, p, o.Seed+uint64(i), values, draws)
		if err != nil {
			return nil, err
		}
		s.roundings = append(s.roundings, of)
	}
	if s.divisions, err = measureDivisions(ctx, p, o.Seed, lab.Pick(o, 4000, 4000, 40)); err != nil {
		return nil, err
	}
	if s.curves, err = training.All(ctx, o, p, jobs); err != nil {
		return nil, err
	}
	return s.report(), nil
}

// effect is the difference of two ways in held-out loss, paired by seed, in percent.
type effect struct {
	bySeed []float64
	statistics.Interval
}

func (s *study) newEffect(bySeed []float64) effect {
	return effect{bySeed, statistics.OfMean(bySeed, len(s.ways)-1)}
}

// seen reports whether the mean is not chance: not if all ways were alike, in 95 of 100 labs.
func (e effect) seen() bool { return e.Low > 0 || e.High < 0 }

// half is how far the interval reaches to each side.
func (e effect) half() float64 { return (e.High - e.Low) / 2 }

func (e effect) String() string { return fmt.Sprintf("%+.2f %% (± %.2f)", e.At, e.half()) }

// verdict says how a loss is beside another, after words that say which they are.
func (e effect) verdict(which string) report.Conclusion {
	otherwise := fmt.Sprintf("%s the loss is not seen to be different: %v.", which, e)
	if e.High < 0 {
		otherwise = fmt.Sprintf("%s the loss is lower: %v.", which, e)
	}
	return report.If(e.Low > 0, fmt.Sprintf("%s the loss is higher: %v.", which, e), otherwise)
}

// over returns how far a way's loss is above that of another.
func (s *study) over(way, other int) effect {
	return s.newEffect(statistics.PercentAbove(s.heldOut(way), s.heldOut(other)))
}

// heldOut returns the held-out losses of a way, by seed.
func (s *study) heldOut(way int) (losses []float64) {
	for seed := range s.seeds {
		losses = append(losses, s.curve(seed, way).HeldOut)
	}
	return losses
}
