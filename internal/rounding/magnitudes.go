package rounding

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/race"
)

// Magnitudes returns the smallest magnitude above zero and the largest one, which is NaN
// where there is a NaN. They are 0 where there is none.
func Magnitudes(x []float32) (least, greatest float32) {
	race.Read(x)
	find, _ := findExtremes.For(cpu.Current())
	e := noExtremes
	for part := range slices.Chunk(x, longest) {
		find(kernels.NoEscapeSlice(part), kernels.NoEscape(&e))
	}
	return math.Float32frombits(slices.Min(e.below[:]) + 1), math.Float32frombits(slices.Max(e.greatest[:]))
}

// extremes are those of every eighth value. Its layout is known to the assembly.
type extremes struct {
	below    [8]uint32 // bits of the smallest magnitude, less 1, by which zero is the largest
	greatest [8]uint32 // bits of the largest magnitude
}

var noExtremes = func() (e extremes) {
	for i := range e.below {
		e.below[i] = math.MaxUint32
	}
	return e
}()

// extremesFunc adds the extremes of values to e. It keeps no pointer.
type extremesFunc func(src []float32, e *extremes)

func extremesGeneric(src []float32, e *extremes) {
	below, greatest := e.below[0], e.greatest[0]
	for _, x := range src {
		magnitude := math.Float32bits(x) &^ signBit
		below, greatest = min(below, magnitude-1), max(greatest, magnitude)
	}
	e.below[0], e.greatest[0] = below, greatest
}
