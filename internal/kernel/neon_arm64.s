//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// The assembler lacks many vector instructions. Those are written as WORD with
// the instruction beside it in the notation of the Arm manual, where the
// destination comes first; the test of package asmtable compares the two. They
// name registers by number: who renames one below must look there too.

// General registers.
#define to R0
#define from R1
#define left R2
#define params R3
#define counts R4
#define divides R5
#define mode R6
#define tmp R7

// Of the values at hand. The first two are then free for masks.
#define xs V0
#define absX V1
#define ys V2
#define absY V3
#define codes V4
#define codesF F4
#define va V5
#define vb V6
#define mask V0
#define below V1
#define frac V0 // what is cut off, as 32 bits

// Largest and smallest so far, and counts, each lane of its own.
#define maxScaled V8
#define maxBits V9
#define minBits V10
#define saturated V11
#define saturatedNeg V12
#define belowNormal V13
#define zeroCodes V14
#define zeros V15

// Constants.
#define scale V16
#define minNormal V17
#define addend V18
#define right V19 // -shift
#define round V20
#define maxCode V21
#define normal V22
#define zeroSign V23
#define one V24
#define sign V25  // 0x80
#define bytes0 V26 // the places of each lane's lowest byte

// Constants of the other modes: some in place of NearestEven's.
#define unit V18
#define base V20
#define key1 V7
#define index V27
#define factor1 V28
#define factor2 V29
#define key0 V30
#define fracLeft V31

// All lanes of v = the 32 bits at offset off of the parameters.
#define SPLAT(off, v) \
	MOVWU off(params), tmp \
	VDUP tmp, v.S4

// F0 = the maximum (or minimum) of v's lanes.
#define EXTREME(OP, v) \
	VEXT $8, v.B16, v.B16, V0.B16 \
	OP V0.S4, v.S4, v.S4 \
	VEXT $4, v.B16, v.B16, V0.B16 \
	OP V0.S4, v.S4, V0.S4

#define STORE_EXTREME(OP, v, off) \
	EXTREME(OP, v) \
	FMOVS F0, off(counts)

#define STORE_SUM(v, off) \
	VADDV v.S4, V0 \
	FMOVS F0, off(counts)

#define MUL_FACTOR1 WORD $0x4EBC9CA5 // mul v5.4s, v5.4s, v28.4s
#define MUL_FACTOR2 WORD $0x4EBD9CA5 // mul v5.4s, v5.4s, v29.4s

// va = mix32(va) of package fp8; vb is lost.
#define MIX32 \
	VUSHR $16, va.S4, vb.S4 \
	VEOR vb.B16, va.B16, va.B16 \
	MUL_FACTOR1 \
	VUSHR $13, va.S4, vb.S4 \
	VEOR vb.B16, va.B16, va.B16 \
	MUL_FACTOR2 \
	VUSHR $16, va.S4, vb.S4 \
	VEOR vb.B16, va.B16, va.B16

DATA lanes<>+0(SB)/8, $0x0000000100000000
DATA lanes<>+8(SB)/8, $0x0000000300000002
GLOBL lanes<>(SB), RODATA|NOPTR, $16

