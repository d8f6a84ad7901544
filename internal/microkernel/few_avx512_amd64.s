//go:build !purego

#include "go_asm.h"
#include "textflag.h"

#include "vectors_avx512_amd64.h"

#define ARRANGE

// 8 rows of B, of which Z0 to Z7 are e, Z8 to Z15 are o and Z16 to Z23 are p, with 16 rows
// of A, whose values of one k are in Z24 and of the next in Z25.

#undef MULTIPLY
#undef ADD
#undef CLEARP
#undef FOLD
#undef LOADP
#undef STOREP
#undef SCALE
#undef CANONICAL
#undef STOREC

#define MULTIPLY(B, Za, Zd) VMULPS.BCST B, Za, Zd
#define ADD(B, Za, Zd) VFMADD231PS.BCST B, Za, Zd

// The value of a k and of a row of B.
#define VALUE(K, Row) (4*K+4*const_FewStride*Row)(SI)

#define ROWS8(OP, K, Za, Zd, Ze, Zf, Zg, Zh, Zi, Zj, Zk) \
	VMOVUPS (64*K)(DI), Za \
	OP(VALUE(K, 0), Za, Zd) \
	OP(VALUE(K, 1), Za, Ze) \
	OP(VALUE(K, 2), Za, Zf) \
	OP(VALUE(K, 3), Za, Zg) \
	OP(VALUE(K, 4), Za, Zh) \
	OP(VALUE(K, 5), Za, Zi) \
	OP(VALUE(K, 6), Za, Zj) \
	OP(VALUE(K, 7), Za, Zk)

#define PAIR(OP) \
	ROWS8(OP, 0, Z24, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7) \
	ROWS8(OP, 1, Z25, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15) \
	ADDQ $8, SI \
	ADDQ $128, DI

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

// P to or from 8 rows at Row, R14 apart; Row is as before.
#define LOAD(Row, Zp) \
	VMOVUPS (Row), Zp \
	ADDQ R14, Row

#define STORE(Row, Zp) \
	VMOVUPS Zp, (Row) \
	ADDQ R14, Row

#define CLEAR(Row, Zp) \
	VMOVUPS Z24, (Row) \
	ADDQ R14, Row

#define EACH(OP, Row) \
	OP(Row, Z16) \
	OP(Row, Z17) \
	OP(Row, Z18) \
	OP(Row, Z19) \
	OP(Row, Z20) \
	OP(Row, Z21) \
	OP(Row, Z22) \
	OP(Row, Z23) \
	SHLQ $3, R14 \
	SUBQ R14, Row

#define LOADP EACH(LOAD, R13)

#define STOREP EACH(STORE, R13)

// A row's p = fma(p*sa, sb, c), with sa of 16 rows of A in Z24.
#define SCALE1(Row, Zp) \
	VBROADCASTSS (R11), Z25 \
	VMULPS Z24, Zp, Zp \
	VFMADD213PS (Row), Z25, Zp \
	ADDQ R13, R11 \
	ADDQ R14, Row

#define SCALE \
	VMOVUPS (R12), Z24 \
	EACH(SCALE1, DX) \
	SHLQ $3, R13 \
	SUBQ R13, R11

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

#define STOREC \
	MOVQ Task_StrideC(AX), R14 \
	EACH(STORE, DX)

#define CLEARC \
	VPXORD Z24, Z24, Z24 \
	EACH(CLEAR, DX)

#define STOREOUT EACH(STORE, R13)

#define ROWS 8

// func multiplyFewAVX512(t *Task)
TEXT ·multiplyFewAVX512(SB), NOSPLIT, $0-8
#include "loops_amd64.h"

// Of bfloat16, with 16 of the 32 rows of a panel of A, as multiplyDots takes B.

#define BEGIN(B, d, Zd) \
	VPXORD Zd, Zd, Zd \
	CONTINUE(B, d, Zd)

#define CONTINUE(B, d, Zd) \
	VPBROADCASTD B, Z26 \
	DOT(26, 24, d)

#undef PAIRS
#define PAIRS 8
#undef MULTIPLY
#define MULTIPLY BEGIN
#undef ADD
#define ADD CONTINUE
#undef PAIR
#define PAIR(OP) \
	VMOVUPS (DI), Z24 \
	OP(VALUE(0, 0), 0, Z0) \
	OP(VALUE(0, 1), 1, Z1) \
	OP(VALUE(0, 2), 2, Z2) \
	OP(VALUE(0, 3), 3, Z3) \
	OP(VALUE(0, 4), 4, Z4) \
	OP(VALUE(0, 5), 5, Z5) \
	OP(VALUE(0, 6), 6, Z6) \
	OP(VALUE(0, 7), 7, Z7) \
	VMOVUPS 128(DI), Z24 \
	OP(VALUE(1, 0), 8, Z8) \
	OP(VALUE(1, 1), 9, Z9) \
	OP(VALUE(1, 2), 10, Z10) \
	OP(VALUE(1, 3), 11, Z11) \
	OP(VALUE(1, 4), 12, Z12) \
	OP(VALUE(1, 5), 13, Z13) \
	OP(VALUE(1, 6), 14, Z14) \
	OP(VALUE(1, 7), 15, Z15) \
	ADDQ $8, SI \
	ADDQ $256, DI

// func multiplyFewDots(t *Task)
TEXT ·multiplyFewDots(SB), NOSPLIT, $0-8
#include "loops_amd64.h"
