//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// LARGEST takes the exponents of 16 products into Z0.
#define LARGEST(x, y)      \
	VPADDW  y, x, x        \
	VPSRAD  $16, x, x      \
	VPMAXSD x, Z0, K1, Z0

// ADD adds 16 products to Z2 and counts in CX those that lose something: Z1 is top+Right,
// X3 is Left, Z4 selects significands.
#define ADD(x, y)             \
	VPADDW  y, x, Z5          \
	VPSRAD  $16, Z5, Z5       \
	VPSUBD  Z5, Z1, Z5        \
	VPANDD  Z4, x, x          \
	VPMADDWD y, x, x          \
	VPSRAD  $31, x, Z6        \
	VPABSD  x, x              \
	VPSLLD  X3, x, x          \
	VPSRLVD Z5, x, Z7         \
	VPSLLVD Z5, Z7, Z5        \
	VPCMPD  $4, Z5, x, K2     \
	KMOVW   K2, AX            \
	POPCNTL AX, AX            \
	ADDQ    AX, CX            \
	VPXORD  Z6, Z7, Z7        \
	VPSUBD  Z6, Z7, Z7        \
	VEXTRACTI64X4 $1, Z7, Y5  \
	VPMOVSXDQ Y7, Z7          \
	VPMOVSXDQ Y5, Z5          \
	VPADDQ  Z7, Z2, Z2        \
	VPADDQ  Z5, Z2, Z2

// func sumAVX512(x, y *Term, n int, p *Places, t *total)
//
// K1 has the terms of a vector, all or, at the end, those that are left; the others are
// read as 0.
TEXT ·sumAVX512(SB), NOSPLIT, $0-40
	MOVQ x+0(FP), SI
	MOVQ y+8(FP), DI
	MOVQ n+16(FP), DX
	MOVQ p+24(FP), R8
	MOVQ t+32(FP), R9
	VMOVQ Places_Left(R8), X3
	MOVQ Places_Right(R8), R10
	MOVQ Places_Least(R8), AX
	VPBROADCASTD AX, Z0
	XORQ R11, R11
	KXNORW K1, K1, K1
	MOVQ DX, BX

largest:
	CMPQ BX, $16
	JGE whole
	MOVQ $1, AX
	MOVQ BX, CX
	SHLQ CX, AX
	DECQ AX
	KMOVW AX, K1

whole:
	VMOVDQU32.Z (SI)(R11*4), K1, Z5
	VMOVDQU32.Z (DI)(R11*4), K1, Z6
	LARGEST(Z5, Z6)
	ADDQ $16, R11
	SUBQ $16, BX
	JGT largest

	VEXTRACTI64X4 $1, Z0, Y1
	VPMAXSD Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPMAXSD X1, X0, X0
	VPSHUFD $0x4E, X0, X1
	VPMAXSD X1, X0, X0
	VPSHUFD $0xB1, X0, X1
	VPMAXSD X1, X0, X0
	VMOVD X0, AX
	MOVLQSX AX, AX
	MOVQ AX, total_top(R9)
	ADDQ R10, AX
	VPBROADCASTD AX, Z1
	VPTERNLOGD $0xFF, Z4, Z4, Z4
	VPSRLD $16, Z4, Z4
	VPXORQ Z2, Z2, Z2
	XORQ CX, CX
	XORQ R11, R11
	MOVQ DX, BX
	CMPQ BX, $16
	JLT last

add:
	VMOVDQU32 (SI)(R11*4), Z8
	VMOVDQU32 (DI)(R11*4), Z9
	ADD(Z8, Z9)
	ADDQ $16, R11
	SUBQ $16, BX
	CMPQ BX, $16
	JGE add
	TESTQ BX, BX
	JZ done

last:
	VMOVDQU32.Z (SI)(R11*4), K1, Z8
	VMOVDQU32.Z (DI)(R11*4), K1, Z9
	ADD(Z8, Z9)

done:
	VEXTRACTI64X4 $1, Z2, Y1
	VPADDQ Y1, Y2, Y2
	VEXTRACTI128 $1, Y2, X1
	VPADDQ X1, X2, X2
	VPSHUFD $0x4E, X2, X1
	VPADDQ X1, X2, X2
	VMOVQ X2, total_value(R9)
	MOVQ CX, total_cut(R9)
	VZEROUPPER
	RET
