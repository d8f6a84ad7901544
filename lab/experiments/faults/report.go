package faults

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/certify"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// bySeed returns a figure of each sample.
func (s *study) bySeed(figure func(*sample) float64) []float64 {
	return statistics.Each(s.samples, figure)
}

// teamOf returns the team of a name.
func (s *sample) teamOf(name string) *team {
	return s.teams[slices.IndexFunc(s.teams, func(t *team) bool { return t.kind.name == name })]
}

// above is by how many percent the loss of a team is above that of another, by seed.
func (s *study) above(name, other string) []float64 {
	return s.bySeed(func(of *sample) float64 {
		return 100 * (of.teamOf(name).loss()/of.teamOf(other).loss() - 1)
	})
}

// along is the part of a team's first mean gradient along that of all ranks, by seed.
func (s *study) along(name string) []float64 {
	return s.bySeed(func(of *sample) float64 { return of.teamOf(name).along })
}

// count is how many faults of all seeds are so.
func (s *study) count(is func(certify.Found) bool) (n int) {
	for _, of := range s.samples {
		for _, f := range of.found.Rows {
			if is(f) {
				n++
			}
		}
	}
	return n
}

func inTime(f certify.Found) bool { return f.InTime() }

// notFound is how many faults of all seeds their twin did not find in the step where they
// begin, and what was found in runs without a fault.
func (s *study) notFound() float64 {
	n := s.count(func(f certify.Found) bool { return !f.InTime() })
	for _, of := range s.samples {
		if c := of.found.Clean; c.Twin != nil || c.Ranks != nil || c.Sums != nil {
			n++
		}
	}
	return float64(n)
}

func (s *study) goals() []report.Goal {
	return []report.Goal{
		declared().Judge("loss-sometimes", s.above(sometimes, whole)).AtLength(),
		declared().Judge("loss-without", s.above(without, whole)).AtLength(),
		declared().Judge("loss-same", s.above(withoutSame, without)).AtLength(),
		declared().Judge("loss-half", s.above(withoutHalf, whole)).AtLength(),
		declared().Judge("loss-by-all", s.above(byAll, without)).AtLength(),
		declared().Judge("loss-one-left", s.above(oneLeft, whole)).AtLength(),
		declared().Judge("mean-without", s.along(without)).AtLength(),
		declared().Judge("mean-half", s.along(withoutHalf)).AtLength(),
		declared().Judge("mean-by-all", s.along(byAll)).AtLength(),
		declared().JudgeFigure("found", s.notFound()),
	}
}

func (s *study) report() *report.Report {
	goals := s.goals()
	return &report.Report{
		Goals: goals, Findings: s.findings(goals), Limits: s.limits(),
		Charts: []chart.Chart{
			report.Draw(chart.Chart{
				Title: "Held-out loss above that of all ranks, by seed; at the end the mean and its standard error",
				X:     "seed", Y: "percent", Zero: true,
			}, func(p *report.Plot) {
				for _, k := range teamKinds[1:] {
					line, above := chart.Series{Name: k.name, Mark: chart.Dots}, s.above(k.name, whole)
					for i, of := range s.samples {
						p.Add(line, of.o.Seed, above[i])
					}
					p.AddMean(line, "mean", above...)
				}
			}),
			report.Draw(chart.Chart{
				Title: "Norm of the mean gradient over that of all ranks, mean of the seeds",
				X:     "step", Y: "ratio", Smooth: true,
			}, func(p *report.Plot) {
				for _, k := range teamKinds[1:] {
					for step := range s.steps {
						p.Add(chart.Series{Name: k.name, Dashed: k.control}, step, s.bySeed(func(of *sample) float64 {
							return of.teamOf(k.name).norms[step] / of.teamOf(whole).norms[step]
						})...)
					}
				}
			}),
		},
		Tables: []report.Table{
			s.teamTable(),
			s.faultTable(),
			report.LinesOf(report.Table{
				Name: "found", Raw: true, Columns: []string{"seed", "fault", "step", "rank", "twin", "ranks", "sums"},
			}, s.samples, faultsOf, func(of *sample, f certify.Found) []any {
				line := []any{of.o.Seed, f.Fault.Kind.String(), f.Fault.Step, f.Fault.Rank, "", "", ""}
				if f.Twin != nil {
					line[4] = f.Twin.String()
				}
				if f.Ranks != nil {
					line[5] = f.Ranks.String()
				}
				if f.Sums != nil {
					line[6] = fmt.Sprintf("step %d, %v", f.Sums.Step, &f.Sums.Wrong)
				}
				return line
			}),
			report.LinesOf(report.Table{
				Name: "seeds", Raw: true, Columns: []string{"seed", "shares", "held-out loss", "first mean gradient along that of all"},
			}, s.samples, teamsOf, func(of *sample, t *team) []any {
				return []any{of.o.Seed, t.kind.name, t.loss(), t.along}
			}),
			s.curves().Table("steps", "seed", "shares", "step", "norm of the mean gradient"),
		},
	}
}

// interval says a mean over seeds and where it lies.
func interval(values []float64) string { return report.Interval(values, "%+.2f", "") }

