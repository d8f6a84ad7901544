//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"
#include "vectors_arm64.h"

#define flag R9
#define flagHigh R10

#define bytes V0
#define halves V1
#define values0 V4
#define values1 V5
#define values2 V6
#define values3 V7
#define place V16 // from the top of a lane to where the shift puts a code
#define keep V17  // mask and sign
#define rebias V18
#define blockScale V19
#define maxByte V20
#define loneByte V21
#define largest V22
#define lones V23
#define magnitude V24 // 0x7F
#define zero V25
#define top V26 // from a code's sign to a byte's

// func decodeNEON(dst *float32, src *byte, n int, d *Decoding) uint32
//
// n is a positive multiple of 16.
TEXT ·decodeNEON(SB), NOSPLIT, $0-36
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD n+16(FP), left
	MOVD d+24(FP), params

	SPLAT(Decoding_Rebias, rebias)
	SPLAT(Decoding_Scale, blockScale)
	MOVWU Decoding_Bits(params), flag
	MOVD $8, tmp
	SUB flag, tmp, tmp
	VDUP tmp, top.B16
	MOVWU Decoding_Shift(params), tmp
	ADD flag, tmp, tmp
	SUB $32, tmp, tmp
	VDUP tmp, place.S4
	MOVWU Decoding_Mask(params), tmp
	ORR $0x80000000, tmp, tmp
	VDUP tmp, keep.S4
	MOVWU Decoding_Max(params), tmp
	VDUP tmp, maxByte.B16
	MOVWU Decoding_Lone(params), tmp
	VDUP tmp, loneByte.B16
	VMOVI $0x7F, magnitude.B16
	VEOR zero.B16, zero.B16, zero.B16
	VEOR largest.B16, largest.B16, largest.B16
	VEOR lones.B16, lones.B16, lones.B16

decodeLoop:
	VLD1.P 16(from), [bytes.B16]
	VAND magnitude.B16, bytes.B16, V1.B16
	VUMAX V1.B16, largest.B16, largest.B16
	VCMEQ loneByte.B16, bytes.B16, V1.B16
	VORR V1.B16, lones.B16, lones.B16

	// Each code at the top of a lane, from where it is shifted with its sign.
	WORD $0x6E3A4400 // ushl v0.16b, v0.16b, v26.16b
	VZIP1 bytes.B16, zero.B16, halves.B16
	VZIP1 halves.H8, zero.H8, values0.H8
	VZIP2 halves.H8, zero.H8, values1.H8
	VZIP2 bytes.B16, zero.B16, halves.B16
	VZIP1 halves.H8, zero.H8, values2.H8
	VZIP2 halves.H8, zero.H8, values3.H8
	WORD $0x4EB04484 // sshl v4.4s, v4.4s, v16.4s
	WORD $0x4EB044A5 // sshl v5.4s, v5.4s, v16.4s
	WORD $0x4EB044C6 // sshl v6.4s, v6.4s, v16.4s
	WORD $0x4EB044E7 // sshl v7.4s, v7.4s, v16.4s
	VAND keep.B16, values0.B16, values0.B16
	VAND keep.B16, values1.B16, values1.B16
	VAND keep.B16, values2.B16, values2.B16
	VAND keep.B16, values3.B16, values3.B16
	WORD $0x6E32DC84 // fmul v4.4s, v4.4s, v18.4s
	WORD $0x6E32DCA5 // fmul v5.4s, v5.4s, v18.4s
	WORD $0x6E32DCC6 // fmul v6.4s, v6.4s, v18.4s
	WORD $0x6E32DCE7 // fmul v7.4s, v7.4s, v18.4s
	WORD $0x6E33DC84 // fmul v4.4s, v4.4s, v19.4s
	WORD $0x6E33DCA5 // fmul v5.4s, v5.4s, v19.4s
	WORD $0x6E33DCC6 // fmul v6.4s, v6.4s, v19.4s
	WORD $0x6E33DCE7 // fmul v7.4s, v7.4s, v19.4s
	VST1.P [values0.S4, values1.S4, values2.S4, values3.S4], 64(to)
	SUBS $16, left, left
	BNE decodeLoop

	WORD $0x6E3436D6 // cmhi v22.16b, v22.16b, v20.16b
	VORR largest.B16, lones.B16, lones.B16
	VMOV lones.D[0], flag
	VMOV lones.D[1], flagHigh
	ORR flagHigh, flag, flag
	CMP $0, flag
	CSET NE, flag
	MOVW flag, ret+32(FP)
	RET

