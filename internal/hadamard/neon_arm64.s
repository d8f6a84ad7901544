//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

// The assembler lacks these instructions. The test of package asmtable compares each
// WORD with the text beside it, for all registers.
#define FADD(m, n, d) WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d)) // fadd vd.4s, vn.4s, vm.4s
#define FSUB(m, n, d) WORD $(0x4EA0D400 | (m)<<16 | (n)<<5 | (d)) // fsub vd.4s, vn.4s, vm.4s
#define FMUL(m, n, d) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d)) // fmul vd.4s, vn.4s, vm.4s
#define FCMEQ(m, n, d) WORD $(0x4E20E400 | (m)<<16 | (n)<<5 | (d)) // fcmeq vd.4s, vn.4s, vm.4s

#define to R0
#define from R1
#define toStride R2
#define fromStride R3
#define left R4
#define params R5
#define at R6
#define tmp R7
#define factor R8

// The sums and differences of the vectors of numbers a and b.
#define PAIR(a, b, sum, difference) \
	FADD(b, a, sum) \
	FSUB(b, a, difference)

// V, of number v, is made canonical where it is NaN, with the help of T, of number t. V31
// is the canonical NaN.
#define CANONICAL(V, v, T, t) \
	FCMEQ(v, v, t) \
	VBIF T.B16, V31.B16, V.B16

// The group in V0 to V3 becomes its transform: values 8 and 4 apart are in different
// vectors. For those 2 apart the first halves of two vectors come together, and the
// second; for those 1 apart the even values of sums and of differences, and the odd. Then
// vectors have the values 0, 1, 4, 5 and 2, 3, 6, 7, and those 8 further.
#define GROUP \
	FMUL(16, 0, 0) \
	FMUL(17, 1, 1) \
	FMUL(18, 2, 2) \
	FMUL(19, 3, 3) \
	PAIR(0, 2, 4, 6) \
	PAIR(1, 3, 5, 7) \
	PAIR(4, 5, 0, 1) \
	PAIR(6, 7, 2, 3) \
	VZIP1 V1.D2, V0.D2, V4.D2 \
	VZIP2 V1.D2, V0.D2, V5.D2 \
	VZIP1 V3.D2, V2.D2, V6.D2 \
	VZIP2 V3.D2, V2.D2, V7.D2 \
	PAIR(4, 5, 0, 1) \
	PAIR(6, 7, 2, 3) \
	VUZP1 V1.S4, V0.S4, V4.S4 \
	VUZP2 V1.S4, V0.S4, V5.S4 \
	VUZP1 V3.S4, V2.S4, V6.S4 \
	VUZP2 V3.S4, V2.S4, V7.S4 \
	PAIR(4, 5, 0, 1) \
	PAIR(6, 7, 2, 3) \
	VZIP1 V1.S4, V0.S4, V4.S4 \
	VZIP2 V1.S4, V0.S4, V5.S4 \
	VZIP1 V3.S4, V2.S4, V6.S4 \
	VZIP2 V3.S4, V2.S4, V7.S4 \
	VZIP1 V5.D2, V4.D2, V0.D2 \
	VZIP2 V5.D2, V4.D2, V1.D2 \
	VZIP1 V7.D2, V6.D2, V2.D2 \
	VZIP2 V7.D2, V6.D2, V3.D2 \
	FMUL(20, 0, 0) \
	FMUL(21, 1, 1) \
	FMUL(22, 2, 2) \
	FMUL(23, 3, 3) \
	CANONICAL(V0, 0, V4, 4) \
	CANONICAL(V1, 1, V5, 5) \
	CANONICAL(V2, 2, V6, 6) \
	CANONICAL(V3, 3, V7, 7)

// func rowsNEON(dst, src *float32, n int, j *job)
TEXT ·rowsNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD n+16(FP), left
	MOVD j+24(FP), params
	ADD $(job_Factors+Factors_Before), params, tmp
	VLD1 (tmp), [V16.S4, V17.S4, V18.S4, V19.S4]
	ADD $(job_Factors+Factors_After), params, tmp
	VLD1 (tmp), [V20.S4, V21.S4, V22.S4, V23.S4]
	MOVWU job_nan(params), tmp
	VDUP tmp, V31.S4

