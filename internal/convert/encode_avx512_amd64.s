//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"
#include "vectors_amd64.h"

#define CONSTANT(name, v) \
	DATA name<>+0(SB)/4, $v \
	GLOBL name<>(SB), RODATA|NOPTR, $4

CONSTANT(leading1, 0x00800000) // the bit before a mantissa
CONSTANT(count16, 16)
CONSTANT(count32, 32)
CONSTANT(countMinus32, 0xFFFFFFE0)
CONSTANT(count48, 48)
CONSTANT(count64, 64)
CONSTANT(exponent, 0x7F800000)
CONSTANT(far, 0x0C000000)     // 24 binades
CONSTANT(farthest, 0xE4800000) // less 55 binades
CONSTANT(belowHalf, 0x7FFF)    // of a bfloat16's last place, less 1
CONSTANT(bfloat16, 0xFFFF0000) // what a bfloat16 has of a float32
CONSTANT(mix1, 0x85EBCA6B)
CONSTANT(mix2, 0xC2B2AE35)

DATA numbers<>+0(SB)/8, $0x0000000100000000
DATA numbers<>+8(SB)/8, $0x0000000300000002
DATA numbers<>+16(SB)/8, $0x0000000500000004
DATA numbers<>+24(SB)/8, $0x0000000700000006
DATA numbers<>+32(SB)/8, $0x0000000900000008
DATA numbers<>+40(SB)/8, $0x0000000b0000000a
DATA numbers<>+48(SB)/8, $0x0000000d0000000c
DATA numbers<>+56(SB)/8, $0x0000000f0000000e
GLOBL numbers<>(SB), RODATA|NOPTR, $64

// Where packing leaves each four of the 64 codes.
DATA unpacked<>+0(SB)/8, $0x0000000400000000
DATA unpacked<>+8(SB)/8, $0x0000000c00000008
DATA unpacked<>+16(SB)/8, $0x0000000500000001
DATA unpacked<>+24(SB)/8, $0x0000000d00000009
DATA unpacked<>+32(SB)/8, $0x0000000600000002
DATA unpacked<>+40(SB)/8, $0x0000000e0000000a
DATA unpacked<>+48(SB)/8, $0x0000000700000003
DATA unpacked<>+56(SB)/8, $0x0000000f0000000b
GLOBL unpacked<>(SB), RODATA|NOPTR, $64

// The lower halves of the numbers of two registers, in the order of packing.
DATA lower<>+0(SB)/8, $0x0006000400020000
DATA lower<>+8(SB)/8, $0x0026002400220020
DATA lower<>+16(SB)/8, $0x000e000c000a0008
DATA lower<>+24(SB)/8, $0x002e002c002a0028
DATA lower<>+32(SB)/8, $0x0016001400120010
DATA lower<>+40(SB)/8, $0x0036003400320030
DATA lower<>+48(SB)/8, $0x001e001c001a0018
DATA lower<>+56(SB)/8, $0x003e003c003a0038
GLOBL lower<>(SB), RODATA|NOPTR, $64

// The upper halves of numbers, as numbers: x >> 16 without the port of shifts.
DATA upper<>+0(SB)/8, $0x8080070680800302
DATA upper<>+8(SB)/8, $0x80800F0E80800B0A
DATA upper<>+16(SB)/8, $0x8080070680800302
DATA upper<>+24(SB)/8, $0x80800F0E80800B0A
DATA upper<>+32(SB)/8, $0x8080070680800302
DATA upper<>+40(SB)/8, $0x80800F0E80800B0A
DATA upper<>+48(SB)/8, $0x8080070680800302
DATA upper<>+56(SB)/8, $0x80800F0E80800B0A
GLOBL upper<>(SB), RODATA|NOPTR, $64

// The frame.
#define SOURCE 0   // 64 elements
#define SCALES 256 // 64 scales
#define CODES 512  // 64 codes
#define RANDOM 576 // the random bits, inverted, of 64 elements
#define HALVES 832 // 64 elements of 16 bits
#define NEXT 960   // where the next ones are

#define LARGEST \
	VPMAXUD Z8, Z28, Z28 \
	VPMAXUD Z9, Z28, Z28 \
	VPMAXUD Z10, Z28, Z28 \
	VPMAXUD Z11, Z28, Z28

// Z8 to Z11 = Z4 to Z7 scaled by one, by one each, or by one for every element.
#define BYONE(OP) \
	OP Z16, Z4, Z8 \
	OP Z16, Z5, Z9 \
	OP Z16, Z6, Z10 \
	OP Z16, Z7, Z11

