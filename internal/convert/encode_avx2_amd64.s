//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"
#include "vectors_amd64.h"

// Registers being few, constants are read from memory: those of all formats from
// here, those of one from the frame. name<> = v, four times.
#define FILL(name, v) \
	DATA name<>+0(SB)/8, $v \
	DATA name<>+8(SB)/8, $v \
	DATA name<>+16(SB)/8, $v \
	DATA name<>+24(SB)/8, $v \
	GLOBL name<>(SB), RODATA|NOPTR, $32

FILL(minus1, 0xFFFFFFFFFFFFFFFF)
FILL(minus32, 0xFFFFFFE0FFFFFFE0)
FILL(exponent, 0x7F8000007F800000)
FILL(leading, 0x0080000000800000) // the bit before a mantissa
FILL(belowHalf, 0x00007FFF00007FFF) // of a bfloat16's last place, less 1
FILL(bfloat16, 0xFFFF0000FFFF0000)  // what a bfloat16 has of a float32
FILL(factor1, 0x85EBCA6B85EBCA6B)
FILL(factor2, 0xC2B2AE35C2B2AE35)
FILL(far, 0x0BFFFFFF0BFFFFFF)      // 24 binades, less 1
FILL(farthest, 0xE4800000E4800000) // less 55 binades
FILL(byte1, 0x0101010101010101)

// The upper halves of numbers, as numbers: x >> 16 without the ports of shifts.
DATA upper<>+0(SB)/8, $0x8080070680800302
DATA upper<>+8(SB)/8, $0x80800F0E80800B0A
DATA upper<>+16(SB)/8, $0x8080070680800302
DATA upper<>+24(SB)/8, $0x80800F0E80800B0A
GLOBL upper<>(SB), RODATA|NOPTR, $32

// Element numbers of four vectors.
DATA lanes<>+0(SB)/8, $0x0000000100000000
DATA lanes<>+8(SB)/8, $0x0000000300000002
DATA lanes<>+16(SB)/8, $0x0000000500000004
DATA lanes<>+24(SB)/8, $0x0000000700000006
DATA lanes<>+32(SB)/8, $0x0000000900000008
DATA lanes<>+40(SB)/8, $0x0000000B0000000A
DATA lanes<>+48(SB)/8, $0x0000000D0000000C
DATA lanes<>+56(SB)/8, $0x0000000F0000000E
DATA lanes<>+64(SB)/8, $0x0000001100000010
DATA lanes<>+72(SB)/8, $0x0000001300000012
DATA lanes<>+80(SB)/8, $0x0000001500000014
DATA lanes<>+88(SB)/8, $0x0000001700000016
DATA lanes<>+96(SB)/8, $0x0000001900000018
DATA lanes<>+104(SB)/8, $0x0000001B0000001A
DATA lanes<>+112(SB)/8, $0x0000001D0000001C
DATA lanes<>+120(SB)/8, $0x0000001F0000001E
DATA lanes<>+128(SB)/8, $0x0000002000000020
DATA lanes<>+136(SB)/8, $0x0000002000000020
DATA lanes<>+144(SB)/8, $0x0000002000000020
DATA lanes<>+152(SB)/8, $0x0000002000000020
GLOBL lanes<>(SB), RODATA|NOPTR, $160

// Where packing leaves each four of the 32 codes.
DATA order<>+0(SB)/8, $0x0000000400000000
DATA order<>+8(SB)/8, $0x0000000500000001
DATA order<>+16(SB)/8, $0x0000000600000002
DATA order<>+24(SB)/8, $0x0000000700000003
GLOBL order<>(SB), RODATA|NOPTR, $32

// The frame, from R13 on.
#define SCALE 0(R13)
#define UNSHIFT 32(R13)
#define NORMAL 64(R13)
#define MAXCODE 96(R13)
#define KEY0 128(R13)
#define KEY1 160(R13)
#define FARTHEST 192(R13)
#define SOURCE 224 // 32 elements
#define SCALES 352 // 32 scales
#define CODES 480  // 32 codes
#define VALUES 512 // 32 magnitudes, or their codes
#define RANDOM 640 // the random bits, inverted, of 32 elements
#define HALVES 768 // 32 elements of 16 bits
#define NEXT 832(R13) // where the next ones are
#define SIGN 864(R13)
#define SELDOM 896(R13) // -1, or 0 if zero codes and saturated ones come often

