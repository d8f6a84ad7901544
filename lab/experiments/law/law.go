// Package law asks how many bits are best at a cost, by published scaling laws and by a
// sweep of small models.
package law

import (
	"context"
	_ "embed"
	"math"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/plan"
)

//go:embed declaration.toml
var declarationFile []byte

var declared = declaration.OnUse(declarationFile)

// Experiment is octavo lab law.
var Experiment = lab.Experiment{
	Name:  "law",
	Title: "How many bits does a budget want?",
	Claim: "At the same cost, parameters times bits times tokens, a larger model in fewer bits beats a smaller one in more, down to 6 to 8 bits and not to 4 " +
		"(Kumar et al., arXiv 2411.04330, section 4.3.2). The best precision grows with the data, and for few data is 4 bits or less (Sun et al., arXiv 2501.02423).",
	Declaration: declared,
	Measure:     measure,
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
	return newReport(published, s)
}

// published is what the laws say of models as those of Kumar et al., section 4.3.2: 220 million
// parameters in 32 bits, or more in fewer. The paper gives no tokens there; 26 billion,
// the most of its other runs, are ours. That it says so is tested, and no goal.
type published struct {
	kumar, sun []plan.Training
	tooFew     error // what Kumar's law says of 3 bits
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
		of, err := kumar.Optimum(cost)
		if err != nil {
			return p, err
		}
		best, err := sun.Optimum(cost, lawBlock)
		if err != nil {
			return p, err
		}
		p.optima = append(p.optima, optimum{cost, of.Bits, best.Bits})
	}
	return p, nil
}

// prediction is what both laws say of one of our own models: which share of its parameters
// counts, as if it were one in full precision. Losses of the laws are of other data, and
// shares do not depend on those. Both are far outside of what the laws were fitted on.
type prediction struct{ kumar, sun float64 }

// predict asks both laws of n parameters in so many bits on d tokens. Attention's products
// are not rounded, so that what Kumar et al. call the KV cache has 16 bits.
func predict(n, d float64, weights, activations int) (p prediction, err error) {
	at := func(bits int) float64 { return float64(min(bits, 16)) } // the law was fitted up to there
	kumar, err := plan.Kumar2024().Loss(n, d, plan.Bits{Weights: at(weights), Activations: at(activations), KV: 16})
	if err != nil {
		return p, err
	}
	full, err := plan.Kumar2024().Loss(n, d, plan.UniformBits(16))
	if err != nil {
		return p, err
	}
	law := plan.Sun2025()
	format, err := law.BestWholeFormat(weights, lawBlock)
	if err != nil {
		return p, err
	}
	sun, err := law.Loss(n, d, format)
	if err != nil {
		return p, err
	}
	return prediction{kumar.Effective / full.Effective, sun.Effective / n}, nil
}
