//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"
#include "vectors_arm64.h"

#define counts R3 // once the parameters are no longer needed
#define factors R4
#define per R5
#define divides R6
#define mode R8
#define rule R9 // of zeros
#define saturated R10
#define saturatedNeg R11
#define belowNormal R12
#define zeroCodes R13
#define zeros R14
#define often R15

// V0 to V3 are 16 values, V4 to V7 their scaled magnitudes and at last their
// codes, V8 to V11 their scales, V12 to V15 for use at hand.
#define maxScaled V16
#define maxBits V17
#define minBits V18 // less 1
#define minNormal V19
#define exponent V20
#define magic V21   // in other modes: Shift and minNormal's exponent
#define unshift V22 // in other modes: the bit before a mantissa
#define normal V23
#define maxCode V24
#define one V25
#define sign V26
#define index V27
#define factor1 V28
#define factor2 V29
#define key0 V30
#define key1 V31

// y = the magnitude y plus its power of two, or the smallest normal one, times
// Magic; p is lost.
#define ROUND(y, p) \
	VUMAX minNormal.S4, y.S4, p.S4 \
	VAND exponent.B16, p.B16, p.B16 \
	VFMLA magic.S4, p.S4, y.S4

// y = the odd magnitude that is y or before it.
#define ODD(y) \
	VUMAX one.S4, y.S4, y.S4 \
	VSUB one.S4, y.S4, y.S4 \
	VORR one.B16, y.B16, y.B16

#define MUL_FACTOR1 WORD $0x4EBC9DCE // mul v14.4s, v14.4s, v28.4s
#define MUL_FACTOR2 WORD $0x4EBD9DCE // mul v14.4s, v14.4s, v29.4s
#define KEEP WORD $0x6EAD458C // ushl v12.4s, v12.4s, v13.4s
#define CUT_OFF WORD $0x6EAF458F // ushl v15.4s, v12.4s, v15.4s
#define MORE WORD $0x6EAE35EE // cmhi v14.4s, v15.4s, v14.4s

// V14 = mix32(V14) of package fp8; V15 is lost.
#define MIX32 \
	VUSHR $16, V14.S4, V15.S4 \
	VEOR V15.B16, V14.B16, V14.B16 \
	MUL_FACTOR1 \
	VUSHR $13, V14.S4, V15.S4 \
	VEOR V15.B16, V14.B16, V14.B16 \
	MUL_FACTOR2 \
	VUSHR $16, V14.S4, V15.S4 \
	VEOR V15.B16, V14.B16, V14.B16

// V12 = the mantissa of the magnitude y with its leading bit and above that, from
// the format's smallest normal value on, how many binades y is higher. V13 = less
// how many of its bits do not fit a code: Shift, and one for each binade below. A
// shift looks at the lowest byte of V13 and gives 0 where that is 32 or more.
#define SPLIT(y) \
	VUMIN minNormal.S4, y.S4, V13.S4 \
	VAND exponent.B16, V13.B16, V13.B16 \
	VSUB V13.S4, y.S4, V12.S4 \
	VADD unshift.S4, V12.S4, V12.S4 \
	VSUB magic.S4, V13.S4, V13.S4 \
	VUSHR $23, V13.S4, V13.S4

#define TOWARDZERO(y) \
	SPLIT(y) \
	KEEP \
	VMOV V12.B16, y.B16

// As TOWARDZERO, and one more if what does not fit, as 32 bits, is more than the
// random ones of index, which goes on to the next four.
#define STOCHASTIC(y) \
	VEOR key0.B16, index.B16, V14.B16 \
	MIX32 \
	VADD key1.S4, V14.S4, V14.S4 \
	MIX32 \
	VSHL $2, one.S4, V15.S4 \
	VADD V15.S4, index.S4, index.S4 \
	SPLIT(y) \
	VSHL $5, one.S4, V15.S4 \
	VADD V13.S4, V15.S4, V15.S4 \
	CUT_OFF \
	MORE \
	KEEP \
	VSUB V14.S4, V12.S4, y.S4