// func maxBitsNEON(src *float32, n int) uint32
//
// n is a positive multiple of 16.
TEXT ·maxBitsNEON(SB), NOSPLIT, $0-20
	MOVD src+0(FP), from
	MOVD n+8(FP), left
	VEOR V16.B16, V16.B16, V16.B16
	VEOR V17.B16, V17.B16, V17.B16
	VEOR V18.B16, V18.B16, V18.B16
	VEOR V19.B16, V19.B16, V19.B16
	MOVD $0x7FFFFFFF, tmp
	VDUP tmp, V20.S4

maxLoop:
	VLD1.P 64(from), [V0.S4, V1.S4, V2.S4, V3.S4]
	VAND V20.B16, V0.B16, V0.B16
	VAND V20.B16, V1.B16, V1.B16
	VAND V20.B16, V2.B16, V2.B16
	VAND V20.B16, V3.B16, V3.B16
	VUMAX V0.S4, V16.S4, V16.S4
	VUMAX V1.S4, V17.S4, V17.S4
	VUMAX V2.S4, V18.S4, V18.S4
	VUMAX V3.S4, V19.S4, V19.S4
	SUBS $16, left, left
	BNE maxLoop

	VUMAX V17.S4, V16.S4, V16.S4
	VUMAX V19.S4, V18.S4, V18.S4
	VUMAX V18.S4, V16.S4, V16.S4
	EXTREME(VUMAX, V16)
	FMOVS F0, ret+16(FP)
	RET

// V21 and V22 = infinity and the canonical NaN.
#define NANS \
	MOVD $0x7F800000, tmp \
	VDUP tmp, V21.S4 \
	MOVD $0x7FC00000, tmp \
	VDUP tmp, V22.S4

// The canonical NaN for every magnitude in Vx that is NaN; Vy is lost.
#define CANONICAL(Vx, Vy) \
	VUMIN V21.S4, Vx.S4, Vy.S4 \
	VCMEQ Vx.S4, Vy.S4, Vy.S4 \
	VBIF Vy.B16, V22.B16, Vx.B16

// func maxBlocksNEON(dst, src *float32, blocks, block int)
//
// block is a positive multiple of 16, blocks is positive.
TEXT ·maxBlocksNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD blocks+16(FP), left
	MOVD block+24(FP), R4
	MOVD $0x7FFFFFFF, tmp
	VDUP tmp, V20.S4
	NANS

nextBlock:
	MOVD R4, R5
	VEOR V16.B16, V16.B16, V16.B16
	VEOR V17.B16, V17.B16, V17.B16

inBlock:
	VLD1.P 64(from), [V0.S4, V1.S4, V2.S4, V3.S4]
	VAND V20.B16, V0.B16, V0.B16
	VAND V20.B16, V1.B16, V1.B16
	VAND V20.B16, V2.B16, V2.B16
	VAND V20.B16, V3.B16, V3.B16
	VUMAX V1.S4, V0.S4, V0.S4
	VUMAX V3.S4, V2.S4, V2.S4
	VUMAX V0.S4, V16.S4, V16.S4
	VUMAX V2.S4, V17.S4, V17.S4
	SUBS $16, R5, R5
	BNE inBlock

	VUMAX V17.S4, V16.S4, V16.S4
	EXTREME(VUMAX, V16)
	FMOVS (to), F1
	VUMAX V1.S4, V0.S4, V0.S4
	CANONICAL(V0, V1)
	FMOVS.P F0, 4(to)
	SUBS $1, left, left
	BNE nextBlock
	RET

// func maxElementsNEON(dst, src *float32, n int)
//
// n is a positive multiple of 16.
TEXT ·maxElementsNEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), to
	MOVD to, R4 // to read from
	MOVD src+8(FP), from
	MOVD n+16(FP), left
	MOVD $0x7FFFFFFF, tmp
	VDUP tmp, V20.S4
	NANS

nextElements:
	VLD1.P 64(from), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R4), [V4.S4, V5.S4, V6.S4, V7.S4]
	VAND V20.B16, V0.B16, V0.B16
	VAND V20.B16, V1.B16, V1.B16
	VAND V20.B16, V2.B16, V2.B16
	VAND V20.B16, V3.B16, V3.B16
	VUMAX V4.S4, V0.S4, V0.S4
	VUMAX V5.S4, V1.S4, V1.S4
	VUMAX V6.S4, V2.S4, V2.S4
	VUMAX V7.S4, V3.S4, V3.S4
	CANONICAL(V0, V4)
	CANONICAL(V1, V5)
	CANONICAL(V2, V6)
	CANONICAL(V3, V7)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(to)
	SUBS $16, left, left
	BNE nextElements
	RET
