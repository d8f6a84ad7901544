package gemm

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// float16View is how codes of a format are read as float16s, which processors convert:
// the code, extended by its sign, times factor, and of that the bits of mask. Its
// values are those of the codes divided by unit.
//
// Products take B in that form and A times unit, a power of two; the products of
// both are exact and the same as ever.
type float16View struct {
	factor, mask uint64 // for four codes; none if the exponents do not fit
	unit         float32

	// A code that is special after masking has another value. For eight codes.
	specialMask, special uint64
}

const eight = 0x0101_0101_0101_0101

// float16Views are indexed by format. E5M2 is float16's upper half; E5M2FNUZ has values
// beyond float16's. Formats without a row are read as they are.
var float16Views = func() (all [256]float16View) {
	for f := range all {
		all[f].unit = 1
	}
	all[fp8.E4M3] = float16View{0x0080_0080_0080_0080, 0xBFFF_BFFF_BFFF_BFFF, 1 << 8, 0x7F * eight, 0x7F * eight}
	all[fp8.E5M2] = float16View{0x0100_0100_0100_0100, 0xFFFF_FFFF_FFFF_FFFF, 1, 0, eight}
	all[fp8.E4M3FNUZ] = float16View{0x0080_0080_0080_0080, 0xBFFF_BFFF_BFFF_BFFF, 1 << 7, 0xFF * eight, 0x80 * eight}
	return all
}()

// exact reports whether all of the codes, of whole rows of a panel, can be read so.
// k may be nil.
func (v *float16View) exact(k *microkernel.Kernels, codes []byte) bool {
	if v.factor == 0 || v.specialMask == 0 {
		return v.factor != 0
	}
	if k != nil && k.Contains != nil {
		return len(codes) == 0 || !k.Contains(&codes[0], len(codes), v.specialMask, v.special)
	}
	for _, c := range codes {
		if c&byte(v.specialMask) == byte(v.special) {
			return false
		}
	}
	return true
}