// R = R + the number of bytes set in v, which is lost.
#define COUNT(v, R) \
	VUSHR $7, v.B16, v.B16 \
	VADDV v.B16, v \
	VMOV v.B[0], tmp \
	ADD tmp, R, R

DATA lanes<>+0(SB)/8, $0x0000000100000000
DATA lanes<>+8(SB)/8, $0x0000000300000002
GLOBL lanes<>(SB), RODATA|NOPTR, $16

// func encodeNEON(dst *byte, src *float32, n int, e *Encoding, scales *float32, layout Layout, c *Counts)
//
// n is a positive multiple of 16.
TEXT ·encodeNEON(SB), NOSPLIT, $0-56
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD n+16(FP), left
	MOVD e+24(FP), params
	MOVD scales+32(FP), factors
	MOVD layout+40(FP), per

	SPLAT(Encoding_MinNormal, minNormal)
	MOVD $0x7F800000, tmp
	VDUP tmp, exponent.S4
	MOVWU Encoding_Normal(params), tmp
	VDUP tmp, normal.B16
	MOVWU Encoding_MaxCode(params), tmp
	VDUP tmp, maxCode.B16
	MOVD $1, tmp
	VDUP tmp, one.S4
	MOVWU Encoding_Sign(params), tmp
	VDUP tmp, sign.B16
	VEOR maxScaled.B16, maxScaled.B16, maxScaled.B16
	VEOR maxBits.B16, maxBits.B16, maxBits.B16
	VSUB one.S4, maxBits.S4, minBits.S4
	MOVD ZR, saturated
	MOVD ZR, saturatedNeg
	MOVD ZR, belowNormal
	MOVD ZR, zeroCodes
	MOVD ZR, zeros
	MOVWU Encoding_Zeros(params), rule
	MOVWU Encoding_Often(params), often
	MOVWU Encoding_Divide(params), divides
	MOVWU Encoding_Mode(params), mode
	VLD1R (factors), [V8.S4]
	MOVWU Encoding_Shift(params), tmp
	CMP $const_NearestTowardZero, mode
	BEQ nearestMode
	CBNZ mode, others

nearestMode:
	SUB $16, tmp, tmp
	NEG tmp, tmp
	VDUP tmp, unshift.H8
	SPLAT(Encoding_Magic, magic)

sameScale:
	VMOV V8.B16, V9.B16
	VMOV V8.B16, V10.B16
	VMOV V8.B16, V11.B16

loop:
	VLD1.P 64(from), [V0.S4, V1.S4, V2.S4, V3.S4]
	WORD $0x4EA0F80C // fabs v12.4s, v0.4s
	WORD $0x4EA0F82D // fabs v13.4s, v1.4s
	WORD $0x4EA0F84E // fabs v14.4s, v2.4s
	WORD $0x4EA0F86F // fabs v15.4s, v3.4s
	VUMAX V12.S4, V13.S4, V4.S4
	VUMAX V14.S4, V15.S4, V5.S4
	VUMAX V4.S4, V5.S4, V4.S4
	VUMAX V4.S4, maxBits.S4, maxBits.S4

	// Where one is 0 this may miss another; its code is 0, which is met below.
	VUMIN V12.S4, V13.S4, V4.S4
	VUMIN V14.S4, V15.S4, V5.S4
	VUMIN V4.S4, V5.S4, V4.S4
	VSUB one.S4, V4.S4, V4.S4
	VUMIN V4.S4, minBits.S4, minBits.S4

	CBZ per, haveScales
	CMP $1, per
	BNE perElement
	VLD1R.P 4(factors), [V8.S4]
	VMOV V8.B16, V9.B16
	VMOV V8.B16, V10.B16
	VMOV V8.B16, V11.B16

