package bench

import (
	"runtime"
	"slices"
	"time"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// Rate is how fast somebody does what a [Comparison] is about.
type Rate struct {
	By     string  `json:"by"`               // [Octavo], or who it is compared with
	Level  string  `json:"level,omitempty"`  // of octavo's kernels, and of a roof
	Packed bool    `json:"packed,omitempty"` // octavo's weights are
	Core   string  `json:"core,omitempty"`   // that OpenBLAS has chosen its kernels for
	Format string  `json:"format,omitempty"` // of weights that oneDNN has reordered
	Best   float64 `json:"best"`
	Median float64 `json:"median"`
}

// RatioTo is octavo's rate divided by another.
type RatioTo struct {
	Level  string `json:"level"` // of octavo's kernels
	Packed bool   `json:"packed,omitempty"`
	To     string `json:"to"`
	Core   string `json:"core,omitempty"`   // as in the other's [Rate]
	Format string `json:"format,omitempty"` // as in the other's [Rate]
	Ratio
	Best float64 `json:"best"` // of the best rates
}

// Comparison is what octavo and others do by turns.
type Comparison struct {
	What    string    `json:"what"` // a shape or a conversion
	Unit    string    `json:"unit"` // of rates
	Workers int       `json:"workers"`
	Rounds  int       `json:"rounds"`
	Seconds float64   `json:"seconds"`
	Settled bool      `json:"settled"` // every ratio's spread is small enough
	Rates   []Rate    `json:"rates"`
	Ratios  []RatioTo `json:"ratios"`
}

// Those whom octavo is compared with beside the peers.
const (
	// Roof is what arithmetic in registers and reading so much memory allow.
	Roof = "roof"
	// TileRoof is what AMX's tiles do in registers.
	TileRoof = "tiles"
	// OneProduct is octavo's product of the same work with one matrix of weights, which
	// grouped products are compared with.
	OneProduct = "one product"
	// InFP8 is octavo's product of the same shape in FP8, which those of narrow formats are
	// compared with.
	InFP8 = "octavo in FP8"
	// plainEncode is octavo's encoding to E4M3 with Stats, which quantizing is compared with.
	plainEncode = "octavo's encode"
)

// contestant takes turns.
type contestant struct {
	Rate
	// turn does the work for at least so long and returns the rate.
	turn  func(atLeast time.Duration) (float64, error)
	rates []float64 // by round
	peer  bool      // it is another program's
}

// worker makes turns of runs, each of which does an amount of work, in 10^9 a second.
func worker(amount float64, run func(count int) (time.Duration, error)) func(time.Duration) (float64, error) {
	const long = 20 * time.Millisecond // beside which cold caches count little
	var each time.Duration             // that one run took
	return func(atLeast time.Duration) (float64, error) {
		if each < long { // warm caches up, and let threads of others go to sleep
			cold, err := run(1)
			if err != nil {
				return 0, err
			}
			if each == 0 {
				each = max(cold, 1)
			}
		}
		runs, total := 0, time.Duration(0)
		for runs == 0 || total < atLeast {
			count := max(1, int((atLeast-total+each-1)/each))
			t, err := run(count)
			if err != nil {
				return 0, err
			}
			runs, total = runs+count, total+max(t, 1)
			each = max(total/time.Duration(runs), 1)
		}
		return amount * float64(runs) / float64(total.Nanoseconds()), nil
	}
}

// contestant returns who runs a case.
func (c Case) contestant(by string, amount float64) *contestant {
	run := func(count int) (time.Duration, error) {
		restore, err := c.Prepare()
		if err != nil {
			return 0, err
		}
		defer restore()
		start := time.Now()
		for range count {
			if err := c.Run(); err != nil {
				return 0, err
			}
		}
		return max(time.Since(start), 1), nil
	}
	return &contestant{Rate: Rate{By: by, Level: c.Level.String(), Packed: c.Packed}, turn: worker(amount, run)}
}

// roof returns the roof of a product, as [Limits.Roof] defines it, with the reading of
// as many bytes as the product moves.
func roof(l cpu.Level, workers int, s Shape, memory []byte) *contestant {
	turn := func(time.Duration) (float64, error) {
		old := runtime.GOMAXPROCS(workers)
		defer runtime.GOMAXPROCS(old)
		rate := peakMultiply(l, workers, turnsOfRoof)
		if read := peakRead(memory, workers, turnsOfRoof); read > 0 {
			rate = min(rate, s.Intensity()*read)
		}
		return rate, nil
	}
	return &contestant{Rate: Rate{By: Roof, Level: l.String()}, turn: turn}
}

// tileRoof returns the roof of AMX's tiles.
func tileRoof(workers int) *contestant {
	turn := func(time.Duration) (float64, error) {
		old := runtime.GOMAXPROCS(workers)
		defer runtime.GOMAXPROCS(old)
		return peakTiles(workers, turnsOfRoof), nil
	}
	return &contestant{Rate: Rate{By: TileRoof, Level: cpu.AMX.String()}, turn: turn}
}

const turnsOfRoof = 3

// contest lets everybody take turns until the ratios are known, which done says of a
// comparison, and at least once. Every second round goes backwards, so that a machine
// that becomes slower is fair. A peer whose turn fails is left out, with all of its turns,
// and failed is told of it.
func contest(c Comparison, all []*contestant, turn time.Duration, done func(*Comparison) bool, failed func(by string, err error)) (Comparison, error) {
	order := slices.Clone(all)
	for start := time.Now(); ; slices.Reverse(order) {
		for _, one := range slices.Clone(order) {
			rate, err := one.turn(turn)
			if err != nil && !one.peer {
				return c, err
			}
			if err != nil {
				failed(one.By, err)
				left := func(o *contestant) bool { return o == one }
				all, order = slices.DeleteFunc(slices.Clone(all), left), slices.DeleteFunc(order, left)
				continue
			}
			one.rates = append(one.rates, rate)
		}
		c.Rounds++
		c.Seconds = time.Since(start).Seconds()
		c.Ratios = ratios(all)
		if done(&c) {
			break
		}
	}
	for _, one := range all {
		one.Best, one.Median = slices.Max(one.rates), newRatio(one.rates).Median
		c.Rates = append(c.Rates, one.Rate)
	}
	return c, nil
}

// ratios divides octavo's rates by those of all whom they are compared with, round by
// round.
func ratios(all []*contestant) (list []RatioTo) {
	for _, a := range all {
		if a.By != Octavo {
			continue
		}
		for _, b := range all {
			if !a.against(b) {
				continue
			}
			var pairs []float64
			for i := range a.rates {
				pairs = append(pairs, a.rates[i]/b.rates[i])
			}
			list = append(list, RatioTo{
				Level: a.Level, Packed: a.Packed, To: b.By, Core: b.Core, Format: b.Format, Ratio: newRatio(pairs),
				Best: slices.Max(a.rates) / slices.Max(b.rates),
			})
		}
	}
	return list
}

// against reports whether octavo's rate is compared with another.
func (c *contestant) against(other *contestant) bool {
	switch other.By {
	case Octavo:
		return false
	case Roof, TileRoof:
		return c.Level == other.Level && other.rates[0] > 0
	case OneProduct, InFP8, plainEncode:
		return c.Level == other.Level && c.Packed == other.Packed
	}
	return true
}
