package asmtable

import "fmt"

// dot is an instruction that adds the products of two registers' groups of elements to a
// third: its text, the number of registers that it can name, and its bytes.
type dot struct {
	text      string
	registers byte
	bytes     func(d, b, a byte) []byte
}

// dots are VPDPBUSD as AVX-VNNI has it, on vectors of 256 bits, and VDPBF16PS of AVX512_BF16
// on vectors of 512 bits. R, X, B, vvvv and V' are inverted; the map is 0F38. Of the first the
// prefix is 66, W 0 and L 1; of the second the prefix F3, W 0 and L'L 2.
var dots = []dot{
	{"{vex} vpdpbusd ymm%d,ymm%d,ymm%d", 16, func(d, b, a byte) []byte {
		return []byte{0xC4, 0xE2 ^ d>>3<<7 ^ a>>3<<5, 0x7D ^ b<<3, 0x50, 0xC0 | d&7<<3 | a&7}
	}},
	{"vdpbf16ps zmm%d,zmm%d,zmm%d", 32, func(d, b, a byte) []byte {
		return []byte{0x62, 0xF2 ^ d&8<<4 ^ d&16 ^ a&8<<2 ^ a&16<<2, 0x7E ^ b&15<<3, 0x48 ^ b&16>>1, 0x52, 0xC0 | d&7<<3 | a&7}
	}},
}

// EncodeDot returns the bytes of VPDPBUSD or VDPBF16PS on registers, written as objdump -M
// intel writes it: {vex} vpdpbusd ymm0,ymm12,ymm14. Go's assembler has the first only as
// AVX-512 does, which processors with AVX-VNNI alone lack, and not the second.
func EncodeDot(text string) ([]byte, error) {
	for _, i := range dots {
		var d, b, a byte
		if _, err := fmt.Sscanf(text, i.text, &d, &b, &a); err == nil && fmt.Sprintf(i.text, d, b, a) == text && max(d, b, a) < i.registers {
			return i.bytes(d, b, a), nil
		}
	}
	return nil, fmt.Errorf("asmtable: no encoding of %q", text)
}