haveScales:
	CBNZ divides, divide
	WORD $0x6E28DD84 // fmul v4.4s, v12.4s, v8.4s
	WORD $0x6E29DDA5 // fmul v5.4s, v13.4s, v9.4s
	WORD $0x6E2ADDC6 // fmul v6.4s, v14.4s, v10.4s
	WORD $0x6E2BDDE7 // fmul v7.4s, v15.4s, v11.4s

scaled:
	VUMAX V4.S4, maxScaled.S4, maxScaled.S4
	VUMAX V5.S4, maxScaled.S4, maxScaled.S4
	VUMAX V6.S4, maxScaled.S4, maxScaled.S4
	VUMAX V7.S4, maxScaled.S4, maxScaled.S4
	CBNZ mode, directed

nearest:
	// A number is added whose last place is that of the codes about y, or of the
	// subnormal ones, so that the sum's last bits are y in units of it; Magic has
	// taken from them what the sum's exponent, moved to the place it has in a code
	// and added, will be too much.
	ROUND(V4, V12)
	ROUND(V5, V13)
	ROUND(V6, V14)
	ROUND(V7, V15)
	VUZP2 V5.H8, V4.H8, V12.H8
	VUZP1 V5.H8, V4.H8, V4.H8
	VUZP2 V7.H8, V6.H8, V13.H8
	VUZP1 V7.H8, V6.H8, V6.H8
	WORD $0x6E76458C // ushl v12.8h, v12.8h, v22.8h
	WORD $0x6E7645AD // ushl v13.8h, v13.8h, v22.8h
	VADD V12.H8, V4.H8, V4.H8
	VADD V13.H8, V6.H8, V6.H8

rounded:
	WORD $0x2E214884 // uqxtn v4.8b, v4.8h
	WORD $0x6E2148C4 // uqxtn2 v4.16b, v6.8h
	VUZP2 V1.H8, V0.H8, V12.H8
	VUZP2 V3.H8, V2.H8, V13.H8
	VUZP2 V13.B16, V12.B16, V12.B16 // bit 7 of each is its sign
	WORD $0x6E2436ED // cmhi v13.16b, v23.16b, v4.16b
	COUNT(V13, belowNormal)
	WORD $0x6E38348D // cmhi v13.16b, v4.16b, v24.16b
	WORD $0x4E20988E // cmeq v14.16b, v4.16b, #0
	VORR V13.B16, V14.B16, V15.B16
	VADDV V15.B16, V15
	VMOV V15.B[0], tmp
	ORR often, tmp, tmp
	CBNZ tmp, rare

counted:
	WORD $0x4E20A98C // cmlt v12.16b, v12.16b, #0
	VBIT sign.B16, V12.B16, V4.B16
	VST1.P [V4.B16], 16(to)
	SUBS $16, left, left
	BNE loop

	MOVD c+48(FP), counts
	MOVW saturated, Counts_Saturated(counts)
	MOVW saturatedNeg, Counts_SaturatedNeg(counts)
	MOVW belowNormal, Counts_BelowNormal(counts)
	MOVW zeroCodes, Counts_ZeroCodes(counts)
	MOVW zeros, Counts_Zeros(counts)
	EXTREME(VUMAX, maxScaled)
	FMOVS F0, Counts_MaxScaled(counts)
	EXTREME(VUMAX, maxBits)
	FMOVS F0, Counts_MaxBits(counts)
	EXTREME(VUMIN, minBits)
	FMOVS F0, Counts_MinBits(counts)
	RET

perElement:
	VLD1.P 64(factors), [V8.S4, V9.S4, V10.S4, V11.S4]
	B haveScales

divide:
	WORD $0x6E28FD84 // fdiv v4.4s, v12.4s, v8.4s
	WORD $0x6E29FDA5 // fdiv v5.4s, v13.4s, v9.4s
	WORD $0x6E2AFDC6 // fdiv v6.4s, v14.4s, v10.4s
	WORD $0x6E2BFDE7 // fdiv v7.4s, v15.4s, v11.4s
	B scaled