#define BYSTEP(OP) \
	OP.BCST (R14), Z4, Z8 \
	OP.BCST 4(R14), Z5, Z9 \
	OP.BCST 8(R14), Z6, Z10 \
	OP.BCST 12(R14), Z7, Z11 \
	ADDQ $16, R14 \
	LARGEST

#define BYELEMENT(OP) \
	OP (R14), Z4, Z8 \
	OP 64(R14), Z5, Z9 \
	OP 128(R14), Z6, Z10 \
	OP 192(R14), Z7, Z11 \
	ADDQ $256, R14 \
	LARGEST

// Zx = the magnitude of the float32 Zx, which joins what was met.
#define MEET(Zx, Zabs, Zless) \
	VPANDD Z25, Zx, Zabs \
	VPADDD Z24, Zabs, Zless \
	VPMAXUD Zabs, Z29, Z29 \
	VPMINUD Zless, Z30, Z30

// Zy = the code of the magnitude Zy, in the lower 16 bits; Zt is lost.
//
// To Zy a number is added whose last place is that of the codes about Zy, or of
// the subnormal ones: its power of two, times Magic. So the sum's last bits are Zy
// in units of that place. The sum's exponent, moved to where a code has it, is
// added to them. What that is too much, the last bits of Magic have taken away.
#define ROUND(Zy, Zt) \
	VPMAXUD Z17, Zy, Zt \
	VPANDD Z18, Zt, Zt \
	VFMADD231PS Z19, Zt, Zy \
	VPSRLVD Z20, Zy, Zt \
	VPADDD Zt, Zy, Zy

// Zy = the odd magnitude that is Zy or before it; Z12 is 1.
#define ODD(Zy) \
	VPMAXUD Z12, Zy, Zy \
	VPADDD Z24, Zy, Zy \
	VPORD Z12, Zy, Zy

// Zy = the bfloat16 nearest to the magnitude Zy, ties to even; Zt is lost.
#define TOBF16(Zy, Zt) \
	VPSLLD $15, Zy, Zt \
	VPSRLD $31, Zt, Zt \
	VPADDD.BCST belowHalf<>(SB), Zy, Zy \
	VPADDD Zt, Zy, Zy \
	VPANDD.BCST bfloat16<>(SB), Zy, Zy

// Zx = all bits set where a value is zero.
#define ZEROS(at, Zx) \
	VPTESTNMD at(SI), Z25, K4 \
	VPMOVM2D K4, Zx

// Zy = the mantissa of the magnitude Zy with its leading bit and above that, from
// the format's smallest normal value on, how many binades Zy is higher. Zt = how
// many of its bits do not fit a code: Shift, and one more for each binade below.
#define SPLIT(Zy, Zt) \
	VPMINUD Z17, Zy, Zt \
	VPANDD.BCST exponent<>(SB), Zt, Zt \
	VPSUBD Zt, Zy, Zy \
	VPADDD.BCST leading1<>(SB), Zy, Zy \
	VPSUBD Zt, Z19, Zt \
	VPSRLD $23, Zt, Zt

#define TOWARDZERO(Zy, Zt) \
	SPLIT(Zy, Zt) \
	VPSRLVD Zt, Zy, Zy

// Random bits of 64 elements come from Z12 to Z15 side by side, since each chain of
// multiplications waits for its own results most of the time. Z1 is lost.
#define FOUR(STEP) \
	STEP(Z12) \
	STEP(Z13) \
	STEP(Z14) \
	STEP(Z15)

#define KEY0(Zx) VPXORD.BCST Encoding_K0(AX), Zx, Zx
#define KEY1(Zx) VPADDD.BCST Encoding_K1(AX), Zx, Zx

// The steps of mix32 of package fp8: FOLD16, TIMES1, FOLD13, TIMES2, FOLD16.
#define FOLD16(Zx) \
	VPSHUFB upper<>(SB), Zx, Z1 \
	VPXORD Z1, Zx, Zx

#define TIMES1(Zx) VPMULLD.BCST mix1<>(SB), Zx, Zx

#define FOLD13(Zx) \
	VPSRLD $13, Zx, Z1 \
	VPXORD Z1, Zx, Zx

#define TIMES2(Zx) VPMULLD.BCST mix2<>(SB), Zx, Zx

// FOLD16 with all bits inverted.
#define FOLD16NOT(Zx) \
	VPSHUFB upper<>(SB), Zx, Z1 \
	VPTERNLOGD $0xC3, Z1, Z1, Zx

