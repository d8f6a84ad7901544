//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Of a register block of 3 rows, each of two vectors, Y0 to Y5 are e and Y6 to Y11 are o; p
// is on the stack.

// Y12 and Y13 = the values of half a panel of float32 for one k.
#define FLOATS(K) \
	VMOVUPS (128*K)(DI), Y12 \
	VMOVUPS (128*K+32)(DI), Y13

#define ROW(OP, A, Yd, Ye) \
	VBROADCASTSS A, Y14 \
	OP(Y12, Y14, Yd) \
	OP(Y13, Y14, Ye)

#define MULTIPLY(Yb, Ya, Yd) VMULPS Yb, Ya, Yd
#define ADD(Yb, Ya, Yd) VFMADD231PS Yb, Ya, Yd

#define ROWS3(OP, K, Ya, Yb, Yc, Yd, Ye, Yf) \
	ROW(OP, (4*K)(SI), Ya, Yb) \
	ROW(OP, (4*K)(SI)(R8*1), Yc, Yd) \
	ROW(OP, (4*K)(SI)(R8*2), Ye, Yf)

#define FOLD1(Ye, Yo, P) \
	VADDPS Yo, Ye, Ye \
	VADDPS P, Ye, Ye \
	VMOVUPS Ye, P

#define MOVE2(From, From1, To, To1) \
	VMOVUPS From, Y12 \
	VMOVUPS From1, Y13 \
	VMOVUPS Y12, To \
	VMOVUPS Y13, To1

// Y8 and Y9 = the scales of B.
#define SCALEB \
	VMOVUPS (R12), Y8 \
	VMOVUPS 32(R12), Y9

// Ya and Yb = fma(p*sa, sb, c) of a row.
#define SCALE2(A, C, P, P1, Ya, Yb) \
	VBROADCASTSS A, Y14 \
	VMULPS P, Y14, Ya \
	VMULPS P1, Y14, Yb \
	VFMADD213PS C, Y8, Ya \
	VFMADD213PS 32 C, Y9, Yb

#define NAN \
	MOVL $0x7FC00000, R13 \
	VMOVD R13, X13 \
	VPBROADCASTD X13, Y13

#define CANONICAL1(Yp) \
	VCMPPS $3, Yp, Yp, Y12 \
	VBLENDVPS Y12, Y13, Yp, Yp

#define STORE2(To, To1, Ya, Yb) \
	VMOVUPS Ya, To \
	VMOVUPS Yb, To1

// Register blocks of 3 rows.

#define CLEARP \
	VPXOR Y12, Y12, Y12 \
	STORE2(p0-224(SP), p1-192(SP), Y12, Y12) \
	STORE2(p2-160(SP), p3-128(SP), Y12, Y12) \
	STORE2(p4-96(SP), p5-64(SP), Y12, Y12)

#define FOLD \
	FOLD1(Y0, Y6, p0-224(SP)) \
	FOLD1(Y1, Y7, p1-192(SP)) \
	FOLD1(Y2, Y8, p2-160(SP)) \
	FOLD1(Y3, Y9, p3-128(SP)) \
	FOLD1(Y4, Y10, p4-96(SP)) \
	FOLD1(Y5, Y11, p5-64(SP))

#define LOADP \
	MOVE2((R13), 32(R13), p0-224(SP), p1-192(SP)) \
	MOVE2((R13)(R14*1), 32(R13)(R14*1), p2-160(SP), p3-128(SP)) \
	MOVE2((R13)(R14*2), 32(R13)(R14*2), p4-96(SP), p5-64(SP))

#define STOREP \
	MOVE2(p0-224(SP), p1-192(SP), (R13), 32(R13)) \
	MOVE2(p2-160(SP), p3-128(SP), (R13)(R14*1), 32(R13)(R14*1)) \
	MOVE2(p4-96(SP), p5-64(SP), (R13)(R14*2), 32(R13)(R14*2))

#define SCALE \
	SCALEB \
	SCALE2((R11), (DX), p0-224(SP), p1-192(SP), Y0, Y1) \
	SCALE2((R11)(R13*1), (DX)(R14*1), p2-160(SP), p3-128(SP), Y2, Y3) \
	SCALE2((R11)(R13*2), (DX)(R14*2), p4-96(SP), p5-64(SP), Y4, Y5)

#define CANONICAL \
	NAN \
	CANONICAL1(Y0) \
	CANONICAL1(Y1) \
	CANONICAL1(Y2) \
	CANONICAL1(Y3) \
	CANONICAL1(Y4) \
	CANONICAL1(Y5)

#define STOREC \
	STORE2((DX), 32(DX), Y0, Y1) \
	STORE2((DX)(R14*1), 32(DX)(R14*1), Y2, Y3) \
	STORE2((DX)(R14*2), 32(DX)(R14*2), Y4, Y5)

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
#define PANEL Task_B
#define PREPARE
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
