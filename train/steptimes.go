package train

import (
	"cmp"
	"math"
	"slices"
)

// StepWatch tells from the step times of ranks which of them are slow and which hang. The
// zero value is ready to use. It has no clock and no memory: answers are functions of the
// times that it is given. Safe for concurrent use.
//
// A time is what a rank itself takes for its share of a step, up to where it begins to wait
// for others: at the end of a step that ends with a collective all ranks are as slow as the
// slowest, and nothing can be told. Times are in seconds or any other unit.
//
// # Slow ranks
//
// The time of rank r in step s is divided by the median over ranks in that step, so that what
// slows all of them, such as long sequences or a full network, is nobody's fault. D_r is the
// median over steps of the logarithm of that, so that a pause now and then is none either. A
// rank is slow if D_r lies above the median of all D_r by more than the logarithm of Ratio and
// by more than Threshold spreads. The spread is the largest of
//
//   - 1.4826 times the median distance of the D_r from their median, over ranks: what ranks
//     differ by as a rule;
//   - 1.2533·1.4826/√n times the median distance of the logarithms from their D_r, over ranks
//     and n steps: for normal noise the standard deviation of a median of n values;
//   - 0.001.
//
// 1.4826 times the median distance from the median (MAD) is the standard deviation of normal
// noise; it and the threshold on it are those of Iglewicz & Hoaglin (How to Detect and Handle
// Outliers, 1993), Hampel's identifier. With medians, slow ranks do not hide one another as
// long as they are fewer than half, and more than half are never blamed. Of three or four ranks
// the spread is uncertain, and a rank that is a little slower may go unseen. MegaScale (Jiang et
// al., arXiv 2402.15627) found hosts about 10 percent slower than others by such a comparison.
//
// # Hung ranks
//
// A rank hangs if it has been at its step for more than Patience times the median time of a
// step, that of ranks and then of steps. If half of the ranks or more are, no rank is blamed:
// what they all wait for is elsewhere.
type StepWatch struct {
	Warmup    int     // steps at the beginning that are left out; 0: 5, negative: none
	Window    int     // the last steps that are looked at; 0: 100
	Least     int     // steps a rank needs before it is blamed; 0: 10
	Threshold float64 // spreads; 0: 6
	Ratio     float64 // of a slow rank's time to that of others, above 1; 0: 1.05
	Patience  float64 // steps; 0: 10
}

// SlowRank is a rank that takes longer than others.
type SlowRank struct {
	Rank  int
	Ratio float64 // of its time to the median of ranks, the median over steps
	Score float64 // spreads above the others
	Steps int     // that this was seen in
}

// Slow returns the slow ranks, the slowest first. times[s][r] is the time of rank r in step s
// of the run, from its first step on; NaN is none, of a rank that was not there. With fewer than
// three ranks it never returns one: of two that differ either may be wrong. A time that is not
// above 0 or is infinite, steps of different numbers of ranks, and an option out of range are
// errors, [ErrInput].
func (w StepWatch) Slow(times [][]float64) ([]SlowRank, error) {
	times, err := w.counted(times)
	if err != nil || len(times) == 0 || len(times[0]) < 3 {
		return nil, err
	}
	logs := logRatios(times)
	centers := make([]float64, len(logs)) // D_r
	var blamable, distances []float64
	for r, x := range logs {
		if len(x) < w.least() {
			continue
		}
		centers[r] = median(slices.Clone(x))
		blamable = append(blamable, centers[r])
		for _, v := range x {
			distances = append(distances, math.Abs(v-centers[r]))
		}
	}
	if len(blamable) < 3 {
		return nil, nil
	}
	middle, spread := medianAndMAD(blamable)
	noise := median(distances)
	var slow []SlowRank
	for r, x := range logs {
		above := centers[r] - middle
		if len(x) < w.least() || above <= math.Log(w.ratio()) {
			continue
		}
		of := max(spread, medianError*noise/math.Sqrt(float64(len(x))), leastSpread)
		if score := above / of; score > cmp.Or(w.Threshold, 6) {
			slow = append(slow, SlowRank{r, math.Exp(centers[r]), score, len(x)})
		}
	}
	slices.SortStableFunc(slow, func(a, b SlowRank) int { return cmp.Compare(b.Ratio, a.Ratio) })
	return slow, nil
}

