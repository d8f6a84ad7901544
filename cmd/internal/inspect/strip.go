package inspect

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/loss"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
)

// surveyed is what a strip of a tensor shows by itself.
type surveyed struct {
	stats    fp8.Stats
	extremes tensorfile.Extremes
	first    int64      // element of the tensor that is not finite; -1: there is none
	largest  int64      // of codes: how many have the largest finite magnitude
	squares  float64    // sum of those of finite values
	binades  [256]int64 // finite values by exponent, as those of fp8.Detail
	recipes  []encoded  // of the plan's ready recipes
}

// encoded is what became of a strip, or of a tensor, under a recipe.
type encoded struct {
	saturated, flushed, becameNonFinite, subnormal int64

	noise              float64 // sum of squared differences, over finite values
	scaleMin, scaleMax float32 // NaN if a scale is
}

func (s *surveyed) merge(o *surveyed) {
	s.stats.Merge(&o.stats)
	s.extremes.Merge(o.extremes)
	if s.first < 0 {
		s.first = o.first
	}
	s.largest += o.largest
	s.squares += o.squares
	for i, n := range o.binades {
		s.binades[i] += n
	}
}

// merge adds what became of the strip after e's.
func (e *encoded) merge(o encoded) {
	e.saturated += o.saturated
	e.flushed += o.flushed
	e.becameNonFinite += o.becameNonFinite
	e.subnormal += o.subnormal
	e.noise += o.noise
	e.scaleMin, e.scaleMax = min(e.scaleMin, o.scaleMin), max(e.scaleMax, o.scaleMax) // NaN if one is
}

// countLargest counts the codes that stand for the largest value of their format, of
// either sign.
func (s *surveyed) countLargest(values tensorfile.Array, f fp8.Format) {
	decoded, _ := values.(tensorfile.Values[float32])
	for _, v := range decoded {
		if v = max(v, -v); v >= f.Max() && v-v == 0 {
			s.largest++
		}
	}
}

// spread counts finite values by their exponent, and sums their squares.
func (s *surveyed) spread(values tensorfile.Array) {
	s.squares = loss.Signal(values, s.stats.NonFinite() == 0)
	switch values := values.(type) {
	case tensorfile.Values[float32]:
		spread(&s.binades, values)
	case tensorfile.Values[float64]:
		spread(&s.binades, values)
	}
}

func spread[T float32 | float64](binades *[256]int64, values []T) {
	for _, v := range values {
		bits := math.Float64bits(float64(v)) &^ (1 << 63)
		if exponent := int(bits >> 52); bits != 0 && exponent != 0x7FF {
			binades[min(max(exponent-1023+127, 0), 255)]++
		}
	}
}
