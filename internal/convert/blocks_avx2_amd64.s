//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"
#include "vectors_amd64.h"

// Y0 = the largest of each lane of the block at SI, of DX 16-bit values. Y1 to Y3 are lost.
#define HALFBLOCKMAX(loop, half, end) \
	MOVQ DX, BX \
	VPXOR Y0, Y0, Y0 \
	VPXOR Y1, Y1, Y1 \
	SUBQ $32, BX \
	JLT half \
loop: \
	VPAND (SI), Y15, Y2 \
	VPAND 32(SI), Y15, Y3 \
	VPMAXUW Y2, Y0, Y0 \
	VPMAXUW Y3, Y1, Y1 \
	ADDQ $64, SI \
	SUBQ $32, BX \
	JGE loop \
half: \
	ADDQ $32, BX \
	JZ end \
	VPAND (SI), Y15, Y2 \
	VPMAXUW Y2, Y0, Y0 \
	ADDQ $32, SI \
end: \
	VPMAXUW Y1, Y0, Y0

// Y0 = the larger of the two numbers of each lane, at its top: a bfloat16 as a float32. Y1 is
// lost.
#define WIDENMAX \
	VPSLLD $16, Y0, Y1 \
	VPMAXUW Y1, Y0, Y0 \
	VPSRLD $16, Y0, Y0 \
	VPSLLD $16, Y0, Y0

// The largest of each lane of block k of 16, or of 32, at SI go where REDUCEEIGHT wants them.
#define SIXTEEN(k) \
	VPAND (32*k)(SI), Y15, Y0 \
	VMOVDQU Y0, (32*k)(R13)

#define THIRTYTWO(k) \
	VPAND (64*k)(SI), Y15, Y0 \
	VPAND (64*k+32)(SI), Y15, Y1 \
	VPMAXUW Y1, Y0, Y0 \
	VMOVDQU Y0, (32*k)(R13)

// func maxBlocksHalvesAVX2(dst *float32, src *uint16, blocks, block int, float16 uint32)
//
// block is a positive multiple of 16, blocks is positive. Eight blocks are reduced at a time.
TEXT ·maxBlocksHalvesAVX2(SB), 0, $288-36
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ block+24(FP), DX
	MOVL float16+32(FP), R9
	LEAQ 31(SP), R13
	ANDQ $-32, R13
	VPCMPEQD Y15, Y15, Y15
	VPSRLW $1, Y15, Y15 // magnitude
	MOVL $0x7FC00000, AX
	VMOVD AX, X7
	VPBROADCASTD X7, Y7 // NaN
	SUBQ $8, CX
	JLT last

eight:
	CMPQ DX, $16
	JEQ sixteens
	CMPQ DX, $32
	JEQ thirtyTwos
	XORQ R8, R8

ofEight:
	HALFBLOCKMAX(inBlock, half, reduce)
	VMOVDQU Y0, (R13)(R8*1)
	ADDQ $32, R8
	CMPQ R8, $256
	JLT ofEight

reduceEight:
	REDUCEEIGHT(VPMAXUW)
	WIDENMAX
	TESTL R9, R9
	JZ raiseEight
	VPSRLD $16, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKUSDW X1, X0, X0
	VCVTPH2PS X0, Y0

raiseEight:
	RAISEEIGHT
	SUBQ $8, CX
	JGE eight

last:
	ADDQ $8, CX
	JZ done

one:
	HALFBLOCKMAX(inLast, lastHalf, reduceLast)
	REDUCE256(VPMAXUW, Y0, X0, X1)
	WIDENMAX
	TESTL R9, R9
	JZ raiseOne
	VPSRLD $16, X0, X0
	VCVTPH2PS X0, X0

raiseOne:
	RAISEONE
	DECQ CX
	JNZ one

done:
	VZEROUPPER
	RET

sixteens:
	EACHOFEIGHT(SIXTEEN)
	ADDQ $256, SI
	JMP reduceEight

thirtyTwos:
	EACHOFEIGHT(THIRTYTWO)
	ADDQ $512, SI
	JMP reduceEight

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

// func spreadAVX2(dst, stored, factors *float32, n, each int, x *Extremes)
//
// n and each are positive.
TEXT ·spreadAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ stored+8(FP), SI
	MOVQ factors+16(FP), R8
	MOVQ n+24(FP), CX
	MOVQ each+32(FP), DX
	MOVQ x+40(FP), AX
	VPXOR Y8, Y8, Y8       // largest that is stored
	VPXOR Y9, Y9, Y9       // largest factor
	VPCMPEQD Y10, Y10, Y10 // smallest factor
	CMPQ DX, $2
	JA one
	SUBQ $8, CX
	JLT rest

eight:
	VPMAXUD (SI), Y8, Y8
	VMOVDQU (R8), Y0
	VPMAXUD Y0, Y9, Y9
	VPMINUD Y0, Y10, Y10
	CMPQ DX, $1
	JEQ singles
	VPUNPCKHDQ Y0, Y0, Y1
	VPUNPCKLDQ Y0, Y0, Y0
	VPERM2I128 $0x31, Y1, Y0, Y2
	VPERM2I128 $0x20, Y1, Y0, Y0
	VMOVDQU Y2, 32(DI)
	VMOVDQU Y0, (DI)
	ADDQ $64, DI

eightDone:
	ADDQ $32, SI
	ADDQ $32, R8
	SUBQ $8, CX
	JGE eight

rest:
	ADDQ $8, CX
	JZ done

one:
	VPBROADCASTD (SI), Y0
	VPMAXUD Y0, Y8, Y8
	VPBROADCASTD (R8), Y0
	VPMAXUD Y0, Y9, Y9
	VPMINUD Y0, Y10, Y10
	MOVQ DX, BX
	SUBQ $4, BX
	JLT few

four:
	VMOVDQU X0, (DI)
	ADDQ $16, DI
	SUBQ $4, BX
	JGE four

few:
	ADDQ $4, BX
	JZ next

fewer:
	VMOVD X0, (DI)
	ADDQ $4, DI
	DECQ BX
	JNZ fewer

next:
	ADDQ $4, SI
	ADDQ $4, R8
	DECQ CX
	JNZ one

done:
	REDUCE256(VPMAXUD, Y8, X8, X0)
	REDUCE256(VPMAXUD, Y9, X9, X0)
	REDUCE256(VPMINUD, Y10, X10, X0)
	VMOVD X8, Extremes_Stored(AX)
	VMOVD X9, Extremes_Largest(AX)
	VMOVD X10, Extremes_Smallest(AX)
	VZEROUPPER
	RET

singles:
	VMOVDQU Y0, (DI)
	ADDQ $32, DI
	JMP eightDone
