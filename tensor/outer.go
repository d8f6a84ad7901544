package tensor

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Outer is a second level of scales, above those of the blocks: NVFP4 has one for the
// tensor or one for each row, and a stack of matrices may have one for each. The zero
// Outer is none.
//
// The value of an element is decode(code) * scale, which is exact, times or divided by
// its outer scale, and rounded once.
type Outer struct {
	// Scales are finite and not negative; a divisor is not 0 either.
	Scales []float32

	// Rows is the number of rows of the matrix under each scale. 0 is all of them, 1 is
	// one scale for each row, and the height of a stack's matrices one for each matrix.
	Rows int

	// Divide says that scales are divisors, as those of compressed-tensors are.
	Divide bool
}

// None reports whether there are no outer scales.
func (o Outer) None() bool { return len(o.Scales) == 0 }

// At returns the outer scale of row i of the matrix, be it a multiplier or a divisor,
// and 1 if there are none. It panics if it has no scale for that row.
func (o Outer) At(i int) float32 {
	if o.None() {
		return 1
	}
	k := 0
	if o.Rows > 0 {
		k = i / o.Rows
	}
	if i < 0 || k >= len(o.Scales) {
		panic(noRow)
	}
	return o.Scales[k]
}

// Factor is At as a multiplier: where scales are divisors, the reciprocal, rounded.
func (o Outer) Factor(i int) float32 {
	if o.Divide && !o.None() {
		return 1 / o.At(i)
	}
	return o.At(i)
}

// single reports whether all rows have the same outer scale, or none.
func (o Outer) single() bool { return len(o.Scales) <= 1 }

// count returns the number of scales that a matrix needs.
func (o Outer) count(rows int) int {
	if o.Rows == 0 {
		return 1
	}
	return ceilDiv(rows, o.Rows)
}

// slice returns the outer scales of rows [lo, hi). ok is false if lo is inside of what
// shares a scale and hi outside.
func (o Outer) slice(lo, hi int) (part Outer, ok bool) {
	if o.None() || o.Rows == 0 {
		return o, true
	}
	if lo == hi {
		return Outer{}, true
	}
	first, last := lo/o.Rows, (hi-1)/o.Rows
	part = Outer{Scales: o.Scales[first : last+1 : last+1], Rows: o.Rows, Divide: o.Divide}
	if first == last {
		part.Rows = 0
	}
	return part, part.Rows == 0 || lo%o.Rows == 0
}

// clone returns o in memory of its own.
func (o Outer) clone() Outer {
	o.Scales = slices.Clone(o.Scales)
	return o
}

// checkOuter makes sure that o has as many outer scales as t's shape needs.
func (t *Tensor) checkOuter(o Outer) error {
	if o.Rows < 0 {
		return t.shapeError("outer scales of %d rows each: want at least 0", o.Rows)
	}
	if o.None() {
		return nil
	}
	rows, _ := t.Dims()
	if want := o.count(rows); len(o.Scales) != want {
		return t.shapeError("shape %v needs %d outer scales of %s, there are %d", t.Shape, want, extentString(o.Rows)+" rows each", len(o.Scales))
	}
	return nil
}

// checkOuterScales makes sure that outer scales are numbers to multiply or divide by.
func (t *Tensor) checkOuterScales() error {
	for i, g := range t.Outer.Scales {
		switch {
		case !Float32Scales.Holds(g):
			return sentinel.Errorf(ErrScale, "tensor %q: outer scale %d is %v: want %s", t.Name, i, g, Float32Scales.wants())
		case g == 0 && t.Outer.Divide:
			return sentinel.Errorf(ErrScale, "tensor %q: outer scale %d is 0 and a divisor", t.Name, i)
		}
	}
	return nil
}

// outerValue returns p, the value of a code times its block's scale, times or divided
// by an outer scale. Rounding what it returns to float32 rounds the exact value once:
// where float64 does not hold it, the last bit is odd, so that it is on the right side
// of, and never at, what is half way between two float32 (Boldo and Melquiond, "Emulation
// of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
func outerValue(p, outer float64, divide bool) float64 {
	var value, rest float64
	if divide {
		value = p / outer
		rest = math.FMA(-value, outer, p)
		if outer < 0 {
			rest = -rest
		}
	} else {
		value = p * outer
		rest = math.FMA(p, outer, -value)
	}
	bits := math.Float64bits(value)
	switch {
	case rest == 0 || rest != rest || bits&1 != 0:
		return value
	case (rest > 0) == (value > 0):
		bits++
	default:
		bits--
	}
	return math.Float64frombits(bits)
}
