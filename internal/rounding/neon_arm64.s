//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

// The assembler lacks these instructions. The test of package asmtable compares each
// WORD with the text beside it, for all registers.
#define FADD(m, n, d) WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d)) // fadd vd.4s, vn.4s, vm.4s
#define FSUB(m, n, d) WORD $(0x4EA0D400 | (m)<<16 | (n)<<5 | (d)) // fsub vd.4s, vn.4s, vm.4s
#define FMUL(m, n, d) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d)) // fmul vd.4s, vn.4s, vm.4s
#define FABS(n, d) WORD $(0x4EA0F800 | (n)<<5 | (d)) // fabs vd.4s, vn.4s
#define FCMEQ(m, n, d) WORD $(0x4E20E400 | (m)<<16 | (n)<<5 | (d)) // fcmeq vd.4s, vn.4s, vm.4s
#define CMHI(m, n, d) WORD $(0x6EA03400 | (m)<<16 | (n)<<5 | (d)) // cmhi vd.4s, vn.4s, vm.4s
#define SCVTF(n, d) WORD $(0x4E21D800 | (n)<<5 | (d)) // scvtf vd.4s, vn.4s
#define FCVTL(n, d) WORD $(0x0E617800 | (n)<<5 | (d)) // fcvtl vd.2d, vn.2s
#define FCVTL2(n, d) WORD $(0x4E617800 | (n)<<5 | (d)) // fcvtl2 vd.2d, vn.4s
#define FCVTZS(n, d) WORD $(0x4EE1B800 | (n)<<5 | (d)) // fcvtzs vd.2d, vn.2d

#define to R0
#define from R1
#define left R2
#define params R3
#define index R4  // of the next element, with the first number that random.Mix adds
#define mixed0 R5 // of four elements, what random.Mix makes of their indices
#define mixed1 R6
#define mixed2 R7
#define mixed3 R8
#define factor1 R9 // of random.Mix
#define factor2 R10
#define tmp R11

// V0 and V1 are values, others up to V15 for use at hand. Some have two names here: one
// for the assembler, one for the macros above, which take numbers.
#define sign V16
#define infinity V17
#define infinityV 17
#define multiplierV 18
#define storedV 19
#define largest V20
#define minNormal V21
#define drop V22
#define mantissa V23
#define fraction V24
#define upper V25 // of the bits
#define one V26
#define below V27 // half of what is lost, less 1
#define quiet V28

#define SPLAT(value, V) \
	MOVD value, tmp \
	VDUP tmp, V.S4

#define LOADJOB \
	SPLAT($0x80000000, sign) \
	SPLAT($0x7F800000, infinity) \
	MOVWU job_multiplier(params), tmp \
	VDUP tmp, V18.S4 \
	MOVWU job_stored(params), tmp \
	VDUP tmp, V19.S4 \
	MOVWU job_largest(params), tmp \
	VDUP tmp, largest.S4 \
	MOVWU job_minNormal(params), tmp \
	VDUP tmp, minNormal.S4

// Of the values x: s = scaled, f = which of those are finite, V, of number v, their
// magnitudes, at most the largest number.
#define MAGNITUDES(x, s, f, V, v) \
	FMUL(multiplierV, x, s) \
	FABS(s, v) \
	CMHI(v, infinityV, f) \
	VUMIN largest.S4, V.S4, V.S4

// V, of number v, rounded magnitudes, get the signs of Vs and the scale; where Vf says
// that they are not finite they are Vx.
#define FINISH(Vx, Vs, Vf, V, v) \
	VBIT sign.B16, Vs.B16, V.B16 \
	FMUL(storedV, v, v) \
	VBIF Vf.B16, Vx.B16, V.B16

#define NEAREST(Vx, x, Vs, s, Vf, f, V, v, Va, a) \
	MAGNITUDES(x, s, f, V, v) \
	VAND infinity.B16, V.B16, Va.B16 \
	VUMAX minNormal.S4, Va.S4, Va.S4 \
	VADD drop.S4, Va.S4, Va.S4 \
	FADD(a, v, v) \
	FSUB(a, v, v) \
	FINISH(Vx, Vs, Vf, V, v)

// func nearestNEON(dst, src *float32, n int, j *job)
//
// n is a multiple of 8.
TEXT ·nearestNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD n+16(FP), left
	MOVD j+24(FP), params
	LOADJOB
	MOVWU job_drop(params), tmp
	VDUP tmp, drop.S4
	CBZ left, done

loop:
	VLD1.P 32(from), [V0.S4, V1.S4]
	NEAREST(V0, 0, V2, 2, V4, 4, V6, 6, V8, 8)
	NEAREST(V1, 1, V3, 3, V5, 5, V7, 7, V9, 9)
	VST1.P [V6.S4, V7.S4], 32(to)
	SUBS $8, left
	BNE loop

done:
	RET

#define NEARESTBF16(Vx, x, V, Vn, n) \
	VUSHR $16, Vx.S4, V.S4 \
	VAND one.B16, V.B16, V.B16 \
	VADD below.S4, V.S4, V.S4 \
	VADD Vx.S4, V.S4, V.S4 \
	FCMEQ(x, x, n) \
	VORR quiet.B16, Vx.B16, Vx.B16 \
	VBIF Vn.B16, Vx.B16, V.B16 \
	VAND upper.B16, V.B16, V.B16

