//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Yd = NaN where the first 8 bytes of X6 are ones.
#define SPECIAL(Yd) \
	VPMOVSXBD X6, Y7 \
	VPOR Y7, Yd, Yd

// func decodeRowsAVX2(dst *float32, dstStride int, codes *byte, stride, rows, n int, v *Float16View)
//
// Y8 and Y9 are the values of 16 codes, X6 says which of those are special.
TEXT ·decodeRowsAVX2(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), R9
	MOVQ dstStride+8(FP), R10
	MOVQ codes+16(FP), R11
	MOVQ stride+24(FP), R12
	MOVQ rows+32(FP), DX
	MOVQ n+40(FP), R8
	MOVQ v+48(FP), AX
	VPBROADCASTQ Float16View_Multiplier(AX), Y0
	VPBROADCASTQ Float16View_Mask(AX), Y1
	VPBROADCASTQ Float16View_SpecialMask(AX), Y2
	VPBROADCASTQ Float16View_Special(AX), Y3
	VBROADCASTSS Float16View_Unit(AX), Y4

row:
	MOVQ R9, DI
	MOVQ R11, SI
	MOVQ R8, CX
	CMPL Float16View_Unit(AX), $0x3F800000
	JNE codes

	// As if no code were special, and Y5 has a 0 where one is: then again. The float16s lie
	// where the values will, as conversion of memory needs less of the processor.
	VPCMPEQB Y5, Y5, Y5

plain:
	VPMOVSXBW (SI), Y8
	VPMOVSXBW 16(SI), Y9
	VPAND (SI), Y2, Y6
	VPXOR Y3, Y6, Y6
	VPMINUB Y6, Y5, Y5
	VPMULLW Y0, Y8, Y8
	VPMULLW Y0, Y9, Y9
	VPAND Y1, Y8, Y8
	VPAND Y1, Y9, Y9
	VMOVDQU Y8, (DI)
	VMOVDQU Y9, 32(DI)
	VCVTPH2PS (DI), Y8
	VCVTPH2PS 16(DI), Y9
	VCVTPH2PS 32(DI), Y10
	VCVTPH2PS 48(DI), Y11
	VMOVUPS Y8, (DI)
	VMOVUPS Y9, 32(DI)
	VMOVUPS Y10, 64(DI)
	VMOVUPS Y11, 96(DI)
	ADDQ $32, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JNZ plain
	VPXOR X6, X6, X6
	VPCMPEQB Y6, Y5, Y5
	VPTEST Y5, Y5
	JEQ next
	MOVQ R9, DI
	MOVQ R11, SI
	MOVQ R8, CX

codes:
	VMOVDQU (SI), X6
	VPMOVSXBW X6, Y8
	VPAND X2, X6, X6
	VPCMPEQB X3, X6, X6
	VPMULLW Y0, Y8, Y8
	VPAND Y1, Y8, Y8
	VEXTRACTI128 $1, Y8, X9
	VCVTPH2PS X8, Y8
	VCVTPH2PS X9, Y9
	VMULPS Y4, Y8, Y8
	VMULPS Y4, Y9, Y9
	SPECIAL(Y8)
	VPSRLDQ $8, X6, X6
	SPECIAL(Y9)
	VMOVUPS Y8, (DI)
	VMOVUPS Y9, 32(DI)
	ADDQ $16, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ codes

next:
	ADDQ R10, R9
	ADDQ R12, R11
	DECQ DX
	JNZ row
	VZEROUPPER
	RET
