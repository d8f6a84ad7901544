//go:build !purego

#include "textflag.h"

// func lookupAVX2(dst, codes *byte, n int, table *[64]byte)
//
// Y0 to Y3 are the values of codes 0 to 15, 16 to 31 and so on.
TEXT ·lookupAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ codes+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ table+24(FP), AX
	VBROADCASTI128 (AX), Y0
	VBROADCASTI128 16(AX), Y1
	VBROADCASTI128 32(AX), Y2
	VBROADCASTI128 48(AX), Y3
	MOVL $0x0F0F0F0F, BX
	VMOVD BX, X15
	VPBROADCASTD X15, Y15

lookup:
	VMOVDQU (SI), Y4
	VPAND Y15, Y4, Y5
	VPSHUFB Y5, Y0, Y6
	VPSHUFB Y5, Y1, Y7
	VPSHUFB Y5, Y2, Y8
	VPSHUFB Y5, Y3, Y9

	// Bits 4 and 5 where a blend looks: in bit 7.
	VPSLLW $3, Y4, Y10
	VPSLLW $2, Y4, Y11
	VPBLENDVB Y10, Y7, Y6, Y6
	VPBLENDVB Y10, Y9, Y8, Y8
	VPBLENDVB Y11, Y8, Y6, Y6
	VMOVDQU Y6, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $32, CX
	JNZ lookup
	VZEROUPPER
	RET

#define STORE(Q, Y) VMOVDQU Y, (128*Q)(DI)

// func quadsAVX2(dst, src *byte, stride, rows, n int)
//
// Of 8 rows, a register has 8 quads of one: their transposition.
TEXT ·quadsAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), R9
	MOVQ src+8(FP), R11
	MOVQ stride+16(FP), R8
	MOVQ rows+24(FP), DX
	LEAQ (R8)(R8*2), R10

rows:
	MOVQ R9, DI
	MOVQ R11, SI
	LEAQ (R11)(R8*4), BX
	MOVQ n+32(FP), CX

quads:
	VMOVDQU (SI), Y0
	VMOVDQU (SI)(R8*1), Y1
	VMOVDQU (SI)(R8*2), Y2
	VMOVDQU (SI)(R10*1), Y3
	VMOVDQU (BX), Y4
	VMOVDQU (BX)(R8*1), Y5
	VMOVDQU (BX)(R8*2), Y6
	VMOVDQU (BX)(R10*1), Y7
	VPUNPCKLDQ Y1, Y0, Y8
	VPUNPCKHDQ Y1, Y0, Y9
	VPUNPCKLDQ Y3, Y2, Y10
	VPUNPCKHDQ Y3, Y2, Y11
	VPUNPCKLDQ Y5, Y4, Y12
	VPUNPCKHDQ Y5, Y4, Y13
	VPUNPCKLDQ Y7, Y6, Y14
	VPUNPCKHDQ Y7, Y6, Y15
	VPUNPCKLQDQ Y10, Y8, Y0
	VPUNPCKHQDQ Y10, Y8, Y1
	VPUNPCKLQDQ Y11, Y9, Y2
	VPUNPCKHQDQ Y11, Y9, Y3
	VPUNPCKLQDQ Y14, Y12, Y4
	VPUNPCKHQDQ Y14, Y12, Y5
	VPUNPCKLQDQ Y15, Y13, Y6
	VPUNPCKHQDQ Y15, Y13, Y7
	VPERM2I128 $0x20, Y4, Y0, Y8
	VPERM2I128 $0x20, Y5, Y1, Y9
	VPERM2I128 $0x20, Y6, Y2, Y10
	VPERM2I128 $0x20, Y7, Y3, Y11
	VPERM2I128 $0x31, Y4, Y0, Y12
	VPERM2I128 $0x31, Y5, Y1, Y13
	VPERM2I128 $0x31, Y6, Y2, Y14
	VPERM2I128 $0x31, Y7, Y3, Y15
	STORE(0, Y8)
	STORE(1, Y9)
	STORE(2, Y10)
	STORE(3, Y11)
	STORE(4, Y12)
	STORE(5, Y13)
	STORE(6, Y14)
	STORE(7, Y15)
	ADDQ $32, SI
	ADDQ $32, BX
	ADDQ $1024, DI
	DECQ CX
	JNZ quads

	ADDQ $32, R9
	LEAQ (R11)(R8*8), R11
	SUBQ $8, DX
	JNZ rows
	VZEROUPPER
	RET

