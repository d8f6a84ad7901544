// Package law asks how many bits are best at a cost, by published scaling laws and by a
// sweep of small models.
package law

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/plan"
)

// Experiment is octavo lab law.
var Experiment = lab.Experiment{
	Name:  "law",
	Title: "How many bits does a budget want?",
	Claim: "At the same cost, parameters times bits times tokens, a larger model in fewer bits beats a smaller one in more, down to 6 to 8 bits and not to 4 " +
		"(Kumar et al., arXiv 2411.04330, section 4.3.2). The best precision grows with the data (Sun et al., arXiv 2501.02423).",
	Measure: measure,
}

// width is a precision of the sweep, and how wide a model it pays for.
type width struct {
	bits int
	training.Arithmetic
	dim int // about 128·√(8/bits), since parameters grow with its square
}

// widths are the models of equal cost, the one in 8 bits dim wide.
func widths(dim int) (all []width) {
	for _, w := range []width{
		{32, training.FP32(), 0}, {16, training.BF16(), 0}, {8, training.FP8(), 0},
		{6, rounded("FP6", nn.NarrowE3M2), 0}, {4, rounded("FP4", nn.NarrowE2M1), 0},
	} {
		const multiple = 8 // four heads of an even width
		w.dim = int(math.Round(float64(dim)*math.Sqrt(8/float64(w.bits))/multiple)) * multiple
		all = append(all, w)
	}
	return all
}

// rounded multiplies in FP32 what was rounded to a format, gradients at random.
func rounded(name string, f nn.NarrowFormat) training.Arithmetic {
	return training.Arithmetic{Name: name, Use: func(c *nn.Config) {
		r := nn.DefaultRounding(f)
		r.Stochastic, r.Seed = true, 1
		c.Rounding = &r
	}}
}

// linearParams returns the number of values in the linear layers, which are those that
// bits are saved on.
func linearParams(c nn.Config) int {
	return c.Layers * c.Dim * (4*c.Dim + 3*c.Hidden)
}

// sweep is the experiment's own: models of one cost, and models of one size.
type sweep struct {
	widths    []width
	seeds     int
	jobs      []training.Job   // of equal cost by seed and width, then of equal size by width
	curves    []training.Curve // of the jobs
	batchSize int              // in bytes
}

func newSweep(o lab.Options) (*sweep, error) {
	s := &sweep{widths: widths(lab.Pick(o, 128, 128, 32)), seeds: lab.Pick(o, 2, 2, 1)}
	form := training.Setup{
		Steps: lab.Pick(o, 200, 200, 16), Batch: lab.Pick(o, 8, 8, 2), Seq: lab.Pick(o, 128, 128, 64),
		Rate: lab.Pick(o, 1e-3, 1e-3, 4e-3), Judged: lab.Pick(o, 16, 16, 4),
	}
	s.batchSize = form.Batch * form.Seq
	layers := lab.Pick(o, 4, 4, 1)
	reference := training.Llama(s.widths[2].dim, layers, form.Seq)
	size := linearParams(reference) * s.widths[2].bits
	for i := range s.seeds {
		seed := o.Seed + uint64(i) // after the largest comes 0
		for _, w := range s.widths {
			l := form
			config := training.Llama(w.dim, layers, form.Seq)
			// Widths are whole, so the number of steps makes up for what they miss.
			l.Steps = int(math.Round(float64(form.Steps) * float64(size) / float64(linearParams(config)*w.bits)))
			if err := s.add(o, w, config, seed, l, "equal cost"); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range s.widths {
		if err := s.add(o, w, reference, o.Seed, form, "equal size"); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *sweep) add(o lab.Options, w width, config nn.Config, seed uint64, l training.Setup, what string) (err error) {
	if l, err = training.NewSetup(o, seed, l); err != nil {
		return err
	}
	w.Use(&config)
	s.jobs = append(s.jobs, training.Job{Name: fmt.Sprintf("%s, %s, seed %d", w.Name, what, seed), Config: config, Seed: seed, Setup: l})
	return nil
}

// cost returns N·P·D of a job in terabit-tokens, where D counts bytes.
func (s *sweep) cost(i int) float64 {
	j, bits := s.jobs[i], s.widths[i%len(s.widths)].bits
	return float64(linearParams(j.Config)) * float64(bits) * float64(j.Setup.Steps*s.batchSize) / 1e12
}

// equalCost returns the losses of a width, by seed.
func (s *sweep) equalCost(width int) (losses []float64) {
	for seed := range s.seeds {
		losses = append(losses, s.curves[seed*len(s.widths)+width].Last())
	}
	return losses
}

// equalSize returns the loss in the precision of a width of the model in 8 bits.
func (s *sweep) equalSize(width int) float64 {
	return s.curves[s.seeds*len(s.widths)+width].Last()
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	published, err := newPublished()
	if err != nil {
		return nil, err
	}
	s, err := newSweep(o)
	if err != nil {
		return nil, err
	}
	p.Expect(training.Work(s.jobs))
	if s.curves, err = training.All(ctx, o, p, s.jobs); err != nil {
		return nil, err
	}
	return newReport(published, s), nil
}

// published is what the laws say of models as those of Kumar et al., section 4.3.2: 220 million
// parameters in 32 bits, or more in fewer. The paper gives no tokens there; 26 billion,
// the most of its other runs, are ours.
type published struct {
	kumar, sun []plan.Training
	best       plan.Training // of Kumar's law, all free
	tooFew     error         // what Kumar's law says of 3 bits
	optima     []optimum
}

// optimum is the best precision for a cost by both laws.
type optimum struct{ cost, kumar, sun float64 }

const (
	lawSize   = 220e6 * 32
	lawTokens = 26e9
	lawBlock  = 128
)

func lawBits() []int { return []int{32, 16, 12, 10, 8, 7, 6, 5, 4} }

func newPublished() (p published, err error) {
	kumar, sun := plan.Kumar2024(), plan.Sun2025()
	var bits []float64
	for _, b := range lawBits() {
		bits = append(bits, float64(b))
	}
	if p.kumar, err = kumar.Sweep(lawSize, lawTokens, bits...); err != nil {
		return p, err
	}
	if p.sun, err = sun.Sweep(lawSize, lawTokens, lawBlock, lawBits()...); err != nil {
		return p, err
	}
	_, p.tooFew = kumar.Loss(lawSize/3, lawTokens, plan.UniformBits(3))
	for exponent := 20.0; exponent <= 28; exponent += 0.5 {
		cost := math.Pow(10, exponent)
		if p.best, err = kumar.Optimum(cost); err != nil {
			return p, err
		}
		best, err := sun.Optimum(cost, lawBlock)
		if err != nil {
			return p, err
		}
		p.optima = append(p.optima, optimum{cost, p.best.Bits, best.Bits})
	}
	return p, nil
}
