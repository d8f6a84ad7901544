//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

// Each value of X, with its partner in T, becomes the sum or, where S is -1, the
// difference. x times ±1 is exact, so that this rounds once.
#define STEP(S, T, X) VFMADD213PS T, S, X

// Results that are NaN become the canonical one.
#define CANONICAL(X) \
	VCMPPS $3, X, X, K2 \
	VMOVAPS Z31, K2, X

#define GROUP(X, T) \
	VMULPS Z24, X, X \
	VSHUFF64X2 $0x4E, X, X, T \
	STEP(Z26, T, X) \
	VSHUFF64X2 $0xB1, X, X, T \
	STEP(Z27, T, X) \
	VPERMILPS $0x4E, X, T \
	STEP(Z28, T, X) \
	VPERMILPS $0xB1, X, T \
	STEP(Z29, T, X) \
	VMULPS Z25, X, X \
	CANONICAL(X)

// func rowsAVX512(dst, src *float32, n int, j *job)
TEXT ·rowsAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ j+24(FP), AX
	VMOVUPS job_Factors+Factors_Before(AX), Z24
	VMOVUPS job_Factors+Factors_After(AX), Z25
	VMOVUPS job_signs+0(AX), Z26
	VMOVUPS job_signs+64(AX), Z27
	VMOVUPS job_signs+128(AX), Z28
	VMOVUPS job_signs+192(AX), Z29
	VPBROADCASTD job_nan(AX), Z31
	SUBQ $4, CX
	JL rest

four:
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	VMOVUPS 128(SI), Z2
	VMOVUPS 192(SI), Z3
	GROUP(Z0, Z4)
	GROUP(Z1, Z5)
	GROUP(Z2, Z6)
	GROUP(Z3, Z7)
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	VMOVUPS Z3, 192(DI)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $4, CX
	JGE four

rest:
	ADDQ $4, CX
	JZ done

one:
	VMOVUPS (SI), Z0
	GROUP(Z0, Z4)
	VMOVUPS Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ one

done:
	VZEROUPPER
	RET

// BFloat16 in the lower halves of X become float32.
#define WIDEN(X) VPSLLD $16, X, X

// X rounded to BFloat16, in the lower halves. A NaN must be the canonical one, which
// stays what it is. Z22 are 1, Z23 0x7FFF.
#define ROUND(X, T) \
	VPSRLD $16, X, T \
	VPANDD Z22, T, T \
	VPADDD Z23, T, T \
	VPADDD T, X, X \
	VPSRLD $16, X, X

// func rowsBF16AVX512(dst, src *uint16, n int, j *job)
TEXT ·rowsBF16AVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ j+24(FP), AX
	VMOVUPS job_Factors+Factors_Before(AX), Z24
	VMOVUPS job_Factors+Factors_After(AX), Z25
	VMOVUPS job_signs+0(AX), Z26
	VMOVUPS job_signs+64(AX), Z27
	VMOVUPS job_signs+128(AX), Z28
	VMOVUPS job_signs+192(AX), Z29
	VPBROADCASTD job_nan(AX), Z31
	VPBROADCASTD job_one(AX), Z22
	VPBROADCASTD job_below(AX), Z23
	SUBQ $4, CX
	JL rest

four:
	VPMOVZXWD (SI), Z0
	VPMOVZXWD 32(SI), Z1
	VPMOVZXWD 64(SI), Z2
	VPMOVZXWD 96(SI), Z3
	WIDEN(Z0)
	WIDEN(Z1)
	WIDEN(Z2)
	WIDEN(Z3)
	GROUP(Z0, Z4)
	GROUP(Z1, Z5)
	GROUP(Z2, Z6)
	GROUP(Z3, Z7)
	ROUND(Z0, Z4)
	ROUND(Z1, Z5)
	ROUND(Z2, Z6)
	ROUND(Z3, Z7)
	VPMOVDW Z0, (DI)
	VPMOVDW Z1, 32(DI)
	VPMOVDW Z2, 64(DI)
	VPMOVDW Z3, 96(DI)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $4, CX
	JGE four

rest:
	ADDQ $4, CX
	JZ done

one:
	VPMOVZXWD (SI), Z0
	WIDEN(Z0)
	GROUP(Z0, Z4)
	ROUND(Z0, Z4)
	VPMOVDW Z0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	DECQ CX
	JNZ one

done:
	VZEROUPPER
	RET

