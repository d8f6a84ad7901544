//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

// Each value of X, with its partner in T, becomes the sum or, where S is -1, the
// difference. x times ±1 is exact, so that this rounds once.
#define STEP(S, T, X) VFMADD213PS T, S, X

#define CANONICAL(X, T) \
	VCMPPS $3, X, X, T \
	VBLENDVPS T, Y15, X, X

// The steps of distances 4, 2 and 1 in a half of a group, and what follows.
#define HALF(after, X, T) \
	VPERM2F128 $0x01, X, X, T \
	STEP(Y10, T, X) \
	VPERMILPS $0x4E, X, T \
	STEP(Y11, T, X) \
	VPERMILPS $0xB1, X, T \
	STEP(Y12, T, X) \
	VMULPS after, X, X \
	CANONICAL(X, T)

// func rowsAVX2(dst, src *float32, n int, j *job)
TEXT ·rowsAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ j+24(FP), AX
	VMOVUPS job_Factors+Factors_Before(AX), Y8
	VMOVUPS job_Factors+Factors_Before+32(AX), Y9
	VMOVUPS job_signs+64(AX), Y10
	VMOVUPS job_signs+128(AX), Y11
	VMOVUPS job_signs+192(AX), Y12
	VMOVUPS job_Factors+Factors_After(AX), Y13
	VMOVUPS job_Factors+Factors_After+32(AX), Y14
	VPBROADCASTD job_nan(AX), Y15

