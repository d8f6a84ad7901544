//go:build !purego

#include "textflag.h"
#include "go_asm.h" // made by the compiler: the fields of structures

// Registers being few, constants are read from memory where an instruction can do
// so. name<> = v, four times.
#define FILL(name, v) \
	DATA name<>+0(SB)/8, $v \
	DATA name<>+8(SB)/8, $v \
	DATA name<>+16(SB)/8, $v \
	DATA name<>+24(SB)/8, $v \
	GLOBL name<>(SB), RODATA|NOPTR, $32

FILL(one, 0x0000000100000001)
FILL(factor1, 0x85EBCA6B85EBCA6B)
FILL(factor2, 0xC2B2AE35C2B2AE35)
FILL(two31, 0x4F0000004F000000) // 2^31
FILL(two32, 0x4F8000004F800000) // 2^32

DATA lanes<>+0(SB)/8, $0x0000000100000000
DATA lanes<>+8(SB)/8, $0x0000000300000002
DATA lanes<>+16(SB)/8, $0x0000000500000004
DATA lanes<>+24(SB)/8, $0x0000000700000006
GLOBL lanes<>(SB), RODATA|NOPTR, $32

// Where packing leaves each four of the 16 codes, then of their signs.
DATA order<>+0(SB)/8, $0x0000000400000000
DATA order<>+8(SB)/8, $0x0000000500000001
DATA order<>+16(SB)/8, $0x0000000600000002
DATA order<>+24(SB)/8, $0x0000000700000003
GLOBL order<>(SB), RODATA|NOPTR, $32

// 32 bytes without a sign, 32 with one.
DATA signs<>+32(SB)/8, $0x8080808080808080
DATA signs<>+40(SB)/8, $0x8080808080808080
DATA signs<>+48(SB)/8, $0x8080808080808080
DATA signs<>+56(SB)/8, $0x8080808080808080
GLOBL signs<>(SB), RODATA|NOPTR, $64

// Xx = the maximum (or minimum) of the lanes of Yx in its first; Xt is lost.
#define REDUCE(OP, Yx, Xx, Xt) \
	VEXTRACTI128 $1, Yx, Xt \
	OP Xt, Xx, Xx \
	VPSHUFD $0x4E, Xx, Xt \
	OP Xt, Xx, Xx \
	VPSHUFD $0xB1, Xx, Xt \
	OP Xt, Xx, Xx

// Yx = mix32(Yx) of package fp8; Yt is lost.
#define MIX32(Yx, Yt) \
	VPSRLD $16, Yx, Yt \
	VPXOR Yt, Yx, Yx \
	VPMULLD factor1<>(SB), Yx, Yx \
	VPSRLD $13, Yx, Yt \
	VPXOR Yt, Yx, Yx \
	VPMULLD factor2<>(SB), Yx, Yx \
	VPSRLD $16, Yx, Yt \
	VPXOR Yt, Yx, Yx

// Yy = the codes of the magnitudes Yy, to nearest even. Y2 and Y3 are lost.
// Normal: (|y| + round + last kept bit) >> shift.
// Below: bits(|y| + addend) - bits(addend).
// All magnitudes and codes are positive as int32, so that signed comparisons do.
#define NEAREST(Yy) \
	VPSRLVD Y11, Yy, Y2 \
	VPAND one<>(SB), Y2, Y2 \
	VPADDD Y10, Yy, Y3 \
	VPADDD Y2, Y3, Y3 \
	VPSRLVD Y11, Y3, Y3 \
	VPCMPGTD Yy, Y12, Y2 \
	VADDPS Y9, Yy, Yy \
	VPSUBD Y9, Yy, Yy \
	VBLENDVPS Y2, Yy, Y3, Yy

// Yy = the codes of the magnitudes Yy, toward zero. Y2 and Y3 are lost.
// Normal: the bits that are kept.
// Below: |y| in units of the smallest subnormal, cut to a whole number.
#define TOWARDZERO(Yy) \
	VMULPS Y9, Yy, Y3 \
	VCVTTPS2DQ Y3, Y3 \
	VPCMPGTD Yy, Y12, Y2 \
	VPADDD Y10, Yy, Yy \
	VPSRLVD Y11, Yy, Yy \
	VBLENDVPS Y2, Y3, Yy, Yy