// The sums and differences of A and B.
#define PAIR(A, B, SUM, DIFFERENCE) \
	VADDPS B, A, SUM \
	VSUBPS B, A, DIFFERENCE

#define BEFORE(i) (job_Factors+Factors_Before+4*(i))(DX)
#define AFTER(i) (job_Factors+Factors_After+4*(i))(DX)

// The four steps of 16 rows, from Z0 to Z15 to the same.
#define STEPS \
	PAIR(Z0, Z8, Z16, Z24) \
	PAIR(Z1, Z9, Z17, Z25) \
	PAIR(Z2, Z10, Z18, Z26) \
	PAIR(Z3, Z11, Z19, Z27) \
	PAIR(Z4, Z12, Z20, Z28) \
	PAIR(Z5, Z13, Z21, Z29) \
	PAIR(Z6, Z14, Z22, Z30) \
	PAIR(Z7, Z15, Z23, Z31) \
	PAIR(Z16, Z20, Z0, Z4) \
	PAIR(Z17, Z21, Z1, Z5) \
	PAIR(Z18, Z22, Z2, Z6) \
	PAIR(Z19, Z23, Z3, Z7) \
	PAIR(Z24, Z28, Z8, Z12) \
	PAIR(Z25, Z29, Z9, Z13) \
	PAIR(Z26, Z30, Z10, Z14) \
	PAIR(Z27, Z31, Z11, Z15) \
	PAIR(Z0, Z2, Z16, Z18) \
	PAIR(Z1, Z3, Z17, Z19) \
	PAIR(Z4, Z6, Z20, Z22) \
	PAIR(Z5, Z7, Z21, Z23) \
	PAIR(Z8, Z10, Z24, Z26) \
	PAIR(Z9, Z11, Z25, Z27) \
	PAIR(Z12, Z14, Z28, Z30) \
	PAIR(Z13, Z15, Z29, Z31) \
	PAIR(Z16, Z17, Z0, Z1) \
	PAIR(Z18, Z19, Z2, Z3) \
	PAIR(Z20, Z21, Z4, Z5) \
	PAIR(Z22, Z23, Z6, Z7) \
	PAIR(Z24, Z25, Z8, Z9) \
	PAIR(Z26, Z27, Z10, Z11) \
	PAIR(Z28, Z29, Z12, Z13) \
	PAIR(Z30, Z31, Z14, Z15)

#define LOAD(at, i, X) \
	VMOVUPS.Z at, K1, X \
	VMULPS.BCST BEFORE(i), X, X

#define LOADBF16(at, i, X) \
	VPMOVZXWD.Z at, K1, X \
	WIDEN(X) \
	VMULPS.BCST BEFORE(i), X, X

// X, of row i, becomes the result.
#define FINISH(i, X) \
	VMULPS.BCST AFTER(i), X, X \
	VCMPPS $3, X, X, K2 \
	VPBROADCASTD job_nan(DX), K2, X

#define STORE(i, X, at) \
	FINISH(i, X) \
	VMOVUPS X, K1, at

#define STOREBF16(i, X, at) \
	FINISH(i, X) \
	ROUND(X, Z16) \
	VPMOVDW X, K1, at

// func columnsAVX512(dst, src *float32, dstStride, srcStride, n int, j *job)
TEXT ·columnsAVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ dstStride+16(FP), R8
	MOVQ srcStride+24(FP), R9
	MOVQ n+32(FP), R12
	MOVQ j+40(FP), DX
	LEAQ (R8)(R8*2), R10
	LEAQ (R9)(R9*2), R11
	KXNORW K1, K1, K1

vector:
	CMPQ R12, $16
	JGE whole
	MOVQ R12, CX
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	KMOVW AX, K1