// func encodeNEON(dst *byte, src *float32, n int, e *Encoding, c *Counts)
//
// n is a positive multiple of 4.
TEXT ·encodeNEON(SB), NOSPLIT, $0-40
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD n+16(FP), left
	MOVD e+24(FP), params
	MOVD c+32(FP), counts

	SPLAT(Encoding_Scale, scale)
	SPLAT(Encoding_MinNormal, minNormal)
	SPLAT(Encoding_Addend, addend)
	SPLAT(Encoding_Round, round)
	SPLAT(Encoding_MaxCode, maxCode)
	SPLAT(Encoding_Normal, normal)
	SPLAT(Encoding_ZeroSign, zeroSign)
	MOVWU Encoding_Shift(params), tmp
	NEG tmp, tmp
	VDUP tmp, right.S4
	MOVD $1, tmp
	VDUP tmp, one.S4
	VSHL $7, one.S4, sign.S4
	MOVD $0x0C080400, tmp
	VDUP tmp, bytes0.S4

	VEOR maxScaled.B16, maxScaled.B16, maxScaled.B16
	VEOR maxBits.B16, maxBits.B16, maxBits.B16
	VSUB one.S4, maxBits.S4, minBits.S4
	VEOR saturated.B16, saturated.B16, saturated.B16
	VEOR saturatedNeg.B16, saturatedNeg.B16, saturatedNeg.B16
	VEOR belowNormal.B16, belowNormal.B16, belowNormal.B16
	VEOR zeroCodes.B16, zeroCodes.B16, zeroCodes.B16
	VEOR zeros.B16, zeros.B16, zeros.B16
	MOVWU Encoding_Divide(params), divides
	MOVWU Encoding_Mode(params), mode
	CBZ mode, loop

	MOVD $lanes<>(SB), tmp
	VLD1 (tmp), [va.S4]
	SPLAT(Encoding_Index, index)
	VADD va.S4, index.S4, index.S4
	SPLAT(Encoding_Unit, unit)
	SPLAT(Encoding_Base, base)
	SPLAT(Encoding_FracShift, fracLeft)
	SPLAT(Encoding_K0, key0)
	SPLAT(Encoding_K1, key1)
	MOVD $0x85EBCA6B, tmp
	VDUP tmp, factor1.S4
	MOVD $0xC2B2AE35, tmp
	VDUP tmp, factor2.S4

loop:
	VLD1.P 16(from), [xs.S4]
	WORD $0x4EA0F801 // fabs v1.4s, v0.4s
	VUMAX absX.S4, maxBits.S4, maxBits.S4
	VSUB one.S4, absX.S4, va.S4
	VUMIN va.S4, minBits.S4, minBits.S4
	CBNZ divides, divide
	WORD $0x6E30DC02 // fmul v2.4s, v0.4s, v16.4s

scaled:
	WORD $0x4EA0F843 // fabs v3.4s, v2.4s
	VUMAX absY.S4, maxScaled.S4, maxScaled.S4
	WORD $0x4EA09820 // cmeq v0.4s, v1.4s, #0
	VSUB mask.S4, zeros.S4, zeros.S4
	WORD $0x6EA33621 // cmhi v1.4s, v17.4s, v3.4s
	CBNZ mode, directed

	// Normal: (|y| + round + last kept bit) >> shift.
	WORD $0x6EB34464 // ushl v4.4s, v3.4s, v19.4s
	VAND one.B16, codes.B16, codes.B16
	VADD round.S4, codes.S4, codes.S4
	VADD absY.S4, codes.S4, codes.S4
	WORD $0x6EB34484 // ushl v4.4s, v4.4s, v19.4s

	// Below: bits(|y| + addend) - bits(addend).
	WORD $0x4E32D465 // fadd v5.4s, v3.4s, v18.4s
	VSUB addend.S4, va.S4, va.S4
	VBIT below.B16, va.B16, codes.B16

rounded:
	WORD $0x6EB53480 // cmhi v0.4s, v4.4s, v21.4s
	VSUB mask.S4, saturated.S4, saturated.S4
	VAND ys.B16, mask.B16, mask.B16
	VUSRA $31, mask.S4, saturatedNeg.S4
	WORD $0x6EA436C0 // cmhi v0.4s, v22.4s, v4.4s
	VSUB mask.S4, belowNormal.S4, belowNormal.S4
	WORD $0x4EA09880 // cmeq v0.4s, v4.4s, #0
	VSUB mask.S4, zeroCodes.S4, zeroCodes.S4

	// The sign, unless the code is a zero without one.
	VBSL sign.B16, zeroSign.B16, mask.B16
	VUMIN maxCode.S4, codes.S4, codes.S4
	VUSHR $24, ys.S4, va.S4
	VBIT mask.B16, va.B16, codes.B16
	VTBL bytes0.B16, [codes.B16], codes.B16
	FMOVS.P codesF, 4(to)

	SUBS $4, left, left
	BNE loop

	// What was counted is negative y; a negative scale makes that positive x.
	MOVWU Encoding_Scale(params), tmp
	TBZ $31, tmp, store
	VSUB saturatedNeg.S4, saturated.S4, saturatedNeg.S4