func (s *study) findings(goals []report.Goal) []report.Finding {
	mean := func(name string) float64 { return statistics.Mean(s.along(name)) }
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("Held-out loss is above that of all %d ranks by %s percent without one rank "+
			"in every tenth step, by %s without one in each step, another each time, by %s without half, and by "+
			"%s with one left. Always without the same one it is above another each time by %s.%s",
			teamRanks, interval(s.above(sometimes, whole)), interval(s.above(without, whole)),
			interval(s.above(withoutHalf, whole)), interval(s.above(oneLeft, whole)),
			interval(s.above(withoutSame, without)), report.Outcomes(goals, "As declared", "loss-sometimes",
				"loss-without", "loss-same", "loss-half", "loss-one-left"))),
		report.NewFinding(fmt.Sprintf("Of the mean gradient of all ranks in the first step, the mean without one has "+
			"%.3f, that without half %.3f, and one that lacks one and is divided by all %.3f. Divided by all, "+
			"training has a held-out loss above that of the right mean by %s percent.%s",
			mean(without), mean(withoutHalf), mean(byAll), interval(s.above(byAll, without)),
			report.Outcomes(goals, "As declared", "mean-without", "mean-half", "mean-by-all", "loss-by-all"))),
		report.NewFinding(fmt.Sprintf("Of %d faults on one of %d ranks the comparison with a run without the fault found "+
			"%d in the step where they begin; comparing ranks with each other and sums before and after they were "+
			"sent found %d without such a run.%s",
			s.count(func(certify.Found) bool { return true }), teamRanks, s.count(inTime),
			s.count(func(f certify.Found) bool { return f.Alone() }), report.Outcomes(goals, "As declared", "found"))),
	}
}

func (s *study) limits() []string {
	return []string{
		fmt.Sprintf("Ranks are goroutines with %d bytes each in a step, of one text: what one rank has is as good as what "+
			"another has. Where ranks have data of different kinds, to be always without the same one is another matter.",
			teamContext),
		fmt.Sprintf("Models have one layer of width 128 in FP8 under the default recipe and are trained for %d steps. Batches are "+
			"small, so that the noise of gradients is large, and so is what a missing share costs; batches of practice are "+
			"thousands of times as large.", s.steps),
		"AdamW divides by the root of the second moment: a gradient that is too short by a constant factor moves weights as " +
			"far. So the loss hardly sees a mean that is divided by the wrong number; gradients, their norms and what is clipped do.",
		fmt.Sprintf("Faults are those of octavo certify --faults, one of each kind and one more in runs of %d steps with delayed "+
			"scales. That none is missed among so few does not say that none ever is.", s.faultSteps),
	}
}

func (s *study) teamTable() report.Table {
	above := func(k teamKind) []float64 { return s.above(k.name, whole) }
	of := func(figure func(*team) float64) func(teamKind) []float64 {
		return func(k teamKind) []float64 {
			return s.bySeed(func(of *sample) float64 { return figure(of.teamOf(k.name)) })
		}
	}
	return report.Fill(report.Table{
		Name: "teams", Title: fmt.Sprintf("%d ranks trained for %d steps: means over seeds", teamRanks, s.steps),
	}, teamKinds,
		report.Cell("shares", func(k teamKind) string { return k.name }), report.Cell("lost %", func(k teamKind) float64 { return 100 * k.share() }),
		report.Mean("held-out loss", of((*team).loss)),
		report.Mean("above that of all %", above), report.Deviation("standard deviation", above), report.Low("from", above), report.High("to", above),
		report.Mean("first mean gradient along that of all", of(func(t *team) float64 { return t.along })),
		report.Mean("norm of the mean gradient", of(func(t *team) float64 { return statistics.Mean(t.norms) })))
}

// share is the part of all shares that a team lacks.
func (k teamKind) share() float64 {
	if k.every == 0 {
		return 0
	}
	return float64(k.lost) / float64(teamRanks*k.every)
}

// faultTable says by kind how many were found in the step where they begin.
func (s *study) faultTable() report.Table {
	rows := s.samples[0].found.Rows
	count := func(is func(f certify.Found) bool) func(i int) int {
		return func(i int) (n int) {
			for _, of := range s.samples {
				if is(of.found.Rows[i]) {
					n++
				}
			}
			return n
		}
	}
	return report.Fill(report.Table{
		Name: "faults", Title: "Faults on one rank, of all seeds: how many were found in the step where they begin",
	}, report.Places(len(rows)),
		report.Cell("fault", func(i int) string {
			name := rows[i].Fault.Kind.String()
			if slices.ContainsFunc(rows[:i], func(f certify.Found) bool { return f.Fault.Kind == rows[i].Fault.Kind }) {
				name += ", a low bit"
			}
			return name
		}),
		report.Cell("faults", func(int) int { return len(s.samples) }), report.Cell("by the twin", count(inTime)),
		report.Cell("by comparing ranks", count(func(f certify.Found) bool { return f.Ranks != nil && f.Ranks.Step == f.Fault.Step })),
		report.Cell("by sums", count(func(f certify.Found) bool { return f.Sums != nil && f.Sums.Step == f.Fault.Step })))
}

func faultsOf(of *sample) []certify.Found { return of.found.Rows }

// curves are the norms of mean gradients.
func (s *study) curves() report.Curves {
	return report.CurvesOf(s.samples, teamsOf, func(of *sample, t *team) report.Curve {
		return report.Curve{Seed: of.o.Seed, Arm: t.kind.name, Values: t.norms}
	})
}

func teamsOf(of *sample) []*team { return of.teams }
