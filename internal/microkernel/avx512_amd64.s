//go:build !purego

#include "go_asm.h"
#include "textflag.h"

#include "vectors_avx512_amd64.h"

// Z24 and Z25 = the values of a panel of float32 for one k.
#define FLOATS(K) \
	VMOVUPS (128*K)(DI), Z24 \
	VMOVUPS (128*K+64)(DI), Z25

#define ROW(OP, A, Zd, Ze) \
	VBROADCASTSS A, Z26 \
	OP(Z24, Z26, Zd) \
	OP(Z25, Z26, Ze)

#define ROWS4(OP, K, Za, Zb, Zc, Zd, Ze, Zf, Zg, Zh) \
	ROW(OP, (4*K)(SI), Za, Zb) \
	ROW(OP, (4*K)(SI)(R8*1), Zc, Zd) \
	ROW(OP, (4*K)(SI)(R8*2), Ze, Zf) \
	ROW(OP, (4*K)(SI)(R10*1), Zg, Zh)

#define CLEARC \
	VPXORD Z24, Z24, Z24 \
	STORE2((DX), Z24, Z24) \
	STORE2((DX)(R14*1), Z24, Z24) \
	STORE2((DX)(R14*2), Z24, Z24) \
	LEAQ (R14)(R14*2), R14 \
	STORE2((DX)(R14*1), Z24, Z24)

#define STOREOUT STOREP

#define ROWS 4
#define ARRANGE

// func multiplyAVX512(t *Task)
TEXT ·multiplyAVX512(SB), NOSPLIT, $0-8
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

// Of bfloat16 each value is two k of the same parity, the earlier in the upper half, which
// the instruction adds first: e and o begin as zeros.

#define BEGIN(m, d, Zd) \
	VPXORD Zd, Zd, Zd \
	DOT(m, 26, d)

#define CONTINUE(m, d, Zd) DOT(m, 26, d)

#define DOTROW(OP, A, d, Zd, e, Ze) \
	VPBROADCASTD A, Z26 \
	OP(24, d, Zd) \
	OP(25, e, Ze)

#undef PAIRS
#define PAIRS 8
#undef MULTIPLY
#define MULTIPLY BEGIN
#undef ADD
#define ADD CONTINUE
#undef PAIR
#define PAIR(OP) \
	FLOATS(0) \
	DOTROW(OP, (SI), 0, Z0, 1, Z1) \
	DOTROW(OP, (SI)(R8*1), 2, Z2, 3, Z3) \
	DOTROW(OP, (SI)(R8*2), 4, Z4, 5, Z5) \
	DOTROW(OP, (SI)(R10*1), 6, Z6, 7, Z7) \
	FLOATS(1) \
	DOTROW(OP, 4(SI), 8, Z8, 9, Z9) \
	DOTROW(OP, 4(SI)(R8*1), 10, Z10, 11, Z11) \
	DOTROW(OP, 4(SI)(R8*2), 12, Z12, 13, Z13) \
	DOTROW(OP, 4(SI)(R10*1), 14, Z14, 15, Z15) \
	ADDQ $8, SI \
	ADDQ $256, DI

// func multiplyDots(t *Task)
TEXT ·multiplyDots(SB), NOSPLIT, $0-8
#include "loops_amd64.h"
