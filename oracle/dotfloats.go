package oracle

import (
	"math"

	"github.com/x448/float16"
)

const (
	wrongFloat = "oracle: the model has no operands in BF16, FP16 or TF32"
	notOfFloat = "oracle: a number is not of the model's format"
)

// DotFloats returns c plus the sum of products of a and b, numbers of the model's Float,
// as the hardware does: one instruction for K products or fewer, a chain of them for
// more. It panics if a and b differ in length or have a number that is not of the format,
// or if the model has no such operands or fails [Model.Check].
func (m Model) DotFloats(a, b []float32, c float32) float32 {
	return math.Float32frombits(uint32(m.dotFloats(a, b, uint64(math.Float32bits(c)), layout32)))
}

// DotFloatsFloat16 is [Model.DotFloats] with float16 results. It panics also if the model
// has none, as only those of FP16 do.
func (m Model) DotFloatsFloat16(a, b []float32, c float16.Float16) float16.Float16 {
	if !m.HasFloat16() {
		panic(noFloat16)
	}
	return float16.Frombits(uint16(m.dotFloats(a, b, uint64(c.Bits()), layout16)))
}

func (m *Model) dotFloats(a, b []float32, c uint64, l layout) uint64 {
	m.mustCheck()
	switch {
	case len(a) != len(b):
		panic(unequalLengths)
	case m.Float == NoFloat:
		panic(wrongFloat)
	}
	for i := range a {
		if !m.Float.Has(a[i]) || !m.Float.Has(b[i]) {
			panic(notOfFloat)
		}
	}
	x, y := m.Float.appendElements(nil, a), m.Float.appendElements(nil, b)
	return m.dotElements(x, y, 2*m.Float.layout().fraction, c, l)
}
