package train

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/telemetry"
)

// SpikeDetector tells whether a value of a series, such as the loss or the gradient
// norm, is far above those before it. Use one for each series. The zero value is
// ready to use. Not safe for concurrent use.
//
// A value is a spike if it is NaN or infinite, or if it lies more than Threshold
// spreads above the median of the last Window values. The spread is the median
// distance from the median times 1.4826, which for normal noise is the standard
// deviation (the modified z-score of Iglewicz & Hoaglin 1993), and at least
// 0.1 percent of the median, so that a flat series does not make a spike of nothing.
// Unlike a mean, the median hardly minds spikes among the values it looks back on:
// they are among them like all others that are finite, and a level that stays is no
// longer a spike after half a Window.
//
// Megatron-LM's rerun state machine, to compare, takes for unexpectedly large what is
// 10 times the largest of the first 100 values.
//
// The answer is a function of the values alone. A detector is plain data: kept as
// JSON it goes on where it was.
type SpikeDetector struct {
	Window    int     // values looked back on; 0: 100
	Least     int     // number of them below which nothing finite is a spike, at most Window; 0: 10
	Threshold float64 // spreads above the median; 0: 6

	Past []float64 // the last values, oldest first, at most Window
}

// spikeState is a [SpikeDetector] in JSON.
type spikeState struct {
	Version   int       `json:"version"`
	Window    int       `json:"window"`
	Least     int       `json:"least"`
	Threshold float64   `json:"threshold"`
	Past      []float64 `json:"past"`
}

const spikeVersion = 1

// MarshalJSON implements [json.Marshaler].
func (d SpikeDetector) MarshalJSON() ([]byte, error) {
	return json.Marshal(spikeState{spikeVersion, d.Window, d.Least, d.Threshold, d.Past})
}

// UnmarshalJSON implements [json.Unmarshaler]. A state of another version is an error,
// [ErrVersion], and a negative option is one, [ErrInput].
func (d *SpikeDetector) UnmarshalJSON(text []byte) error {
	var s spikeState
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if s.Version != spikeVersion {
		return versionError("train: spike detector of version %d: this package reads version %d", s.Version, spikeVersion)
	}
	read := SpikeDetector{s.Window, s.Least, s.Threshold, s.Past}
	if read.invalid() {
		return inputError("train: spike detector: window %d, least %d or threshold %v is negative", s.Window, s.Least, s.Threshold)
	}
	*d = read
	return nil
}

func (d *SpikeDetector) invalid() bool { return d.Window < 0 || d.Least < 0 || !(d.Threshold >= 0) }

func (d *SpikeDetector) window() int { return cmp.Or(d.Window, 100) }

// Spike is a value that is far above those before it.
type Spike struct {
	Step   int64
	Value  float64
	Median float64 // of the values before it; 0 where there were none
	Spread float64 // as [SpikeDetector] defines it
	Score  float64 // spreads above the median; +Inf or NaN with Value

	// Suspect is the tensor and operation to look at first, where there is evidence of
	// one, as [Suspects] defines it.
	Suspect *telemetry.Event
}

// Observe takes the next value of the series, that of a step, and returns whether it
// is a spike. Suspects, which may be nil, are asked which operand of that step there is
// evidence of, and with ops only those operations are: of a loss, those before it. It
// panics if an option is negative.
func (d *SpikeDetector) Observe(step int64, value float64, suspects *Suspects, ops ...string) (Spike, bool) {
	if d.invalid() {
		panic(negativeOption)
	}
	s := Spike{Step: step, Value: value}
	s.Median, s.Spread = medianAndSpread(d.Past)
	s.Score = (value - s.Median) / s.Spread
	isSpike := !number.IsFinite(value)
	if !isSpike {
		isSpike = len(d.Past) >= min(cmp.Or(d.Least, 10), d.window()) && s.Score > cmp.Or(d.Threshold, 6)
		d.remember(value)
	}
	if !isSpike {
		return Spike{}, false
	}
	if e, ok := suspects.Of(step, ops...); ok {
		s.Suspect = &e
	}
	return s, true
}

const negativeOption = "train: SpikeDetector: Window, Least or Threshold is negative"

// remember makes value the last of the past.
func (d *SpikeDetector) remember(value float64) {
	if extra := len(d.Past) + 1 - d.window(); extra > 0 {
		d.Past = slices.Delete(d.Past, 0, extra)
	}
	d.Past = append(d.Past, value)
}

// medianAndSpread returns the median and the spread of values.
func medianAndSpread(values []float64) (m, spread float64) {
	if len(values) == 0 {
		return 0, math.SmallestNonzeroFloat64
	}
	const flat = 1e-3
	m, spread = medianAndMAD(values)
	return m, max(spread, float64(flat*math.Abs(m)), math.SmallestNonzeroFloat64)
}

// medianAndMAD returns the median of x and 1.4826 times the median distance from it.
func medianAndMAD(x []float64) (m, spread float64) {
	sorted := slices.Clone(x)
	m = median(sorted)
	for i, v := range sorted {
		sorted[i] = math.Abs(v - m)
	}
	return m, float64(normalMAD * median(sorted))
}

// median sorts x and returns its median.
func median(x []float64) float64 {
	slices.Sort(x)
	n := len(x)
	return x[(n-1)/2]/2 + x[n/2]/2
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
