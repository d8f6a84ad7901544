package oracle

import (
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

const (
	unequalLengths = "oracle: a and b differ in length"
	wrongFormat    = "oracle: the model does not take this format"
	noFloat16      = "oracle: the model has no float16 results"
	wrongScales    = "oracle: operands are not of a row each, or the model applies no scales such as theirs"
	wrongModel     = "oracle: the model's parameters are out of range; see Model.Check"
)

// Dot returns c plus the sum of products of the codes a, of format fa, and b, of
// format fb, as the hardware does: one instruction for K codes or fewer, a chain
// of them for more. It panics if a and b differ in length, or the model does not
// take the formats or fails [Model.Check]. Of a model that applies scales itself all are 1;
// see [Model.DotScaled].
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
	if m.Unit == Grouped {
		return m.dotGroups(a, b, c)
	}
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

// DotScaled is [Model.Dot] for models that apply scales themselves, such as
// [BlackwellMXFP8] and [BlackwellNVFP4]: a and b have one row each. A NaN among the scales
// makes the result NaN. Outer scales are no part of an instruction and do not count. It
// panics if a and b make no product of one element, or the model does not take their
// formats and scales.
func (m Model) DotScaled(a, b *tensor.Tensor, c float32) float32 {
	m.mustCheck()
	p, err := newProduct(a, b)
	k := Kernel{Model: m}
	if err != nil || p.m != 1 || p.n != 1 || !m.ScalesInside() || k.check(&p) != nil {
		panic(wrongScales)
	}
	s := predictPool.Get().(*prediction)
	defer predictPool.Put(s)
	s.begin(&p, &k, codeRows{a}, codeRows{b}, a.Format.Mantissa()+b.Format.Mantissa(), &tile{i1: 1, j1: 1})
	s.chainRow(0, c, s.totals[:1])
	return s.totals[0].value
}
