//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"
#include "vectors_amd64.h"

// SCALEANDSTORE scales and stores the values of 16 codes, which are in Y2. Y15 notes codes
// that are not finite.
#define SCALEANDSTORE(OP) \
	VMULPS Y10, Y0, Y0 \
	VMULPS Y10, Y1, Y1 \
	VMULPS Y11, Y0, Y0 \
	VMULPS Y11, Y1, Y1 \
	VPAND Y14, Y2, Y3 \
	VPCMPGTW Y12, Y3, Y3 \
	VPCMPEQW Y13, Y2, Y2 \
	VPOR Y3, Y15, Y15 \
	VPOR Y2, Y15, Y15 \
	OP Y0, (DI) \
	OP Y1, 32(DI) \
	ADDQ $16, SI \
	ADDQ $64, DI

// DECODEHALF decodes 16 codes whose bits, moved, are those of a float16 but for the
// exponent's bias; unlike a product of subnormal float32s, its conversion is never slow.
#define DECODEHALF(OP) \
	VPMOVZXBW (SI), Y2 \
	VPMULLW Y6, Y2, Y0 \
	VPAND Y9, Y0, Y1 \
	VPAND Y8, Y0, Y0 \
	VPSRLW X7, Y0, Y0 \
	VPOR Y1, Y0, Y0 \
	VEXTRACTI128 $1, Y0, X1 \
	VCVTPH2PS X0, Y0 \
	VCVTPH2PS X1, Y1 \
	SCALEANDSTORE(OP)

// DECODEWIDE decodes 16 codes of other formats.
// The sign, extended, stays above the magnitude.
#define DECODEWIDE(OP) \
	VPMOVSXBD (SI), Y0 \
	VPMOVSXBD 8(SI), Y1 \
	VPMOVZXBW (SI), Y2 \
	VPSLLVD Y8, Y0, Y0 \
	VPSLLVD Y8, Y1, Y1 \
	VPAND Y9, Y0, Y0 \
	VPAND Y9, Y1, Y1 \
	SCALEANDSTORE(OP)

