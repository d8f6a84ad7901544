//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"
#include "vectors_amd64.h"

// DECODE decodes 16 codes. A subnormal is put on the smallest normal value and
// that taken away: a product of the bits as they are would be of subnormal
// float32s, which are slow.
#define DECODE(From, To, OP) \
	VPMOVZXBD From(SI), Z0 \
	VPSLLVD Z16, Z0, Z1 \
	VPSLLVD Z22, Z0, Z2 \
	VPANDD Z17, Z1, Z1 \
	VPCMPUD $1, Z26, Z1, K3 \
	VPADDD Z25, Z1, Z4 \
	VPADDD Z18, Z1, Z1 \
	VSUBPS Z25, Z4, K3, Z1 \
	VPTERNLOGD $0xF8, Z23, Z2, Z1 \
	VMULPS Z19, Z1, Z1 \
	OP Z1, To(DI)

// DECODE64 decodes 64 codes, of which K7 notes those that are not finite.
#define DECODE64(OP) \
	VMOVDQU64 (SI), Z0 \
	VPANDD Z29, Z0, Z1 \
	VPCMPUB $6, Z27, Z1, K1 \
	VPCMPEQB Z28, Z0, K2 \
	KORQ K1, K7, K7 \
	KORQ K2, K7, K7 \
	DECODE(0, 0, OP) \
	DECODE(16, 64, OP) \
	DECODE(32, 128, OP) \
	DECODE(48, 192, OP) \
	ADDQ $64, SI \
	ADDQ $256, DI