group:
	VLD1.P 64(from), [V0.S4, V1.S4, V2.S4, V3.S4]
	GROUP
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(to)
	SUBS $1, left
	BNE group
	RET

// V is rounded to BFloat16, in the upper halves. A NaN must be the canonical one, which
// stays what it is. V28 are 1, V29 0x7FFF.
#define ROUND(V, T) \
	VUSHR $16, V.S4, T.S4 \
	VAND V28.B16, T.B16, T.B16 \
	VADD V29.S4, T.S4, T.S4 \
	VADD T.S4, V.S4, V.S4

#define LOADROUNDING \
	MOVWU job_one(params), tmp \
	VDUP tmp, V28.S4 \
	MOVWU job_below(params), tmp \
	VDUP tmp, V29.S4

// func rowsBF16NEON(dst, src *uint16, n int, j *job)
TEXT ·rowsBF16NEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD n+16(FP), left
	MOVD j+24(FP), params
	ADD $(job_Factors+Factors_Before), params, tmp
	VLD1 (tmp), [V16.S4, V17.S4, V18.S4, V19.S4]
	ADD $(job_Factors+Factors_After), params, tmp
	VLD1 (tmp), [V20.S4, V21.S4, V22.S4, V23.S4]
	MOVWU job_nan(params), tmp
	VDUP tmp, V31.S4

	LOADROUNDING
	VEOR V30.B16, V30.B16, V30.B16

group:
	VLD1.P 32(from), [V4.H8, V5.H8]
	VZIP1 V4.H8, V30.H8, V0.H8
	VZIP2 V4.H8, V30.H8, V1.H8
	VZIP1 V5.H8, V30.H8, V2.H8
	VZIP2 V5.H8, V30.H8, V3.H8
	GROUP
	ROUND(V0, V4)
	ROUND(V1, V5)
	ROUND(V2, V6)
	ROUND(V3, V7)
	VUZP2 V1.H8, V0.H8, V0.H8
	VUZP2 V3.H8, V2.H8, V1.H8
	VST1.P [V0.H8, V1.H8], 32(to)
	SUBS $1, left
	BNE group
	RET

// The four steps of 16 rows, from V0 to V15 to the same.
#define STEPS \
	PAIR(0, 8, 16, 24) \
	PAIR(1, 9, 17, 25) \
	PAIR(2, 10, 18, 26) \
	PAIR(3, 11, 19, 27) \
	PAIR(4, 12, 20, 28) \
	PAIR(5, 13, 21, 29) \
	PAIR(6, 14, 22, 30) \
	PAIR(7, 15, 23, 31) \
	PAIR(16, 20, 0, 4) \
	PAIR(17, 21, 1, 5) \
	PAIR(18, 22, 2, 6) \
	PAIR(19, 23, 3, 7) \
	PAIR(24, 28, 8, 12) \
	PAIR(25, 29, 9, 13) \
	PAIR(26, 30, 10, 14) \
	PAIR(27, 31, 11, 15) \
	PAIR(0, 2, 16, 18) \
	PAIR(1, 3, 17, 19) \
	PAIR(4, 6, 20, 22) \
	PAIR(5, 7, 21, 23) \
	PAIR(8, 10, 24, 26) \
	PAIR(9, 11, 25, 27) \
	PAIR(12, 14, 28, 30) \
	PAIR(13, 15, 29, 31) \
	PAIR(16, 17, 0, 1) \
	PAIR(18, 19, 2, 3) \
	PAIR(20, 21, 4, 5) \
	PAIR(22, 23, 6, 7) \
	PAIR(24, 25, 8, 9) \
	PAIR(26, 27, 10, 11) \
	PAIR(28, 29, 12, 13) \
	PAIR(30, 31, 14, 15)

// V, of number v, is row i of src times its factor. Rows follow each other.
#define LOAD(V, v) \
	VLD1R.P 4(factor), [V31.S4] \
	VLD1 (at), [V.S4] \
	ADD fromStride, at \
	FMUL(31, v, v)

// The same of BFloat16. V30 is zero.
#define LOADBF16(V, v) \
	VLD1R.P 4(factor), [V31.S4] \
	VLD1 (at), [V.H4] \
	ADD fromStride, at \
	VZIP1 V.H8, V30.H8, V.H8 \
	FMUL(31, v, v)

