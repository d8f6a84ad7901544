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

// Each OP is done for four vectors: what waits for it would fill the scheduler otherwise.
#define FOUR(OP) \
	OP(Z4, Z8, Z12) \
	OP(Z5, Z9, Z13) \
	OP(Z6, Z10, Z14) \
	OP(Z7, Z11, Z15)

#define INDEX(y, t, q) VADDPD MAGIC, y, t
#define NEAREST(y, t, q) VSUBPD MAGIC, t, q
#define REST(y, t, q) VSUBPD q, y, y
#define ROOTS(y, t, q) VMOVAPD LOWER, q
#define ROOT(y, t, q) VPERMT2PD UPPER, t, q
#define EXPONENT(y, t, q) VPSLLQ $48, t, t
#define POWER(y, t, q) VPADDQ t, q, q
#define TERM6(y, t, q) VMOVAPD C6, t
#define TERM5(y, t, q) VFMADD213PD C5, y, t
#define TERM4(y, t, q) VFMADD213PD C4, y, t
#define TERM3(y, t, q) VFMADD213PD C3, y, t
#define TERM2(y, t, q) VFMADD213PD C2, y, t
#define TERM1(y, t, q) VFMADD213PD C1, y, t
#define TERM0(y, t, q) VFMADD213PD C0, y, t
#define PRODUCT(y, t, q) VFMADD213PD q, q, t

// Z8 to Z11 = 2^y of Z4 to Z7.
#define EXP2 \
	FOUR(INDEX) \
	FOUR(NEAREST) \
	FOUR(REST) \
	FOUR(ROOTS) \
	FOUR(ROOT) \
	FOUR(EXPONENT) \
	FOUR(POWER) \
	FOUR(TERM6) \
	FOUR(TERM5) \
	FOUR(TERM4) \
	FOUR(TERM3) \
	FOUR(TERM2) \
	FOUR(TERM1) \
	FOUR(TERM0) \
	FOUR(PRODUCT)

// Zp and Zq = the numerators of two vectors of scores.
#define NUMERATORS(At, Zp, Yp, Zq, Yq) \
	VMOVUPS (64*At)(SI), Z4 \
	VMOVUPS (64*At+64)(SI), Z6 \
	VSUBPS MAX, Z4, Z4 \
	VSUBPS MAX, Z6, Z6 \
	VADDPS OFFSET, Z4, Z4 \
	VADDPS OFFSET, Z6, Z6 \
	VMAXPS LEAST, Z4, Z4 \
	VMAXPS LEAST, Z6, Z6 \
	VEXTRACTF64X4 $1, Z4, Y5 \
	VEXTRACTF64X4 $1, Z6, Y7 \
	VCVTPS2PD Y4, Z4 \
	VCVTPS2PD Y5, Z5 \
	VCVTPS2PD Y6, Z6 \
	VCVTPS2PD Y7, Z7 \
	EXP2 \
	VCVTPD2PS Z8, Yp \
	VCVTPD2PS Z9, Y9 \
	VCVTPD2PS Z10, Yq \
	VCVTPD2PS Z11, Y11 \
	VINSERTF64X4 $1, Y9, Zp, Zp \
	VINSERTF64X4 $1, Y11, Zq, Zq

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

row:
	CMPQ Row_Kept(BX), $0
	JEQ next
	CMPB Row_direct(BX), $0
	JEQ next
	VBROADCASTSS Row_Max(BX), MAX
	NUMERATORS(0, Z0, Y0, Z1, Y1)
	NUMERATORS(2, Z2, Y2, Z3, Y3)

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

	VPBROADCASTD AX, INFINITY
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
