//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// How many bytes of codes are fetched before they are needed: what memory delivers
// while it is waited for.
#define AHEAD 4096

// Z28 is the multiplier, Z29 the mask.
#define PREPARE \
	VPBROADCASTQ Task_Multiplier(AX), Z28 \
	VPBROADCASTQ Task_Mask(AX), Z29

// Z24 and Z25 = the values of a panel of codes for one k, Z26 and Z27 for the next. The
// float16s go through memory: conversion of what lies there needs less of the ports
// that multiply than conversion of halves of a register does.
#define CODES \
	VPMOVSXBW (DI), Z24 \
	VPMOVSXBW 32(DI), Z26 \
	VPMULLW Z28, Z24, Z24 \
	VPMULLW Z28, Z26, Z26 \
	VPANDQ Z29, Z24, Z24 \
	VPANDQ Z29, Z26, Z26 \
	VMOVDQU64 Z24, low-128(SP) \
	VMOVDQU64 Z26, low1-64(SP) \
	VCVTPH2PS low-128(SP), Z24 \
	VCVTPH2PS high-96(SP), Z25 \
	VCVTPH2PS low1-64(SP), Z26 \
	VCVTPH2PS high1-32(SP), Z27

#define ROW(OP, A, Zb, Zc, Zd, Ze) \
	VBROADCASTSS A, Z30 \
	OP(Zb, Z30, Zd) \
	OP(Zc, Z30, Ze)

#define MULTIPLY(Zb, Za, Zd) VMULPS Zb, Za, Zd
#define ADD(Zb, Za, Zd) VFMADD231PS Zb, Za, Zd

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
#define SCALEB LOAD2((R12), Z24, Z25)

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

// Of a single row, Z0 and Z1 are e, Z8 and Z9 are o and Z16 and Z17 are p.

#define PAIR(OP) \
	CODES \
	ROW(OP, (SI), Z24, Z25, Z0, Z1) \
	ROW(OP, 4(SI), Z26, Z27, Z8, Z9) \
	ADDQ $8, SI \
	PREFETCHT0 AHEAD(DI) \
	ADDQ $64, DI

#define CLEARP CLEAR2(Z16, Z17)

#define FOLD \
	FOLD1(Z0, Z8, Z16) \
	FOLD1(Z1, Z9, Z17)

#define LOADP LOAD2((R13), Z16, Z17)

#define STOREP STORE2((R13), Z16, Z17)

#define SCALE \
	SCALEB \
	SCALE2((R11), (DX), Z16, Z17)

#define CANONICAL \
	NAN \
	CANONICAL1(Z16) \
	CANONICAL1(Z17)

#define STOREC STORE2((DX), Z16, Z17)

// func multiplyCodesRowAVX512(t *Task)
TEXT ·multiplyCodesRowAVX512(SB), NOSPLIT, $128-8
#include "codes_amd64.h"

// Of 4 rows, Z0 to Z7 are e, Z8 to Z15 are o and Z16 to Z23 are p.

#undef PREPARE
#undef PAIR
#undef CLEARP
#undef FOLD
#undef LOADP
#undef STOREP
#undef SCALE
#undef CANONICAL
#undef STOREC

#define PREPARE \
	VPBROADCASTQ Task_Multiplier(AX), Z28 \
	VPBROADCASTQ Task_Mask(AX), Z29 \
	MOVQ Task_StrideA(AX), R10 \
	LEAQ (R10)(R10*2), R10

// R10 is 3 rows of A.
#define PAIR(OP) \
	CODES \
	ROW(OP, (SI), Z24, Z25, Z0, Z1) \
	ROW(OP, (SI)(R8*1), Z24, Z25, Z2, Z3) \
	ROW(OP, (SI)(R8*2), Z24, Z25, Z4, Z5) \
	ROW(OP, (SI)(R10*1), Z24, Z25, Z6, Z7) \
	ROW(OP, 4(SI), Z26, Z27, Z8, Z9) \
	ROW(OP, 4(SI)(R8*1), Z26, Z27, Z10, Z11) \
	ROW(OP, 4(SI)(R8*2), Z26, Z27, Z12, Z13) \
	ROW(OP, 4(SI)(R10*1), Z26, Z27, Z14, Z15) \
	ADDQ $8, SI \
	PREFETCHT0 AHEAD(DI) \
	ADDQ $64, DI

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

// Rows 0 to 3 at P, rows R14 apart, which becomes 3 rows.
#define MOVE4(MOVE, P) \
	MOVE((P), Z16, Z17) \
	MOVE((P)(R14*1), Z18, Z19) \
	MOVE((P)(R14*2), Z20, Z21) \
	LEAQ (R14)(R14*2), R14 \
	MOVE((P)(R14*1), Z22, Z23)

#define LOADP MOVE4(LOAD2, R13)

#define STOREP MOVE4(STORE2, R13)

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

#define STOREC \
	MOVQ Task_StrideC(AX), R14 \
	MOVE4(STORE2, DX)

// func multiplyCodesAVX512(t *Task)
TEXT ·multiplyCodesAVX512(SB), NOSPLIT, $128-8
#include "codes_amd64.h"

// func decodeFloat16AVX512(dst *float32, codes *byte, n int, multiplier, mask uint64)
TEXT ·decodeFloat16AVX512(SB), NOSPLIT, $128-40
	MOVQ dst+0(FP), SI
	MOVQ codes+8(FP), DI
	MOVQ n+16(FP), CX
	VPBROADCASTQ multiplier+24(FP), Z28
	VPBROADCASTQ mask+32(FP), Z29

// Of a register: with all these stores, others of memory would wait for them.
decode:
	VPMOVSXBW (DI), Z24
	VPMULLW Z28, Z24, Z24
	VPANDQ Z29, Z24, Z24
	VEXTRACTI64X4 $1, Z24, Y25
	VCVTPH2PS Y24, Z24
	VCVTPH2PS Y25, Z25
	STORE2((SI), Z24, Z25)
	ADDQ $32, DI
	ADDQ $128, SI
	SUBQ $32, CX
	JNZ decode
	VZEROUPPER
	RET
