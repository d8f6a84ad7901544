package telemetry

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
)

// Health is how much of a tensor was lost, judged by [Thresholds].
type Health int

const (
	Healthy Health = iota
	Suspect
	Sick
)

// String returns healthy, suspect or sick.
func (h Health) String() string {
	switch h {
	case Healthy:
		return "healthy"
	case Suspect:
		return "suspect"
	case Sick:
		return "sick"
	}
	return fmt.Sprintf("Health(%d)", int(h))
}

// MarshalText implements [encoding.TextMarshaler].
func (h Health) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// Limit is the shares of a tensor's elements, lost in one way in one step, from which on it is
// suspect or sick. A share above 1 is never reached.
type Limit struct{ Suspect, Sick float64 }

// Judge returns the health of a tensor of which a share was lost.
func (l Limit) Judge(share float64) Health {
	switch {
	case share >= l.Sick:
		return Sick
	case share >= l.Suspect:
		return Suspect
	}
	return Healthy
}

// Thresholds judge tensors. A field that is 0 is that of [ThresholdsFor] E4M3; a Sick of 0 is
// at least Suspect. A tensor with a NaN or an infinity is sick under all.
type Thresholds struct{ Saturated, Flushed Limit }

// ThresholdsFor returns the thresholds of a format. With 8 bits and more, 1 % saturated or 10 %
// flushed is suspect, 10 % and 50 % is sick: scales that fit lose less, also of gradients
// with few large values. Formats of fewer bits flush what is below 1/24 of the largest (E2M1) and saturate where
// they round up at random: 25 % and 60 % are suspect, 50 % and 90 % sick.
func ThresholdsFor(f fp8.Format) Thresholds {
	if f.Bits() < 8 {
		return Thresholds{Limit{0.25, 0.5}, Limit{0.6, 0.9}}
	}
	return Thresholds{Limit{0.01, 0.1}, Limit{0.1, 0.5}}
}

// complete returns t with what its zero fields mean. It panics if a threshold is NaN or
// negative, or a Suspect above its Sick.
func (t Thresholds) complete() Thresholds {
	byDefault := ThresholdsFor(fp8.E4M3)
	return Thresholds{t.Saturated.complete(byDefault.Saturated), t.Flushed.complete(byDefault.Flushed)}
}

func (l Limit) complete(byDefault Limit) Limit {
	if l.Suspect == 0 {
		l.Suspect = byDefault.Suspect
		if l.Sick > 0 {
			l.Suspect = min(l.Suspect, l.Sick)
		}
	}
	if l.Sick == 0 {
		l.Sick = max(byDefault.Sick, l.Suspect)
	}
	if !(l.Suspect > 0 && l.Sick >= l.Suspect) {
		panic("telemetry: a threshold is NaN or negative, or Suspect is above Sick")
	}
	return l
}
