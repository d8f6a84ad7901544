//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// func multiplyAVX2(x, y *Term, n int, p *Places, s *Sums)
//
// A vector has eight columns, those from 0 and then those from 8 on. Y0 has their tops and
// Y1 top+Right; X2 is Left, Y3 selects significands. Y10 counts what is cut, and Y11 and
// Y12 are the sums. R10 is the offset of the columns in y and in numbers of 32 bits.
TEXT ·multiplyAVX2(SB), NOSPLIT, $0-40
	MOVQ p+24(FP), R8
	MOVQ s+32(FP), R9
	VMOVQ Places_Left(R8), X2
	VPCMPEQD Y3, Y3, Y3
	VPSRLD $16, Y3, Y3
	XORQ R10, R10

columns:
	MOVQ x+0(FP), SI
	MOVQ y+8(FP), DI
	ADDQ R10, DI
	MOVQ n+16(FP), DX
	VPBROADCASTD (SI), Y0
	VPADDW (DI), Y0, Y0
	XORQ R11, R11
	MOVQ DI, BX

largest:
	VPBROADCASTD (SI)(R11*4), Y5
	VPADDW (BX), Y5, Y5
	VPMAXSW Y5, Y0, Y0 // the low halves are of no use
	ADDQ $64, BX
	INCQ R11
	CMPQ R11, DX
	JLT largest

	VPSRAD $16, Y0, Y0
	VPMAXSD Sums_Top(R9)(R10*1), Y0, Y0
	VMOVDQU Y0, Sums_Top(R9)(R10*1)
	VPBROADCASTD Places_Right(R8), Y1
	VPADDD Y0, Y1, Y1
	VPXOR Y10, Y10, Y10
	VPXOR Y11, Y11, Y11
	VPXOR Y12, Y12, Y12

sixteen:
	VPXOR Y9, Y9, Y9
	MOVQ $16, CX
	CMPQ DX, CX
	CMOVQLT DX, CX
	SUBQ CX, DX

product:
	VPBROADCASTD (SI), Y5
	VMOVDQU (DI), Y6
	VPADDW Y6, Y5, Y7
	VPSRAD $16, Y7, Y7
	VPSUBD Y7, Y1, Y7 // how far to shift
	VPAND Y3, Y5, Y5
	VPMADDWD Y6, Y5, Y8
	VPABSD Y8, Y5
	VPSLLD X2, Y5, Y5
	VPSRLVD Y7, Y5, Y6
	VPSLLVD Y7, Y6, Y7
	VPCMPEQD Y7, Y5, Y7
	VPADDD Y7, Y10, Y10 // -1 for each that is not cut
	VPSIGND Y8, Y6, Y6
	VPADDD Y6, Y9, Y9
	ADDQ $4, SI
	ADDQ $64, DI
	DECQ CX
	JNZ product

	VEXTRACTI128 $1, Y9, X5
	VPMOVSXDQ X9, Y6
	VPMOVSXDQ X5, Y5
	VPADDQ Y6, Y11, Y11
	VPADDQ Y5, Y12, Y12
	TESTQ DX, DX
	JNZ sixteen

	VPBROADCASTD n+16(FP), Y5
	VPADDD Y5, Y10, Y10
	VMOVDQU Y10, Sums_Cut(R9)(R10*1)
	VMOVDQU Y11, Sums_Value(R9)(R10*2)
	VMOVDQU Y12, (Sums_Value+32)(R9)(R10*2)
	ADDQ $32, R10
	CMPQ R10, $64
	JNE columns
	VZEROUPPER
	RET
