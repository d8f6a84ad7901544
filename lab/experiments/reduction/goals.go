package reduction

import (
	"slices"

	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// few is the number of workers whose roundings are compared with independent ones: sums of
// few do not saturate much.
const few = 8

func (s *study) largest() int { return slices.Max(s.scope.worlds) }

// bySeed returns a figure of each sample.
func (s *study) bySeed(figure func(*sample) float64) []float64 {
	return statistics.Each(s.samples, figure)
}

// of returns a figure of one world in each sample.
func (s *study) of(k kind, size int, w way, figure func(*world) float64) []float64 {
	return s.bySeed(func(of *sample) float64 { return figure(of.world(k, size, w)) })
}

// mean returns the mean of a figure of a world over the samples.
func (s *study) mean(k kind, size int, w way, figure func(*world) float64) float64 {
	return statistics.Mean(s.of(k, size, w, figure))
}

// Figures of a world.
func underflow(w *world) float64 { return w.underflow() }
func overflow(w *world) float64  { return w.overflow() }
func meanError(w *world) float64 { return w.err }
func factor(w *world) float64    { return w.factor }

// saturatedLast is the percentage of values that saturated in the last step.
func saturatedLast(w *world) float64 { return 100 * w.saturated[len(w.saturated)-1] }

// saturatedAdapted is that of the steps in which an automatic factor has adapted.
func (s *study) saturatedAdapted(w *world) float64 {
	return 100 * statistics.Mean(w.saturated[len(w.saturated)-s.adapted:])
}

// over returns a figure of one way over that of another, by seed, in the largest world.
func (s *study) over(a, b way, figure func(*world) float64) []float64 {
	of := func(w way) []float64 { return s.of(sequences, s.largest(), w, figure) }
	return statistics.Ratios(of(a), of(b))
}

func (s *study) goals() []report.Goal {
	n := s.largest()
	loss := func(team string) []float64 {
		return s.bySeed(func(of *sample) float64 { return of.excess(of.teamOf(team)) })
	}
	return []report.Goal{
		declared().Judge("post-overflows", s.of(sequences, n, post, saturatedLast)),
		declared().Judge("auto-overflows", s.of(sequences, n, auto, s.saturatedAdapted)),
		declared().Judge("auto-underflows", s.over(auto, pre, underflow)),
		declared().Judge("auto-error-pre", s.over(auto, pre, meanError)),
		declared().Judge("auto-error-post", s.over(auto, post, meanError)),
		declared().Judge("dense-pre", s.over(pre, post, underflow)),
		declared().Judge("dense-root", s.over(root, post, underflow)),
		declared().Judge("independent", s.of(sequences, few, pre, func(w *world) float64 {
			return w.err / independentError(few)
		})),
		declared().Judge("loss-post", loss("post")),
		declared().Judge("loss-pre", loss("pre")),
		declared().Judge("loss-root", loss("root")),
		declared().Judge("loss-auto", loss("auto")),
		declared().Judge("starved", loss("starved")),
		declared().Judge("alike-post", s.of(alike, n, post, func(w *world) float64 { return 100 * w.err })),
	}
}
