// Package fouroversix finds the errors that rows of 16 values have in E2M1 under each of
// two scales, between which four-over-six (arXiv 2512.02010) chooses.
//
// All levels compute the same: in float32, every operation rounded, and errors of a row
// added in the order of its values.
package fouroversix

import (
	"math"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/race"
)

// Size is the number of values in a row.
const Size = 16

// Rule is how the errors of values become that of a row.
type Rule uint32

const (
	Absolute Rule = iota // the sum of magnitudes
	Square               // the sum of squares
	Largest              // the largest magnitude
)

// Error is how an error is found: that of x, whose code has the value v, is
// ((v*s)*Amax)/Denominator - x*Unit, s being what is stored of the row's scale.
type Error struct {
	Rule              Rule
	Amax, Denominator float32
	Unit              float32
}

// Scales are two scales of a row: what is stored of them, and what values are multiplied by.
// No multiplier has a sign.
type Scales struct {
	Stored, Multiplier [2]float32
}

// Losses are the errors of a row under its two scales.
type Losses [2]float32

const short = "fouroversix: values, scales or errors are fewer than there are rows"

// Rows sets each of losses to the errors of a row: of src[i*stride:], width values and at
// most Size, under scales[i], or under scales[0] where that is the only one. It panics if a
// slice is too short.
func Rows(losses []Losses, src []float32, stride, width int, scales []Scales, e *Error) {
	n := len(losses)
	if n == 0 {
		return
	}
	if width < 0 || width > Size || stride < 0 || len(src) < (n-1)*stride+width {
		panic(short)
	}
	if len(scales) != 1 && len(scales) < n {
		panic(short)
	}
	if race.Enabled {
		for i := range n {
			race.Read(src[i*stride:][:width])
		}
	}
	if kernel, ok := rows.For(cpu.Current()); ok && width == Size {
		next := int(unsafe.Sizeof(scales[0]))
		if len(scales) == 1 {
			next = 0
		}
		own := template
		own.set(e)
		kernel(kernels.NoEscape(&losses[0]), kernels.NoEscape(&src[0]), n, 4*stride,
			kernels.NoEscape(&scales[0]), next, kernels.NoEscape(&own))
		return
	}
	for i := range losses {
		s := &scales[min(i, len(scales)-1)]
		losses[i] = e.row(src[i*stride:][:width], s)
	}
}

// row is Rows of one.
func (e *Error) row(x []float32, s *Scales) (losses Losses) {
	for k := range losses {
		values := e.values(s.Stored[k])
		for _, x := range x {
			x = magnitude(x)
			d := values[code(x*s.Multiplier[k])&7] - float32(x*e.Unit)
			switch e.Rule {
			case Square:
				losses[k] += float32(d * d)
			case Largest:
				losses[k] = max(losses[k], magnitude(d))
			default:
				losses[k] += magnitude(d)
			}
		}
	}
	return losses
}

// magnitudes are those of E2M1, by code.
var magnitudes = [8]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}

// values are what x*Unit is compared with, by code.
func (e *Error) values(stored float32) (values [8]float32) {
	for code, v := range magnitudes {
		values[code] = float32(float32(v*stored)*e.Amax) / e.Denominator
	}
	return values
}

func magnitude(x float32) float32 {
	return math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
}

// code rounds y, which has no sign, to the nearest magnitude of E2M1, ties to even, and
// returns its code, 7 for a NaN. What adding a number leaves in the last places counts
// steps: of 0.5 below 2, of 1 below 4, and of 2.
func code(y float32) uint32 {
	y = float32(y)
	field := min(max(math.Float32bits(y)>>23, one), one+2)
	magic := (field + toMagic) << 23
	steps := math.Float32bits(y+math.Float32frombits(magic)) - magic
	return min(steps+2*(field-one), 7)
}

const (
	one     = 127 // the exponent field of 1
	toMagic = 22  // from the field of a value to that of a number with its steps
)

// job is what a kernel must know. Its layout is known to the assembly.
type job struct {
	magnitudes [8]float32
	error      Error

	// An error d is multiplied by d&both|other: by itself, or by 1.
	both, other [8]uint32

	largest                  uint32 // 1: not sums
	one, two, toMagic, seven uint32
}

var template = job{magnitudes: magnitudes, one: one, two: one + 2, toMagic: toMagic, seven: 7}

func (j *job) set(e *Error) {
	j.error = *e
	for i := range j.both {
		if e.Rule == Square {
			j.both[i] = math.MaxUint32
		} else {
			j.other[i] = math.Float32bits(1)
		}
	}
	if e.Rule == Largest {
		j.largest = 1
	}
}

// rowsFunc is Rows of n rows of Size values, n above 0, strides being in bytes. It keeps
// no pointer.
type rowsFunc func(losses *Losses, src *float32, n, stride int, scales *Scales, next int, j *job)