// V, of number v, becomes the result. V31 is the canonical NaN.
#define FINISH(V, v) \
	VLD1R.P 4(factor), [V30.S4] \
	FMUL(30, v, v) \
	CANONICAL(V, v, V30, 30)

#define STORE(V, v) \
	FINISH(V, v) \
	VST1 [V.S4], (at) \
	ADD toStride, at

#define STOREBF16(V, v) \
	FINISH(V, v) \
	ROUND(V, V30) \
	VUZP2 V.H8, V.H8, V.H8 \
	VST1 [V.H4], (at) \
	ADD toStride, at

// func columnsNEON(dst, src *float32, dstStride, srcStride, n int, j *job)
//
// n is a multiple of 4.
TEXT ·columnsNEON(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD dstStride+16(FP), toStride
	MOVD srcStride+24(FP), fromStride
	MOVD n+32(FP), left
	MOVD j+40(FP), params

vector:
	ADD $(job_Factors+Factors_Before), params, factor
	MOVD from, at
	LOAD(V0, 0)
	LOAD(V1, 1)
	LOAD(V2, 2)
	LOAD(V3, 3)
	LOAD(V4, 4)
	LOAD(V5, 5)
	LOAD(V6, 6)
	LOAD(V7, 7)
	LOAD(V8, 8)
	LOAD(V9, 9)
	LOAD(V10, 10)
	LOAD(V11, 11)
	LOAD(V12, 12)
	LOAD(V13, 13)
	LOAD(V14, 14)
	LOAD(V15, 15)
	STEPS
	ADD $(job_Factors+Factors_After), params, factor
	MOVWU job_nan(params), tmp
	VDUP tmp, V31.S4
	MOVD to, at
	STORE(V0, 0)
	STORE(V1, 1)
	STORE(V2, 2)
	STORE(V3, 3)
	STORE(V4, 4)
	STORE(V5, 5)
	STORE(V6, 6)
	STORE(V7, 7)
	STORE(V8, 8)
	STORE(V9, 9)
	STORE(V10, 10)
	STORE(V11, 11)
	STORE(V12, 12)
	STORE(V13, 13)
	STORE(V14, 14)
	STORE(V15, 15)
	ADD $16, from
	ADD $16, to
	SUBS $4, left
	BNE vector
	RET

// func columnsBF16NEON(dst, src *uint16, dstStride, srcStride, n int, j *job)
//
// n is a multiple of 4.
TEXT ·columnsBF16NEON(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD dstStride+16(FP), toStride
	MOVD srcStride+24(FP), fromStride
	MOVD n+32(FP), left
	MOVD j+40(FP), params

vector:
	ADD $(job_Factors+Factors_Before), params, factor
	MOVD from, at
	VEOR V30.B16, V30.B16, V30.B16
	LOADBF16(V0, 0)
	LOADBF16(V1, 1)
	LOADBF16(V2, 2)
	LOADBF16(V3, 3)
	LOADBF16(V4, 4)
	LOADBF16(V5, 5)
	LOADBF16(V6, 6)
	LOADBF16(V7, 7)
	LOADBF16(V8, 8)
	LOADBF16(V9, 9)
	LOADBF16(V10, 10)
	LOADBF16(V11, 11)
	LOADBF16(V12, 12)
	LOADBF16(V13, 13)
	LOADBF16(V14, 14)
	LOADBF16(V15, 15)
	STEPS
	ADD $(job_Factors+Factors_After), params, factor
	MOVWU job_nan(params), tmp
	VDUP tmp, V31.S4
	LOADROUNDING
	MOVD to, at
	STOREBF16(V0, 0)
	STOREBF16(V1, 1)
	STOREBF16(V2, 2)
	STOREBF16(V3, 3)
	STOREBF16(V4, 4)
	STOREBF16(V5, 5)
	STOREBF16(V6, 6)
	STOREBF16(V7, 7)
	STOREBF16(V8, 8)
	STOREBF16(V9, 9)
	STOREBF16(V10, 10)
	STOREBF16(V11, 11)
	STOREBF16(V12, 12)
	STOREBF16(V13, 13)
	STOREBF16(V14, 14)
	STOREBF16(V15, 15)
	ADD $8, from
	ADD $8, to
	SUBS $4, left
	BNE vector
	RET