// Z12 to Z15 = the numbers of the next 64 elements.
#define NUMBERS \
	VMOVDQA32 Z31, Z12 \
	VPADDD.BCST count16<>(SB), Z31, Z13 \
	VPADDD.BCST count32<>(SB), Z31, Z14 \
	VPADDD.BCST count48<>(SB), Z31, Z15 \
	VPADDD.BCST count64<>(SB), Z31, Z31

#define KEEPRANDOM \
	VMOVDQU32 Z12, RANDOM(SP) \
	VMOVDQU32 Z13, RANDOM+64(SP) \
	VMOVDQU32 Z14, RANDOM+128(SP) \
	VMOVDQU32 Z15, RANDOM+192(SP)

// The frame has the random bits, inverted, of the next 64 elements.
#define MAKERANDOM \
	NUMBERS \
	FOUR(KEY0) \
	FOUR(FOLD16) \
	FOUR(TIMES1) \
	FOUR(FOLD13) \
	FOUR(TIMES2) \
	FOUR(FOLD16) \
	FOUR(KEY1) \
	FOUR(FOLD16) \
	FOUR(TIMES1) \
	FOUR(FOLD13) \
	FOUR(TIMES2) \
	FOUR(FOLD16NOT) \
	KEEPRANDOM

// Zy = the code of the magnitude Zy, which is SPLIT, rounded stochastically with the
// random bits at a place in the frame. Zs bits of Zy do not fit, at most 31: whether
// they are more than as many random ones is whether the sum with those, inverted,
// carries. Z2 and Z3 are lost.
#define ROUNDRANDOMLY(Zy, Zs, at) \
	VMOVDQU32 RANDOM+at(SP), Z2 \
	VPSUBD Zs, Z20, Z3 \
	VPSRLVD Z3, Z2, Z2 \
	VPADDD Z2, Zy, Zy \
	VPSRLVD Zs, Zy, Zy

// The same however many bits do not fit. They go to the top of 32 bits: to the left,
// or to the right where they are more than that; of the two shifts that which is not
// due gives 0.
#define ROUNDFAR(Zy, Zs, at) \
	SPLIT(Zy, Zs) \
	VPXORD RANDOM+at(SP), Z24, Z2 \
	VPSUBD Zs, Z20, Z3 \
	VPADDD.BCST countMinus32<>(SB), Zs, Z1 \
	VPSLLVD Z3, Zy, Z3 \
	VPSRLVD Z1, Zy, Z1 \
	VPORD Z1, Z3, Z3 \
	VPCMPUD $6, Z2, Z3, K1 \
	VPSRLVD Zs, Zy, Zy \
	VPSUBD Z24, Zy, K1, Zy

// R = R + the zeros among 16 elements; K4 and BX are lost.
#define COUNTZEROS(at, R) \
	VPTESTNMD at(SI), Z25, K4 \
	KMOVW K4, BX \
	POPCNTL BX, BX \
	ADDQ BX, R

// func encodeAVX512(dst *byte, src *float32, n int, e *Encoding, scales *float32, layout Layout, c *Counts)
//
// n is a positive multiple of 16. The loop takes 64 elements. Where they have 16 bits
// they are where NEXT says, and SI is where they are as float32.
TEXT ·encodeAVX512(SB), 0, $968-56
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ e+24(FP), AX
	MOVQ scales+32(FP), R14
	MOVQ layout+40(FP), DX
	MOVQ SI, NEXT(SP)

	VBROADCASTSS (R14), Z16
	VPBROADCASTD Encoding_MinNormal(AX), Z17
	VPTERNLOGD $0xFF, Z24, Z24, Z24 // -1
	VPSRLD $1, Z24, Z25             // magnitude
	VPSRLD $24, Z24, Z18
	VPSLLD $23, Z18, Z18            // exponent
	VPBROADCASTD Encoding_Magic(AX), Z19
	VPBROADCASTD Encoding_Shift(AX), Z20
	VMOVDQU64 lower<>(SB), Z21
	VPBROADCASTB Encoding_MaxCode(AX), Z22
	VPBROADCASTB Encoding_Normal(AX), Z23
	VPBROADCASTB Encoding_Sign(AX), Z26
	VMOVDQU64 unpacked<>(SB), Z27

	VPXORD Z28, Z28, Z28   // largest |x*scale|
	VPXORD Z29, Z29, Z29   // largest |x|
	VMOVDQA32 Z24, Z30     // smallest |x| - 1
	XORQ R8, R8            // saturated
	XORQ R9, R9            // saturated, negative
	XORQ R10, R10          // below normal
	XORQ R11, R11          // zero codes
	XORQ R12, R12          // zeros
	XORQ R13, R13          // elements that are not there
	SHLQ $1, DX
	ADDL Encoding_Divide(AX), DX
	CMPL Encoding_Mode(AX), $const_NearestTowardZero
	JAE start
	CMPL Encoding_Mode(AX), $1
	JAE others