// func decodeAVX512(dst *float32, src *byte, n int, d *Decoding) uint32
//
// n is a positive multiple of 16.
TEXT ·decodeAVX512(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ d+24(FP), AX

	VPBROADCASTD Decoding_Shift(AX), Z16
	VPBROADCASTD Decoding_Mask(AX), Z17
	VPBROADCASTD Decoding_Offset(AX), Z18
	VPBROADCASTD Decoding_Smallest(AX), Z25
	VBROADCASTSS Decoding_Scale(AX), Z19
	VPBROADCASTD Decoding_Max(AX), Z20
	VPBROADCASTD Decoding_Lone(AX), Z21
	VPTERNLOGD $0xFF, Z22, Z22, Z22
	VPSLLD $31, Z22, Z23          // sign
	VPSRLD $25, Z22, Z24          // 0x7F
	VPSRLD $31, Z22, Z26
	VPSLLD $23, Z26, Z26          // the first with an exponent

	MOVL $32, BX
	SUBL Decoding_Bits(AX), BX
	VPBROADCASTD BX, Z22          // from a code's sign to that of a float32

	VPBROADCASTB X20, Z27
	VPBROADCASTB X21, Z28
	VPBROADCASTB X24, Z29
	KXORQ K7, K7, K7
	SUBQ $64, CX
	JLT decodeRest
	CMPL Decoding_Stream(AX), $0
	JNE decodeStream

decodeLoop:
	DECODE64(VMOVUPS)
	SUBQ $64, CX
	JGE decodeLoop

decodeRest:
	ADDQ $64, CX
	JZ decoded

decodeSmall:
	VMOVDQU8 (SI), X0
	VPANDD X29, X0, X1
	VPCMPUB $6, X27, X1, K1
	VPCMPEQB X28, X0, K2
	KORQ K1, K7, K7
	KORQ K2, K7, K7
	DECODE(0, 0, VMOVUPS)
	ADDQ $16, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ decodeSmall

decoded:
	XORL R8, R8
	KORTESTQ K7, K7
	SETNE R8
	MOVL R8, ret+32(FP)
	VZEROUPPER
	RET

decodeStream:
	DECODE64(VMOVNTPS)
	SUBQ $64, CX
	JGE decodeStream
	SFENCE
	JMP decodeRest

// func maxBitsAVX512(src *float32, n int) uint32
//
// n is a positive multiple of 16.
TEXT ·maxBitsAVX512(SB), NOSPLIT, $0-20
	MOVQ src+0(FP), SI
	MOVQ n+8(FP), CX
	VPTERNLOGD $0xFF, Z16, Z16, Z16
	VPSRLD $1, Z16, Z16
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	SUBQ $64, CX
	JLT rest

maxLoop:
	VPANDD (SI), Z16, Z4
	VPANDD 64(SI), Z16, Z5
	VPANDD 128(SI), Z16, Z6
	VPANDD 192(SI), Z16, Z7
	VPMAXUD Z4, Z0, Z0
	VPMAXUD Z5, Z1, Z1
	VPMAXUD Z6, Z2, Z2
	VPMAXUD Z7, Z3, Z3
	ADDQ $256, SI
	SUBQ $64, CX
	JGE maxLoop

rest:
	ADDQ $64, CX
	JZ reduce

restLoop:
	VPANDD (SI), Z16, Z4
	VPMAXUD Z4, Z0, Z0
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ restLoop

reduce:
	VPMAXUD Z1, Z0, Z0
	VPMAXUD Z3, Z2, Z2
	VPMAXUD Z2, Z0, Z0
	REDUCE512(VPMAXUD, Z0, Y0, Y1, X0, X1)
	VMOVD X0, AX
	MOVL AX, ret+16(FP)
	VZEROUPPER
	RET

// Y0 = the largest of each lane of the block at SI, of DX values. Z1 is lost.
#define BLOCKMAX(loop) \
	MOVQ DX, BX \
	VPXORD Z0, Z0, Z0 \
loop: \
	VPANDD (SI), Z16, Z1 \
	VPMAXUD Z1, Z0, Z0 \
	ADDQ $64, SI \
	SUBQ $16, BX \
	JNZ loop \
	VEXTRACTI64X4 $1, Z0, Y1 \
	VPMAXUD Y1, Y0, Y0

// The largest of each lane of block k of 16, or of 32, at SI go where REDUCEEIGHT wants them.
#define SIXTEEN(k) \
	VPANDD (64*k)(SI), Z16, Z0 \
	VEXTRACTI64X4 $1, Z0, Y1 \
	VPMAXUD Y1, Y0, Y0 \
	VMOVDQU Y0, (32*k)(R13)

#define THIRTYTWO(k) \
	VPANDD (128*k)(SI), Z16, Z0 \
	VPANDD (128*k+64)(SI), Z16, Z1 \
	VPMAXUD Z1, Z0, Z0 \
	VEXTRACTI64X4 $1, Z0, Y1 \
	VPMAXUD Y1, Y0, Y0 \
	VMOVDQU Y0, (32*k)(R13)

// func maxBlocksAVX512(dst, src *float32, blocks, block int)
//
// block is a positive multiple of 16, blocks is positive. Eight blocks are reduced at a time.
TEXT ·maxBlocksAVX512(SB), 0, $288-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ block+24(FP), DX
	LEAQ 31(SP), R13
	ANDQ $-32, R13
	VPTERNLOGD $0xFF, Z16, Z16, Z16
	VPSRLD $1, Z16, Z16 // magnitude
	MOVL $0x7FC00000, AX
	VPBROADCASTD AX, Y7 // NaN
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

// func maxElementsAVX512(dst, src *float32, n int)
//
// n is a positive multiple of 16.
TEXT ·maxElementsAVX512(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VPTERNLOGD $0xFF, Z16, Z16, Z16
	VPSRLD $1, Z16, Z16
	MOVL $0x7FC00000, AX
	VPBROADCASTD AX, Z17 // NaN

nextElement:
	VPANDD (SI), Z16, Z0
	VPMAXUD (DI), Z0, Z0
	VCMPPS $3, Z0, Z0, K1
	VMOVDQA32 Z17, K1, Z0
	VMOVDQU32 Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ nextElement
	VZEROUPPER
	RET
