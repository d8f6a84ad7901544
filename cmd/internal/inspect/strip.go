package inspect

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
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
	worstRow           float64 // the largest error of a row; NaN if one is
	blockErrors        float64 // sum of the errors of blocks with energy
	blocks             int64   // with energy
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
	e.worstRow = max(e.worstRow, o.worstRow)
	e.blockErrors += o.blockErrors
	e.blocks += o.blocks
	e.scaleMin, e.scaleMax = min(e.scaleMin, o.scaleMin), max(e.scaleMax, o.scaleMax) // NaN if one is
}

// compare adds what blocks of rows, of which each has so many, have lost of their energy. An
// error is the root of the ratio of both.
func (e *encoded) compare(noise, energy []float64, blocks int) {
	for lo := 0; lo < len(noise); lo += blocks {
		lost, had := 0.0, 0.0
		for i, x := range noise[lo : lo+blocks] {
			lost, had = lost+x, had+energy[lo+i]
			if energy[lo+i] > 0 {
				e.blockErrors += math.Sqrt(x / energy[lo+i])
				e.blocks++
			}
		}
		e.noise += lost
		if had > 0 {
			e.worstRow = max(e.worstRow, math.Sqrt(lost/had))
		}
	}
}

// blockError is the mean of the errors of blocks, 0 if none has energy.
func (e *encoded) blockError() float64 { return e.blockErrors / max(float64(e.blocks), 1) }

// spread counts finite values by their exponent.
func (s *surveyed) spread(values tensorfile.Array) {
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
