//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"
#include "vectors_amd64.h"

DATA lanes<>+0(SB)/8, $0x0000000100000000
DATA lanes<>+8(SB)/8, $0x0000000300000002
DATA lanes<>+16(SB)/8, $0x0000000500000004
DATA lanes<>+24(SB)/8, $0x0000000700000006
DATA lanes<>+32(SB)/8, $0x0000000900000008
DATA lanes<>+40(SB)/8, $0x0000000b0000000a
DATA lanes<>+48(SB)/8, $0x0000000d0000000c
DATA lanes<>+56(SB)/8, $0x0000000f0000000e
GLOBL lanes<>(SB), RODATA|NOPTR, $64

// Zx = mix32(Zx) of package fp8; Zt is lost.
#define MIX32(Zx, Zt) \
	VPSRLD $16, Zx, Zt \
	VPXORD Zt, Zx, Zx \
	VPMULLD Z12, Zx, Zx \
	VPSRLD $13, Zx, Zt \
	VPXORD Zt, Zx, Zx \
	VPMULLD Z13, Zx, Zx \
	VPSRLD $16, Zx, Zt \
	VPXORD Zt, Zx, Zx

// func encodeAVX512(dst *byte, src *float32, n int, e *Encoding, scales *float32, layout Layout, c *Counts)
//
// n is a positive multiple of 16.
TEXT ·encodeAVX512(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ e+24(FP), AX
	MOVQ scales+32(FP), R14
	MOVQ layout+40(FP), R13
	MOVQ c+48(FP), DX

	VBROADCASTSS (R14), Z16
	VPBROADCASTD Encoding_MinNormal(AX), Z17
	VBROADCASTSS Encoding_Magic(AX), Z18
	VPBROADCASTD Encoding_Shift(AX), Z19
	VPBROADCASTD Encoding_MaxCode(AX), Z21
	VPBROADCASTD Encoding_Normal(AX), Z22
	VPTERNLOGD $0xFF, Z24, Z24, Z24 // -1
	VPSRLD $1, Z24, Z25             // magnitude
	VPSRLD $31, Z24, Z26            // 1
	VPSRLD $24, Z24, Z20
	VPSLLD $23, Z20, Z20            // exponent
	VPSRLD $16, Z24, Z23            // lower half
	VPSLLD $7, Z26, Z27             // 0x80

	VPXORD Z28, Z28, Z28   // largest |x*scale|
	VPXORD Z29, Z29, Z29   // largest |x|
	VMOVDQA32 Z24, Z30     // smallest |x| - 1
	XORQ R8, R8            // saturated
	XORQ R9, R9            // saturated, negative
	XORQ R10, R10          // below normal
	XORQ R11, R11          // zero codes
	XORQ R12, R12          // zeros
	CMPQ R13, $2
	JNE mode
	VMOVUPS (R14), Z16

mode:
	CMPL Encoding_Mode(AX), $0
	JEQ loop

	// What only the other modes need: Z10 index, Z11 unit, Z12 and Z13 factors,
	// Z14 base, Z15 fraction shift, Z31 2^32.
	VPBROADCASTD Encoding_Index(AX), Z10
	VPADDD lanes<>(SB), Z10, Z10
	VBROADCASTSS Encoding_Unit(AX), Z11
	MOVL $0x85EBCA6B, BX
	VPBROADCASTD BX, Z12
	MOVL $0xC2B2AE35, BX
	VPBROADCASTD BX, Z13
	VPBROADCASTD Encoding_Base(AX), Z14
	VPBROADCASTD Encoding_FracShift(AX), Z15
	MOVL $0x4F800000, BX
	VPBROADCASTD BX, Z31

loop:
	VMOVUPS (SI), Z0
	VPANDD Z25, Z0, Z1     // |x|
	VPMAXUD Z1, Z29, Z29
	VPADDD Z24, Z1, Z2
	VPMINUD Z2, Z30, Z30
	CMPL Encoding_Divide(AX), $0
	JNE divide
	VMULPS Z16, Z0, Z3     // y

scaled:
	VPANDD Z25, Z3, Z4     // |y|
	VPMAXUD Z4, Z28, Z28
	CMPL Encoding_Mode(AX), $0
	JNE directed

	// As in the kernel of 64 at once.
	VPMAXUD Z17, Z4, Z5
	VPANDD Z20, Z5, Z5
	VFMADD213PS Z4, Z18, Z5
	VPSRLVD Z19, Z5, Z6
	VPADDD Z6, Z5, Z5
	VPANDD Z23, Z5, Z5

rounded:
	VPCMPUD $6, Z21, Z5, K2 // saturated
	VPCMPUD $1, Z22, Z5, K3 // below normal
	KORTESTW K2, K3
	JNZ count

counted:
	VPSRLD $24, Z3, Z8
	VPTERNLOGD $0xF8, Z27, Z8, Z5 // code | y >> 24 & 0x80
	VPMOVDB Z5, (DI)

	ADDQ $64, SI
	ADDQ $16, DI
	SUBQ $16, CX
	JZ done
	TESTQ R13, R13
	JZ loop
	CMPQ R13, $1
	JNE nextElements
	ADDQ $4, R14
	VBROADCASTSS (R14), Z16
	JMP loop

done:
	REDUCE512(VPMAXUD, Z28, Y28, Y0, X28, X0)
	REDUCE512(VPMAXUD, Z29, Y29, Y0, X29, X0)
	REDUCE512(VPMINUD, Z30, Y30, Y0, X30, X0)
	VMOVD X28, Counts_MaxScaled(DX)
	VMOVD X29, Counts_MaxBits(DX)
	VMOVD X30, Counts_MinBits(DX)
	MOVL R8, Counts_Saturated(DX)
	MOVL R9, Counts_SaturatedNeg(DX)
	MOVL R10, Counts_BelowNormal(DX)
	MOVL R11, Counts_ZeroCodes(DX)
	MOVL R12, Counts_Zeros(DX)
	VZEROUPPER
	RET

directed:
	// Normal: the bits that are kept, and those that are not.
	VPADDD Z14, Z4, Z5
	VPSRLVD Z19, Z5, Z5
	VPSLLVD Z15, Z4, Z6

	// Below: |y| in units of the smallest subnormal, cut to a whole number.
	VPCMPUD $1, Z17, Z4, K1
	VMULPS Z11, Z4, Z7
	VCVTTPS2DQ Z7, Z8
	VMOVDQA32 Z8, K1, Z5
	VCVTDQ2PS Z8, Z8
	VSUBPS Z8, Z7, Z7
	VMULPS Z31, Z7, Z7
	VCVTTPS2UDQ Z7, K1, Z6
	CMPL Encoding_Mode(AX), $1
	JEQ rounded

	VPBROADCASTD Encoding_K0(AX), Z7
	VPXORD Z7, Z10, Z7
	MIX32(Z7, Z8)
	VPBROADCASTD Encoding_K1(AX), Z8
	VPADDD Z8, Z7, Z7
	MIX32(Z7, Z8)
	VPCMPUD $6, Z7, Z6, K2
	VPSUBD Z24, Z5, K2, Z5 // + 1
	VPSLLD $4, Z26, Z8
	VPADDD Z8, Z10, Z10
	JMP rounded

divide:
	VDIVPS Z16, Z0, Z3
	JMP scaled

nextElements:
	ADDQ $64, R14
	VMOVUPS (R14), Z16
	JMP loop

count:
	KMOVW K2, BX
	POPCNTL BX, BX
	ADDQ BX, R8
	VPMOVD2M Z0, K5
	KANDW K2, K5, K5
	KMOVW K5, BX
	POPCNTL BX, BX
	ADDQ BX, R9
	KMOVW K3, BX
	POPCNTL BX, BX
	ADDQ BX, R10
	VPTESTNMD Z5, Z5, K5
	KMOVW K5, BX
	POPCNTL BX, BX
	ADDQ BX, R11
	VPTESTNMD Z1, Z1, K4
	KMOVW K4, BX
	POPCNTL BX, BX
	ADDQ BX, R12
	VPMINUD Z21, Z5, Z5
	CMPL Encoding_ZeroSign(AX), $0
	JNE counted
	VPXORD Z3, Z3, K5, Z3 // a zero code has no sign
	JMP counted

// DECODE decodes 16 codes. A subnormal is put on the smallest normal value and
// that taken away: a product of the bits as they are would be of subnormal
// float32s, which are slow.
#define DECODE(From, To) \
	VPMOVZXBD From(SI), Z0 \
	VPSLLVD Z16, Z0, Z1 \
	VPSLLD $24, Z0, Z2 \
	VPANDD Z17, Z1, Z1 \
	VPCMPUD $1, Z26, Z1, K3 \
	VPADDD Z25, Z1, Z4 \
	VPADDD Z18, Z1, Z1 \
	VSUBPS Z25, Z4, K3, Z1 \
	VPTERNLOGD $0xF8, Z23, Z2, Z1 \
	VMULPS Z19, Z1, Z1 \
	VMOVUPS Z1, To(DI)

// func decodeAVX512(dst *float32, src *byte, n int, d *Decoding) uint32
//
// n is a positive multiple of 16.
TEXT ·decodeAVX512(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ d+24(FP), AX

	VPBROADCASTD Decoding_Shift(AX), Z16
	VPBROADCASTD Decoding_Mask(AX), Z17
	VPBROADCASTD Decoding_Offset(AX), Z18
	VPBROADCASTD Decoding_Smallest(AX), Z25
	VBROADCASTSS Decoding_Scale(AX), Z19
	VPBROADCASTD Decoding_Max(AX), Z20
	VPBROADCASTD Decoding_Lone(AX), Z21
	VPTERNLOGD $0xFF, Z22, Z22, Z22
	VPSLLD $31, Z22, Z23          // sign
	VPSRLD $25, Z22, Z24          // 0x7F
	VPSRLD $31, Z22, Z26
	VPSLLD $23, Z26, Z26          // the first with an exponent

	VPBROADCASTB X20, Z27
	VPBROADCASTB X21, Z28
	VPBROADCASTB X24, Z29
	KXORQ K7, K7, K7
	SUBQ $64, CX
	JLT decodeRest

decodeLoop:
	// Codes that are not finite.
	VMOVDQU64 (SI), Z0
	VPANDD Z29, Z0, Z1
	VPCMPUB $6, Z27, Z1, K1
	VPCMPEQB Z28, Z0, K2
	KORQ K1, K7, K7
	KORQ K2, K7, K7
	DECODE(0, 0)
	DECODE(16, 64)
	DECODE(32, 128)
	DECODE(48, 192)
	ADDQ $64, SI
	ADDQ $256, DI
	SUBQ $64, CX
	JGE decodeLoop

decodeRest:
	ADDQ $64, CX
	JZ decoded

decodeSmall:
	VMOVDQU8 (SI), X0
	VPANDD X29, X0, X1
	VPCMPUB $6, X27, X1, K1
	VPCMPEQB X28, X0, K2
	KORQ K1, K7, K7
	KORQ K2, K7, K7
	DECODE(0, 0)
	ADDQ $16, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ decodeSmall

decoded:
	XORL R8, R8
	KORTESTQ K7, K7
	SETNE R8
	MOVL R8, ret+32(FP)
	VZEROUPPER
	RET

// func maxBitsAVX512(src *float32, n int) uint32
//
// n is a positive multiple of 16.
TEXT ·maxBitsAVX512(SB), NOSPLIT, $0-20
	MOVQ src+0(FP), SI
	MOVQ n+8(FP), CX
	VPTERNLOGD $0xFF, Z16, Z16, Z16
	VPSRLD $1, Z16, Z16
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	SUBQ $64, CX
	JLT rest

maxLoop:
	VPANDD (SI), Z16, Z4
	VPANDD 64(SI), Z16, Z5
	VPANDD 128(SI), Z16, Z6
	VPANDD 192(SI), Z16, Z7
	VPMAXUD Z4, Z0, Z0
	VPMAXUD Z5, Z1, Z1
	VPMAXUD Z6, Z2, Z2
	VPMAXUD Z7, Z3, Z3
	ADDQ $256, SI
	SUBQ $64, CX
	JGE maxLoop

rest:
	ADDQ $64, CX
	JZ reduce

restLoop:
	VPANDD (SI), Z16, Z4
	VPMAXUD Z4, Z0, Z0
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ restLoop

reduce:
	VPMAXUD Z1, Z0, Z0
	VPMAXUD Z3, Z2, Z2
	VPMAXUD Z2, Z0, Z0
	REDUCE512(VPMAXUD, Z0, Y0, Y1, X0, X1)
	VMOVD X0, AX
	MOVL AX, ret+16(FP)
	VZEROUPPER
	RET

// func maxBlocksAVX512(dst, src *float32, blocks, block int)
//
// block is a positive multiple of 16, blocks is positive.
TEXT ·maxBlocksAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ block+24(FP), DX
	VPTERNLOGD $0xFF, Z16, Z16, Z16
	VPSRLD $1, Z16, Z16

nextMax:
	MOVQ DX, BX
	VPXORD Z0, Z0, Z0

inBlock:
	VPANDD (SI), Z16, Z1
	VPMAXUD Z1, Z0, Z0
	ADDQ $64, SI
	SUBQ $16, BX
	JNZ inBlock
	REDUCE512(VPMAXUD, Z0, Y0, Y1, X0, X1)
	VMOVD (DI), X1
	VPMAXUD X1, X0, X0
	VMOVD X0, (DI)
	ADDQ $4, DI
	DECQ CX
	JNZ nextMax
	VZEROUPPER
	RET

// func maxElementsAVX512(dst, src *float32, n int)
//
// n is a positive multiple of 16.
TEXT ·maxElementsAVX512(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VPTERNLOGD $0xFF, Z16, Z16, Z16
	VPSRLD $1, Z16, Z16

nextElement:
	VPANDD (SI), Z16, Z0
	VPMAXUD (DI), Z0, Z0
	VMOVDQU32 Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ nextElement
	VZEROUPPER
	RET