// func splitAVX2(dst, nibbles *byte, n int)
//
// 128 bytes of nibbles become 128 codes of the low ones and 128 of the high ones.
TEXT ·splitAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ nibbles+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL $0x0F0F0F0F, BX
	VMOVD BX, X15
	VPBROADCASTD X15, Y15

#define SPLIT(At) \
	VMOVDQU At(SI), Y0 \
	VPSRLW $4, Y0, Y1 \
	VPAND Y15, Y0, Y0 \
	VPAND Y15, Y1, Y1 \
	VMOVDQU Y0, At(DI) \
	VMOVDQU Y1, (At+128)(DI)

split:
	SPLIT(0)
	SPLIT(32)
	SPLIT(64)
	SPLIT(96)
	ADDQ $128, SI
	ADDQ $256, DI
	SUBQ $128, CX
	JNZ split
	VZEROUPPER
	RET

// What puts the first bytes of four quads side by side, then the second ones and so on.
DATA firsts<>+0(SB)/8, $0x0D0905010C080400
DATA firsts<>+8(SB)/8, $0x0F0B07030E0A0602
GLOBL firsts<>(SB), RODATA|NOPTR, $16

// What does the same with the halves of a register.
DATA halves<>+0(SB)/8, $0x0000000400000000
DATA halves<>+8(SB)/8, $0x0000000500000001
DATA halves<>+16(SB)/8, $0x0000000600000002
DATA halves<>+24(SB)/8, $0x0000000700000003
GLOBL halves<>(SB), RODATA|NOPTR, $32

// Y = 8 columns, first those of the first k, then those of the second and so on.
#define LOADK(At, Y) \
	VMOVDQU At(SI), Y \
	VPSHUFB Y14, Y, Y \
	VPERMD Y, Y15, Y

// func columnsAVX2(dst, panel *byte, n int)
//
// 128 bytes, four each of 32 columns, become four times 32 bytes.
TEXT ·columnsAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ panel+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTI128 firsts<>(SB), Y14
	VMOVDQU halves<>(SB), Y15

columns:
	LOADK(0, Y0)
	LOADK(32, Y1)
	LOADK(64, Y2)
	LOADK(96, Y3)
	VPUNPCKLQDQ Y1, Y0, Y4
	VPUNPCKHQDQ Y1, Y0, Y5
	VPUNPCKLQDQ Y3, Y2, Y6
	VPUNPCKHQDQ Y3, Y2, Y7
	VPERM2I128 $0x20, Y6, Y4, Y0
	VPERM2I128 $0x20, Y7, Y5, Y1
	VPERM2I128 $0x31, Y6, Y4, Y2
	VPERM2I128 $0x31, Y7, Y5, Y3
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $128, CX
	JNZ columns
	VZEROUPPER
	RET

// func powersAVX2(dst *float32, codes *byte, n int)
//
// A code moved to the exponent is its power of two, but for 0, whose is subnormal, and FF,
// which is NaN.
TEXT ·powersAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ codes+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL $0x00400000, AX
	VMOVD AX, X14
	VPBROADCASTD X14, Y14
	MOVL $0x7F800000, AX
	VMOVD AX, X15
	VPBROADCASTD X15, Y15

powers:
	VPMOVZXBD (SI), Y0
	VPSLLD $23, Y0, Y0
	VPCMPEQD Y15, Y0, Y1
	VPAND Y14, Y1, Y1
	VPMAXUD Y14, Y0, Y0
	VPOR Y1, Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ $8, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ powers
	VZEROUPPER
	RET

