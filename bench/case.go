package bench

import (
	"runtime"
	"slices"
	"time"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// Case is something to measure and the conditions to measure it under.
type Case struct {
	Name    string
	By      string    // [Octavo], one of [Peers], or ""
	Level   cpu.Level // of octavo's kernels
	Workers int       // processors at most: GOMAXPROCS
	Packed  bool      // weights are
	Run     func() error
}

// String names a case and its conditions.
func (c Case) String() string {
	text := c.Name
	switch {
	case c.By == Octavo:
		text += ", " + c.Level.String()
	case c.By != "":
		text += ", " + c.By
	}
	if c.Packed {
		text += ", packed"
	}
	return text
}

// Prepare sets the conditions, for the whole process, until restore is called.
func (c Case) Prepare() (restore func(), err error) {
	level, err := cpu.Force(c.Level)
	if err != nil {
		return nil, err
	}
	workers := runtime.GOMAXPROCS(c.Workers)
	return func() {
		runtime.GOMAXPROCS(workers)
		level()
	}, nil
}

// Timing is how long the runs of a case took.
type Timing struct {
	Runs         int
	Best, Median time.Duration
}

// Measure runs a case again and again for some time, and at least once. The first
// of several runs warms caches up and is not counted.
func (c Case) Measure(atLeast time.Duration) (Timing, error) {
	restore, err := c.Prepare()
	if err != nil {
		return Timing{}, err
	}
	defer restore()
	var runs []time.Duration
	for begin := time.Now(); len(runs) == 0 || time.Since(begin) < atLeast; {
		start := time.Now()
		if err := c.Run(); err != nil {
			return Timing{}, err
		}
		runs = append(runs, max(time.Since(start), 1))
	}
	if len(runs) > 1 {
		runs = runs[1:]
	}
	slices.Sort(runs)
	return Timing{len(runs), runs[0], runs[len(runs)/2]}, nil
}

// Rates returns the best and the median of how much of something was done, in
// 10^9 a second.
func (t Timing) Rates(amount float64) (best, median float64) {
	rate := func(d time.Duration) float64 { return amount / float64(d.Nanoseconds()) }
	return rate(t.Best), rate(t.Median)
}