store:
	STORE_EXTREME(VUMAX, maxScaled, Counts_MaxScaled)
	STORE_EXTREME(VUMAX, maxBits, Counts_MaxBits)
	STORE_EXTREME(VUMIN, minBits, Counts_MinBits)
	STORE_SUM(saturated, Counts_Saturated)
	STORE_SUM(saturatedNeg, Counts_SaturatedNeg)
	STORE_SUM(belowNormal, Counts_BelowNormal)
	STORE_SUM(zeroCodes, Counts_ZeroCodes)
	STORE_SUM(zeros, Counts_Zeros)
	RET

directed:
	// Normal: the bits that are kept, and those that are not.
	VADD base.S4, absY.S4, codes.S4
	WORD $0x6EB34484 // ushl v4.4s, v4.4s, v19.4s
	WORD $0x6EBF4460 // ushl v0.4s, v3.4s, v31.4s

	// Below: |y| in units of the smallest subnormal, cut to a whole number; the
	// last conversion multiplies by 2^32.
	WORD $0x6E32DC65 // fmul v5.4s, v3.4s, v18.4s
	WORD $0x4EA1B8A6 // fcvtzs v6.4s, v5.4s
	VBIT below.B16, vb.B16, codes.B16
	WORD $0x4E21D8C6 // scvtf v6.4s, v6.4s
	WORD $0x4EA6D4A5 // fsub v5.4s, v5.4s, v6.4s
	WORD $0x6F20FCA5 // fcvtzu v5.4s, v5.4s, #32
	VBIT below.B16, va.B16, frac.B16
	CMP $1, mode
	BEQ rounded

	VEOR key0.B16, index.B16, va.B16
	MIX32
	VADD key1.S4, va.S4, va.S4
	MIX32
	WORD $0x6EA53400 // cmhi v0.4s, v0.4s, v5.4s
	VSUB mask.S4, codes.S4, codes.S4
	VSHL $2, one.S4, va.S4
	VADD va.S4, index.S4, index.S4
	B rounded

divide:
	WORD $0x6E30FC02 // fdiv v2.4s, v0.4s, v16.4s
	B scaled

#define lone R8
#define flag R9
#define flagHigh R10

#define bytes V0
#define halves V1
#define values0 V4
#define values1 V5
#define values2 V6
#define values3 V7
#define place V16 // shift - 24
#define keep V17  // mask and sign
#define rebias V18
#define blockScale V19
#define maxByte V20
#define loneByte V21
#define largest V22
#define lones V23
#define magnitude V24 // 0x7F
#define zero V25

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
	MOVWU Decoding_Shift(params), tmp
	SUB $24, tmp, tmp
	VDUP tmp, place.S4
	MOVWU Decoding_Mask(params), tmp
	ORR $0x80000000, tmp, tmp
	VDUP tmp, keep.S4
	MOVWU Decoding_Max(params), tmp
	VDUP tmp, maxByte.B16
	MOVWU Decoding_Lone(params), lone
	VDUP lone, loneByte.B16
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

	// A lone code beyond a byte is none.
	VMOV lones.D[0], flag
	VMOV lones.D[1], flagHigh
	ORR flagHigh, flag, flag
	CMP $0x100, lone
	CSEL LO, flag, ZR, flag

	WORD $0x6E3436D6 // cmhi v22.16b, v22.16b, v20.16b
	VMOV largest.D[0], flagHigh
	ORR flagHigh, flag, flag
	VMOV largest.D[1], flagHigh
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
