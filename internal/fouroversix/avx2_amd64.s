//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

// Y3 are the values that magnitudes stand for under scale k, Y2 what x is multiplied by.
#define SCALE(k) \
	VBROADCASTSS (Scales_Stored+4*k)(DX), Y3 \
	VMULPS job_magnitudes(AX), Y3, Y3 \
	VMULPS Y9, Y3, Y3 \
	VDIVPS Y8, Y3, Y3 \
	VBROADCASTSS (Scales_Multiplier+4*k)(DX), Y2

// The errors of X. Y4 are first the steps, then the codes of X times Y2, at last errors.
#define ERRORS(X, at) \
	VMULPS Y2, X, Y4 \
	VPSRLD $23, Y4, Y5 \
	VPMAXSD Y14, Y5, Y5 \
	VPMINSD Y13, Y5, Y5 \
	VPADDD Y12, Y5, Y6 \
	VPSLLD $23, Y6, Y6 \
	VADDPS Y6, Y4, Y4 \
	VPSUBD Y6, Y4, Y4 \
	VPSUBD Y14, Y5, Y5 \
	VPADDD Y5, Y5, Y5 \
	VPADDD Y5, Y4, Y4 \
	VPMINUD Y11, Y4, Y4 \
	VPERMPS Y3, Y4, Y4 \
	VMULPS Y10, X, Y5 \
	VSUBPS Y5, Y4, Y4 \
	VPAND job_both(AX), Y4, Y5 \
	VPOR job_other(AX), Y5, Y5 \
	VMULPS Y5, Y4, Y4 \
	VPAND Y15, Y4, Y4 \
	VMOVDQU Y4, at(BX)

#define ADD(i) \
	VADDSS (4*i)(BX), X2, X2 \
	VADDSS (64+4*i)(BX), X3, X3

// X becomes the largest of Y and of what is 32 bytes on.
#define LARGEST(at, X, Y, T) \
	VMOVDQU at(BX), Y \
	VPMAXUD (at+32)(BX), Y, Y \
	VEXTRACTI128 $1, Y, T \
	VPMAXUD T, X, X \
	VPSHUFD $0x4E, X, T \
	VPMAXUD T, X, X \
	VPSHUFD $0xB1, X, T \
	VPMAXUD T, X, X

// func rowsAVX2(losses *Losses, src *float32, n, stride int, scales *Scales, next int, j *job)
//
// Errors go by way of the stack, so that they can be added in order.
TEXT ·rowsAVX2(SB), NOSPLIT, $160-56
	MOVQ losses+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ stride+24(FP), R8
	MOVQ scales+32(FP), DX
	MOVQ next+40(FP), R9
	MOVQ j+48(FP), AX
	LEAQ errors-160(SP), BX
	ADDQ $31, BX
	ANDQ $~31, BX
	VBROADCASTSS (job_error+Error_Denominator)(AX), Y8
	VBROADCASTSS (job_error+Error_Amax)(AX), Y9
	VBROADCASTSS (job_error+Error_Unit)(AX), Y10
	VPBROADCASTD job_seven(AX), Y11
	VPBROADCASTD job_toMagic(AX), Y12
	VPBROADCASTD job_two(AX), Y13
	VPBROADCASTD job_one(AX), Y14
	VPCMPEQD Y15, Y15, Y15
	VPSRLD $1, Y15, Y15 // a magnitude
	MOVL job_largest(AX), R10

row:
	VPAND (SI), Y15, Y0
	VPAND 32(SI), Y15, Y1
	SCALE(0)
	ERRORS(Y0, 0)
	ERRORS(Y1, 32)
	SCALE(1)
	ERRORS(Y0, 64)
	ERRORS(Y1, 96)
	TESTL R10, R10
	JNZ largest
	VXORPS X2, X2, X2
	VXORPS X3, X3, X3
	ADD(0)
	ADD(1)
	ADD(2)
	ADD(3)
	ADD(4)
	ADD(5)
	ADD(6)
	ADD(7)
	ADD(8)
	ADD(9)
	ADD(10)
	ADD(11)
	ADD(12)
	ADD(13)
	ADD(14)
	ADD(15)

next:
	VMOVSS X2, (DI)
	VMOVSS X3, 4(DI)
	ADDQ $8, DI
	ADDQ R8, SI
	ADDQ R9, DX
	DECQ CX
	JNZ row
	VZEROUPPER
	RET

largest:
	LARGEST(0, X2, Y2, X4)
	LARGEST(64, X3, Y3, X4)
	JMP next
