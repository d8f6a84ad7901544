//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// func decodeRowsAVX512(dst *float32, dstStride int, codes *byte, stride, rows, n int, v *Float16View)
//
// Z8 and Z9 are the values of 32 codes, K1 and K2 say which of those are special.
TEXT ·decodeRowsAVX512(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), R9
	MOVQ dstStride+8(FP), R10
	MOVQ codes+16(FP), R11
	MOVQ stride+24(FP), R12
	MOVQ rows+32(FP), DX
	MOVQ n+40(FP), R8
	MOVQ v+48(FP), AX
	VPBROADCASTQ Float16View_Multiplier(AX), Z0
	VPBROADCASTQ Float16View_Mask(AX), Z1
	VPBROADCASTQ Float16View_SpecialMask(AX), Y2
	VPBROADCASTQ Float16View_Special(AX), Y3
	VBROADCASTSS Float16View_Unit(AX), Z4
	VPTERNLOGD $0xFF, Z5, Z5, Z5 // NaN

row:
	MOVQ R9, DI
	MOVQ R11, SI
	MOVQ R8, CX
	CMPL Float16View_Unit(AX), $0x3F800000
	JNE codes

	// As if no code were special; Y7 has a 0 where one is: then again.
	VMOVDQA Y5, Y7

plain:
	VPMOVSXBW (SI), Z8
	VMOVDQA Y3, Y6
	VPTERNLOGQ $0x78, (SI), Y2, Y6 // special ^ code & mask
	VPMINUB Y6, Y7, Y7
	VPMULLW Z0, Z8, Z8
	VPANDQ Z1, Z8, Z8
	VEXTRACTI64X4 $1, Z8, Y9
	VCVTPH2PS Y8, Z8
	VCVTPH2PS Y9, Z9
	VMOVUPS Z8, (DI)
	VMOVUPS Z9, 64(DI)
	ADDQ $32, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JNZ plain
	VPTESTNMB Y7, Y7, K1
	KTESTD K1, K1
	JEQ next
	MOVQ R9, DI
	MOVQ R11, SI
	MOVQ R8, CX

codes:
	VMOVDQU (SI), Y6
	VPMOVSXBW Y6, Z8
	VPAND Y2, Y6, Y6
	VPCMPEQB Y3, Y6, K1
	KSHIFTRD $16, K1, K2
	VPMULLW Z0, Z8, Z8
	VPANDQ Z1, Z8, Z8
	VEXTRACTI64X4 $1, Z8, Y9
	VCVTPH2PS Y8, Z8
	VCVTPH2PS Y9, Z9
	VMULPS Z4, Z8, Z8
	VMULPS Z4, Z9, Z9
	VMOVDQA32 Z5, K1, Z8
	VMOVDQA32 Z5, K2, Z9
	VMOVUPS Z8, (DI)
	VMOVUPS Z9, 64(DI)
	ADDQ $32, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JNZ codes

next:
	ADDQ R10, R9
	ADDQ R12, R11
	DECQ DX
	JNZ row
	VZEROUPPER
	RET
