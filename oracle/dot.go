package oracle

import (
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
)

const (
	unequalLengths = "oracle: a and b differ in length"
	wrongFormat    = "oracle: the model does not take this format"
	noFloat16      = "oracle: the model has no float16 results"
	wrongScales    = "oracle: scales are not one for each block of codes, or the model takes none"
	wrongModel     = "oracle: the model's parameters are out of range; see Model.Check"
)

// Dot returns c plus the sum of products of the codes a, of format fa, and b, of
// format fb, as the hardware does: one instruction for K codes or fewer, a chain
// of them for more. It panics if a and b differ in length, or the model does not
// take the formats or fails [Model.Check]. For [BlackwellMXFP8] all scales are 1; see [Model.DotScaled].
func (m Model) Dot(a, b []byte, fa, fb fp8.Format, c float32) float32 {
	return math.Float32frombits(uint32(m.dot(a, b, fa, fb, uint64(math.Float32bits(c)), layout32)))
}

// DotFloat16 is [Model.Dot] with float16 results. It panics also if the model has
// none.
func (m Model) DotFloat16(a, b []byte, fa, fb fp8.Format, c float16.Float16) float16.Float16 {
	if !m.HasFloat16() {
		panic(noFloat16)
	}
	return float16.Frombits(uint16(m.dot(a, b, fa, fb, uint64(c.Bits()), layout16)))
}

func (m *Model) dot(a, b []byte, fa, fb fp8.Format, c uint64, l layout) uint64 {
	x, y := m.operands(a, b, fa, fb)
	return m.dotElements(x, y, fa.Mantissa()+fb.Mantissa(), c, l)
}

// dotElements is dot for decoded operands.
func (m *Model) dotElements(x, y []element, mantissa int, c uint64, l layout) uint64 {
	if order := m.appendOrder(nil, 0, len(x)); order != nil {
		x, y = arrange(x, order), arrange(y, order)
	}
	s := newStrands(x, y, 1, 1, mantissa, l)
	s.results[0].bits = c
	s.chain(m, 0, len(x))
	return s.results[0].bits
}

func arrange(x []element, order []int) []element {
	to := make([]element, len(x))
	for i, from := range order {
		to[i] = x[from]
	}
	return to
}

// mustCheck panics for a model that [Model.Check] refuses.
func (m *Model) mustCheck() {
	if m.checkFields() != nil {
		panic(wrongModel)
	}
}

func (m *Model) operands(a, b []byte, fa, fb fp8.Format) (x, y []element) {
	m.mustCheck()
	if len(a) != len(b) {
		panic(unequalLengths)
	}
	if !m.Takes(fa) || !m.Takes(fb) {
		panic(wrongFormat)
	}
	return decodeElements(nil, a, fa), decodeElements(nil, b, fb)
}

// DotScaled is [Model.Dot] for [BlackwellMXFP8]: sa and sb have a scale for each
// 32 codes. A NaN among them makes the result NaN. It panics also if the model
// takes no scales or their number is not right.
func (m Model) DotScaled(a, b []byte, fa, fb fp8.Format, sa, sb []fp8.E8M0, c float32) float32 {
	x, y := m.operands(a, b, fa, fb)
	blocks := (len(x) + m.K - 1) / m.K
	if m.Unit != Scaled || len(sa) != blocks || len(sb) != blocks {
		panic(wrongScales)
	}
	s := newStrands(x, y, 1, 1, fa.Mantissa()+fb.Mantissa(), layout32)
	s.results[0].bits = uint64(math.Float32bits(c))
	for i := range blocks {
		if sa[i] == fp8.E8M0NaN || sb[i] == fp8.E8M0NaN {
			return math.Float32frombits(uint32(m.nan(layout32)))
		}
		s.scales[0] = int(sa[i]) + int(sb[i]) - 2*127
		s.instruction(&m, i*m.K, min((i+1)*m.K, len(x)))
	}
	return math.Float32frombits(uint32(s.results[0].bits))
}
