package gemm

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/integer"
)

// steps says of a format whose values are all small multiples of a step that they are.
type steps struct {
	exponent int // the step is 2^exponent
	largest  int // magnitude, in steps; 0 if the format is no such

	// Codes in steps, and those more than the least, so that none is negative.
	signed, raised *integer.Table
}

// stepsOf are indexed by format. A code's bits above the format's width do not count.
var stepsOf = func() []steps {
	var all []steps
	for _, f := range fp8.Formats() {
		all = append(all, newSteps(f))
	}
	return all
}()

func newSteps(f fp8.Format) steps {
	fraction, exponent := math.Frexp(float64(f.MinSubnormal()))
	s := steps{exponent: exponent - 1}
	if fraction != 0.5 {
		return steps{}
	}
	var values [256]byte
	for code := range values {
		v := math.Ldexp(float64(f.Float32(byte(code))), -s.exponent)
		if !(v >= math.MinInt8 && v <= math.MaxInt8) || v != math.Trunc(v) {
			return steps{}
		}
		values[code] = byte(int(v))
		s.largest = max(s.largest, int(math.Abs(v)))
	}
	s.signed = integer.NewTable(func(code byte) byte { return values[code] })
	s.raised = integer.NewTable(func(code byte) byte { return values[code] + byte(s.largest) })
	return s
}

// panel is the table of what kernels read in panels, and what that is raised by.
func (s *steps) panel(k *integer.Kernels) (table *integer.Table, bias int) {
	if k.Unsigned {
		return s.raised, s.largest
	}
	return s.signed, 0
}

// inPanel is the largest magnitude in panels.
func (s *steps) inPanel(k *integer.Kernels) int {
	_, bias := s.panel(k)
	return s.largest + bias
}

// exactSteps is how many steps of products a block's sum may have: float32 holds all
// integers up to it, so that no order of adding them rounds.
const exactSteps = 1 << 24
