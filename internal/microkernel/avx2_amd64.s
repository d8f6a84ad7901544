//go:build !purego

#include "go_asm.h"
#include "textflag.h"

#include "vectors_avx2_amd64.h"

#define ARRANGE

// Y12 and Y13 = the values of half a panel of float32 for one k.
#define FLOATS(K) \
	VMOVUPS (128*K)(DI), Y12 \
	VMOVUPS (128*K+32)(DI), Y13

#define ROW(OP, A, Yd, Ye) \
	VBROADCASTSS A, Y14 \
	OP(Y12, Y14, Yd) \
	OP(Y13, Y14, Ye)

#define ROWS3(OP, K, Ya, Yb, Yc, Yd, Ye, Yf) \
	ROW(OP, (4*K)(SI), Ya, Yb) \
	ROW(OP, (4*K)(SI)(R8*1), Yc, Yd) \
	ROW(OP, (4*K)(SI)(R8*2), Ye, Yf)

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

// func multiplyAVX2(t *Task)
TEXT ·multiplyAVX2(SB), NOSPLIT, $224-8
#define PAIR(OP) \
	FLOATS(0) \
	ROWS3(OP, 0, Y0, Y1, Y2, Y3, Y4, Y5) \
	FLOATS(1) \
	ROWS3(OP, 1, Y6, Y7, Y8, Y9, Y10, Y11) \
	ADDQ $8, SI \
	ADDQ $256, DI
#include "loops_amd64.h"

// func multiplyRoundedAVX2(t *Task)
TEXT ·multiplyRoundedAVX2(SB), NOSPLIT, $224-8
#undef ADD
#define ADD(Yb, Ya, Yd) \
	VMULPS Yb, Ya, Y15 \
	VADDPS Y15, Yd, Yd
#include "loops_amd64.h"
#undef ADD
#define ADD(Yb, Ya, Yd) VFMADD231PS Yb, Ya, Yd

// Yleast has a 0 where one of 32 codes is the value.
#define LOOK(Offset, Yleast, Yt) \
	VPAND Offset(SI), Y2, Yt \
	VPXOR Y3, Yt, Yt \
	VPMINUB Yt, Yleast, Yleast

// func containsAVX2(codes *byte, n int, mask, value uint64) bool
TEXT ·containsAVX2(SB), NOSPLIT, $0-33
	MOVQ codes+0(FP), SI
	MOVQ n+8(FP), CX
	VPBROADCASTQ mask+16(FP), Y2
	VPBROADCASTQ value+24(FP), Y3
	VPCMPEQB Y0, Y0, Y0
	VPCMPEQB Y1, Y1, Y1
	SUBQ $128, CX
	JLT few

look:
	LOOK(0, Y0, Y4)
	LOOK(32, Y1, Y5)
	LOOK(64, Y0, Y6)
	LOOK(96, Y1, Y7)
	ADDQ $128, SI
	SUBQ $128, CX
	JGE look

few:
	ADDQ $128, CX
	JZ looked

lookOn:
	LOOK(0, Y0, Y4)
	ADDQ $32, SI
	SUBQ $32, CX
	JNZ lookOn

looked:
	VPMINUB Y1, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPCMPEQB Y1, Y0, Y0
	VPTEST Y0, Y0
	SETNE ret+32(FP)
	VZEROUPPER
	RET
