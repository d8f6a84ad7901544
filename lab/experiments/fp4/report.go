package fp4

import (
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

func (s *study) report() *report.Report {
	return &report.Report{
		Goals: slices.Concat(s.trainingGoals(), s.roundingGoals(), s.divisionGoals()),
		Findings: []report.Finding{
			s.partsFinding(), s.formatsFinding(), s.sizeFinding(), s.roundingFinding(), s.biasFinding(), s.divisionFinding(),
		},
		Limits: s.limits(),
		Charts: []chart.Chart{
			report.Draw(chart.Chart{
				Y: "percent", Zero: true, Title: "Held-out loss above that of BF16, mean of the seeds, with 95 % intervals for all together; nvfp4 where only what it is without is named",
			}, func(p *report.Plot) {
				for i, w := range s.ways {
					e := s.over(i, bf16Way)
					p.AddPoint(chart.Series{Name: "mean", Mark: chart.Dots}, strings.TrimPrefix(w.name, "nvfp4 "), chart.Point{Y: e.At, Spread: e.half()})
				}
			}),
			report.Draw(chart.Chart{Title: "Held-out loss above that of nvfp4, by seed", X: "seed", Y: "percent", Zero: true}, func(p *report.Plot) {
				for way := firstPart; way <= fourOverSixWay; way++ {
					for i, percent := range s.over(way, nvfp4Way).bySeed {
						p.Add(chart.Series{Name: s.ways[way].name, Mark: chart.Joined}, s.seeds[i], percent)
					}
				}
			}),
			report.Draw(chart.Chart{
				Title: "Training loss above that of BF16 on the same batch, mean of the seeds", X: "step", Y: "percent", Zero: true, Smooth: true,
			}, func(p *report.Plot) {
				for _, w := range s.ways[1:] {
					p.AddCurves(s.losses().Above(w.name, s.ways[bf16Way].name), chart.Series{Name: w.name})
				}
			}),
			report.Draw(chart.Chart{Title: "What rounding to NVFP4 loses, of the sum of squares", Y: "percent", LogY: true}, func(p *report.Plot) {
				for _, r := range s.meanRoundings() {
					p.Add(chart.Series{Name: "one rounding, " + r.values, Mark: chart.Dots}, r.way, 100*r.once)
					p.Add(chart.Series{Name: "mean of many, " + r.values, Mark: chart.Rings}, r.way, 100*r.ofMean)
				}
			}),
		},
		Tables: []report.Table{
			s.nameTable(),
			s.effectTable(),
			report.Fill(report.Table{Name: "losses", Title: "Loss in nats per byte"}, report.Places(len(s.seeds)*len(s.ways)),
				report.Cell("seed", func(i int) string { return fmt.Sprint(s.seeds[i/len(s.ways)]) }), report.Cell("way", func(i int) string { return s.ways[i%len(s.ways)].name }),
				report.Cell("held-out", func(i int) float64 { return s.curves[i].HeldOut }), report.Cell("training, last tenth of steps", func(i int) float64 { return s.curves[i].Last() })),
			report.Fill(report.Table{Name: "rounding", Title: "What rounding to NVFP4 loses, of the sum of squares"}, s.meanRoundings(),
				report.Cell("values", func(r rounding) string { return r.values }), report.Cell("rounding", func(r rounding) string { return r.way }),
				report.Cell("one rounding %", func(r rounding) float64 { return 100 * r.once }), report.Cell("mean of many %", func(r rounding) float64 { return 100 * r.ofMean }),
				report.Cell("roundings", func(r rounding) int { return r.draws })),
			report.Fill(report.Table{
				Name: "division", Title: fmt.Sprintf("Codes of E2M1 that differ between v/s and v·(1/s), for the %d positive scales of UE4M3", scaleCount),
			}, s.divisions,
				report.Cell("values", func(d division) string { return d.of }), report.Cell("number", func(d division) int { return d.values }),
				report.Cell("differ", func(d division) int { return d.differ }), report.Cell("%", func(d division) float64 { return 100 * d.share() }),
				report.Cell("example", func(d division) string { return d.example })),
			s.losses().Table("curves", "seed", "way", "step", "loss"),
		},
	}
}

func (s *study) limits() []string {
	model := s.model
	s.ways[nvfp4Way].use(&model, 0)
	others := len(s.ways) - 1
	return []string{
		fmt.Sprintf("Models have %d parameters in %d layers, and see %d bytes in %d steps. NVIDIA's figures are for 12 billion parameters and ten trillion tokens. Outliers grow in long training, so what helps against them may not show here: a part whose effect is not seen here may matter there.",
			s.curves[0].Params, model.Layers, s.setup.Steps*s.setup.Batch*s.setup.Seq, s.setup.Steps),
		fmt.Sprintf("With bf16-last %d of %d layers multiply in BF16 (%.0f %%); NVIDIA keeps about 15 %% of its linear layers in it. What that part is worth there may be more or less.",
			model.BF16Last, model.Layers, 100*float64(model.BF16Last)/float64(model.Layers)),
		"Operands are quantized from FP32 and products accumulate in FP32; attention, norms, embedding and head are FP32 in all runs. A GPU's kernels differ in these.",
		fmt.Sprintf("Intervals of losses are Student's t of %d seeds, so wide that, if nothing differed, one or more of %d comparisons would be seen in at most 5 %% of labs. Other text, other sizes and longer training are not among what varies.",
			len(s.seeds), others),
		"Of Quartet II, what MS-EDEN loses in one rounding and in the mean of many is tested, on normal values alone and with outliers. Its forward pass, what it says of training with MS-EDEN and of speed is not: no model here is trained with it.",
	}
}

// trainingGoals are of differences in held-out loss, for which a look trains too few models.
func (s *study) trainingGoals() (goals []report.Goal) {
	for _, g := range []struct {
		name       string
		way, other int
	}{
		{"fp8", fp8Way, bf16Way}, {"mxfp8", mxfp8Way, bf16Way}, {"nvfp4", nvfp4Way, bf16Way},
		{"hadamard", firstPart, nvfp4Way}, {"stochastic", firstPart + 1, nvfp4Way}, {"square-weights", firstPart + 2, nvfp4Way}, {"bf16-last", firstPart + 3, nvfp4Way},
		{"all-parts", plainWay, nvfp4Way}, {"four-over-six", nvfp4Way, fourOverSixWay}, {"mxfp4", mxfp4Way, nvfp4Way},
		{"no-recipe", plainMXFP4Way, bf16Way},
	} {
		goals = append(goals, declared().Judge(g.name, s.over(g.way, g.other).bySeed))
	}
	return goals
}

// roundingGoals are of what roundings lose by themselves.
func (s *study) roundingGoals() []report.Goal {
	var eden []rounding
	over := func(way int) (ratios []float64) {
		for i, r := range s.roundingsOf(normalValues, way) {
			ratios = append(ratios, r.once/eden[i].once)
		}
		return ratios
	}
	bias := func(way int) []float64 {
		return statistics.Each(s.roundingsOf(normalValues, way), func(r rounding) float64 { return r.ofMean / r.once })
	}
	eden = s.roundingsOf(normalValues, edenRounding)
	return []report.Goal{
		declared().Judge("eden", over(stochasticRounding)),
		declared().Judge("unbiased-random", bias(stochasticRounding)),
		declared().Judge("unbiased-eden", bias(edenRounding)),
		declared().JudgeFigure("nearest-biased", slices.Min(bias(nearestRounding))),
	}
}

// The divisions, by their places.
const (
	randomDivision = iota
	boundaryDivision
	besideDivision
)

func (s *study) divisionGoals() []report.Goal {
	return []report.Goal{
		declared().JudgeFigure("reciprocal-random", float64(s.divisions[randomDivision].differ)),
		declared().JudgeFigure("reciprocal-boundary", 100*s.divisions[boundaryDivision].share()),
	}
}

// partsFinding says which parts matter.
func (s *study) partsFinding() report.Finding {
	var all []string
	follows := []report.Conclusion{}
	for i, p := range fourParts {
		e := s.over(firstPart+i, nvfp4Way)
		all = append(all, fmt.Sprintf("%s %v", p, e))
		follows = append(follows, e.verdict(fmt.Sprintf("Without %s", p)))
	}
	together := s.over(plainWay, nvfp4Way)
	all = append(all, fmt.Sprintf("all of them %v", together))
	follows = append(follows, together.verdict("Without all of them"))
	return report.NewFinding("Held-out loss of nvfp4 without a part, above that with all parts: "+strings.Join(all, ", ")+".", follows...).AtLength()
}

func (s *study) formatsFinding() report.Finding {
	var all []string
	for _, way := range []int{fp8Way, mxfp8Way, nvfp4Way, mxfp4Way} {
		all = append(all, fmt.Sprintf("%s %v", s.ways[way].name, s.over(way, bf16Way)))
	}
	return report.NewFinding("Held-out loss above that of BF16: "+strings.Join(all, ", ")+".",
		s.over(nvfp4Way, bf16Way).verdict("In nvfp4 instead of BF16"),
		s.over(fourOverSixWay, nvfp4Way).verdict("With four over six in nvfp4"),
		s.over(mxfp4Way, nvfp4Way).verdict("In mxfp4 instead of nvfp4"),
		s.over(plainMXFP4Way, mxfp4Way).verdict("In mxfp4 without all parts")).AtLength()
}

// sizeFinding says how large an effect has to be to be seen.
func (s *study) sizeFinding() report.Finding {
	widest, whole := 0.0, s.over(nvfp4Way, bf16Way)
	for i := range fourParts {
		widest = max(widest, s.over(firstPart+i, nvfp4Way).half())
	}
	return report.NewFinding(fmt.Sprintf("With %d seeds, the interval of the difference that a part makes reaches up to %.2f %% to each side; nvfp4 with all parts is %v above BF16.", len(s.seeds), widest, whole),
		report.If(widest > whole.At, "So a part that made up for as much as is left need not be seen.", "So a part that made up for as much as is left would be seen.")).AtLength()
}

// roundingFinding says what one rounding loses.
func (s *study) roundingFinding() report.Finding {
	once := func(kind, way int) float64 { return s.rounding(kind, way).once }
	share := func(kind, way int) string { return report.Percent(once(kind, way)) }
	random, room := once(normalValues, stochasticRounding)/once(normalValues, edenRounding), once(normalValues, roomyRounding)/once(normalValues, edenRounding)
	outlying := once(valuesWithOutliers, stochasticRounding) / once(valuesWithOutliers, edenRounding)
	return report.NewFinding(fmt.Sprintf("Of the squares of normal values, one rounding to NVFP4 loses %s to nearest, %s to nearest with four over six, %s at random, %s at random with room (under scales so large that nothing saturates) and %s by MS-EDEN; of values with outliers, %s at random and %s by MS-EDEN.",
		share(normalValues, nearestRounding), share(normalValues, fourOverSixRounding), share(normalValues, stochasticRounding), share(normalValues, roomyRounding), share(normalValues, edenRounding),
		share(valuesWithOutliers, stochasticRounding), share(valuesWithOutliers, edenRounding)),
		report.If(random > 2,
			fmt.Sprintf("Under TransformerEngine's scales, rounding at random loses more than twice what MS-EDEN does, as Quartet II claims: %.2f times.", random),
			fmt.Sprintf("Under TransformerEngine's scales, under which the largest value of a block may saturate, rounding at random does not lose more than twice what MS-EDEN does, as Quartet II claims, but %.2f times.", random)),
		report.If(room > 2,
			fmt.Sprintf("With the room that Quartet II's code gives it, it loses more than twice as much: %.2f times.", room),
			fmt.Sprintf("With the room that Quartet II's code gives it, it does not lose more than twice as much, but %.2f times.", room)),
		report.If(outlying > 1,
			fmt.Sprintf("Of values with outliers it loses more than MS-EDEN: %.2f times.", outlying),
			fmt.Sprintf("Of values with outliers it does not lose more than MS-EDEN, but %.2f times.", outlying))).AtLength()
}

// biasFinding says what is left in the mean of many roundings.
func (s *study) biasFinding() report.Finding {
	nearest, random := s.rounding(normalValues, nearestRounding), s.rounding(normalValues, stochasticRounding)
	eden, room := s.rounding(normalValues, edenRounding), s.rounding(normalValues, roomyRounding)
	return report.NewFinding(fmt.Sprintf("Of the squares of normal values, the mean of %d roundings loses %s to nearest, %s at random, %s at random with room and %s by MS-EDEN.",
		random.draws, report.Percent(nearest.ofMean), report.Percent(random.ofMean), report.Percent(room.ofMean), report.Percent(eden.ofMean)),
		report.If(nearest.ofMean > 0.9*nearest.once && random.ofMean < nearest.ofMean,
			"Rounding to nearest has the same error each time; the mean of roundings at random is closer.",
			"The mean of roundings at random is no closer than rounding to nearest."))
}

func (s *study) divisionFinding() report.Finding {
	random, exact, near := s.divisions[randomDivision], s.divisions[boundaryDivision], s.divisions[besideDivision]
	otherwise := fmt.Sprintf("Random values as these tell one from the other too: %s of their codes differ.", report.Percent(random.share()))
	if exact.differ == 0 {
		otherwise = "Values on boundaries do not tell one from the other."
	}
	return report.NewFinding(fmt.Sprintf("For all %d positive scales s of UE4M3, codes of E2M1 differ between v/s and v·(1/s), each rounded to float32, in %d of %d values v that are spread evenly from 0 to 6 s, in %d of %d (%s) that are s times a boundary of rounding, and in %d of %d that are within %d float32 of one of these.",
		scaleCount, random.differ, random.values, exact.differ, exact.values, report.Percent(exact.share()), near.differ, near.values, beside),
		report.If(random.differ == 0 && exact.differ > 0,
			"So random values as these do not tell one from the other, and values on boundaries do. For example, "+exact.example+".", otherwise))
}

// reference returns the way that another is compared with beside BF16: NVFP4 or MXFP4
// with all their parts.
func reference(way int) int {
	switch {
	case way == plainMXFP4Way:
		return mxfp4Way
	case way > nvfp4Way:
		return nvfp4Way
	}
	return bf16Way
}

// named is a name and what it means.
type named struct{ name, means string }

// nameTable says what ways and roundings are.
func (s *study) nameTable() report.Table {
	var all []named
	for _, w := range s.ways {
		all = append(all, named{w.name, w.means})
	}
	for _, w := range roundingWays() {
		all = append(all, named{"rounding " + w.name, w.means})
	}
	return report.Fill(report.Table{Name: "names", Title: "What the names mean"}, all,
		report.Cell("name", func(n named) string { return n.name }), report.Cell("meaning", func(n named) string { return n.means }))
}

func (s *study) effectTable() report.Table {
	beside := func(i int) effect { return s.over(i, reference(i)) }
	return report.Fill(report.Table{
		Name: "effects", Title: "Held-out loss, differences paired by seed, with 95 % intervals for all ways together: seen if zero is outside",
	}, report.Places(len(s.ways)),
		report.Cell("way", func(i int) string { return s.ways[i].name }), report.Mean("loss, nats per byte", s.heldOut),
		report.Cell("above BF16 %", func(i int) float64 { return s.over(i, bf16Way).At }), report.Cell("± %", func(i int) float64 { return s.over(i, bf16Way).half() }),
		report.Cell("compared with", func(i int) string { return s.ways[reference(i)].name }),
		report.Cell("above that %", func(i int) float64 { return beside(i).At }), report.Cell("± of that %", func(i int) float64 { return beside(i).half() }),
		report.Cell("seen", func(i int) bool { return beside(i).seen() }))
}

// losses are the training losses.
func (s *study) losses() report.Curves {
	return report.CurvesOf(report.Places(len(s.seeds)), func(int) []int { return report.Places(len(s.ways)) }, func(i, way int) report.Curve {
		return report.Curve{Seed: s.seeds[i], Arm: s.ways[way].name, Values: s.curve(i, way).Losses}
	})
}