// Yy = the codes of the magnitudes Yy, stochastically, the first having index
// BX. Y2 to Y4 and Y14 are lost. As TOWARDZERO, with what is cut off in Y4.
// Below, that times 2^32 is converted as if signed, which gives 80000000 for 2^31
// and more: then the same less 2^31 has the other bits. At last the code grows by
// 1, and by -1 unless what is cut off is larger than the random bits.
#define STOCHASTIC(Yy) \
	VMULPS Y9, Yy, Y2 \
	VCVTTPS2DQ Y2, Y3 \
	VCVTDQ2PS Y3, Y4 \
	VSUBPS Y4, Y2, Y2 \
	VMULPS two32<>(SB), Y2, Y2 \
	VCVTTPS2DQ Y2, Y4 \
	VSUBPS two31<>(SB), Y2, Y2 \
	VCVTTPS2DQ Y2, Y2 \
	VPXOR Y4, Y2, Y2 \
	VBLENDVPS Y4, Y2, Y4, Y4 \
	VPCMPGTD Yy, Y12, Y2 \
	VPBROADCASTD Encoding_FracShift(AX), Y14 \
	VPSLLVD Y14, Yy, Y14 \
	VBLENDVPS Y2, Y4, Y14, Y4 \
	VPADDD Y10, Yy, Yy \
	VPSRLVD Y11, Yy, Yy \
	VBLENDVPS Y2, Y3, Yy, Yy \
	VMOVD BX, X2 \
	VPBROADCASTD X2, Y2 \
	VPADDD lanes<>(SB), Y2, Y2 \
	VPBROADCASTD Encoding_K0(AX), Y3 \
	VPXOR Y3, Y2, Y2 \
	MIX32(Y2, Y3) \
	VPBROADCASTD Encoding_K1(AX), Y3 \
	VPADDD Y3, Y2, Y2 \
	MIX32(Y2, Y3) \
	VPMINUD Y4, Y2, Y2 \
	VPCMPEQD Y4, Y2, Y2 \
	VPADDD one<>(SB), Yy, Yy \
	VPADDD Y2, Yy, Yy

// R = R + twice the number of 16-bit lanes set in Yx.
#define COUNT(Yx, R) \
	VPMOVMSKB Yx, BX \
	POPCNTL BX, BX \
	ADDQ BX, R

// func encodeAVX2(dst *byte, src *float32, n int, e *Encoding, c *Counts)
//
// n is a positive multiple of 16.
TEXT ·encodeAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ e+24(FP), AX

	VPCMPEQD Y5, Y5, Y5            // smallest |x| - 1
	VPXOR Y6, Y6, Y6               // largest |x|
	VPBROADCASTW Encoding_Normal(AX), Y7  // 16-bit lanes
	VPBROADCASTW Encoding_MaxCode(AX), Y8 // 16-bit lanes
	VPBROADCASTD Encoding_Shift(AX), Y11
	VPBROADCASTD Encoding_MinNormal(AX), Y12
	VBROADCASTSS Encoding_Scale(AX), Y13
	VPSRLD $1, Y5, Y15 // magnitude

	// |x*scale| is |x|*|scale|, and R15 has the sign of scale. A code keeps its
	// sign if it is greater than the bytes at DX, as int8.
	LEAQ signs<>(SB), DX
	MOVQ DX, R15
	MOVL Encoding_Scale(AX), BX
	SHRL $31, BX
	SHLL $5, BX
	ADDQ BX, R15
	MOVL Encoding_ZeroSign(AX), BX
	SHRL $2, BX
	ADDQ BX, DX
	VPAND Y15, Y13, Y13

	XORQ R8, R8   // twice saturated
	XORQ R9, R9   // twice saturated, negative
	XORQ R10, R10 // twice below normal
	XORQ R11, R11 // twice zero codes
	XORQ R12, R12 // twice zeros
	MOVL Encoding_Divide(AX), R13
	CMPL Encoding_Mode(AX), $0
	JNE constants
	VPBROADCASTD Encoding_Round(AX), Y10
	VBROADCASTSS Encoding_Addend(AX), Y9

loop:
	VPAND (SI), Y15, Y0 // |x|
	VPAND 32(SI), Y15, Y1
	VPMAXUD Y0, Y6, Y6
	VPMAXUD Y1, Y6, Y6
	VPSUBD one<>(SB), Y0, Y2
	VPSUBD one<>(SB), Y1, Y3
	VPMINUD Y2, Y5, Y5
	VPMINUD Y3, Y5, Y5
	TESTL R13, R13
	JNZ divide
	VMULPS Y13, Y0, Y0 // |y|
	VMULPS Y13, Y1, Y1