// func nearestBF16NEON(dst, src *float32, n int)
//
// n is a multiple of 8.
TEXT ·nearestBF16NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD n+16(FP), left
	SPLAT($1, one)
	SPLAT($0x7FFF, below)
	SPLAT($0x00400000, quiet)
	SPLAT($0xFFFF0000, upper)
	CBZ left, done

loop:
	VLD1.P 32(from), [V0.S4, V1.S4]
	NEARESTBF16(V0, 0, V2, V4, 4)
	NEARESTBF16(V1, 1, V3, V5, 5)
	VST1.P [V2.S4, V3.S4], 32(to)
	SUBS $8, left
	BNE loop

done:
	RET

// R = random.Mix of the index of element i from here on, whose last exclusive or is OP.
// The vector unit has no products of 64 bits.
#define MIX(OP, i, R) \
	ADD $i, index, R \
	EOR R>>30, R, R \
	MUL factor1, R, R \
	EOR R>>27, R, R \
	MUL factor2, R, R \
	OP R>>31, R, R

// V10 and V11 = those of four elements.
#define MIX4(OP) \
	MIX(OP, 0, mixed0) \
	MIX(OP, 1, mixed1) \
	MIX(OP, 2, mixed2) \
	MIX(OP, 3, mixed3) \
	ADD $4, index \
	FMOVD mixed0, F10 \
	FMOVD mixed2, F11 \
	VMOV mixed1, V10.D[1] \
	VMOV mixed3, V11.D[1]

#define LOADMIX \
	MOVD $0x9E3779B97F4A7C15, tmp \
	ADD tmp, index \
	MOVD $0xBF58476D1CE4E5B9, factor1 \
	MOVD $0x94D049BB133111EB, factor2

// func stochasticNEON(dst, src *float32, n int, j *job)
//
// n is a multiple of 4.
TEXT ·stochasticNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD n+16(FP), left
	MOVD j+24(FP), params
	LOADJOB
	MOVWU job_mantissa(params), tmp
	VDUP tmp, mantissa.S4
	MOVWU job_fraction(params), tmp
	VDUP tmp, fraction.S4
	MOVD job_index(params), index
	LOADMIX
	CBZ left, done

loop:
	MIX4(EON) // their complements
	VLD1.P 16(from), [V0.S4]
	MAGNITUDES(0, 2, 4, V6, 6)
	VAND infinity.B16, V6.B16, V8.B16
	VUMAX minNormal.S4, V8.S4, V8.S4
	VSUB mantissa.S4, V8.S4, V8.S4 // steps
	VSUB V8.S4, fraction.S4, V12.S4
	FMUL(12, 6, 6)
	FCVTL(6, 12)
	FCVTL2(6, 13)
	FCVTZS(12, 12)
	FCVTZS(13, 13)
	VUSHR $32, V10.D2, V10.D2
	VUSHR $32, V11.D2, V11.D2
	VADD V10.D2, V12.D2, V12.D2
	VADD V11.D2, V13.D2, V13.D2
	VUZP2 V13.S4, V12.S4, V6.S4
	SCVTF(6, 6)
	FMUL(8, 6, 6)
	FINISH(V0, V2, V4, V6, 6)
	VST1.P [V6.S4], 16(to)
	SUBS $4, left
	BNE loop

done:
	RET

// func randomBF16NEON(dst, src *float32, n int, first uint64)
//
// n is a multiple of 4.
TEXT ·randomBF16NEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD n+16(FP), left
	MOVD first+24(FP), index
	LOADMIX
	SPLAT($0x7F800000, infinity)
	SPLAT($0xFFFF0000, upper)
	CBZ left, done

loop:
	MIX4(EOR)
	VLD1.P 16(from), [V0.S4]
	VUZP2 V11.S4, V10.S4, V2.S4
	VUSHR $16, V2.S4, V2.S4
	VADD V0.S4, V2.S4, V2.S4
	VAND upper.B16, V2.B16, V2.B16
	FABS(0, 4)
	CMHI(4, infinityV, 4) // finite
	VBIF V4.B16, V0.B16, V2.B16
	VST1.P [V2.S4], 16(to)
	SUBS $4, left
	BNE loop

done:
	RET

// func extremesNEON(src *float32, n int, e *extremes)
//
// n is a multiple of 8.
TEXT ·extremesNEON(SB), NOSPLIT, $0-24
	MOVD src+0(FP), from
	MOVD n+8(FP), left
	MOVD e+16(FP), params
	SPLAT($0x7FFFFFFF, V8) // all but the sign
	SPLAT($-1, V9)
	VLD1 (params), [V4.S4, V5.S4, V6.S4, V7.S4] // those below, and the greatest
	CBZ left, done

loop:
	VLD1.P 32(from), [V0.S4, V1.S4]
	VAND V8.B16, V0.B16, V0.B16
	VAND V8.B16, V1.B16, V1.B16
	VADD V9.S4, V0.S4, V2.S4
	VADD V9.S4, V1.S4, V3.S4
	VUMAX V0.S4, V6.S4, V6.S4
	VUMAX V1.S4, V7.S4, V7.S4
	VUMIN V2.S4, V4.S4, V4.S4
	VUMIN V3.S4, V5.S4, V5.S4
	SUBS $8, left
	BNE loop

done:
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (params)
	RET
