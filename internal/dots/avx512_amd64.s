//go:build !purego

#include "textflag.h"

#define ROW(address, low, high) \
	VBROADCASTSD address, Z18     \
	VFMADD231PD  Z16, Z18, low    \
	VFMADD231PD  Z17, Z18, high

#define STORE(low, high) \
	VMOVUPD low, (DI)    \
	VMOVUPD high, 64(DI) \
	ADDQ    R9, DI

// func multiplyAVX512(sums *float64, sumsStride int, x *float64, stride int, panel *float64, n, rows int)
//
// Z0 to Z15 are the sums of eight rows, in pairs. SI, R10 and R11 are at rows 0, 3 and 6.
TEXT ·multiplyAVX512(SB), NOSPLIT, $0-56
	MOVQ sums+0(FP), DI
	MOVQ sumsStride+8(FP), R9
	MOVQ x+16(FP), R12
	MOVQ stride+24(FP), AX
	MOVQ rows+48(FP), DX

group:
	MOVQ R12, SI
	LEAQ (SI)(AX*2), R10
	ADDQ AX, R10
	LEAQ (R10)(AX*2), R11
	ADDQ AX, R11
	MOVQ panel+32(FP), BX
	MOVQ n+40(FP), CX
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3
	VPXORQ Z4, Z4, Z4
	VPXORQ Z5, Z5, Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7
	VPXORQ Z8, Z8, Z8
	VPXORQ Z9, Z9, Z9
	VPXORQ Z10, Z10, Z10
	VPXORQ Z11, Z11, Z11
	VPXORQ Z12, Z12, Z12
	VPXORQ Z13, Z13, Z13
	VPXORQ Z14, Z14, Z14
	VPXORQ Z15, Z15, Z15

product:
	VMOVUPD (BX), Z16
	VMOVUPD 64(BX), Z17
	ROW((SI), Z0, Z1)
	ROW((SI)(AX*1), Z2, Z3)
	ROW((SI)(AX*2), Z4, Z5)
	ROW((R10), Z6, Z7)
	ROW((R10)(AX*1), Z8, Z9)
	ROW((R10)(AX*2), Z10, Z11)
	ROW((R11), Z12, Z13)
	ROW((R11)(AX*1), Z14, Z15)
	ADDQ $128, BX
	ADDQ $8, SI
	ADDQ $8, R10
	ADDQ $8, R11
	DECQ CX
	JNZ product

	STORE(Z0, Z1)
	STORE(Z2, Z3)
	STORE(Z4, Z5)
	STORE(Z6, Z7)
	STORE(Z8, Z9)
	STORE(Z10, Z11)
	STORE(Z12, Z13)
	STORE(Z14, Z15)
	LEAQ (R12)(AX*8), R12
	SUBQ $8, DX
	JNZ group
	VZEROUPPER
	RET