start:
	CMPQ CX, $64
	JLT tail

loop:
	MOVL Encoding_Ahead(AX), BX
	CMPL Encoding_Source(AX), $const_Float32
	JNE halves
	PREFETCHT1 (SI)(BX*1)
	PREFETCHT1 64(SI)(BX*1)
	PREFETCHT1 128(SI)(BX*1)
	PREFETCHT1 192(SI)(BX*1)
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	VMOVUPS 128(SI), Z2
	VMOVUPS 192(SI), Z3

loaded:
	MEET(Z0, Z4, Z8)
	MEET(Z1, Z5, Z9)
	MEET(Z2, Z6, Z10)
	MEET(Z3, Z7, Z11)
	CMPQ DX, $2
	JEQ byStep
	JA otherScales
	TESTQ DX, DX
	JNE divideByOne
	BYONE(VMULPS)

scaled:
	CMPL Encoding_Mode(AX), $1
	JAE directed

nearest:
	ROUND(Z8, Z12)
	ROUND(Z9, Z13)
	ROUND(Z10, Z14)
	ROUND(Z11, Z15)

	// Packing saturates and so keeps the signs of x as of an integer.
	VPERMT2W Z9, Z21, Z8
	VPERMT2W Z11, Z21, Z10
	VPACKSSDW Z1, Z0, Z0
	VPACKSSDW Z3, Z2, Z2

signed:
	VPACKUSWB Z10, Z8, Z8
	VPACKSSWB Z2, Z0, Z0

	VPCMPUB $6, Z22, Z8, K1 // saturated
	VPTESTNMB Z8, Z8, K2    // zero
	VPCMPUB $1, Z23, Z8, K3 // below normal
	KMOVQ K3, BX
	POPCNTQ BX, BX
	ADDQ BX, R10
	KORTESTQ K1, K2
	JNZ rare

counted:
	VPMOVB2M Z0, K3
	VPADDB Z26, Z8, K3, Z8 // the sign
	VPERMD Z8, Z27, Z8
	VMOVDQU64 Z8, (DI)
	ADDQ $256, SI
	ADDQ $64, DI
	SUBQ $64, CX
	CMPQ CX, $64
	JGE loop
	TESTQ R13, R13
	JNZ tailDone
	TESTQ CX, CX
	JNZ tail

done:
	MOVQ c+48(FP), R13
	// One scale keeps the order of magnitudes.
	CMPQ DX, $1
	JA largest
	JEQ divideLargest
	VMULPS Z16, Z29, Z28

largest:
	REDUCE512(VPMAXUD, Z28, Y28, Y0, X28, X0)
	REDUCE512(VPMAXUD, Z29, Y29, Y0, X29, X0)
	REDUCE512(VPMINUD, Z30, Y30, Y0, X30, X0)
	VMOVD X28, Counts_MaxScaled(R13)
	VMOVD X29, Counts_MaxBits(R13)
	VMOVD X30, Counts_MinBits(R13)
	MOVL R8, Counts_Saturated(R13)
	MOVL R9, Counts_SaturatedNeg(R13)
	MOVL R10, Counts_BelowNormal(R13)
	MOVL R11, Counts_ZeroCodes(R13)
	MOVL R12, Counts_Zeros(R13)
	VZEROUPPER
	RET

halves:
	ADDQ NEXT(SP), BX
	PREFETCHT1 (BX)
	PREFETCHT1 64(BX)
	MOVQ NEXT(SP), BX
	CMPL Encoding_Source(AX), $const_BFloat16
	JNE float16s
	VPMOVZXWD (BX), Z0
	VPMOVZXWD 32(BX), Z1
	VPMOVZXWD 64(BX), Z2
	VPMOVZXWD 96(BX), Z3
	VPSLLD $16, Z0, Z0
	VPSLLD $16, Z1, Z1
	VPSLLD $16, Z2, Z2
	VPSLLD $16, Z3, Z3

