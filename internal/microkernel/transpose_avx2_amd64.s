//go:build !purego

#include "textflag.h"

// 8 rows are shuffled perfectly three times: each time, row i is interleaved with row
// i+4 to become rows 2i and 2i+1. Then a vector has, twice, the 8 codes of an even k and
// those of the next.
#define INTERLEAVE(Ya, Yb, Ylow, Yhigh) \
	VPUNPCKLBW Yb, Ya, Ylow \
	VPUNPCKHBW Yb, Ya, Yhigh

#define STORE(K, Y, X) \
	VMOVQ X, (64*K)(DI) \
	VMOVHPS X, (64*K+32)(DI) \
	VEXTRACTI128 $1, Y, X \
	VMOVQ X, (64*K+512)(DI) \
	VMOVHPS X, (64*K+544)(DI)

// func transposeAVX2(dst, src *byte, stride, rows, n int)
TEXT ·transposeAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), R8
	MOVQ rows+24(FP), BX
	LEAQ (R8)(R8*2), R9

rows8:
	MOVQ n+32(FP), CX
	MOVQ SI, R11
	MOVQ DI, R12

piece:
	LEAQ (SI)(R8*4), R10
	VMOVDQU (SI), Y0
	VMOVDQU (SI)(R8*1), Y1
	VMOVDQU (SI)(R8*2), Y2
	VMOVDQU (SI)(R9*1), Y3
	VMOVDQU (R10), Y4
	VMOVDQU (R10)(R8*1), Y5
	VMOVDQU (R10)(R8*2), Y6
	VMOVDQU (R10)(R9*1), Y7
	INTERLEAVE(Y0, Y4, Y8, Y9)
	INTERLEAVE(Y1, Y5, Y10, Y11)
	INTERLEAVE(Y2, Y6, Y12, Y13)
	INTERLEAVE(Y3, Y7, Y14, Y15)
	INTERLEAVE(Y8, Y12, Y0, Y1)
	INTERLEAVE(Y9, Y13, Y2, Y3)
	INTERLEAVE(Y10, Y14, Y4, Y5)
	INTERLEAVE(Y11, Y15, Y6, Y7)
	INTERLEAVE(Y0, Y4, Y8, Y9)
	INTERLEAVE(Y1, Y5, Y10, Y11)
	INTERLEAVE(Y2, Y6, Y12, Y13)
	INTERLEAVE(Y3, Y7, Y14, Y15)
	STORE(0, Y8, X8)
	STORE(1, Y9, X9)
	STORE(2, Y10, X10)
	STORE(3, Y11, X11)
	STORE(4, Y12, X12)
	STORE(5, Y13, X13)
	STORE(6, Y14, X14)
	STORE(7, Y15, X15)
	ADDQ $32, SI
	ADDQ $1024, DI
	DECQ CX
	JNZ piece
	LEAQ (R11)(R8*8), SI
	LEAQ 8(R12), DI
	SUBQ $8, BX
	JNZ rows8
	VZEROUPPER
	RET