// Y0 to Y3 scaled by one, by one for 16 each, or by one for every element; the
// last two gather the largest.
#define BYONE(OP) \
	OP SCALE, Y0, Y0 \
	OP SCALE, Y1, Y1 \
	OP SCALE, Y2, Y2 \
	OP SCALE, Y3, Y3

#define BYSTEP(OP) \
	VBROADCASTSS (R14), Y4 \
	VBROADCASTSS 4(R14), Y5 \
	ADDQ $8, R14 \
	OP Y4, Y0, Y0 \
	OP Y4, Y1, Y1 \
	OP Y5, Y2, Y2 \
	OP Y5, Y3, Y3

#define BYELEMENT(OP) \
	OP (R14), Y0, Y0 \
	OP 32(R14), Y1, Y1 \
	OP 64(R14), Y2, Y2 \
	OP 96(R14), Y3, Y3 \
	ADDQ $128, R14

// Yy = the code of the magnitude Yy, to nearest even, shifted left by what is in
// UNSHIFT; Yt is lost.
//
// To Yy a number is added whose last place is that of the codes about Yy, or of
// the subnormal ones: its power of two, times Magic. So the sum's last bits are Yy
// in units of that place, less what the sum's exponent, moved to where a code has
// it, will be too much. The lower half of the sum is now a small number, of either
// sign; the upper is the exponent, 7 places up. One multiplication adds the two,
// with the lower moved up to where the exponent is.
#define NEAREST(Yy, Yt) \
	VPMAXUD Y12, Yy, Yt \
	VPAND Y13, Yt, Yt \
	VFMADD231PS Y14, Yt, Yy \
	VPMADDWD Y15, Yy, Yy

// Yy = the odd magnitude that is Yy or before it; Y4 is 1.
#define ODD(Yy) \
	VPMAXUD Y4, Yy, Yy \
	VPADDD minus1<>(SB), Yy, Yy \
	VPOR Y4, Yy, Yy

// Yy = the bfloat16 nearest to the magnitude Yy, ties to even; Yt is lost.
#define TOBF16(Yy, Yt) \
	VPSLLD $15, Yy, Yt \
	VPSRLD $31, Yt, Yt \
	VPADDD belowHalf<>(SB), Yy, Yy \
	VPADDD Yt, Yy, Yy \
	VPAND bfloat16<>(SB), Yy, Yy

// Yy = the mantissa of the magnitude Yy with its leading bit and above that, from
// the format's smallest normal value on, how many binades Yy is higher. Yt = how
// many of its bits do not fit a code: Shift, and one more for each binade below.
#define SPLIT(Yy, Yt) \
	VPMINUD Y12, Yy, Yt \
	VPAND exponent<>(SB), Yt, Yt \
	VPSUBD Yt, Yy, Yy \
	VPADDD leading<>(SB), Yy, Yy \
	VPSUBD Yt, Y14, Yt \
	VPSRLD $23, Yt, Yt

#define TOWARDZERO(Yy, Yt) \
	SPLIT(Yy, Yt) \
	VPSRLVD Yt, Yy, Yy

// Random bits of 32 elements come from Y0 to Y3 side by side, since each chain of
// multiplications waits for its own results most of the time. Y4 is lost.
#define FOUR(STEP) \
	STEP(Y0) \
	STEP(Y1) \
	STEP(Y2) \
	STEP(Y3)

#define FIRSTKEY(Yx) VPXOR KEY0, Yx, Yx
#define SECONDKEY(Yx) VPADDD KEY1, Yx, Yx

