//go:build !purego

#include "go_asm.h"
#include "textflag.h"

#include "vectors_avx2_amd64.h"

#define ARRANGE

// 3 rows of B, with 16 rows of A, whose values of one k are in Y12 and Y13.

#define ROW(OP, B, Yd, Ye) \
	VBROADCASTSS B, Y14 \
	OP(Y12, Y14, Yd) \
	OP(Y13, Y14, Ye)

#define ROWS3(OP, K, Ya, Yb, Yc, Yd, Ye, Yf) \
	VMOVUPS (64*K)(DI), Y12 \
	VMOVUPS (64*K+32)(DI), Y13 \
	ROW(OP, (4*K)(SI), Ya, Yb) \
	ROW(OP, (4*K+4*const_FewStride)(SI), Yc, Yd) \
	ROW(OP, (4*K+8*const_FewStride)(SI), Ye, Yf)

#define PAIR(OP) \
	ROWS3(OP, 0, Y0, Y1, Y2, Y3, Y4, Y5) \
	ROWS3(OP, 1, Y6, Y7, Y8, Y9, Y10, Y11) \
	ADDQ $8, SI \
	ADDQ $128, DI

// Of a row of B, Ya and Yb = fma(p*sa, sb, c), with sa of 16 rows of A in Y8 and Y9.
#undef SCALE2
#define SCALE2(B, C, C1, P, P1, Ya, Yb) \
	VBROADCASTSS B, Y14 \
	VMULPS P, Y8, Ya \
	VMULPS P1, Y9, Yb \
	VFMADD213PS C, Y14, Ya \
	VFMADD213PS C1, Y14, Yb

#define CLEARC \
	VPXOR Y12, Y12, Y12 \
	STORE2((DX), 32(DX), Y12, Y12) \
	STORE2((DX)(R14*1), 32(DX)(R14*1), Y12, Y12) \
	STORE2((DX)(R14*2), 32(DX)(R14*2), Y12, Y12)

#define STOREOUT \
	STORE2((R13), 32(R13), Y0, Y1) \
	STORE2((R13)(R14*1), 32(R13)(R14*1), Y2, Y3) \
	STORE2((R13)(R14*2), 32(R13)(R14*2), Y4, Y5)

#define ROWS 3

// func multiplyFewAVX2(t *Task)
TEXT ·multiplyFewAVX2(SB), NOSPLIT, $224-8
#include "loops_amd64.h"
