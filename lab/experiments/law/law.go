// Package law asks how many bits are best at a cost, by published scaling laws and by a
// sweep of small models.
package law

import (
	"context"
	_ "embed"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
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
