//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

// Eight elements at a place in memory, those of a mask, join the lanes of three sums.
// Squares of others are exact, so that they are added as if they were rounded first.
#define EIGHT(at, K, Zsquared, Zsignal, Zlargest, Zx, Zd) \
	VCVTPS2PD.Z at(SI), K, Zx \
	VCVTPS2PD.Z at(DI), K, Zd \
	VSUBPD Zx, Zd, Zd \
	VFMADD231PD Zx, Zx, Zsignal \
	VMULPD Zd, Zd, Zx \
	VADDPD Zx, Zsquared, Zsquared \
	VPANDQ Z17, Zd, Zd \
	VMAXPD Zlargest, Zd, Zlargest // the second where one is NaN

// func addAVX512(values, others *float32, n int, s *sums)
//
// n is a positive multiple of 16.
TEXT ·addAVX512(SB), NOSPLIT, $0-32
	MOVQ values+0(FP), DI
	MOVQ others+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ s+24(FP), AX
	VPTERNLOGD $0xFF, Z16, Z16, Z16
	VPSRLQ $1, Z16, Z17
	VPSRLD $24, Z16, Z18
	VPSLLD $23, Z18, Z18 // an infinity
	VPSRLD $1, Z16, Z16
	VMOVUPD sums_squared(AX), Z0
	VMOVUPD sums_squared+64(AX), Z1
	VMOVUPD sums_signal(AX), Z2
	VMOVUPD sums_signal+64(AX), Z3
	VMOVUPD sums_largest(AX), Z4
	VMOVUPD sums_largest+64(AX), Z5

loop:
	VPANDD (SI), Z16, Z6
	VPCMPUD $1, Z18, Z6, K1 // finite
	KSHIFTRW $8, K1, K2
	EIGHT(0, K1, Z0, Z2, Z4, Z7, Z8)
	EIGHT(32, K2, Z1, Z3, Z5, Z9, Z10)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ loop

	VMOVUPD Z0, sums_squared(AX)
	VMOVUPD Z1, sums_squared+64(AX)
	VMOVUPD Z2, sums_signal(AX)
	VMOVUPD Z3, sums_signal+64(AX)
	VMOVUPD Z4, sums_largest(AX)
	VMOVUPD Z5, sums_largest+64(AX)
	VZEROUPPER
	RET