// The steps of mix32 of package fp8: FOLD16, TIMES1, FOLD13, TIMES2, FOLD16.
#define FOLD16(Yx) \
	VPSHUFB upper<>(SB), Yx, Y4 \
	VPXOR Y4, Yx, Yx

#define TIMES1(Yx) VPMULLD factor1<>(SB), Yx, Yx

#define FOLD13(Yx) \
	VPSRLD $13, Yx, Y4 \
	VPXOR Y4, Yx, Yx

#define TIMES2(Yx) VPMULLD factor2<>(SB), Yx, Yx

#define INVERT(Yx) VPXOR minus1<>(SB), Yx, Yx

// Y0 to Y3 = the numbers of the next 32 elements.
#define NUMBERS \
	VPADDD lanes<>+0(SB), Y15, Y0 \
	VPADDD lanes<>+32(SB), Y15, Y1 \
	VPADDD lanes<>+64(SB), Y15, Y2 \
	VPADDD lanes<>+96(SB), Y15, Y3 \
	VPADDD lanes<>+128(SB), Y15, Y15

#define KEEPRANDOM \
	VMOVDQU Y0, RANDOM(R13) \
	VMOVDQU Y1, RANDOM+32(R13) \
	VMOVDQU Y2, RANDOM+64(R13) \
	VMOVDQU Y3, RANDOM+96(R13)

// The frame has the random bits, inverted, of the next 32 elements.
#define MAKERANDOM \
	NUMBERS \
	FOUR(FIRSTKEY) \
	FOUR(FOLD16) \
	FOUR(TIMES1) \
	FOUR(FOLD13) \
	FOUR(TIMES2) \
	FOUR(FOLD16) \
	FOUR(SECONDKEY) \
	FOUR(FOLD16) \
	FOUR(TIMES1) \
	FOUR(FOLD13) \
	FOUR(TIMES2) \
	FOUR(FOLD16) \
	FOUR(INVERT) \
	KEEPRANDOM

// The magnitude at a place in the frame becomes its code, rounded stochastically with
// the random bits there. Y4 to Y7 are lost. Y6 bits of it do not fit, at most 31:
// whether they are more than as many random ones is whether the sum with those,
// inverted, carries.
#define ROUNDRANDOMLY(at) \
	VMOVDQU VALUES+at(R13), Y5 \
	SPLIT(Y5, Y6) \
	VMOVDQU RANDOM+at(R13), Y4 \
	VPSUBD Y6, Y13, Y7 \
	VPSRLVD Y7, Y4, Y4 \
	VPADDD Y4, Y5, Y5 \
	VPSRLVD Y6, Y5, Y5 \
	VMOVDQU Y5, VALUES+at(R13)

// Yy = the code of the magnitude Yy likewise, less 1, however many bits do not fit.
// They go to the top of 32 bits: to the left, or to the right where they are more than
// that; of the two shifts that which is not due gives 0. Inverted, they are compared.
#define ROUNDFAR(Yy, at) \
	SPLIT(Yy, Y4) \
	VPSUBD Y4, Y13, Y5 \
	VPADDD minus32<>(SB), Y4, Y6 \
	VPSLLVD Y5, Yy, Y5 \
	VPSRLVD Y6, Yy, Y6 \
	VPOR Y6, Y5, Y5 \
	VPXOR minus1<>(SB), Y5, Y5 \
	VPSRLVD Y4, Yy, Yy \
	VPMAXUD RANDOM+at(R13), Y5, Y7 \
	VPCMPEQD Y5, Y7, Y7 \
	VPADDD Y7, Yy, Yy

// R = R + the number of bytes set in Yx; BX is lost.
#define COUNT(Yx, R) \
	VPMOVMSKB Yx, BX \
	POPCNTL BX, BX \
	ADDQ BX, R

// The values at off join the smallest that is no zero. Yx = all bits set where one is zero.
#define MEETZERO(off, Yx) \
	VPAND off(SI), Y11, Yx \
	VPADDD minus1<>(SB), Yx, Yx \
	VPMINUD Yx, Y8, Y8 \
	VPCMPEQD minus1<>(SB), Yx, Yx