scaled:
	CMPL Encoding_Mode(AX), $0
	JNE directed
	NEAREST(Y0)
	NEAREST(Y1)

rounded:
	// Of 16 bits: packing those of each half of a register interleaves them.
	VPACKUSDW Y1, Y0, Y0
	VPMINUW Y8, Y0, Y1
	VPMAXUW Y7, Y1, Y2
	VPCMPEQW Y0, Y2, Y2 // neither saturated nor below normal
	VPMOVMSKB Y2, BX
	CMPL BX, $-1
	JNE count

counted:
	// Packing saturates and so keeps the signs of x as of an integer.
	VMOVDQU (SI), Y2
	VPACKSSDW 32(SI), Y2, Y2
	VPACKSSWB Y2, Y1, Y1
	VMOVDQU order<>(SB), Y3
	VPERMD Y1, Y3, Y1 // codes, signs
	VEXTRACTI128 $1, Y1, X2
	VPXOR (R15), X2, X2
	VPCMPGTB (DX), X1, X3
	VPAND signs<>+32(SB), X2, X2
	VPAND X3, X2, X2
	VPOR X2, X1, X1
	VMOVDQU X1, (DI)

	ADDQ $64, SI
	ADDQ $16, DI
	SUBQ $16, CX
	JNZ loop

	// Scaling keeps the order of magnitudes, so the largest one need be scaled
	// only here. One that is not finite makes no smaller result finite.
	MOVQ c+32(FP), DX
	REDUCE(VPMAXUD, Y6, X6, X0)
	REDUCE(VPMINUD, Y5, X5, X0)
	VMOVD X6, Counts_MaxBits(DX)
	VMOVD X5, Counts_MinBits(DX)
	TESTL R13, R13
	JNZ divideLargest
	VMULSS X13, X6, X6

largest:
	VPAND X15, X6, X6
	VMOVD X6, Counts_MaxScaled(DX)
	SHRQ $1, R8
	SHRQ $1, R9
	SHRQ $1, R10
	SHRQ $1, R11
	SHRQ $1, R12
	MOVL R8, Counts_Saturated(DX)
	MOVL R9, Counts_SaturatedNeg(DX)
	MOVL R10, Counts_BelowNormal(DX)
	MOVL R11, Counts_ZeroCodes(DX)
	MOVL R12, Counts_Zeros(DX)
	VZEROUPPER
	RET

constants:
	VPBROADCASTD Encoding_Base(AX), Y10
	VBROADCASTSS Encoding_Unit(AX), Y9
	JMP loop

divide:
	VDIVPS Y13, Y0, Y0
	VDIVPS Y13, Y1, Y1
	JMP scaled

divideLargest:
	VDIVSS X13, X6, X6
	JMP largest

directed:
	CMPL Encoding_Mode(AX), $1
	JNE stochastic
	TOWARDZERO(Y0)
	TOWARDZERO(Y1)
	JMP rounded

stochastic:
	// The index of the first element, from how much is left.
	MOVQ n+16(FP), BX
	SUBQ CX, BX
	ADDL Encoding_Index(AX), BX
	STOCHASTIC(Y0)
	ADDL $8, BX
	STOCHASTIC(Y1)
	JMP rounded

count:
	VPCMPGTW Y8, Y0, Y2 // saturated
	VMOVDQU (SI), Y3
	VPACKSSDW 32(SI), Y3, Y3
	VPSRAW $15, Y3, Y3
	VPAND Y2, Y3, Y3
	COUNT(Y2, R8)
	COUNT(Y3, R9)
	VPCMPGTW Y0, Y7, Y2
	COUNT(Y2, R10)
	VPXOR Y4, Y4, Y4
	VPCMPEQW Y4, Y0, Y2
	COUNT(Y2, R11)
	VPAND (SI), Y15, Y2
	VPAND 32(SI), Y15, Y3
	VPCMPEQD Y4, Y2, Y2
	VPCMPEQD Y4, Y3, Y3
	VPACKSSDW Y3, Y2, Y2
	COUNT(Y2, R12)
	JMP counted