// Eight results times the row's scale, in Y8, times the columns', in Y.
#define OUTER(At, Y) \
	VMULPS Y, Y8, Y9 \
	VMULPS At(DI), Y9, Y9 \
	VCMPPS $3, Y9, Y9, Y10 \
	VBLENDVPS Y10, Y15, Y9, Y9 \
	VMOVUPS Y9, At(DI)

// func outerAVX2(c *float32, stride int, rows *float32, n int, columns *[PanelWidth]float32)
TEXT ·outerAVX2(SB), NOSPLIT, $0-40
	MOVQ c+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ rows+16(FP), SI
	MOVQ n+24(FP), CX
	MOVQ columns+32(FP), AX
	VMOVUPS (AX), Y0
	VMOVUPS 32(AX), Y1
	VMOVUPS 64(AX), Y2
	VMOVUPS 96(AX), Y3
	MOVL $0x7FC00000, AX
	VMOVD AX, X15
	VPBROADCASTD X15, Y15

outer:
	VBROADCASTSS (SI), Y8
	OUTER(0, Y0)
	OUTER(32, Y1)
	OUTER(64, Y2)
	OUTER(96, Y3)
	ADDQ $4, SI
	ADDQ R8, DI
	DECQ CX
	JNZ outer
	VZEROUPPER
	RET

// X = 8 bytes each of two rows.
#define TWOROWS(A, B, X) \
	VMOVQ A, X \
	VMOVHPS B, X, X

// Y = 8 bytes each of the rows from At on, 128 more each, so that none is negative.
#define FOURROWS(At, X, Y) \
	TWOROWS((At), (At)(R8*1), X) \
	TWOROWS((At)(R8*2), (At)(R10*1), X2) \
	VINSERTI128 $1, X2, Y, Y \
	VPXOR Y15, Y, Y

// func startsAVX2(dst *int32, dstStride int, values *int8, stride, rows, blocks, octets int, start, bias int32)
//
// Y0 and Y1 are the sums of four rows each.
TEXT ·startsAVX2(SB), NOSPLIT, $0-64
	MOVQ dst+0(FP), R9
	MOVQ dstStride+8(FP), R12
	MOVQ values+16(FP), AX
	MOVQ stride+24(FP), R8
	MOVQ rows+32(FP), DX
	LEAQ (R8)(R8*2), R10
	MOVL start+56(FP), BX
	VMOVD BX, X13
	VPBROADCASTD X13, Y13
	MOVL bias+60(FP), BX
	VMOVD BX, X12
	VPBROADCASTD X12, Y12
	MOVL $0x80808080, BX
	VMOVD BX, X15
	VPBROADCASTD X15, Y15
	VPXOR X14, X14, X14

rows:
	MOVQ R9, DI
	MOVQ AX, SI
	LEAQ (AX)(R8*4), R11
	MOVQ blocks+40(FP), BX

block:
	VPXOR X0, X0, X0
	VPXOR X1, X1, X1
	MOVQ octets+48(FP), CX

octet:
	FOURROWS(SI, X3, Y3)
	FOURROWS(R11, X4, Y4)
	VPSADBW Y14, Y3, Y3
	VPSADBW Y14, Y4, Y4
	VPADDQ Y3, Y0, Y0
	VPADDQ Y4, Y1, Y1
	ADDQ $8, SI
	ADDQ $8, R11
	DECQ CX
	JNZ octet

	VSHUFPS $0x88, Y1, Y0, Y0
	VPERMQ $0xD8, Y0, Y0
	VPMULLD Y12, Y0, Y0
	VPSUBD Y0, Y13, Y0
	VMOVDQU Y0, (DI)
	ADDQ R12, DI
	DECQ BX
	JNZ block

	ADDQ $32, R9
	LEAQ (AX)(R8*8), AX
	SUBQ $8, DX
	JNZ rows
	VZEROUPPER
	RET
