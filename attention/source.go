package attention

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/tensor"
)

// source delivers Q, K or V to the loop over tiles: for each head a matrix of tokens, as
// codes decoded to float32 and the scales that they lack. Several goroutines may read it at
// once.
type source interface {
	// dims returns the numbers of heads, tokens and elements of a token's row.
	dims() (heads, tokens, dim int)

	// decode writes the elements of tokens [lo, hi) of a head, without their scales, to
	// rows of dst that begin stride elements apart. hi is more than lo.
	decode(dst []float32, stride, head, lo, hi int)

	// block is how many elements of a row share a scale: at least 1, and dim where all do.
	block() int

	// byToken reports whether tokens of a head may have different scales.
	byToken() bool

	// scales writes the scales of tokens [lo, hi) of a head to dst, token after token,
	// ceil(dim/block) of each.
	scales(dst []float32, head, lo, hi int)

	// outer has the scales above those, of rows head·tokens+token.
	outer() tensor.Outer

	// format is that of the elements, or false where they are none of 8 bits.
	format() (fp8.Format, bool)

	// wide reports whether elements have more than 8 bits of precision.
	wide() bool
}

// operandSource is an Operand that has passed its check.
type operandSource struct {
	Operand
	heads, tokens, dim  int
	stride, scaleStride int
	rows, cols          int // of a block of scales
}

func newOperandSource(o Operand) operandSource {
	s := operandSource{Operand: o}
	s.heads, s.tokens, s.dim = o.Dims()
	s.rows, s.cols = 1, max(s.dim, 1)
	s.stride = s.dim
	if t := o.Codes; t != nil {
		s.stride, s.scaleStride = t.Strides()
		s.rows, s.cols = t.Block.Extents(t.Dims())
	}
	return s
}

func (s *operandSource) dims() (heads, tokens, dim int) { return s.heads, s.tokens, s.dim }

func (s *operandSource) decode(dst []float32, stride, head, lo, hi int) {
	for i := lo; i < hi; i++ {
		row, at := dst[(i-lo)*stride:][:s.dim], (head*s.tokens+i)*s.stride
		if s.Codes != nil {
			fp8.Decode(row, s.Codes.Codes[at:at+s.dim], s.Codes.Format)
			continue
		}
		if s.Float32 != nil {
			copy(row, s.Float32[at:])
			continue
		}
		halves.Widen(row, s.BFloat16[at:at+s.dim])
	}
}

func (s *operandSource) block() int { return min(s.cols, max(s.dim, 1)) }

func (s *operandSource) byToken() bool {
	if s.Codes == nil || s.tokens == 0 {
		return false
	}
	for h := range s.heads {
		if first := h * s.tokens; first/s.rows != (first+s.tokens-1)/s.rows {
			return true
		}
	}
	return false
}

func (s *operandSource) scales(dst []float32, head, lo, hi int) {
	n := ceilDiv(s.dim, s.block())
	for i := lo; i < hi; i++ {
		to := dst[(i-lo)*n:][:n]
		if s.Codes == nil {
			copy(to, ones[:1]) // none where rows are empty
			continue
		}
		copy(to, s.Codes.Scales[(head*s.tokens+i)/s.rows*s.scaleStride:])
	}
}

func (s *operandSource) outer() tensor.Outer {
	if s.Codes == nil {
		return tensor.Outer{}
	}
	return s.Codes.Outer
}

func (s *operandSource) format() (fp8.Format, bool) {
	if s.Codes == nil {
		return 0, false
	}
	return s.Codes.Format, true
}

func (s *operandSource) wide() bool { return s.Float32 != nil }

// scattered reports whether scales of V can be taken neither to P nor to the output: they vary
// from token to token and along a token's elements, or there are scales above them.
func (s *operandSource) scattered() bool {
	return s.byToken() && s.block() < s.dim || !s.outer().None()
}

// scaledSource is V whose elements carry their scales.
type scaledSource struct{ operandSource }

func (s *scaledSource) decode(dst []float32, stride, head, lo, hi int) {
	for i := lo; i < hi; i++ {
		tensor.DequantizeRows(dst[(i-lo)*stride:][:s.dim], s.Codes, head*s.tokens+i)
	}
}

func (s *scaledSource) block() int                 { return max(s.dim, 1) }
func (s *scaledSource) byToken() bool              { return false }
func (s *scaledSource) outer() tensor.Outer        { return tensor.Outer{} }
func (s *scaledSource) format() (fp8.Format, bool) { return 0, false }
func (s *scaledSource) wide() bool                 { return true }

func (s *scaledSource) scales(dst []float32, _, lo, hi int) {
	for i := range hi - lo {
		dst[i] = 1
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func roundUp(a, b int) int { return ceilDiv(a, b) * b }