// func decodeAVX2(dst *float32, src *byte, n int, d *Decoding) uint32
//
// n is a positive multiple of 16.
TEXT ·decodeAVX2(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ d+24(FP), AX

	VPBROADCASTW Decoding_Max(AX), Y12  // 16-bit lanes, here and below
	VPBROADCASTW Decoding_Lone(AX), Y13
	VPCMPEQD Y14, Y14, Y14
	VPSRLW $9, Y14, Y14 // 0x7F
	VPXOR Y15, Y15, Y15 // nonzero if there was a special code
	VBROADCASTSS Decoding_Scale(AX), Y11
	CMPL Decoding_HalfRebias(AX), $0
	JEQ wide

	// A code's bits, moved, are those of a float16 but for the exponent's bias;
	// unlike a product of subnormal float32s, its conversion is never slow.
	VBROADCASTSS Decoding_HalfRebias(AX), Y10
	MOVL Decoding_HalfShift(AX), BX
	VMOVD BX, X7
	VPSLLW $8, Y14, Y8 // magnitude
	VPCMPEQD Y9, Y9, Y9
	VPSLLW $15, Y9, Y9 // sign

halfLoop:
	VPMOVZXBW (SI), Y2
	VPSLLW $8, Y2, Y0
	VPAND Y9, Y0, Y1
	VPAND Y8, Y0, Y0
	VPSRLW X7, Y0, Y0
	VPOR Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VCVTPH2PS X0, Y0
	VCVTPH2PS X1, Y1
	VMULPS Y10, Y0, Y0
	VMULPS Y10, Y1, Y1
	VMULPS Y11, Y0, Y0
	VMULPS Y11, Y1, Y1
	VPAND Y14, Y2, Y3
	VPCMPGTW Y12, Y3, Y3
	VPCMPEQW Y13, Y2, Y2
	VPOR Y3, Y15, Y15
	VPOR Y2, Y15, Y15
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $16, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ halfLoop
	JMP decoded

wide:
	VPBROADCASTD Decoding_Shift(AX), Y8
	VPBROADCASTD Decoding_Mask(AX), Y9
	VBROADCASTSS Decoding_Rebias(AX), Y10
	VPCMPEQD Y0, Y0, Y0
	VPSLLD $31, Y0, Y0
	VPOR Y0, Y9, Y9 // sign and magnitude

decodeLoop:
	// The sign, extended, stays above the magnitude.
	VPMOVSXBD (SI), Y0
	VPMOVSXBD 8(SI), Y1
	VPMOVZXBW (SI), Y2
	VPSLLVD Y8, Y0, Y0
	VPSLLVD Y8, Y1, Y1
	VPAND Y9, Y0, Y0
	VPAND Y9, Y1, Y1
	VMULPS Y10, Y0, Y0
	VMULPS Y10, Y1, Y1
	VMULPS Y11, Y0, Y0
	VMULPS Y11, Y1, Y1
	VPAND Y14, Y2, Y3
	VPCMPGTW Y12, Y3, Y3
	VPCMPEQW Y13, Y2, Y2
	VPOR Y3, Y15, Y15
	VPOR Y2, Y15, Y15
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $16, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ decodeLoop

decoded:
	XORL BX, BX
	VPTEST Y15, Y15
	SETNE BX
	MOVL BX, ret+32(FP)
	VZEROUPPER
	RET

// func maxBitsAVX2(src *float32, n int) uint32
//
// n is a positive multiple of 16.
TEXT ·maxBitsAVX2(SB), NOSPLIT, $0-20
	MOVQ src+0(FP), SI
	MOVQ n+8(FP), CX
	VPCMPEQD Y15, Y15, Y15
	VPSRLD $1, Y15, Y15 // magnitude
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	SUBQ $32, CX
	JLT rest

maxLoop:
	VPAND (SI), Y15, Y4
	VPAND 32(SI), Y15, Y5
	VPAND 64(SI), Y15, Y6
	VPAND 96(SI), Y15, Y7
	VPMAXUD Y4, Y0, Y0
	VPMAXUD Y5, Y1, Y1
	VPMAXUD Y6, Y2, Y2
	VPMAXUD Y7, Y3, Y3
	ADDQ $128, SI
	SUBQ $32, CX
	JGE maxLoop

rest:
	ADDQ $32, CX
	JZ reduce
	VPAND (SI), Y15, Y4
	VPAND 32(SI), Y15, Y5
	VPMAXUD Y4, Y0, Y0
	VPMAXUD Y5, Y1, Y1

reduce:
	VPMAXUD Y1, Y0, Y0
	VPMAXUD Y3, Y2, Y2
	VPMAXUD Y2, Y0, Y0
	REDUCE(VPMAXUD, Y0, X0, X1)
	VMOVD X0, AX
	MOVL AX, ret+16(FP)
	VZEROUPPER
	RET