whole:
	MOVQ SI, AX
	LOAD((AX), 0, Z0)
	LOAD((AX)(R9*1), 1, Z1)
	LOAD((AX)(R9*2), 2, Z2)
	LOAD((AX)(R11*1), 3, Z3)
	LEAQ (AX)(R9*4), AX
	LOAD((AX), 4, Z4)
	LOAD((AX)(R9*1), 5, Z5)
	LOAD((AX)(R9*2), 6, Z6)
	LOAD((AX)(R11*1), 7, Z7)
	LEAQ (AX)(R9*4), AX
	LOAD((AX), 8, Z8)
	LOAD((AX)(R9*1), 9, Z9)
	LOAD((AX)(R9*2), 10, Z10)
	LOAD((AX)(R11*1), 11, Z11)
	LEAQ (AX)(R9*4), AX
	LOAD((AX), 12, Z12)
	LOAD((AX)(R9*1), 13, Z13)
	LOAD((AX)(R9*2), 14, Z14)
	LOAD((AX)(R11*1), 15, Z15)
	STEPS
	MOVQ DI, AX
	STORE(0, Z0, (AX))
	STORE(1, Z1, (AX)(R8*1))
	STORE(2, Z2, (AX)(R8*2))
	STORE(3, Z3, (AX)(R10*1))
	LEAQ (AX)(R8*4), AX
	STORE(4, Z4, (AX))
	STORE(5, Z5, (AX)(R8*1))
	STORE(6, Z6, (AX)(R8*2))
	STORE(7, Z7, (AX)(R10*1))
	LEAQ (AX)(R8*4), AX
	STORE(8, Z8, (AX))
	STORE(9, Z9, (AX)(R8*1))
	STORE(10, Z10, (AX)(R8*2))
	STORE(11, Z11, (AX)(R10*1))
	LEAQ (AX)(R8*4), AX
	STORE(12, Z12, (AX))
	STORE(13, Z13, (AX)(R8*1))
	STORE(14, Z14, (AX)(R8*2))
	STORE(15, Z15, (AX)(R10*1))
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, R12
	JG vector
	VZEROUPPER
	RET

// func columnsBF16AVX512(dst, src *uint16, dstStride, srcStride, n int, j *job)
TEXT ·columnsBF16AVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ dstStride+16(FP), R8
	MOVQ srcStride+24(FP), R9
	MOVQ n+32(FP), R12
	MOVQ j+40(FP), DX
	LEAQ (R8)(R8*2), R10
	LEAQ (R9)(R9*2), R11
	KXNORW K1, K1, K1

vector:
	CMPQ R12, $16
	JGE whole
	MOVQ R12, CX
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	KMOVW AX, K1

whole:
	MOVQ SI, AX
	LOADBF16((AX), 0, Z0)
	LOADBF16((AX)(R9*1), 1, Z1)
	LOADBF16((AX)(R9*2), 2, Z2)
	LOADBF16((AX)(R11*1), 3, Z3)
	LEAQ (AX)(R9*4), AX
	LOADBF16((AX), 4, Z4)
	LOADBF16((AX)(R9*1), 5, Z5)
	LOADBF16((AX)(R9*2), 6, Z6)
	LOADBF16((AX)(R11*1), 7, Z7)
	LEAQ (AX)(R9*4), AX
	LOADBF16((AX), 8, Z8)
	LOADBF16((AX)(R9*1), 9, Z9)
	LOADBF16((AX)(R9*2), 10, Z10)
	LOADBF16((AX)(R11*1), 11, Z11)
	LEAQ (AX)(R9*4), AX
	LOADBF16((AX), 12, Z12)
	LOADBF16((AX)(R9*1), 13, Z13)
	LOADBF16((AX)(R9*2), 14, Z14)
	LOADBF16((AX)(R11*1), 15, Z15)
	STEPS
	VPBROADCASTD job_one(DX), Z22
	VPBROADCASTD job_below(DX), Z23
	MOVQ DI, AX
	STOREBF16(0, Z0, (AX))
	STOREBF16(1, Z1, (AX)(R8*1))
	STOREBF16(2, Z2, (AX)(R8*2))
	STOREBF16(3, Z3, (AX)(R10*1))
	LEAQ (AX)(R8*4), AX
	STOREBF16(4, Z4, (AX))
	STOREBF16(5, Z5, (AX)(R8*1))
	STOREBF16(6, Z6, (AX)(R8*2))
	STOREBF16(7, Z7, (AX)(R10*1))
	LEAQ (AX)(R8*4), AX
	STOREBF16(8, Z8, (AX))
	STOREBF16(9, Z9, (AX)(R8*1))
	STOREBF16(10, Z10, (AX)(R8*2))
	STOREBF16(11, Z11, (AX)(R10*1))
	LEAQ (AX)(R8*4), AX
	STOREBF16(12, Z12, (AX))
	STOREBF16(13, Z13, (AX)(R8*1))
	STOREBF16(14, Z14, (AX)(R8*2))
	STOREBF16(15, Z15, (AX)(R10*1))
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $16, R12
	JG vector
	VZEROUPPER
	RET
