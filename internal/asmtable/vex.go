package asmtable

import "fmt"

const vexDot = "{vex} vpdpbusd ymm%d,ymm%d,ymm%d"

// EncodeVEX returns the bytes of VPDPBUSD as AVX-VNNI has it, on vectors of 256 bits,
// written as objdump -M intel writes it: {vex} vpdpbusd ymm0,ymm12,ymm14. Go's assembler
// has only that of AVX-512, which processors with AVX-VNNI alone lack.
func EncodeVEX(text string) ([]byte, error) {
	var d, b, a byte
	if _, err := fmt.Sscanf(text, vexDot, &d, &b, &a); err != nil || fmt.Sprintf(vexDot, d, b, a) != text || max(d, b, a) > 15 {
		return nil, fmt.Errorf("asmtable: no encoding of %q", text)
	}
	// R, B and vvvv are inverted; the map is 0F38, the prefix 66, W 0 and L 1.
	return []byte{0xC4, 0xE2 ^ d>>3<<7 ^ a>>3<<5, 0x7D ^ b<<3, 0x50, 0xC0 | d&7<<3 | a&7}, nil
}
