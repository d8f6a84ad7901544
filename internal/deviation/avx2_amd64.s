//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

// Four elements at a place in memory join the lanes of two sums, and of the largest, which
// are in memory. Squares of others are exact, so that they are added as if they were rounded
// first.
#define FOUR(at, Ysquared, Ysignal) \
	VMOVUPS at(SI), X8 \
	VPAND X14, X8, X9 \
	VPCMPGTD X9, X13, X9 \
	VPAND X9, X8, X8 \
	VPAND at(DI), X9, X9 \
	VCVTPS2PD X8, Y8 \
	VCVTPS2PD X9, Y9 \
	VSUBPD Y8, Y9, Y9 \
	VFMADD231PD Y8, Y8, Ysignal \
	VMULPD Y9, Y9, Y8 \
	VADDPD Y8, Ysquared, Ysquared \
	VANDPD Y15, Y9, Y9 \
	VMAXPD sums_largest+2*at(AX), Y9, Y9 \
	VMOVUPD Y9, sums_largest+2*at(AX) // the second where one is NaN

// func addAVX2(values, others *float32, n int, s *sums)
//
// n is a positive multiple of 16.
TEXT ·addAVX2(SB), NOSPLIT, $0-32
	MOVQ values+0(FP), DI
	MOVQ others+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ s+24(FP), AX
	VPCMPEQD Y15, Y15, Y15
	VPSRLD $1, Y15, Y14
	VPSRLD $24, Y15, Y13
	VPSLLD $23, Y13, Y13 // an infinity
	VPSRLQ $1, Y15, Y15
	VMOVUPD sums_squared(AX), Y0
	VMOVUPD sums_squared+32(AX), Y1
	VMOVUPD sums_squared+64(AX), Y2
	VMOVUPD sums_squared+96(AX), Y3
	VMOVUPD sums_signal(AX), Y4
	VMOVUPD sums_signal+32(AX), Y5
	VMOVUPD sums_signal+64(AX), Y6
	VMOVUPD sums_signal+96(AX), Y7

loop:
	FOUR(0, Y0, Y4)
	FOUR(16, Y1, Y5)
	FOUR(32, Y2, Y6)
	FOUR(48, Y3, Y7)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ loop

	VMOVUPD Y0, sums_squared(AX)
	VMOVUPD Y1, sums_squared+32(AX)
	VMOVUPD Y2, sums_squared+64(AX)
	VMOVUPD Y3, sums_squared+96(AX)
	VMOVUPD Y4, sums_signal(AX)
	VMOVUPD Y5, sums_signal+32(AX)
	VMOVUPD Y6, sums_signal+64(AX)
	VMOVUPD Y7, sums_signal+96(AX)
	VZEROUPPER
	RET
