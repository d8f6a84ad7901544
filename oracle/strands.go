package oracle

import (
	"math"
	"math/bits"

	"github.com/octavo-fp8/octavo/internal/aligned"
)

// strands are chains of instructions, side by side: a row of A by some columns of B.
// Elements lie in the order in which steps take them; see appendOrder.
type strands struct {
	x, y     []element // element k of column j is y[k*stride+j]
	stride   int
	mantissa int // fraction bits of a product
	layout   layout
	scales   [aligned.Columns]int // exponents of the products' scales
	results  []result             // by column: what comes into an instruction, and what of it
	sums     aligned.Sums
	memory   [aligned.Columns]result
}

func newStrands(x, y []element, stride, columns, mantissa int, l layout) *strands {
	s := &strands{x: x, y: y, stride: stride, mantissa: mantissa, layout: l}
	s.results = s.memory[:columns]
	return s
}

// appendOrder appends the order in which a chain of the products [lo, hi) takes them, if
// that is not their own.
func (m *Model) appendOrder(order []int, lo, hi int) []int {
	if m.Unit != Emulated && m.Unit != matrixCore {
		return order
	}
	for ; lo < hi; lo += m.K {
		for _, first := range []bool{true, false} {
			for i := range min(m.K, hi-lo) {
				if m.inFirst(i) == first {
					order = append(order, lo+i)
				}
			}
		}
	}
	return order
}

// inFirst reports whether product i of an instruction is in the first of its two sums.
func (m *Model) inFirst(i int) bool {
	if m.Unit == matrixCore {
		return i%2 == 0
	}
	return m.First>>i&1 == 1
}

// firsts returns how many of n products are in the first sum.
func (m *Model) firsts(n int) int {
	if m.Unit == matrixCore {
		return (n + 1) / 2
	}
	return bits.OnesCount64(uint64(m.First) & (1<<n - 1))
}

// chain runs as many instructions as there are products for.
func (s *strands) chain(m *Model, lo, hi int) {
	for ; lo < hi; lo += m.K {
		s.instruction(m, lo, min(lo+m.K, hi))
	}
}

// instruction adds the products [lo, hi), at most K; fewer are as many as K, the others
// zero.
func (s *strands) instruction(m *Model, lo, hi int) {
	switch m.Unit {
	case Emulated:
		s.emulated(m, lo, hi)
	case matrixCore:
		s.matrixCore(m, lo, hi)
	case SingleRounding:
		for ; lo < hi; lo += m.L {
			s.rounded(m, lo, min(lo+m.L, hi))
		}
	default:
		for ; lo < hi; lo += m.L {
			s.step(m, lo, min(lo+m.L, hi))
		}
	}
}

// step is a fused step.
func (s *strands) step(m *Model, lo, hi int) {
	for j, r := range s.results {
		s.sums.Top[j] = int32(s.layout.exponent(r.bits) - s.scales[j])
	}
	s.multiply(m.F, lo, hi)
	single := s.layout == layout32
	for j := range s.results {
		if single && s.finishSingle(m, j) {
			continue
		}
		c := newAddend(s.results[j].bits, s.layout)
		s.finish(j, m.round(s.fuse(m.F, lo, hi, j).plus(c), s.layout))
	}
}

// finishSingle does for float32 what the general way does if all numbers are normal or 0:
// then c, the sum and the result are exact in float64.
func (s *strands) finishSingle(m *Model, j int) bool {
	const fraction, least, most = 52, 0x1p-126, math.MaxFloat32
	r := &s.results[j]
	c := float64(math.Float32frombits(uint32(r.bits)))
	if c-c != 0 || s.sums.Top[j] >= specialFrom {
		return false
	}
	exponent := int(s.sums.Top[j]) + s.scales[j] - m.F
	unit := power2(exponent)
	value, lost := cut(c, -exponent)
	value += s.sums.Value[j]
	sum := float64(float64(value) * unit)
	kept := math.Float64frombits(math.Float64bits(sum) &^ (1<<(uint(fraction-m.Keep)&63) - 1))
	if magnitude := math.Abs(kept); value != 0 && (magnitude < least || magnitude > most) {
		return false
	}
	r.bits = uint64(math.Float32bits(float32(kept)))
	r.err += float64(float64(int(s.sums.Cut[j])+lost)*unit) + math.Abs(sum-kept)
	return true
}