// func decodeAVX2(dst *float32, src *byte, n int, d *Decoding) uint32
//
// n is a positive multiple of 16.
TEXT ·decodeAVX2(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ d+24(FP), AX

	VPBROADCASTW Decoding_Max(AX), Y12  // 16-bit lanes, here and below
	VPBROADCASTW Decoding_Lone(AX), Y13
	VPCMPEQD Y14, Y14, Y14
	VPSRLW $9, Y14, Y14 // 0x7F
	VPXOR Y15, Y15, Y15 // nonzero if there was a special code
	VBROADCASTSS Decoding_Scale(AX), Y11
	CMPL Decoding_HalfRebias(AX), $0
	JEQ wide

	VBROADCASTSS Decoding_HalfRebias(AX), Y10
	MOVL Decoding_HalfShift(AX), BX
	VMOVD BX, X7
	MOVL $16, BX
	SUBL Decoding_Bits(AX), BX
	XORL CX, CX
	BTSL BX, CX
	VMOVD CX, X6
	VPBROADCASTW X6, Y6 // from a code's sign to that of 16 bits
	MOVQ n+16(FP), CX
	VPSLLW $8, Y14, Y8 // magnitude
	VPCMPEQD Y9, Y9, Y9
	VPSLLW $15, Y9, Y9 // sign

	CMPL Decoding_Stream(AX), $0
	JNE halfStream

halfLoop:
	DECODEHALF(VMOVUPS)
	SUBQ $16, CX
	JNZ halfLoop
	JMP decoded

halfStream:
	DECODEHALF(VMOVNTPS)
	SUBQ $16, CX
	JNZ halfStream
	SFENCE
	JMP decoded

wide:
	VPBROADCASTD Decoding_Shift(AX), Y8
	VPBROADCASTD Decoding_Mask(AX), Y9
	VBROADCASTSS Decoding_Rebias(AX), Y10
	VPCMPEQD Y0, Y0, Y0
	VPSLLD $31, Y0, Y0
	VPOR Y0, Y9, Y9 // sign and magnitude

	CMPL Decoding_Stream(AX), $0
	JNE wideStream

decodeLoop:
	DECODEWIDE(VMOVUPS)
	SUBQ $16, CX
	JNZ decodeLoop
	JMP decoded

wideStream:
	DECODEWIDE(VMOVNTPS)
	SUBQ $16, CX
	JNZ wideStream
	SFENCE

decoded:
	XORL BX, BX
	VPTEST Y15, Y15
	SETNE BX
	MOVL BX, ret+32(FP)
	VZEROUPPER
	RET

// func maxBitsAVX2(src *float32, n int) uint32
//
// n is a positive multiple of 16.
TEXT ·maxBitsAVX2(SB), NOSPLIT, $0-20
	MOVQ src+0(FP), SI
	MOVQ n+8(FP), CX
	VPCMPEQD Y15, Y15, Y15
	VPSRLD $1, Y15, Y15 // magnitude
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	SUBQ $32, CX
	JLT rest

maxLoop:
	VPAND (SI), Y15, Y4
	VPAND 32(SI), Y15, Y5
	VPAND 64(SI), Y15, Y6
	VPAND 96(SI), Y15, Y7
	VPMAXUD Y4, Y0, Y0
	VPMAXUD Y5, Y1, Y1
	VPMAXUD Y6, Y2, Y2
	VPMAXUD Y7, Y3, Y3
	ADDQ $128, SI
	SUBQ $32, CX
	JGE maxLoop

rest:
	ADDQ $32, CX
	JZ reduce
	VPAND (SI), Y15, Y4
	VPAND 32(SI), Y15, Y5
	VPMAXUD Y4, Y0, Y0
	VPMAXUD Y5, Y1, Y1

reduce:
	VPMAXUD Y1, Y0, Y0
	VPMAXUD Y3, Y2, Y2
	VPMAXUD Y2, Y0, Y0
	REDUCE256(VPMAXUD, Y0, X0, X1)
	VMOVD X0, AX
	MOVL AX, ret+16(FP)
	VZEROUPPER
	RET

// Y0 = the largest of each lane of the block at SI, of DX values. Y1 to Y3 are lost.
#define BLOCKMAX(loop) \
	MOVQ DX, BX \
	VPXOR Y0, Y0, Y0 \
	VPXOR Y1, Y1, Y1 \
loop: \
	VPAND (SI), Y15, Y2 \
	VPAND 32(SI), Y15, Y3 \
	VPMAXUD Y2, Y0, Y0 \
	VPMAXUD Y3, Y1, Y1 \
	ADDQ $64, SI \
	SUBQ $16, BX \
	JNZ loop \
	VPMAXUD Y1, Y0, Y0

// The largest of each lane of block k of 16, or of 32, at SI go where REDUCEEIGHT wants them.
#define SIXTEEN(k) \
	VPAND (64*k)(SI), Y15, Y0 \
	VPAND (64*k+32)(SI), Y15, Y1 \
	VPMAXUD Y1, Y0, Y0 \
	VMOVDQU Y0, (32*k)(R13)

#define THIRTYTWO(k) \
	VPAND (128*k)(SI), Y15, Y0 \
	VPAND (128*k+32)(SI), Y15, Y1 \
	VPAND (128*k+64)(SI), Y15, Y2 \
	VPAND (128*k+96)(SI), Y15, Y3 \
	VPMAXUD Y1, Y0, Y0 \
	VPMAXUD Y3, Y2, Y2 \
	VPMAXUD Y2, Y0, Y0 \
	VMOVDQU Y0, (32*k)(R13)

// func maxBlocksAVX2(dst, src *float32, blocks, block int)
//
// block is a positive multiple of 16, blocks is positive. Eight blocks are reduced at a time.
TEXT ·maxBlocksAVX2(SB), 0, $288-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ block+24(FP), DX
	LEAQ 31(SP), R13
	ANDQ $-32, R13
	VPCMPEQD Y15, Y15, Y15
	VPSRLD $1, Y15, Y15 // magnitude
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
	BLOCKMAX(inBlock)
	VMOVDQU Y0, (R13)(R8*1)
	ADDQ $32, R8
	CMPQ R8, $256
	JLT ofEight

reduceEight:
	REDUCEEIGHT(VPMAXUD)
	RAISEEIGHT
	SUBQ $8, CX
	JGE eight

last:
	ADDQ $8, CX
	JZ done

one:
	BLOCKMAX(inLast)
	REDUCE256(VPMAXUD, Y0, X0, X1)
	RAISEONE
	DECQ CX
	JNZ one

done:
	VZEROUPPER
	RET

sixteens:
	EACHOFEIGHT(SIXTEEN)
	ADDQ $512, SI
	JMP reduceEight

thirtyTwos:
	EACHOFEIGHT(THIRTYTWO)
	ADDQ $1024, SI
	JMP reduceEight

// func maxElementsAVX2(dst, src *float32, n int)
//
// n is a positive multiple of 16.
TEXT ·maxElementsAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VPCMPEQD Y15, Y15, Y15
	VPSRLD $1, Y15, Y15 // magnitude
	MOVL $0x7FC00000, AX
	VMOVD AX, X14
	VPBROADCASTD X14, Y14 // NaN

nextElements:
	VPAND (SI), Y15, Y0
	VPAND 32(SI), Y15, Y1
	VPMAXUD (DI), Y0, Y0
	VPMAXUD 32(DI), Y1, Y1
	VCMPPS $3, Y0, Y0, Y2
	VCMPPS $3, Y1, Y1, Y3
	VBLENDVPS Y2, Y14, Y0, Y0
	VBLENDVPS Y3, Y14, Y1, Y1
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ nextElements
	VZEROUPPER
	RET