// func encodeAVX2(dst *byte, src *float32, n int, e *Encoding, scales *float32, layout Layout, c *Counts)
//
// n is a positive multiple of 16. The loop takes 32 elements. Where they have 16 bits
// they are where NEXT says, and SI is where they are as float32.
TEXT ·encodeAVX2(SB), 0, $936-56
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ e+24(FP), AX
	MOVQ scales+32(FP), R14
	MOVQ layout+40(FP), DX
	LEAQ 31(SP), R13
	ANDQ $-32, R13
	MOVQ SI, NEXT

	VPCMPEQD Y8, Y8, Y8 // smallest |x| - 1
	VPXOR Y9, Y9, Y9    // largest |x|
	VPXOR Y10, Y10, Y10 // largest |x*scale|
	VPSRLD $1, Y8, Y11  // magnitude
	VPBROADCASTD Encoding_MinNormal(AX), Y12
	VBROADCASTSS (R14), Y0
	VMOVUPS Y0, SCALE
	VPBROADCASTB Encoding_Normal(AX), Y0
	VMOVDQU Y0, NORMAL
	VPBROADCASTB Encoding_MaxCode(AX), Y0
	VMOVDQU Y0, MAXCODE
	VPBROADCASTB Encoding_Sign(AX), Y0
	VMOVDQU Y0, SIGN
	MOVL Encoding_Often(AX), BX
	DECL BX
	MOVL BX, SELDOM
	SHLQ $1, DX
	ADDL Encoding_Divide(AX), DX
	MOVL Encoding_Shift(AX), BX
	CMPL Encoding_Mode(AX), $const_NearestTowardZero
	JAE nearestMode
	CMPL Encoding_Mode(AX), $0
	JNE others

nearestMode:
	VMOVDQU exponent<>(SB), Y13
	VPBROADCASTD Encoding_Magic(AX), Y14
	XORL R8, R8
	MOVL $32, R11
	SUBL BX, R11
	BTSL R11, R8
	VMOVD R8, X0
	VPBROADCASTW X0, Y0 // its products' upper halves are shifted right by Shift-16
	VMOVDQU Y0, UNSHIFT
	SUBL $16, BX
	MOVL $0x10000, R8
	BTSL BX, R8
	VMOVD R8, X15
	VPBROADCASTD X15, Y15 // 1, and 1 << (Shift-16)

prepared:
	XORQ R8, R8   // saturated
	XORQ R9, R9   // saturated, negative
	XORQ R10, R10 // not below normal
	XORQ R11, R11 // zero codes
	XORQ R12, R12 // zeros
	CMPQ CX, $32
	JLT half

loop:
	MOVL Encoding_Ahead(AX), BX
	CMPL Encoding_Source(AX), $const_Float32
	JNE halves
	PREFETCHT1 (SI)(BX*1)
	PREFETCHT1 64(SI)(BX*1)

values:
	VPAND (SI), Y11, Y0 // |x|
	VPAND 32(SI), Y11, Y1
	VPAND 64(SI), Y11, Y2
	VPAND 96(SI), Y11, Y3
	VPMAXUD Y0, Y9, Y9
	VPMAXUD Y1, Y9, Y9
	VPMAXUD Y2, Y9, Y9
	VPMAXUD Y3, Y9, Y9

	// Where one is 0 this may miss another; its code is 0, which is met below.
	VPMINUD Y0, Y1, Y4
	VPMINUD Y2, Y3, Y5
	VPMINUD Y4, Y5, Y4
	VPADDD minus1<>(SB), Y4, Y4
	VPMINUD Y4, Y8, Y8
	CMPQ DX, $1
	JA byStep
	JE divideByOne
	BYONE(VMULPS) // |y|

scaled:
	CMPL Encoding_Mode(AX), $1
	JAE directed

nearest:
	NEAREST(Y0, Y4)
	NEAREST(Y1, Y5)
	NEAREST(Y2, Y6)
	NEAREST(Y3, Y7)
	VPACKSSDW Y1, Y0, Y0
	VPACKSSDW Y3, Y2, Y2
	VPMULHUW UNSHIFT, Y0, Y0
	VPMULHUW UNSHIFT, Y2, Y2

