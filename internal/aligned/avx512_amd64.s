//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// func multiplyAVX512(x, y *Term, n int, p *Places, s *Sums)
//
// A vector has the 16 columns. Z0 has their tops and Z1 top+Right; X2 is Left, Z3 selects
// significands, Z4 has ones. Z10 counts what is cut, and Z11 and Z12 are the sums.
TEXT ·multiplyAVX512(SB), NOSPLIT, $0-40
	MOVQ x+0(FP), SI
	MOVQ y+8(FP), DI
	MOVQ n+16(FP), DX
	MOVQ p+24(FP), R8
	MOVQ s+32(FP), R9

	VPBROADCASTD (SI), Z0
	VPADDW (DI), Z0, Z0
	XORQ R11, R11
	MOVQ DI, BX

largest:
	VPBROADCASTD (SI)(R11*4), Z5
	VPADDW (BX), Z5, Z5
	VPMAXSW Z5, Z0, Z0 // the low halves are of no use
	ADDQ $64, BX
	INCQ R11
	CMPQ R11, DX
	JLT largest

	VPSRAD $16, Z0, Z0
	VPMAXSD Sums_Top(R9), Z0, Z0
	VMOVDQU32 Z0, Sums_Top(R9)
	MOVQ Places_Right(R8), AX
	VPBROADCASTD AX, Z1
	VPADDD Z0, Z1, Z1
	VMOVQ Places_Left(R8), X2
	VPTERNLOGD $0xFF, Z3, Z3, Z3
	VPABSD Z3, Z4
	VPSRLD $16, Z3, Z3
	VPXORD Z10, Z10, Z10
	VPXORD Z11, Z11, Z11
	VPXORD Z12, Z12, Z12

sixteen:
	VPXORD Z9, Z9, Z9
	MOVQ $16, CX
	CMPQ DX, CX
	CMOVQLT DX, CX
	SUBQ CX, DX

product:
	VPBROADCASTD (SI), Z5
	VMOVDQU32 (DI), Z6
	VPADDW Z6, Z5, Z7
	VPSRAD $16, Z7, Z7
	VPSUBD Z7, Z1, Z7 // how far to shift
	VPANDD Z3, Z5, Z5
	VPMADDWD Z6, Z5, Z5
	VPMOVD2M Z5, K1
	VPABSD Z5, Z5
	VPSLLD X2, Z5, Z5
	VPSRLVD Z7, Z5, Z6
	VPSLLVD Z7, Z6, Z7
	VPCMPD $4, Z7, Z5, K2
	VPADDD Z4, Z10, K2, Z10
	VPADDD Z6, Z9, Z7
	VPSUBD Z6, Z9, K1, Z7
	VMOVDQA32 Z7, Z9
	ADDQ $4, SI
	ADDQ $64, DI
	DECQ CX
	JNZ product

	VEXTRACTI64X4 $1, Z9, Y5
	VPMOVSXDQ Y9, Z6
	VPMOVSXDQ Y5, Z5
	VPADDQ Z6, Z11, Z11
	VPADDQ Z5, Z12, Z12
	TESTQ DX, DX
	JNZ sixteen

	VMOVDQU32 Z10, Sums_Cut(R9)
	VMOVDQU64 Z11, Sums_Value(R9)
	VMOVDQU64 Z12, (Sums_Value+64)(R9)
	VZEROUPPER
	RET