widened:
	ADDQ $128, BX
	MOVQ BX, NEXT(SP)
	LEAQ SOURCE(SP), SI
	VMOVUPS Z0, (SI)
	VMOVUPS Z1, 64(SI)
	VMOVUPS Z2, 128(SI)
	VMOVUPS Z3, 192(SI)
	JMP loaded

float16s:
	VCVTPH2PS (BX), Z0
	VCVTPH2PS 32(BX), Z1
	VCVTPH2PS 64(BX), Z2
	VCVTPH2PS 96(BX), Z3
	JMP widened

divideLargest:
	VDIVPS Z16, Z29, Z28
	JMP largest

byStep:
	BYSTEP(VMULPS)
	JMP scaled

divideByOne:
	BYONE(VDIVPS)
	JMP scaled

otherScales:
	CMPQ DX, $4
	JEQ byElement
	JA divideByElement
	BYSTEP(VDIVPS)
	JMP scaled

byElement:
	BYELEMENT(VMULPS)
	JMP scaled

divideByElement:
	BYELEMENT(VDIVPS)
	JMP scaled

rare:
	KMOVQ K1, BX
	POPCNTQ BX, BX
	ADDQ BX, R8
	VPMOVB2M Z0, K3
	KANDQ K1, K3, K3
	KMOVQ K3, BX
	POPCNTQ BX, BX
	ADDQ BX, R9
	VPMINUB Z22, Z8, Z8
	KMOVQ K2, BX
	POPCNTQ BX, BX
	ADDQ BX, R11
	COUNTZEROS(0, R12)
	COUNTZEROS(64, R12)
	COUNTZEROS(128, R12)
	COUNTZEROS(192, R12)
	CMPL Encoding_Zeros(AX), $const_ZerosUnsigned
	JB counted
	JA zeroValues
	VPSUBB Z0, Z0, K2, Z0 // a zero code has no sign
	JMP counted

zeroValues:
	ZEROS(0, Z1)
	ZEROS(64, Z2)
	ZEROS(128, Z3)
	ZEROS(192, Z9)
	VPACKSSDW Z2, Z1, Z1
	VPACKSSDW Z9, Z3, Z3
	VPACKSSWB Z3, Z1, Z1
	CMPL Encoding_Zeros(AX), $const_ZerosPositive
	JNE negativeZeros
	VPANDND Z0, Z1, Z0
	JMP counted

negativeZeros:
	VPORD Z1, Z0, Z0
	JMP counted

others:
	// Z18 = the least magnitude that a random number may yet round up, Z19 = Shift
	// and MinNormal's exponent, Z20 = 32, Z31 = index.
	VPBROADCASTD Encoding_Shift(AX), Z19
	VPSLLD $23, Z19, Z19
	VPADDD Z17, Z19, Z19
	VPADDD.BCST farthest<>(SB), Z19, Z18
	VPBROADCASTD count32<>(SB), Z20
	VPBROADCASTD Encoding_Index(AX), Z31
	VPADDD numbers<>(SB), Z31, Z31
	CMPL Encoding_Mode(AX), $1
	JE start
	MAKERANDOM
	JMP start

directed:
	JNE stochastic
	TOWARDZERO(Z8, Z12)
	TOWARDZERO(Z9, Z13)
	TOWARDZERO(Z10, Z14)
	TOWARDZERO(Z11, Z15)
	JMP packed

downTies:
	VPABSD Z24, Z12
	ODD(Z8)
	ODD(Z9)
	ODD(Z10)
	ODD(Z11)
	JMP nearest

ofBF16:
	TOBF16(Z8, Z12)
	TOBF16(Z9, Z13)
	TOBF16(Z10, Z14)
	TOBF16(Z11, Z15)
	JMP nearest

stochastic:
	CMPL Encoding_Mode(AX), $const_NearestTowardZero
	JEQ downTies
	JA ofBF16

	// Are there magnitudes of which 32 to 55 bits do not fit?
	VPSUBD Z18, Z8, Z0
	VPSUBD Z18, Z9, Z1
	VPSUBD Z18, Z10, Z2
	VPSUBD Z18, Z11, Z3
	VPMINUD Z1, Z0, Z0
	VPMINUD Z3, Z2, Z2
	VPMINUD Z2, Z0, Z0
	VPCMPUD.BCST $1, far<>(SB), Z0, K1
	KORTESTW K1, K1
	JNZ stochasticFar

	// These elements are rounded while the random bits of the next are made.
	NUMBERS
	FOUR(KEY0)
	FOUR(FOLD16)
	FOUR(TIMES1)
	SPLIT(Z8, Z4)
	FOUR(FOLD13)
	FOUR(TIMES2)
	SPLIT(Z9, Z5)
	ROUNDRANDOMLY(Z8, Z4, 0)
	FOUR(FOLD16)
	FOUR(KEY1)
	FOUR(FOLD16)
	FOUR(TIMES1)
	SPLIT(Z10, Z6)
	ROUNDRANDOMLY(Z9, Z5, 64)
	FOUR(FOLD13)
	FOUR(TIMES2)
	SPLIT(Z11, Z7)
	ROUNDRANDOMLY(Z10, Z6, 128)
	ROUNDRANDOMLY(Z11, Z7, 192)
	FOUR(FOLD16NOT)
	KEEPRANDOM