rounded:
	// Packing saturates and so keeps the signs of x as of an integer.
	VPACKUSWB Y2, Y0, Y0
	VMOVDQU (SI), Y1
	VMOVDQU 64(SI), Y2
	VPACKSSDW 32(SI), Y1, Y1
	VPACKSSDW 96(SI), Y2, Y2
	VPACKSSWB Y2, Y1, Y1

	VPMAXUB NORMAL, Y0, Y2
	VPCMPEQB Y0, Y2, Y2
	COUNT(Y2, R10)
	VPMINUB MAXCODE, Y0, Y4
	VPMAXUB byte1<>(SB), Y4, Y5
	VPCMPEQB Y0, Y5, Y5
	VPMOVMSKB Y5, BX
	ANDL SELDOM, BX
	CMPL BX, $-1
	JNE rare // saturated or zero

counted:
	VPXOR Y2, Y2, Y2
	VPCMPGTB Y1, Y2, Y1
	VPAND SIGN, Y1, Y1
	VPOR Y1, Y4, Y0
	VMOVDQU order<>(SB), Y1
	VPERMD Y0, Y1, Y0
	VMOVDQU Y0, (DI)
	ADDQ $128, SI
	ADDQ $32, DI
	SUBQ $32, CX
	CMPQ CX, $16
	JGT loop
	JEQ half
	TESTQ CX, CX
	JNE halfDone

done:
	MOVQ n+16(FP), BX
	SUBQ R10, BX
	MOVQ BX, R10
	MOVQ c+48(FP), BX
	REDUCE256(VPMAXUD, Y10, X10, X0)
	REDUCE256(VPMAXUD, Y9, X9, X0)
	REDUCE256(VPMINUD, Y8, X8, X0)

	// One scale keeps the order of magnitudes, so that the largest one need be
	// scaled only here. One that is not finite makes no smaller result finite.
	CMPQ DX, $1
	JA store
	VMOVSS SCALE, X0
	JE divideLargest
	VMULSS X0, X9, X10

store:
	VMOVD X10, Counts_MaxScaled(BX)
	VMOVD X9, Counts_MaxBits(BX)
	VMOVD X8, Counts_MinBits(BX)
	MOVL R8, Counts_Saturated(BX)
	MOVL R9, Counts_SaturatedNeg(BX)
	MOVL R10, Counts_BelowNormal(BX)
	MOVL R11, Counts_ZeroCodes(BX)
	MOVL R12, Counts_Zeros(BX)
	VZEROUPPER
	RET

halves:
	ADDQ NEXT, BX
	PREFETCHT1 (BX)
	MOVQ NEXT, BX
	CMPL Encoding_Source(AX), $const_BFloat16
	JNE float16s
	VPMOVZXWD (BX), Y0
	VPMOVZXWD 16(BX), Y1
	VPMOVZXWD 32(BX), Y2
	VPMOVZXWD 48(BX), Y3
	VPSLLD $16, Y0, Y0
	VPSLLD $16, Y1, Y1
	VPSLLD $16, Y2, Y2
	VPSLLD $16, Y3, Y3

widened:
	ADDQ $64, BX
	MOVQ BX, NEXT
	LEAQ SOURCE(R13), SI
	VMOVUPS Y0, (SI)
	VMOVUPS Y1, 32(SI)
	VMOVUPS Y2, 64(SI)
	VMOVUPS Y3, 96(SI)
	JMP values

float16s:
	VCVTPH2PS (BX), Y0
	VCVTPH2PS 16(BX), Y1
	VCVTPH2PS 32(BX), Y2
	VCVTPH2PS 48(BX), Y3
	JMP widened

divideLargest:
	VDIVSS X0, X9, X10
	JMP store

divideByOne:
	BYONE(VDIVPS)
	JMP scaled