// finish ends a step of column j.
func (s *strands) finish(j int, r result) {
	r.err += s.results[j].err
	s.results[j] = r
}

// multiply sums the products [lo, hi), cut to f fraction bits below the largest exponent,
// of which the sums' tops are one.
func (s *strands) multiply(f, lo, hi int) {
	// A product has mantissa+2 bits and its sign.
	places := aligned.Places{Left: max(f-s.mantissa, 0), Right: max(s.mantissa-f, 0)}
	s.sums.Multiply(s.x[lo:hi], s.y[lo*s.stride:hi*s.stride], s.stride, places, s.mantissa+2+places.Left)
}

// fuse returns a column's products: steps 1 and 2 of Model, but for c.
func (s *strands) fuse(f, lo, hi, j int) fused {
	top := int(s.sums.Top[j])
	if top >= specialFrom {
		return fused{special: s.classOfSum(lo, hi, j)}
	}
	return fused{value: s.sums.Value[j], unit: top + s.scales[j] - f, cut: int(s.sums.Cut[j])}
}

// classOfSum is the class of a column's products, of which one may be not finite.
func (s *strands) classOfSum(lo, hi, j int) class {
	c := finite
	for k := lo; k < hi; k++ {
		c = c.plus(classOfProduct(numberOf(s.x[k]), numberOf(s.y[k*s.stride+j])))
	}
	return c
}

// emulated is an instruction of an Emulated model.
func (s *strands) emulated(m *Model, lo, hi int) {
	var before [aligned.Columns]result
	copy(before[:], s.results)
	clear(s.results)
	middle := lo + m.firsts(hi-lo)
	s.step(m, lo, middle)
	s.step(m, middle, hi)
	single := s.layout == layout32
	for j := range s.results {
		r := &s.results[j]
		if !single || !r.addSingle(before[j]) {
			*r = m.addResults(*r, before[j], s.layout)
		}
	}
}

// addSingle is addResults for float32 that are finite.
func (r *result) addSingle(c result) bool {
	sum := float64(math.Float32frombits(uint32(r.bits))) + float64(math.Float32frombits(uint32(c.bits)))
	if sum-sum != 0 {
		return false
	}
	rounded := float32(sum)
	r.bits = uint64(math.Float32bits(rounded))
	r.err = r.err + c.err + (math.Abs(sum-float64(rounded)) + float64(math.Abs(sum)*0x1p-53))
	return true
}

// addResults adds two results, rounded to nearest.
func (m *Model) addResults(d, c result, l layout) result {
	sum := valueOf(d.bits, l) + valueOf(c.bits, l)
	if sum-sum != 0 {
		return result{m.special(classOf(float32(sum)), l), d.err + c.err}
	}
	b := roundSum(sum, l)
	err := math.Abs(sum-valueOf(b, l)) + float64(math.Abs(sum)*0x1p-53)
	return result{b, d.err + c.err + err}
}

// matrixCore is an instruction of a matrix core model.
func (s *strands) matrixCore(m *Model, lo, hi int) {
	var sums [2][aligned.Columns]fused
	middle := lo + m.firsts(hi-lo)
	for i, span := range [2][2]int{{lo, middle}, {middle, hi}} {
		for j := range s.sums.Top {
			s.sums.Top[j] = zeroExponent
		}
		s.multiply(m.F, span[0], span[1])
		for j := range s.results {
			sums[i][j] = s.fuse(m.F, span[0], span[1], j)
		}
	}
	for j := range s.results {
		c := newAddend(s.results[j].bits, s.layout)
		s.finish(j, m.round(addMatrixCore(sums[0][j], sums[1][j], m.F, c), s.layout))
	}
}
