//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Of the codes C(AX): Z16 is the table, Z17 the factor, Z18 the mask, Z19 the
// offset, Z20 and Z21 special and limit, shifted as magnitudes are, and Z22 selects
// the last four bits.
#define CODES \
	VMOVDQU16 Decoder_table(AX), Z16 \
	VPBROADCASTW Decoder_factor(AX), Z17 \
	VPBROADCASTW Decoder_mask(AX), Z18 \
	VPBROADCASTW Decoder_offset(AX), Z19 \
	VPBROADCASTW Decoder_special(AX), Z20 \
	VPSLLW $9, Z20, Z20 \
	VPBROADCASTW Decoder_limit(AX), Z21 \
	VPSLLW $9, Z21, Z21 \
	MOVL $0x000F000F, BX \
	VPBROADCASTD BX, Z22

// Zx = the bfloat16 of 32 codes Zw, which are extended by their sign to 16 bits.
// The sign lies beside the last four bits in the index of the table.
#define CONVERT(Zw, Zx, Zt) \
	VPSLLW $9, Zw, Zt \
	VPADDW Z20, Zt, Zt \
	VPCMPUW $1, Z21, Zt, K1 \
	VPMULLW Z17, Zw, Zx \
	VPANDD Z18, Zx, Zx \
	VPADDW Z19, Zx, Zx \
	VPSRLW $4, Zw, Zt \
	VPTERNLOGD $0xD8, Z22, Zw, Zt \
	VPERMW Z16, Zt, K1, Zx

// func packRowsAVX512(dst *uint16, codes *byte, stride, rows, n int, c *Decoder)
//
// Two chunks of all rows are packed at a time, since a cache line has the codes of two,
// and what is written is two streams.
TEXT ·packRowsAVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ codes+8(FP), SI
	MOVQ stride+16(FP), R8
	MOVQ n+32(FP), R10 // codes of a row left
	MOVQ c+40(FP), AX
	CODES
	MOVQ $-1, BX
	KMOVQ BX, K2 // the codes of the next two chunks

chunks:
	CMPQ R10, $64
	JGE whole
	MOVQ R10, CX
	MOVL $1, BX
	SHLQ CX, BX
	DECQ BX
	KMOVQ BX, K2

whole:
	KSHIFTRQ $32, K2, K3
	MOVQ SI, R11
	MOVQ DI, R12
	MOVQ rows+24(FP), R9
	CMPQ R10, $32
	JLE last

two:
	PREFETCHT0 64(R11) // the next two
	VPMOVSXBW.Z (R11), K2, Z0
	VPMOVSXBW.Z 32(R11), K3, Z1
	CONVERT(Z0, Z2, Z3)
	CONVERT(Z1, Z4, Z5)
	VMOVDQU16 Z2, (R12)
	VMOVDQU16 Z4, (2*const_Pack)(R12)
	ADDQ R8, R11
	ADDQ $(2*const_Chunk), R12
	DECQ R9
	JNZ two
	ADDQ $64, SI
	ADDQ $(4*const_Pack), DI
	SUBQ $64, R10
	JGT chunks
	VZEROUPPER
	RET

last:
	VPMOVSXBW.Z (R11), K2, Z0
	CONVERT(Z0, Z2, Z3)
	VMOVDQU16 Z2, (R12)
	ADDQ R8, R11
	ADDQ $(2*const_Chunk), R12
	DECQ R9
	JNZ last
	VZEROUPPER
	RET

// Two rows of 8 codes that follow each other in the register become 8 pairs.
DATA pairs<>+0(SB)/8, $0x0B030A0209010800
DATA pairs<>+8(SB)/8, $0x0F070E060D050C04
GLOBL pairs<>(SB), RODATA|NOPTR, $16

// Columns 8i to 8i+7 of two rows of 32 codes are put beside each other.
DATA beside<>+0(SB)/8, $0
DATA beside<>+8(SB)/8, $4
DATA beside<>+16(SB)/8, $1
DATA beside<>+24(SB)/8, $5
DATA beside<>+32(SB)/8, $2
DATA beside<>+40(SB)/8, $6
DATA beside<>+48(SB)/8, $3
DATA beside<>+56(SB)/8, $7
GLOBL beside<>(SB), RODATA|NOPTR, $64

// func packColumnsAVX512(dst *uint16, codes *byte, n int, c *Decoder)
TEXT ·packColumnsAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ codes+8(FP), SI
	MOVQ n+16(FP), CX // rows of codes left
	MOVQ c+24(FP), AX
	CODES
	VMOVDQU64 beside<>(SB), Z23
	VBROADCASTI32X4 pairs<>(SB), Z24

tiles:
	MOVL $16, R8 // pairs of k left in the chunk

pair:
	CMPQ CX, $2
	JLT short
	VMOVDQU8 (SI), Z0

