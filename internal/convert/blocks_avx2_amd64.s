//go:build !purego

#include "textflag.h"
#include "vectors_amd64.h"

// func maxBlocksBF16AVX2(dst *float32, src *uint16, blocks, block int)
//
// block is a positive multiple of 16, blocks is positive.
TEXT ·maxBlocksBF16AVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ block+24(FP), DX
	VPCMPEQD Y15, Y15, Y15
	VPSRLW $1, Y15, Y15 // magnitude
	MOVL $0x7FC00000, AX
	VMOVD AX, X14 // NaN

nextBlock:
	MOVQ DX, BX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	SUBQ $32, BX
	JLT half

inBlock:
	VPAND (SI), Y15, Y2
	VPAND 32(SI), Y15, Y3
	VPMAXUW Y2, Y0, Y0
	VPMAXUW Y3, Y1, Y1
	ADDQ $64, SI
	SUBQ $32, BX
	JGE inBlock

half:
	ADDQ $32, BX
	JZ reduce
	VPAND (SI), Y15, Y2
	VPMAXUW Y2, Y0, Y0
	ADDQ $32, SI

reduce:
	VPMAXUW Y1, Y0, Y0
	REDUCE256(VPMAXUW, Y0, X0, X1)
	VPSRLD $16, X0, X1
	VPMAXUW X1, X0, X0
	VPSLLD $16, X0, X0 // a float32
	VMOVD (DI), X1
	VPMAXUD X1, X0, X0
	VCMPPS $3, X0, X0, X2
	VBLENDVPS X2, X14, X0, X0
	VMOVD X0, (DI)
	ADDQ $4, DI
	DECQ CX
	JNZ nextBlock
	VZEROUPPER
	RET

// func scaleBlocksAVX2(dst *float32, blocks, block int, scales *float32, divide uint32)
//
// block is a positive multiple of 16, blocks is positive.
TEXT ·scaleBlocksAVX2(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ blocks+8(FP), CX
	MOVQ block+16(FP), DX
	MOVQ scales+24(FP), SI
	CMPL divide+32(FP), $0
	JNE nextDivided

nextScaled:
	MOVQ DX, BX
	VBROADCASTSS (SI), Y2

scaled:
	VMULPS (DI), Y2, Y0
	VMULPS 32(DI), Y2, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $64, DI
	SUBQ $16, BX
	JNZ scaled
	ADDQ $4, SI
	DECQ CX
	JNZ nextScaled
	VZEROUPPER
	RET

nextDivided:
	MOVQ DX, BX
	VBROADCASTSS (SI), Y2

divided:
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VDIVPS Y2, Y0, Y0
	VDIVPS Y2, Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $64, DI
	SUBQ $16, BX
	JNZ divided
	ADDQ $4, SI
	DECQ CX
	JNZ nextDivided
	VZEROUPPER
	RET