group:
	VMULPS (SI), Y8, Y0
	VMULPS 32(SI), Y9, Y1
	VADDPS Y1, Y0, Y2
	VSUBPS Y1, Y0, Y3
	HALF(Y13, Y2, Y4)
	HALF(Y14, Y3, Y5)
	VMOVUPS Y2, (DI)
	VMOVUPS Y3, 32(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ group
	VZEROUPPER
	RET

// BFloat16 at a place, as float32.
#define WIDENED(at, X) \
	VPMOVZXWD at, X \
	VPSLLD $16, X, X

// X rounded to BFloat16, in the lower halves. A NaN must be the canonical one, which
// stays what it is. ONE are 1, BELOW 0x7FFF.
#define ROUND(ONE, BELOW, X, T) \
	VPSRLD $16, X, T \
	VPAND ONE, T, T \
	VPADDD BELOW, T, T \
	VPADDD T, X, X \
	VPSRLD $16, X, X

// Each value of Y0 and Y1, with its partner that SHUFFLE finds, becomes the sum or the
// difference.
#define BOTH(SHUFFLE, IMM, S) \
	SHUFFLE(IMM, Y0, Y2) \
	SHUFFLE(IMM, Y1, Y3) \
	STEP(S, Y2, Y0) \
	STEP(S, Y3, Y1)

#define LANES(IMM, X, T) VPERM2F128 IMM, X, X, T
#define INLANE(IMM, X, T) VPERMILPS IMM, X, T

// TO is every second factor, of even places where IMM is 0x88, of odd ones where it is 0xDD.
#define EVERYSECOND(at, IMM, T, TO) \
	VMOVUPS at(AX), TO \
	VMOVUPS (at+32)(AX), T \
	VSHUFPS IMM, T, TO, TO \
	VPERMPD $0xD8, TO, TO

// The upper half of X becomes X rounded to BFloat16. A NaN must be the canonical one.
#define ROUNDUPPER(X, T) \
	VPSRLD $16, X, T \
	VPAND Y6, T, T \
	VPADDD Y7, T, T \
	VPADDD T, X, X

// func rowsBF16AVX2(dst, src *uint16, n int, j *job)
//
// Y0 are the values of a group at even places, Y1 those at odd ones: widening and packing
// then need no shuffles.
TEXT ·rowsBF16AVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ j+24(FP), AX
	VPBROADCASTD job_one(AX), Y6
	VPBROADCASTD job_below(AX), Y7
	VPCMPEQD Y5, Y5, Y5
	VPSLLD $16, Y5, Y5 // upper halves
	EVERYSECOND(job_Factors+Factors_Before, $0x88, Y0, Y8)
	EVERYSECOND(job_Factors+Factors_Before, $0xDD, Y0, Y9)
	VMOVUPS job_signs+64(AX), Y10 // in steps of one, two and four of these places
	VMOVUPS job_signs+128(AX), Y11
	VMOVUPS job_signs+192(AX), Y12
	EVERYSECOND(job_Factors+Factors_After, $0x88, Y0, Y13)
	EVERYSECOND(job_Factors+Factors_After, $0xDD, Y0, Y14)
	VPBROADCASTD job_nan(AX), Y15

group:
	VMOVDQU (SI), Y1
	VPSLLD $16, Y1, Y0
	VPAND Y5, Y1, Y1
	VMULPS Y8, Y0, Y0
	VMULPS Y9, Y1, Y1
	BOTH(LANES, $0x01, Y10)
	BOTH(INLANE, $0x4E, Y11)
	BOTH(INLANE, $0xB1, Y12)
	VADDPS Y1, Y0, Y2
	VSUBPS Y1, Y0, Y3
	VMULPS Y13, Y2, Y2
	VMULPS Y14, Y3, Y3
	VCMPPS $3, Y2, Y3, Y4 // is one a NaN?
	VMOVMSKPS Y4, R8
	TESTL R8, R8
	JNZ canonical

round:
	ROUNDUPPER(Y2, Y4)
	ROUNDUPPER(Y3, Y4)
	VPSRLD $16, Y2, Y2
	VPBLENDW $0xAA, Y3, Y2, Y2
	VMOVDQU Y2, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	DECQ CX
	JNZ group
	VZEROUPPER
	RET

canonical:
	CANONICAL(Y2, Y4)
	CANONICAL(Y3, Y4)
	JMP round

// The sums and differences of A and B.
#define PAIR(A, B, SUM, DIFFERENCE) \
	VADDPS B, A, SUM \
	VSUBPS B, A, DIFFERENCE

#define BEFORE(i) (job_Factors+Factors_Before+4*(i))(DX)
#define AFTER(i) (job_Factors+Factors_After+4*(i))(DX)

// X and Y are the sum and the difference of rows i and i+8, which goes to the stack.
#define DISTANCE8(lower, upper, i, X) \
	VBROADCASTSS BEFORE(i), Y8 \
	VBROADCASTSS BEFORE(i+8), Y9 \
	VMULPS lower, Y8, Y8 \
	VMULPS upper, Y9, Y9 \
	VADDPS Y9, Y8, X \
	VSUBPS Y9, Y8, Y8 \
	VMOVUPS Y8, differences-(256-32*i)(SP)

#define DISTANCE8BF16(lower, upper, i, X) \
	VBROADCASTSS BEFORE(i), Y8 \
	VBROADCASTSS BEFORE(i+8), Y9 \
	WIDENED(lower, Y10) \
	WIDENED(upper, Y11) \
	VMULPS Y10, Y8, Y8 \
	VMULPS Y11, Y9, Y9 \
	VADDPS Y9, Y8, X \
	VSUBPS Y9, Y8, Y8 \
	VMOVUPS Y8, differences-(256-32*i)(SP)

// The steps of distances 4, 2 and 1 of eight rows, from Y0 to Y7 to the same.
#define REST \
	PAIR(Y0, Y4, Y8, Y12) \
	PAIR(Y1, Y5, Y9, Y13) \
	PAIR(Y2, Y6, Y10, Y14) \
	PAIR(Y3, Y7, Y11, Y15) \
	PAIR(Y8, Y10, Y0, Y2) \
	PAIR(Y9, Y11, Y1, Y3) \
	PAIR(Y12, Y14, Y4, Y6) \
	PAIR(Y13, Y15, Y5, Y7) \
	PAIR(Y0, Y1, Y8, Y9) \
	PAIR(Y2, Y3, Y10, Y11) \
	PAIR(Y4, Y5, Y12, Y13) \
	PAIR(Y6, Y7, Y14, Y15)

// X, of row i, becomes the result in Y2. Y0 is the canonical NaN.
#define FINISH(i, X) \
	VBROADCASTSS AFTER(i), Y1 \
	VMULPS X, Y1, Y2 \
	VCMPPS $3, Y2, Y2, Y3 \
	VBLENDVPS Y3, Y0, Y2, Y2

#define STORE(i, X, at) \
	FINISH(i, X) \
	VMOVUPS Y2, at

#define STOREBF16(i, X, at) \
	FINISH(i, X) \
	ROUND(Y4, Y5, Y2, Y3) \
	VPACKUSDW Y2, Y2, Y2 \
	VPERMQ $0x08, Y2, Y2 \
	VMOVDQU X2, at

// func columnsAVX2(dst, src *float32, dstStride, srcStride, n int, j *job)
//
// n is a multiple of 8.
TEXT ·columnsAVX2(SB), NOSPLIT, $256-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ dstStride+16(FP), R8
	MOVQ srcStride+24(FP), R9
	MOVQ n+32(FP), CX
	MOVQ j+40(FP), DX
	LEAQ (R8)(R8*2), R10
	LEAQ (R9)(R9*2), R11

vector:
	MOVQ SI, AX
	LEAQ (SI)(R9*8), BX
	DISTANCE8((AX), (BX), 0, Y0)
	DISTANCE8((AX)(R9*1), (BX)(R9*1), 1, Y1)
	DISTANCE8((AX)(R9*2), (BX)(R9*2), 2, Y2)
	DISTANCE8((AX)(R11*1), (BX)(R11*1), 3, Y3)
	LEAQ (AX)(R9*4), AX
	LEAQ (BX)(R9*4), BX
	DISTANCE8((AX), (BX), 4, Y4)
	DISTANCE8((AX)(R9*1), (BX)(R9*1), 5, Y5)
	DISTANCE8((AX)(R9*2), (BX)(R9*2), 6, Y6)
	DISTANCE8((AX)(R11*1), (BX)(R11*1), 7, Y7)
	REST
	VPBROADCASTD job_nan(DX), Y0
	MOVQ DI, AX
	STORE(0, Y8, (AX))
	STORE(1, Y9, (AX)(R8*1))
	STORE(2, Y10, (AX)(R8*2))
	STORE(3, Y11, (AX)(R10*1))
	LEAQ (AX)(R8*4), AX
	STORE(4, Y12, (AX))
	STORE(5, Y13, (AX)(R8*1))
	STORE(6, Y14, (AX)(R8*2))
	STORE(7, Y15, (AX)(R10*1))
	VMOVUPS differences-256(SP), Y0
	VMOVUPS differences-224(SP), Y1
	VMOVUPS differences-192(SP), Y2
	VMOVUPS differences-160(SP), Y3
	VMOVUPS differences-128(SP), Y4
	VMOVUPS differences-96(SP), Y5
	VMOVUPS differences-64(SP), Y6
	VMOVUPS differences-32(SP), Y7
	REST
	VPBROADCASTD job_nan(DX), Y0
	LEAQ (AX)(R8*4), AX
	STORE(8, Y8, (AX))
	STORE(9, Y9, (AX)(R8*1))
	STORE(10, Y10, (AX)(R8*2))
	STORE(11, Y11, (AX)(R10*1))
	LEAQ (AX)(R8*4), AX
	STORE(12, Y12, (AX))
	STORE(13, Y13, (AX)(R8*1))
	STORE(14, Y14, (AX)(R8*2))
	STORE(15, Y15, (AX)(R10*1))
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ vector
	VZEROUPPER
	RET

// func columnsBF16AVX2(dst, src *uint16, dstStride, srcStride, n int, j *job)
//
// n is a multiple of 8.
TEXT ·columnsBF16AVX2(SB), NOSPLIT, $256-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ dstStride+16(FP), R8
	MOVQ srcStride+24(FP), R9
	MOVQ n+32(FP), CX
	MOVQ j+40(FP), DX
	LEAQ (R8)(R8*2), R10
	LEAQ (R9)(R9*2), R11

vector:
	MOVQ SI, AX
	LEAQ (SI)(R9*8), BX
	DISTANCE8BF16((AX), (BX), 0, Y0)
	DISTANCE8BF16((AX)(R9*1), (BX)(R9*1), 1, Y1)
	DISTANCE8BF16((AX)(R9*2), (BX)(R9*2), 2, Y2)
	DISTANCE8BF16((AX)(R11*1), (BX)(R11*1), 3, Y3)
	LEAQ (AX)(R9*4), AX
	LEAQ (BX)(R9*4), BX
	DISTANCE8BF16((AX), (BX), 4, Y4)
	DISTANCE8BF16((AX)(R9*1), (BX)(R9*1), 5, Y5)
	DISTANCE8BF16((AX)(R9*2), (BX)(R9*2), 6, Y6)
	DISTANCE8BF16((AX)(R11*1), (BX)(R11*1), 7, Y7)
	REST
	VPBROADCASTD job_nan(DX), Y0
	VPBROADCASTD job_one(DX), Y4
	VPBROADCASTD job_below(DX), Y5
	MOVQ DI, AX
	STOREBF16(0, Y8, (AX))
	STOREBF16(1, Y9, (AX)(R8*1))
	STOREBF16(2, Y10, (AX)(R8*2))
	STOREBF16(3, Y11, (AX)(R10*1))
	LEAQ (AX)(R8*4), AX
	STOREBF16(4, Y12, (AX))
	STOREBF16(5, Y13, (AX)(R8*1))
	STOREBF16(6, Y14, (AX)(R8*2))
	STOREBF16(7, Y15, (AX)(R10*1))
	VMOVUPS differences-256(SP), Y0
	VMOVUPS differences-224(SP), Y1
	VMOVUPS differences-192(SP), Y2
	VMOVUPS differences-160(SP), Y3
	VMOVUPS differences-128(SP), Y4
	VMOVUPS differences-96(SP), Y5
	VMOVUPS differences-64(SP), Y6
	VMOVUPS differences-32(SP), Y7
	REST
	VPBROADCASTD job_nan(DX), Y0
	VPBROADCASTD job_one(DX), Y4
	VPBROADCASTD job_below(DX), Y5
	LEAQ (AX)(R8*4), AX
	STOREBF16(8, Y8, (AX))
	STOREBF16(9, Y9, (AX)(R8*1))
	STOREBF16(10, Y10, (AX)(R8*2))
	STOREBF16(11, Y11, (AX)(R10*1))
	LEAQ (AX)(R8*4), AX
	STOREBF16(12, Y12, (AX))
	STOREBF16(13, Y13, (AX)(R8*1))
	STOREBF16(14, Y14, (AX)(R8*2))
	STOREBF16(15, Y15, (AX)(R10*1))
	ADDQ $16, SI
	ADDQ $16, DI
	SUBQ $8, CX
	JNZ vector
	VZEROUPPER
	RET