const (
	normalMAD   = 1.4826             // standard deviations in a median distance from the median
	medianError = 1.2533 * normalMAD // √(π/2): of a median of many, over that of a mean
	leastSpread = 1e-3
)

// logRatios returns the logarithms of the times of each rank over the median of their step.
func logRatios(times [][]float64) [][]float64 {
	logs := make([][]float64, len(times[0]))
	for _, step := range times {
		there := present(step)
		if len(there) < 3 {
			continue
		}
		m := median(there)
		for r, t := range step {
			if !math.IsNaN(t) {
				logs[r] = append(logs[r], math.Log(t/m))
			}
		}
	}
	return logs
}

// HungRank is a rank that does not end its step.
type HungRank struct {
	Rank   int
	Waited float64 // for so long
	Limit  float64 // Patience times the median
}

// Hung returns the ranks that hang, in order. times are those of [StepWatch.Slow]; waited[r] is
// how long rank r has been at the step that it is in, and NaN or 0 if it has ended it and waits
// for others. all is true if half of the ranks or more are over the limit, whom nothing is then
// said against. Before the first Least steps after Warmup, and with fewer than three ranks, no
// rank is said to hang. Errors are those of Slow, and a negative time in waited.
func (w StepWatch) Hung(times [][]float64, waited []float64) (
	hung []HungRank, all bool, err error,
) {
	times, err = w.counted(times)
	if err != nil {
		return nil, false, err
	}
	for r, t := range waited {
		if t < 0 {
			return nil, false, inputError("train: rank %d has waited for %v: it must not be negative", r, t)
		}
	}
	var steps []float64
	for _, step := range times {
		if there := present(step); len(there) > 0 {
			steps = append(steps, median(there))
		}
	}
	if len(steps) < w.least() || len(waited) < 3 {
		return nil, false, nil
	}
	limit := cmp.Or(w.Patience, 10) * median(steps)
	for r, t := range waited {
		if t > limit {
			hung = append(hung, HungRank{r, t, limit})
		}
	}
	if 2*len(hung) >= len(waited) {
		return nil, true, nil
	}
	return hung, false, nil
}

// counted returns the steps that count, or what is wrong with the times.
func (w StepWatch) counted(times [][]float64) ([][]float64, error) {
	ratio := w.ratio()
	if w.Window < 0 || w.Least < 0 || !(w.Threshold >= 0) || !(w.Patience >= 0) || !(ratio > 1) {
		return nil, inputError("train: StepWatch: %+v: Window, Least, Threshold and Patience must "+
			"not be negative and Ratio must be above 1", w)
	}
	for s, step := range times {
		if len(step) != len(times[0]) {
			return nil, inputError("train: step %d has times of %d ranks, the first of %d",
				s, len(step), len(times[0]))
		}
		for r, t := range step {
			if t <= 0 || math.IsInf(t, 0) {
				return nil, inputError("train: the time of rank %d in step %d is %v: it must be "+
					"above 0, or NaN where there is none", r, s, t)
			}
		}
	}
	times = times[min(max(cmp.Or(w.Warmup, 5), 0), len(times)):]
	return times[max(0, len(times)-cmp.Or(w.Window, 100)):], nil
}

func (w StepWatch) least() int     { return cmp.Or(w.Least, 10) }
func (w StepWatch) ratio() float64 { return cmp.Or(w.Ratio, 1.05) }

// present returns the times of a step without those that are none.
func present(step []float64) (there []float64) {
	for _, t := range step {
		if !math.IsNaN(t) {
			there = append(there, t)
		}
	}
	return there
}
