//go:build !purego

#include "textflag.h"

#define ROW(address, low, high) \
	VBROADCASTSD address, Y10     \
	VFMADD231PD  Y8, Y10, low     \
	VFMADD231PD  Y9, Y10, high

#define STORE(low, high) \
	VMOVUPD low, (R8)    \
	VMOVUPD high, 32(R8) \
	ADDQ    R9, R8

// func multiplyAVX2(sums *float64, sumsStride int, x *float64, stride int, panel *float64, n, rows int)
//
// Y0 to Y7 are the sums of four rows and eight columns, in pairs. SI and R10 are at rows 0
// and 3; R13 is the offset of the columns, 0 and then 64 bytes.
TEXT ·multiplyAVX2(SB), NOSPLIT, $0-56
	MOVQ sums+0(FP), DI
	MOVQ sumsStride+8(FP), R9
	MOVQ x+16(FP), R12
	MOVQ stride+24(FP), AX
	MOVQ rows+48(FP), DX

group:
	XORQ R13, R13

columns:
	MOVQ R12, SI
	LEAQ (SI)(AX*2), R10
	ADDQ AX, R10
	MOVQ panel+32(FP), BX
	ADDQ R13, BX
	MOVQ n+40(FP), CX
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	VXORPD Y2, Y2, Y2
	VXORPD Y3, Y3, Y3
	VXORPD Y4, Y4, Y4
	VXORPD Y5, Y5, Y5
	VXORPD Y6, Y6, Y6
	VXORPD Y7, Y7, Y7

product:
	VMOVUPD (BX), Y8
	VMOVUPD 32(BX), Y9
	ROW((SI), Y0, Y1)
	ROW((SI)(AX*1), Y2, Y3)
	ROW((SI)(AX*2), Y4, Y5)
	ROW((R10), Y6, Y7)
	ADDQ $128, BX
	ADDQ $8, SI
	ADDQ $8, R10
	DECQ CX
	JNZ product

	LEAQ (DI)(R13*1), R8
	STORE(Y0, Y1)
	STORE(Y2, Y3)
	STORE(Y4, Y5)
	STORE(Y6, Y7)
	ADDQ $64, R13
	CMPQ R13, $128
	JNE columns

	LEAQ (R12)(AX*4), R12
	LEAQ (DI)(R9*4), DI
	SUBQ $4, DX
	JNZ group
	VZEROUPPER
	RET
