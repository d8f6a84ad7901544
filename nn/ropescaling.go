package nn

import (
	"math"
	"reflect"
	"slices"

	"github.com/octavo-fp8/octavo/internal/elementary"
)

// RopeScaling lowers the frequencies of rotary positions, for longer sequences than a model
// was first trained on. The zero value leaves them as they are.
type RopeScaling struct {
	// Factor divides frequencies; at least 1. It is 0 in the zero value.
	Factor float64 `json:"factor"`

	// Original, unless 0, is the number of tokens in the sequences of the first training,
	// and the scaling is that of Llama 3.1: a pair that goes round at least High times in
	// them keeps its frequency, one that goes round at most Low times has it divided, and
	// between both it is interpolated. With 0 all are divided, which interpolates positions
	// (Chen et al., arXiv 2306.15595).
	Original int     `json:"original"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`

	// YaRN makes Low and High the turns of the ramp of YaRN (Peng et al., arXiv 2309.00071),
	// beta_slow and beta_fast, over the indices of pairs, which are rounded to whole ones
	// unless Untruncated.
	YaRN        bool `json:"yarn,omitempty"`
	Untruncated bool `json:"untruncated,omitempty"`

	// Attention, unless 0, is what rotated queries and keys are multiplied by: the attention
	// factor of YaRN and LongRoPE.
	Attention float64 `json:"attention,omitempty"`

	// Short and Long, unless nil, divide the frequencies pair by pair in the place of Factor, as
	// LongRoPE does (arXiv 2402.13753): Short in sequences of at most Original tokens, Long in
	// longer ones.
	Short []float64 `json:"short,omitempty"`
	Long  []float64 `json:"long,omitempty"`
}

// IsZero reports whether frequencies stay as they are.
func (s RopeScaling) IsZero() bool { return reflect.ValueOf(s).IsZero() }

const maxRopeFactor = 1e6

func (s RopeScaling) check(what string) error {
	if s.IsZero() {
		return nil
	}
	if !(s.Attention >= 0 && s.Attention <= maxRopeFactor) {
		return configError("%s.Attention is %v: it must be from 0 to %v", what, s.Attention, maxRopeFactor)
	}
	if s.Short != nil || s.Long != nil {
		return s.checkPairs(what)
	}
	if !(s.Factor >= 1 && s.Factor <= maxRopeFactor) {
		return configError("%s.Factor is %v: it must be from 1 to %v", what, s.Factor, maxRopeFactor)
	}
	switch {
	case s.Untruncated && !s.YaRN:
		return configError("%s.Untruncated is true: without YaRN leave it out", what)
	case s.Original == 0 && s.Low == 0 && s.High == 0 && !s.YaRN:
		return nil
	case s.Original <= 0:
		return configError("%s.Original is %d: it must be positive, or Low and High 0 too",
			what, s.Original)
	case !(s.Low > 0 && s.High > 0 && (s.High > s.Low || s.YaRN) && max(s.Low, s.High) <= math.MaxFloat32):
		return configError("%s.Low is %v and High %v: they must be positive, and without YaRN High the larger",
			what, s.Low, s.High)
	}
	return nil
}

// checkPairs is check where each pair has a factor of its own.
func (s RopeScaling) checkPairs(what string) error {
	switch {
	case s.Factor != 0 || s.Low != 0 || s.High != 0 || s.YaRN || s.Untruncated:
		return configError("%s.Factor, Low, High, YaRN and Untruncated: with Short and Long leave them out", what)
	case s.Original <= 0:
		return configError("%s.Original is %d: with Short and Long it must be positive", what, s.Original)
	case len(s.Short) != len(s.Long):
		return configError("%s has %d factors in Short and %d in Long: want one for each pair in both",
			what, len(s.Short), len(s.Long))
	}
	for _, f := range slices.Concat(s.Short, s.Long) {
		if !(f > 0 && f <= maxRopeFactor) {
			return configError("%s.Short or Long has a factor of %v: it must be above 0 and at most %v",
				what, f, maxRopeFactor)
		}
	}
	return nil
}

// checkFor is check for dim elements that are rotated and a base.
func (s RopeScaling) checkFor(what string, dim int, theta float64) error {
	if err := s.check(what); err != nil {
		return err
	}
	switch {
	case s.Short != nil && len(s.Short) != dim/2:
		return configError("%s.Short has %d factors: want one for each of %d pairs", what, len(s.Short), dim/2)
	case s.YaRN && theta <= 1:
		return configError("%s.YaRN needs a base above 1: it is %v", what, theta)
	}
	return nil
}

// frequencies returns those of pairs, in radians a position, for dim elements that are rotated:
// of sequences longer than Original where long is set.
func (s RopeScaling) frequencies(dim int, theta float64, long bool) []float64 {
	all := make([]float64, dim/2)
	low, high := s.ramp(dim, theta)
	for i := range all {
		f := elementary.Pow(theta, -float64(i)/float64(len(all)))
		switch {
		case s.Short != nil && long:
			f /= s.Long[i]
		case s.Short != nil:
			f /= s.Short[i]
		case s.YaRN:
			f = s.between(f, 1-min(max((float64(i)-low)/(high-low), 0), 1))
		case s.Original > 0:
			turns := f * float64(s.Original) / (2 * math.Pi)
			f = s.between(f, min(max((turns-s.Low)/(s.High-s.Low), 0), 1))
		case s.Factor > 0:
			f /= s.Factor
		}
		all[i] = f
	}
	return all
}

// between returns a frequency of which a part is kept as it is and the rest divided.
func (s RopeScaling) between(f, kept float64) float64 {
	switch kept {
	case 0:
		return f / s.Factor
	case 1:
		return f
	}
	return float64(kept*f) + float64((1-kept)*(f/s.Factor))
}

// ramp returns the indices of pairs between which the frequencies of YaRN change: that which
// goes round High times in Original tokens, and that which does Low times.
func (s RopeScaling) ramp(dim int, theta float64) (low, high float64) {
	if !s.YaRN {
		return 0, 1
	}
	pair := func(turns float64) float64 {
		return float64(dim) * elementary.Log64(float64(s.Original)/float64(turns*2*math.Pi)) /
			float64(2*elementary.Log64(theta))
	}
	low, high = pair(s.High), pair(s.Low)
	if !s.Untruncated {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(dim-1))
	if low == high {
		high += 0.001
	}
	return low, high
}