interleave:
	VPERMQ Z0, Z23, Z0
	VPSHUFB Z24, Z0, Z0
	VEXTRACTI64X4 $1, Z0, Y1
	VPMOVSXBW Y0, Z0
	VPMOVSXBW Y1, Z1
	CONVERT(Z0, Z2, Z3)
	VMOVDQU16 Z2, (DI)
	CONVERT(Z1, Z2, Z3)
	VMOVDQU16 Z2, const_Pack(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $2, CX
	DECL R8
	JNZ pair
	ADDQ $const_Pack, DI
	TESTQ CX, CX
	JGT tiles
	VZEROUPPER
	RET

short: // the last row alone, or none
	VPXORD Z0, Z0, Z0
	CMPQ CX, $1
	JNE interleave
	VMOVDQU (SI), Y0
	JMP interleave

// TWOLINES puts lines q and q+8 of a tile at their places: it has Zx of columns 0 to 7
// and of 8 to 15 of line q in its first and third quarter, those of the other in the
// second and the fourth.
#define TWOLINES(q, Zx) \
	VSHUFI64X2 $0xD8, Zx, Zx, Z28 \
	VEXTRACTI64X4 $1, Z28, Y29 \
	VPMOVSXBW Y28, Z28 \
	VPMOVSXBW Y29, Z29 \
	CONVERT(Z28, Z30, Z31) \
	VMOVDQU16 Z30, (64*q)(DI) \
	CONVERT(Z29, Z30, Z31) \
	VMOVDQU16 Z30, (64*q+512)(DI)

// TWOCOLUMNS loads 32 codes each of a column and of that 8 further.
#define TWOCOLUMNS(Yx, Zx) \
	VMOVDQU (R9), Yx \
	VINSERTI64X4 $1, (R9)(R8*8), Zx, Zx \
	ADDQ R8, R9

// func packTransposedAVX512(dst *uint16, codes *byte, stride, chunks int, c *Decoder)
TEXT ·packTransposedAVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ codes+8(FP), SI
	MOVQ stride+16(FP), R8
	MOVQ chunks+24(FP), CX
	MOVQ c+32(FP), AX
	CODES
	MOVQ R8, R10
	SHLQ $4, R10

chunk:
	MOVQ SI, R9
	MOVL $2, BX

tile:
	MOVQ R9, R11
	TWOCOLUMNS(Y0, Z0)
	TWOCOLUMNS(Y1, Z1)
	TWOCOLUMNS(Y2, Z2)
	TWOCOLUMNS(Y3, Z3)
	TWOCOLUMNS(Y4, Z4)
	TWOCOLUMNS(Y5, Z5)
	TWOCOLUMNS(Y6, Z6)
	TWOCOLUMNS(Y7, Z7)

	// Each quarter of the registers is 8x8 pairs of codes, which are transposed.
	VPUNPCKLWD Z1, Z0, Z8
	VPUNPCKHWD Z1, Z0, Z9
	VPUNPCKLWD Z3, Z2, Z10
	VPUNPCKHWD Z3, Z2, Z11
	VPUNPCKLWD Z5, Z4, Z12
	VPUNPCKHWD Z5, Z4, Z13
	VPUNPCKLWD Z7, Z6, Z14
	VPUNPCKHWD Z7, Z6, Z15
	VPUNPCKLDQ Z10, Z8, Z0
	VPUNPCKHDQ Z10, Z8, Z1
	VPUNPCKLDQ Z14, Z12, Z2
	VPUNPCKHDQ Z14, Z12, Z3
	VPUNPCKLDQ Z11, Z9, Z4
	VPUNPCKHDQ Z11, Z9, Z5
	VPUNPCKLDQ Z15, Z13, Z6
	VPUNPCKHDQ Z15, Z13, Z7
	VPUNPCKLQDQ Z2, Z0, Z8
	VPUNPCKHQDQ Z2, Z0, Z9
	VPUNPCKLQDQ Z3, Z1, Z10
	VPUNPCKHQDQ Z3, Z1, Z11
	VPUNPCKLQDQ Z6, Z4, Z12
	VPUNPCKHQDQ Z6, Z4, Z13
	VPUNPCKLQDQ Z7, Z5, Z14
	VPUNPCKHQDQ Z7, Z5, Z15
	TWOLINES(0, Z8)
	TWOLINES(1, Z9)
	TWOLINES(2, Z10)
	TWOLINES(3, Z11)
	TWOLINES(4, Z12)
	TWOLINES(5, Z13)
	TWOLINES(6, Z14)
	TWOLINES(7, Z15)
	ADDQ $1024, DI
	LEAQ (R11)(R10*1), R9
	DECL BX
	JNZ tile
	ADDQ $32, SI
	DECQ CX
	JNZ chunk
	VZEROUPPER
	RET

// ROW loads the next row; a NaN becomes canonical.
#define ROW \
	VMOVUPS (SI), Z0 \
	VMOVUPS 64(SI), Z1 \
	VCMPPS $3, Z0, Z0, K1 \
	VCMPPS $3, Z1, Z1, K2 \
	VMOVDQA32 Z2, K1, Z0 \
	VMOVDQA32 Z2, K2, Z1 \
	ADDQ $128, SI

// func copyRowsAVX512(dst *float32, stride int, c *float32, rows int, stream bool)
TEXT ·copyRowsAVX512(SB), NOSPLIT, $0-33
	MOVQ dst+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ c+16(FP), SI
	MOVQ rows+24(FP), CX
	SHLQ $2, R8
	MOVL $0x7FC00000, BX
	VPBROADCASTD BX, Z2
	CMPB stream+32(FP), $0
	JNE streamed

row:
	ROW
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	ADDQ R8, DI
	DECQ CX
	JNZ row
	VZEROUPPER
	RET

streamed:
	ROW
	VMOVNTPS Z0, (DI)
	VMOVNTPS Z1, 64(DI)
	ADDQ R8, DI
	DECQ CX
	JNZ streamed
	SFENCE
	VZEROUPPER
	RET