rare:
	// V13: saturated, V14: zero code.
	VUMIN maxCode.B16, V4.B16, V4.B16
	CMP $const_ZerosUnsigned, rule
	BNE signed
	VAND V14.B16, V12.B16, V15.B16
	VEOR V15.B16, V12.B16, V12.B16 // a zero code has no sign

signed:
	VAND V12.B16, V13.B16, V15.B16
	COUNT(V15, saturatedNeg)
	COUNT(V13, saturated)
	COUNT(V14, zeroCodes)

	// The zeros, and the smallest that is none.
	WORD $0x4EA0F800 // fabs v0.4s, v0.4s
	WORD $0x4EA0F821 // fabs v1.4s, v1.4s
	WORD $0x4EA0F842 // fabs v2.4s, v2.4s
	WORD $0x4EA0F863 // fabs v3.4s, v3.4s
	WORD $0x4EA09805 // cmeq v5.4s, v0.4s, #0
	WORD $0x4EA09826 // cmeq v6.4s, v1.4s, #0
	WORD $0x4EA09847 // cmeq v7.4s, v2.4s, #0
	WORD $0x4EA0986D // cmeq v13.4s, v3.4s, #0
	CMP $const_ZerosPositive, rule
	BLT counting
	VUZP1 V6.H8, V5.H8, V14.H8
	VUZP1 V13.H8, V7.H8, V15.H8
	VUZP1 V15.B16, V14.B16, V14.B16
	VORR V14.B16, V12.B16, V12.B16
	BNE counting
	VEOR V14.B16, V12.B16, V12.B16 // no sign

counting:
	VADD V5.S4, V6.S4, V5.S4
	VADD V7.S4, V13.S4, V7.S4
	VADD V5.S4, V7.S4, V5.S4
	VADDV V5.S4, V5
	VMOV V5.S[0], tmp
	SUBW tmp, zeros, zeros
	VSUB one.S4, V0.S4, V0.S4
	VSUB one.S4, V1.S4, V1.S4
	VSUB one.S4, V2.S4, V2.S4
	VSUB one.S4, V3.S4, V3.S4
	VUMIN V0.S4, minBits.S4, minBits.S4
	VUMIN V1.S4, minBits.S4, minBits.S4
	VUMIN V2.S4, minBits.S4, minBits.S4
	VUMIN V3.S4, minBits.S4, minBits.S4
	B counted

others:
	VDUP tmp, magic.S4
	VSHL $23, magic.S4, magic.S4
	VADD minNormal.S4, magic.S4, magic.S4
	VSHL $23, one.S4, unshift.S4
	MOVD $lanes<>(SB), tmp
	VLD1 (tmp), [V0.S4]
	SPLAT(Encoding_Index, index)
	VADD V0.S4, index.S4, index.S4
	SPLAT(Encoding_K0, key0)
	SPLAT(Encoding_K1, key1)
	MOVD $0x85EBCA6B, tmp
	VDUP tmp, factor1.S4
	MOVD $0xC2B2AE35, tmp
	VDUP tmp, factor2.S4
	B sameScale

directed:
	CMP $1, mode
	BNE stochastic
	TOWARDZERO(V4)
	TOWARDZERO(V5)
	TOWARDZERO(V6)
	TOWARDZERO(V7)

packed:
	VUZP1 V5.H8, V4.H8, V4.H8
	VUZP1 V7.H8, V6.H8, V6.H8
	B rounded

downTies:
	ODD(V4)
	ODD(V5)
	ODD(V6)
	ODD(V7)
	B nearest

stochastic:
	CMP $const_NearestTowardZero, mode
	BEQ downTies
	STOCHASTIC(V4)
	STOCHASTIC(V5)
	STOCHASTIC(V6)
	STOCHASTIC(V7)
	B packed