byStep:
	CMPQ DX, $3
	JA byElement
	JE divideByStep
	BYSTEP(VMULPS)

largest:
	VPMAXUD Y0, Y10, Y10
	VPMAXUD Y1, Y10, Y10
	VPMAXUD Y2, Y10, Y10
	VPMAXUD Y3, Y10, Y10
	JMP scaled

divideByStep:
	BYSTEP(VDIVPS)
	JMP largest

byElement:
	CMPQ DX, $4
	JNE divideByElement
	BYELEMENT(VMULPS)
	JMP largest

divideByElement:
	BYELEMENT(VDIVPS)
	JMP largest

rare:
	VPCMPEQB Y4, Y0, Y5
	VPMOVMSKB Y5, BX
	NOTL BX // saturated
	VPMOVMSKB Y1, AX
	ANDL BX, AX
	POPCNTL BX, BX
	ADDQ BX, R8
	POPCNTL AX, AX
	ADDQ AX, R9
	MOVQ e+24(FP), AX
	VPXOR Y6, Y6, Y6
	VPCMPEQB Y6, Y0, Y0
	COUNT(Y0, R11)
	MEETZERO(0, Y2)
	MEETZERO(32, Y3)
	MEETZERO(64, Y5)
	MEETZERO(96, Y6)
	VPACKSSDW Y3, Y2, Y2
	VPACKSSDW Y6, Y5, Y5
	VPACKSSWB Y5, Y2, Y2
	COUNT(Y2, R12)
	CMPL Encoding_Zeros(AX), $const_ZerosUnsigned
	JB counted
	JEQ unsigned
	VPOR Y2, Y1, Y1
	CMPL Encoding_Zeros(AX), $const_ZerosPositive
	JNE counted
	VMOVDQU Y2, Y0

unsigned:
	VPANDN Y1, Y0, Y1 // these zeros have no sign
	JMP counted

others:
	// Y13 = 32, Y14 = Shift and MinNormal's exponent, Y15 = index.
	VPXOR Y13, Y13, Y13
	VPSUBD minus32<>(SB), Y13, Y13
	VPBROADCASTD Encoding_Shift(AX), Y14
	VPSLLD $23, Y14, Y14
	VPADDD Y12, Y14, Y14
	VPBROADCASTD Encoding_Index(AX), Y15
	VPBROADCASTD Encoding_K0(AX), Y0
	VMOVDQU Y0, KEY0
	VPBROADCASTD Encoding_K1(AX), Y0
	VMOVDQU Y0, KEY1
	VPADDD farthest<>(SB), Y14, Y0
	VMOVDQU Y0, FARTHEST
	CMPL Encoding_Mode(AX), $1
	JE prepared
	MAKERANDOM
	JMP prepared

directed:
	JNE stochastic
	TOWARDZERO(Y0, Y4)
	TOWARDZERO(Y1, Y5)
	TOWARDZERO(Y2, Y6)
	TOWARDZERO(Y3, Y7)

pack:
	VPACKSSDW Y1, Y0, Y0
	VPACKSSDW Y3, Y2, Y2
	JMP rounded

downTies:
	VPABSD minus1<>(SB), Y4
	ODD(Y0)
	ODD(Y1)
	ODD(Y2)
	ODD(Y3)
	JMP nearest

ofBF16:
	TOBF16(Y0, Y4)
	TOBF16(Y1, Y5)
	TOBF16(Y2, Y6)
	TOBF16(Y3, Y7)
	JMP nearest

