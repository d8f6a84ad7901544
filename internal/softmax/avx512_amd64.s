//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

#define SCALE Z16
#define LOWEST Z17

// Zx = a vector of scores, times SCALE where they are kept.
#define SCORES(At, K, Zx) \
	KMOVW (Row_Kept+2*At)(BX), K \
	VMOVAPS LOWEST, Zx \
	VMULPS (64*At)(SI), SCALE, K, Zx \
	VMOVUPS Zx, (64*At)(SI)

// func scaleAVX512(z *float32, rows *Row, n int, scale float32)
TEXT ·scaleAVX512(SB), NOSPLIT, $0-28
	MOVQ z+0(FP), SI
	MOVQ rows+8(FP), BX
	MOVQ n+16(FP), CX
	VBROADCASTSS scale+24(FP), SCALE
	MOVL $0xFF800000, AX // -Inf
	VPBROADCASTD AX, LOWEST

row:
	CMPQ Row_Kept(BX), $0
	JEQ next
	SCORES(0, K1, Z0)
	SCORES(1, K2, Z1)
	SCORES(2, K3, Z2)
	SCORES(3, K4, Z3)
	VCMPPS $3, Z0, Z1, K1
	VCMPPS $3, Z2, Z3, K2
	VMAXPS Z0, Z1, Z0
	VMAXPS Z2, Z3, Z2
	VMAXPS Z0, Z2, Z0
	VEXTRACTF64X4 $1, Z0, Y1
	VMAXPS Y0, Y1, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X0, X1, X0
	VPERMILPS $0x4E, X0, X1
	VMAXPS X0, X1, X0
	VPERMILPS $0xB1, X0, X1
	VMAXPS X0, X1, X0
	VMOVSS X0, Row_tile(BX)
	KORTESTW K1, K2
	JEQ next
	MOVL $0x7FC00000, Row_tile(BX) // NaN

next:
	ADDQ $256, SI
	ADDQ $Row__size, BX
	DECQ CX
	JNZ row
	VZEROUPPER
	RET

#define MAX Z16
#define OFFSET Z17
#define LEAST Z18
#define MAGIC Z19
#define C0 Z20
#define C1 Z21
#define C2 Z22
#define C3 Z23
#define C4 Z24
#define C5 Z25
#define C6 Z26
#define LOWER Z27
#define UPPER Z28
#define MINNORMAL Z29
#define DROP Z30
#define UNIT Z31
#define INFINITY Z15

// q = 2^y; t, r and s are lost.
#define EXP2(y, q, t, r, s) \
	VADDPD MAGIC, y, t \
	VMOVAPD LOWER, s \
	VPERMT2PD UPPER, t, s \
	VSUBPD MAGIC, t, r \
	VSUBPD r, y, r \
	VPSLLQ $48, t, t \
	VPADDQ t, s, s \
	VMOVAPD C6, q \
	VFMADD213PD C5, r, q \
	VFMADD213PD C4, r, q \
	VFMADD213PD C3, r, q \
	VFMADD213PD C2, r, q \
	VFMADD213PD C1, r, q \
	VFMADD213PD C0, r, q \
	VFMADD213PD s, s, q

// Zp = the numerators of a vector of scores. They go through memory: conversion of what
// lies there needs less than that of halves of a register does.
#define NUMERATORS(At, Zp, Yp) \
	VMOVUPS (64*At)(SI), Z4 \
	VSUBPS MAX, Z4, Z4 \
	VADDPS OFFSET, Z4, Z4 \
	VMAXPS LEAST, Z4, Z4 \
	VMOVUPS Z4, (64*At)(SI) \
	VCVTPS2PD (64*At)(SI), Z4 \
	VCVTPS2PD (64*At+32)(SI), Z5 \
	EXP2(Z4, Zp, Z6, Z7, Z8) \
	EXP2(Z5, Z9, Z10, Z11, Z12) \
	VCVTPD2PS Zp, Yp \
	VCVTPD2PS Z9, Y9 \
	VINSERTF64X4 $1, Y9, Zp, Zp

// A vector of numerators times their shares, rounded: an addend is so large that what is
// to be dropped is.
#define ROUND(At, Zp) \
	VMULPS (64*At)(DI), Zp, Zp \
	VPANDD INFINITY, Zp, Z4 \
	VPMAXUD MINNORMAL, Z4, Z4 \
	VPADDD DROP, Z4, Z4 \
	VADDPS Z4, Zp, Zp \
	VSUBPS Z4, Zp, Zp \
	VMULPS UNIT, Zp, Zp \
	VMOVUPS Zp, (64*At)(SI)

// func weightsAVX512(z *float32, rows *Row, n int, j *job, v *numbers)
TEXT ·weightsAVX512(SB), NOSPLIT, $0-40
	MOVQ z+0(FP), SI
	MOVQ rows+8(FP), BX
	MOVQ n+16(FP), CX
	MOVQ j+24(FP), AX
	MOVQ v+32(FP), DX
	MOVQ job_shares(AX), DI
	VBROADCASTSS job_offset(AX), OFFSET
	VBROADCASTSS job_unit(AX), UNIT
	VPBROADCASTD job_minNormal(AX), MINNORMAL
	VPBROADCASTD job_drop(AX), DROP
	VBROADCASTSS numbers_least(DX), LEAST
	VBROADCASTSD numbers_magic(DX), MAGIC
	VBROADCASTSD numbers_coefficients(DX), C0
	VBROADCASTSD (numbers_coefficients+8)(DX), C1
	VBROADCASTSD (numbers_coefficients+16)(DX), C2
	VBROADCASTSD (numbers_coefficients+24)(DX), C3
	VBROADCASTSD (numbers_coefficients+32)(DX), C4
	VBROADCASTSD (numbers_coefficients+40)(DX), C5
	VBROADCASTSD (numbers_coefficients+48)(DX), C6
	VMOVUPD numbers_table(DX), LOWER
	VMOVUPD (numbers_table+64)(DX), UPPER
	MOVL $0x7F800000, AX
	VPBROADCASTD AX, INFINITY

row:
	CMPQ Row_Kept(BX), $0
	JEQ next
	CMPB Row_direct(BX), $0
	JEQ next
	VBROADCASTSS Row_Max(BX), MAX
	NUMERATORS(0, Z0, Y0)
	NUMERATORS(1, Z1, Y1)
	NUMERATORS(2, Z2, Y2)
	NUMERATORS(3, Z3, Y3)

	// The sum: in lanes, and then pairwise.
	VADDPS Z1, Z0, Z5
	VADDPS Z2, Z5, Z5
	VADDPS Z3, Z5, Z5
	VEXTRACTF64X4 $1, Z5, Y6
	VADDPS Y6, Y5, Y5
	VEXTRACTF128 $1, Y5, X6
	VADDPS X6, X5, X5
	VPERMILPS $0x4E, X5, X6
	VADDPS X6, X5, X5
	VPERMILPS $0xB1, X5, X6
	VADDPS X6, X5, X5
	VMOVSS X5, Row_tile(BX)

	ROUND(0, Z0)
	ROUND(1, Z1)
	ROUND(2, Z2)
	ROUND(3, Z3)

next:
	ADDQ $256, SI
	ADDQ $Row__size, BX
	DECQ CX
	JNZ row
	VZEROUPPER
	RET
