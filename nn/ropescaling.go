package nn

import (
	"math"
	"reflect"
)

// RopeScaling lowers the frequencies of rotary positions, for longer sequences than a model
// was first trained on. The zero value leaves them as they are.
type RopeScaling struct {
	// Factor divides frequencies; at least 1. It is 0 in the zero value.
	Factor float64

	// Original, unless 0, is the number of tokens in the sequences of the first training,
	// and the scaling is that of Llama 3.1: a pair that goes round at least High times in
	// them keeps its frequency, one that goes round at most Low times has it divided, and
	// between both it is interpolated. With 0 all are divided, which interpolates positions
	// (Chen et al., arXiv 2306.15595).
	Original  int
	Low, High float64

	// YaRN makes Low and High the turns of the ramp of YaRN (Peng et al., arXiv 2309.00071),
	// beta_slow and beta_fast, over the indices of pairs, which are rounded to whole ones
	// unless Untruncated.
	YaRN, Untruncated bool

	// Attention, unless 0, is what rotated queries and keys are multiplied by: the attention
	// factor of YaRN and LongRoPE.
	Attention float64

	// Short and Long, unless nil, divide the frequencies pair by pair in the place of Factor, as
	// LongRoPE does (arXiv 2402.13753): Short in sequences of at most Original tokens, Long in
	// longer ones.
	Short, Long []float64
}

// IsZero reports whether frequencies stay as they are.
func (s RopeScaling) IsZero() bool { return reflect.ValueOf(s).IsZero() }

const maxRopeFactor = 1e6

func (s RopeScaling) check(what string) error {
	if s.IsZero() {
		return nil
	}
	if !(s.Factor >= 1 && s.Factor <= maxRopeFactor) {
		return configError("%s.Factor is %v: it must be from 1 to %v", what, s.Factor, maxRopeFactor)
	}
	switch {
	case s.Original == 0 && s.Low == 0 && s.High == 0:
		return nil
	case s.Original <= 0:
		return configError("%s.Original is %d: it must be positive, or Low and High 0 too",
			what, s.Original)
	case !(s.Low > 0 && s.High > s.Low && s.High <= math.MaxFloat32):
		return configError("%s.Low is %v and High %v: they must be positive, and High the larger",
			what, s.Low, s.High)
	}
	return nil
}

// frequency returns what becomes of a frequency, in radians a position.
func (s RopeScaling) frequency(f float64) float64 {
	if s.Factor == 0 {
		return f
	}
	divided := f / s.Factor
	if s.Original == 0 {
		return divided
	}
	turns := f * float64(s.Original) / (2 * math.Pi)
	switch {
	case turns >= s.High:
		return f
	case turns <= s.Low:
		return divided
	}
	kept := (turns - s.Low) / (s.High - s.Low)
	return float64(kept*f) + float64((1-kept)*divided)
}
