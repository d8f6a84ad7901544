// Package deviation sums up how far values are from others.
//
// All levels compute the same: in float64, every operation rounded. Value i goes to lane
// i%16, and lanes are added to the first in their order.
package deviation

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/race"
)

// Sums say how far values are from others, where those are finite.
type Sums struct {
	Squared float64 // sum of the squares of the differences
	Signal  float64 // sum of the squares of what values are compared with
	Largest float64 // magnitude of a difference; a NaN is none
}

// lanes is how many sums there are of either kind.
const lanes = 16

// sums are those of each lane. Its layout is known to the assembly.
type sums struct{ squared, signal, largest [lanes]float64 }

// addFunc adds values to sums. Slices are not empty and of the same length. It keeps no
// pointer.
type addFunc func(values, others []float32, s *sums)

// longest is the number of elements that a kernel is given at a time: it cannot be
// interrupted.
const longest = 1 << 14

const short = "deviation: values and what they are compared with are not of one length"

// Of compares values with others. It panics if there are not as many.
func Of(values, others []float32) (total Sums) {
	if len(values) != len(others) {
		panic(short)
	}
	race.Read(values)
	race.Read(others)
	kernel, _ := add.For(cpu.Current())
	var s sums
	for len(values) > 0 {
		n := min(len(values), longest)
		kernel(kernels.NoEscapeSlice(values[:n]), kernels.NoEscapeSlice(others[:n]), kernels.NoEscape(&s))
		values, others = values[n:], others[n:]
	}
	for i := range lanes {
		total.Squared += s.squared[i]
		total.Signal += s.signal[i]
		total.Largest = max(total.Largest, s.largest[i])
	}
	return total
}

// Where returns the index of the first value that is as far from the other as given, -1 if
// none is.
func Where(values, others []float32, far float64) int {
	for i, v := range values {
		x := others[i]
		if math.Abs(float64(v)-float64(x)) == far && number.IsFinite(x) {
			return i
		}
	}
	return -1
}

func addGeneric(values, others []float32, s *sums) {
	others = others[:len(values)]
	for i, v := range values {
		if !number.IsFinite(others[i]) {
			continue
		}
		x := float64(others[i])
		d := float64(v) - x
		lane := i % lanes
		s.squared[lane] += float64(d * d)
		s.signal[lane] += float64(x * x)
		if d = math.Abs(d); d > s.largest[lane] {
			s.largest[lane] = d
		}
	}
}
