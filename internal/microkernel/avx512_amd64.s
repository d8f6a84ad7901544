//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Of a register block of 4 rows, each of two vectors, Z0 to Z7 are e, Z8 to Z15 are o and
// Z16 to Z23 are p.

// Z24 and Z25 = the values of a panel of float32 for one k.
#define FLOATS(K) \
	VMOVUPS (128*K)(DI), Z24 \
	VMOVUPS (128*K+64)(DI), Z25

#define ROW(OP, A, Zd, Ze) \
	VBROADCASTSS A, Z26 \
	OP(Z24, Z26, Zd) \
	OP(Z25, Z26, Ze)

#define MULTIPLY(Zb, Za, Zd) VMULPS Zb, Za, Zd
#define ADD(Zb, Za, Zd) VFMADD231PS Zb, Za, Zd

#define ROWS4(OP, K, Za, Zb, Zc, Zd, Ze, Zf, Zg, Zh) \
	ROW(OP, (4*K)(SI), Za, Zb) \
	ROW(OP, (4*K)(SI)(R8*1), Zc, Zd) \
	ROW(OP, (4*K)(SI)(R8*2), Ze, Zf) \
	ROW(OP, (4*K)(SI)(R10*1), Zg, Zh)

#define CLEAR2(Za, Zb) \
	VPXORD Za, Za, Za \
	VPXORD Zb, Zb, Zb

#define FOLD1(Ze, Zo, Zp) \
	VADDPS Zo, Ze, Ze \
	VADDPS Ze, Zp, Zp

#define LOAD2(P, Za, Zb) \
	VMOVUPS P, Za \
	VMOVUPS 64 P, Zb

#define STORE2(P, Za, Zb) \
	VMOVUPS Za, P \
	VMOVUPS Zb, 64 P

// Z24 and Z25 = the scales of B.
#define SCALEB \
	VMOVUPS (R12), Z24 \
	VMOVUPS 64(R12), Z25

// A row's p = fma(p*sa, sb, c).
#define SCALE2(A, C, Za, Zb) \
	VMULPS.BCST A, Za, Za \
	VMULPS.BCST A, Zb, Zb \
	VFMADD213PS C, Z24, Za \
	VFMADD213PS 64 C, Z25, Zb

#define NAN \
	MOVL $0x7FC00000, R13 \
	VPBROADCASTD R13, Z26

#define CANONICAL1(Zp) \
	VCMPPS $3, Zp, Zp, K1 \
	VMOVDQA32 Z26, K1, Zp

// Register blocks of 4 rows.

#define CLEARP \
	CLEAR2(Z16, Z17) \
	CLEAR2(Z18, Z19) \
	CLEAR2(Z20, Z21) \
	CLEAR2(Z22, Z23)

#define FOLD \
	FOLD1(Z0, Z8, Z16) \
	FOLD1(Z1, Z9, Z17) \
	FOLD1(Z2, Z10, Z18) \
	FOLD1(Z3, Z11, Z19) \
	FOLD1(Z4, Z12, Z20) \
	FOLD1(Z5, Z13, Z21) \
	FOLD1(Z6, Z14, Z22) \
	FOLD1(Z7, Z15, Z23)

#define LOADP \
	LOAD2((R13), Z16, Z17) \
	LOAD2((R13)(R14*1), Z18, Z19) \
	LOAD2((R13)(R14*2), Z20, Z21) \
	LEAQ (R14)(R14*2), R14 \
	LOAD2((R13)(R14*1), Z22, Z23)

#define STOREP \
	STORE2((R13), Z16, Z17) \
	STORE2((R13)(R14*1), Z18, Z19) \
	STORE2((R13)(R14*2), Z20, Z21) \
	LEAQ (R14)(R14*2), R14 \
	STORE2((R13)(R14*1), Z22, Z23)

#define SCALE \
	SCALEB \
	SCALE2((R11), (DX), Z16, Z17) \
	SCALE2((R11)(R13*1), (DX)(R14*1), Z18, Z19) \
	SCALE2((R11)(R13*2), (DX)(R14*2), Z20, Z21) \
	LEAQ (R13)(R13*2), R13 \
	LEAQ (R14)(R14*2), R14 \
	SCALE2((R11)(R13*1), (DX)(R14*1), Z22, Z23)

#define CANONICAL \
	NAN \
	CANONICAL1(Z16) \
	CANONICAL1(Z17) \
	CANONICAL1(Z18) \
	CANONICAL1(Z19) \
	CANONICAL1(Z20) \
	CANONICAL1(Z21) \
	CANONICAL1(Z22) \
	CANONICAL1(Z23)

#define CLEARC \
	VPXORD Z24, Z24, Z24 \
	STORE2((DX), Z24, Z24) \
	STORE2((DX)(R14*1), Z24, Z24) \
	STORE2((DX)(R14*2), Z24, Z24) \
	LEAQ (R14)(R14*2), R14 \
	STORE2((DX)(R14*1), Z24, Z24)

#define STOREOUT STOREP

// R14 is 3 rows on entry.
#define STOREC \
	STORE2((DX)(R14*1), Z22, Z23) \
	MOVQ Task_StrideC(AX), R14 \
	STORE2((DX), Z16, Z17) \
	STORE2((DX)(R14*1), Z18, Z19) \
	STORE2((DX)(R14*2), Z20, Z21)

#define ROWS 4

// func multiplyAVX512(t *Task)
TEXT ·multiplyAVX512(SB), NOSPLIT, $0-8
#define PANEL Task_B
#define PREPARE
#define PAIR(OP) \
	FLOATS(0) \
	ROWS4(OP, 0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7) \
	FLOATS(1) \
	ROWS4(OP, 1, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15) \
	ADDQ $8, SI \
	ADDQ $256, DI
#include "loops_amd64.h"

// func multiplyRoundedAVX512(t *Task)
TEXT ·multiplyRoundedAVX512(SB), NOSPLIT, $0-8
#undef ADD
#define ADD(Zb, Za, Zd) \
	VMULPS Zb, Za, Z27 \
	VADDPS Z27, Zd, Zd
#include "loops_amd64.h"
#undef ADD
#define ADD(Zb, Za, Zd) VFMADD231PS Zb, Za, Zd