packed:
	VPACKUSDW Z9, Z8, Z8
	VPACKUSDW Z11, Z10, Z10
	VMOVDQU32 (SI), Z0
	VMOVDQU32 128(SI), Z2
	VPACKSSDW 64(SI), Z0, Z0
	VPACKSSDW 192(SI), Z2, Z2
	JMP signed

stochasticFar:
	ROUNDFAR(Z8, Z4, 0)
	ROUNDFAR(Z9, Z5, 64)
	ROUNDFAR(Z10, Z6, 128)
	ROUNDFAR(Z11, Z7, 192)
	MAKERANDOM
	JMP packed

tail:
	// The last 16, 32 or 48 elements are encoded with zeros behind them, in the
	// frame, under scales of 1.
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	CMPL Encoding_Source(AX), $const_Float32
	JNE tailHalves
	VMOVUPS (SI), Z0
	CMPQ CX, $32
	JLT copied
	VMOVUPS 64(SI), Z1
	JEQ copied
	VMOVUPS 128(SI), Z2

copied:
	VMOVUPS Z0, SOURCE(SP)
	VMOVUPS Z1, SOURCE+64(SP)
	VMOVUPS Z2, SOURCE+128(SP)
	VMOVUPS Z3, SOURCE+192(SP)

tailScales:
	CMPQ DX, $2
	JLT ready
	MOVL $0x3F800000, BX
	VPBROADCASTD BX, Z0
	VMOVDQA32 Z0, Z1
	VMOVDQA32 Z0, Z2
	VMOVDQA32 Z0, Z3
	CMPQ DX, $4
	JGE copyElements
	VMOVUPS X0, SCALES(SP)
	MOVL (R14), BX
	MOVL BX, SCALES(SP)
	CMPQ CX, $32
	JLT scalesCopied
	MOVL 4(R14), BX
	MOVL BX, SCALES+4(SP)
	JEQ scalesCopied
	MOVL 8(R14), BX
	MOVL BX, SCALES+8(SP)
	JMP scalesCopied

copyElements:
	VMOVUPS (R14), Z0
	CMPQ CX, $32
	JLT elementsCopied
	VMOVUPS 64(R14), Z1
	JEQ elementsCopied
	VMOVUPS 128(R14), Z2

elementsCopied:
	VMOVUPS Z0, SCALES(SP)
	VMOVUPS Z1, SCALES+64(SP)
	VMOVUPS Z2, SCALES+128(SP)
	VMOVUPS Z3, SCALES+192(SP)

scalesCopied:
	LEAQ SCALES(SP), R14

ready:
	LEAQ SOURCE(SP), SI
	LEAQ CODES(SP), DI
	MOVQ $64, R13
	SUBQ CX, R13
	MOVQ $64, CX
	JMP loop

tailHalves:
	MOVQ NEXT(SP), BX
	VMOVDQU (BX), Y0
	CMPQ CX, $32
	JLT halvesCopied
	VMOVDQU 32(BX), Y1
	JEQ halvesCopied
	VMOVDQU 64(BX), Y2

halvesCopied:
	LEAQ HALVES(SP), BX
	MOVQ BX, NEXT(SP)
	VMOVDQU Y0, (BX)
	VMOVDQU Y1, 32(BX)
	VMOVDQU Y2, 64(BX)
	VMOVDQU Y3, 96(BX)
	JMP tailScales

tailDone:
	SUBQ R13, R10
	SUBQ R13, R11
	SUBQ R13, R12
	MOVQ dst+0(FP), DI
	ADDQ n+16(FP), DI
	ADDQ R13, DI       // where 64 elements would end
	MOVQ R13, CX
	MOVQ $-1, BX
	SHRQ CX, BX
	KMOVQ BX, K1
	VMOVDQU8 Z8, K1, -64(DI)
	JMP done