stochastic:
	CMPL Encoding_Mode(AX), $const_NearestTowardZero
	JEQ downTies
	JA ofBF16

	// Are there magnitudes of which 32 to 55 bits do not fit?
	VPSUBD FARTHEST, Y0, Y4
	VPSUBD FARTHEST, Y1, Y5
	VPSUBD FARTHEST, Y2, Y6
	VPSUBD FARTHEST, Y3, Y7
	VPMINUD Y5, Y4, Y4
	VPMINUD Y7, Y6, Y6
	VPMINUD Y6, Y4, Y4
	VPMINUD far<>(SB), Y4, Y5
	VPCMPEQD Y4, Y5, Y5
	VPTEST Y5, Y5
	JNZ stochasticFar

	// These elements are rounded while the random bits of the next are made.
	VMOVDQU Y0, VALUES(R13)
	VMOVDQU Y1, VALUES+32(R13)
	VMOVDQU Y2, VALUES+64(R13)
	VMOVDQU Y3, VALUES+96(R13)
	NUMBERS
	FOUR(FIRSTKEY)
	FOUR(FOLD16)
	FOUR(TIMES1)
	ROUNDRANDOMLY(0)
	FOUR(FOLD13)
	FOUR(TIMES2)
	ROUNDRANDOMLY(32)
	FOUR(FOLD16)
	FOUR(SECONDKEY)
	FOUR(FOLD16)
	FOUR(TIMES1)
	ROUNDRANDOMLY(64)
	FOUR(FOLD13)
	FOUR(TIMES2)
	ROUNDRANDOMLY(96)
	FOUR(FOLD16)
	FOUR(INVERT)
	KEEPRANDOM
	VMOVDQU VALUES(R13), Y0
	VMOVDQU VALUES+32(R13), Y1
	VMOVDQU VALUES+64(R13), Y2
	VMOVDQU VALUES+96(R13), Y3
	JMP pack

stochasticFar:
	ROUNDFAR(Y0, 0)
	ROUNDFAR(Y1, 32)
	ROUNDFAR(Y2, 64)
	ROUNDFAR(Y3, 96)
	VPACKSSDW Y1, Y0, Y0
	VPACKSSDW Y3, Y2, Y2
	VPSUBW minus1<>(SB), Y0, Y0
	VPSUBW minus1<>(SB), Y2, Y2
	VMOVDQU Y0, VALUES(R13)
	VMOVDQU Y2, VALUES+32(R13)
	MAKERANDOM
	VMOVDQU VALUES(R13), Y0
	VMOVDQU VALUES+32(R13), Y2
	JMP rounded

half:
	// The last 16 elements are encoded with 16 zeros behind them, in the frame.
	VPXOR Y1, Y1, Y1
	CMPL Encoding_Source(AX), $const_Float32
	JNE halfHalves
	VMOVDQU (SI), Y0
	VMOVDQU Y0, SOURCE(R13)
	VMOVDQU 32(SI), Y0
	VMOVDQU Y0, SOURCE+32(R13)
	VMOVDQU Y1, SOURCE+64(R13)
	VMOVDQU Y1, SOURCE+96(R13)
	LEAQ SOURCE(R13), SI

halfScales:
	LEAQ CODES(R13), DI
	CMPQ DX, $1
	JBE loop

	// Their scales are 1.
	MOVL $0x3F800000, BX
	VMOVD BX, X0
	VPBROADCASTD X0, Y0
	VMOVDQU Y0, SCALES+64(R13)
	VMOVDQU Y0, SCALES+96(R13)
	CMPQ DX, $3
	JA halfElements
	VMOVDQU Y0, SCALES(R13)
	MOVL (R14), BX
	MOVL BX, SCALES(R13)
	LEAQ SCALES(R13), R14
	JMP loop

halfElements:
	VMOVDQU (R14), Y0
	VMOVDQU Y0, SCALES(R13)
	VMOVDQU 32(R14), Y0
	VMOVDQU Y0, SCALES+32(R13)
	LEAQ SCALES(R13), R14
	JMP loop

halfHalves:
	MOVQ NEXT, BX
	VMOVDQU (BX), Y0
	LEAQ HALVES(R13), BX
	MOVQ BX, NEXT
	VMOVDQU Y0, (BX)
	VMOVDQU Y1, 32(BX)
	JMP halfScales

halfDone:
	MOVQ dst+0(FP), DI
	ADDQ n+16(FP), DI
	VMOVDQU X0, -16(DI) // the codes of the last turn
	SUBQ $16, R11
	SUBQ $16, R12
	JMP done
