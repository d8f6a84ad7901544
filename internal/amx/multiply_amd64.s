//go:build !purego

#include "textflag.h"

// Palette 1, and eight tiles of 16 rows of 64 bytes.
DATA config<>+0(SB)/8, $1
DATA config<>+8(SB)/8, $0
DATA config<>+16(SB)/8, $0x0040004000400040
DATA config<>+24(SB)/8, $0x0040004000400040
DATA config<>+32(SB)/8, $0
DATA config<>+40(SB)/8, $0
DATA config<>+48(SB)/8, $0x1010101010101010
DATA config<>+56(SB)/8, $0
GLOBL config<>(SB), RODATA|NOPTR, $64

// The assembler has no AMX. The test of package asmtable compares each row of
// bytes with the instruction beside it; who renames a register must look here too.
//
// Tiles 0 to 3 are the sums p of the four quarters, 4 and 5 are of A, 6 and 7 of B.
#define CONFIGURE BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0x00 // ldtilecfg [rax]
#define RELEASE BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0xC0 // tilerelease
#define ZERO00 BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x49; BYTE $0xC0 // tilezero tmm0
#define ZERO01 BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x49; BYTE $0xC8 // tilezero tmm1
#define ZERO10 BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x49; BYTE $0xD0 // tilezero tmm2
#define ZERO11 BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x49; BYTE $0xD8 // tilezero tmm3
#define LOADA0 BYTE $0xC4; BYTE $0xE2; BYTE $0x79; BYTE $0x4B; BYTE $0x24; BYTE $0x06 // tileloaddt1 tmm4,[rsi+rax*1]
#define LOADA1 BYTE $0xC4; BYTE $0xE2; BYTE $0x79; BYTE $0x4B; BYTE $0xAC; BYTE $0x06; BYTE $0x00; BYTE $0x04; BYTE $0x00; BYTE $0x00 // tileloaddt1 tmm5,[rsi+rax*1+0x400]
#define LOADB0 BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; BYTE $0x34; BYTE $0x02 // tileloadd tmm6,[rdx+rax*1]
#define LOADB1 BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; BYTE $0xBC; BYTE $0x02; BYTE $0x00; BYTE $0x04; BYTE $0x00; BYTE $0x00 // tileloadd tmm7,[rdx+rax*1+0x400]
#define MULTIPLY00 BYTE $0xC4; BYTE $0xE2; BYTE $0x4A; BYTE $0x5C; BYTE $0xC4 // tdpbf16ps tmm0,tmm4,tmm6
#define MULTIPLY01 BYTE $0xC4; BYTE $0xE2; BYTE $0x42; BYTE $0x5C; BYTE $0xCC // tdpbf16ps tmm1,tmm4,tmm7
#define MULTIPLY10 BYTE $0xC4; BYTE $0xE2; BYTE $0x4A; BYTE $0x5C; BYTE $0xD5 // tdpbf16ps tmm2,tmm5,tmm6
#define MULTIPLY11 BYTE $0xC4; BYTE $0xE2; BYTE $0x42; BYTE $0x5C; BYTE $0xDD // tdpbf16ps tmm3,tmm5,tmm7
#define RESUME00 BYTE $0xC4; BYTE $0xC2; BYTE $0x7B; BYTE $0x4B; BYTE $0x04; BYTE $0x43 // tileloadd tmm0,[r11+rax*2]
#define RESUME01 BYTE $0xC4; BYTE $0xC2; BYTE $0x7B; BYTE $0x4B; BYTE $0x4C; BYTE $0x43; BYTE $0x40 // tileloadd tmm1,[r11+rax*2+0x40]
#define RESUME10 BYTE $0xC4; BYTE $0xC2; BYTE $0x7B; BYTE $0x4B; BYTE $0x94; BYTE $0x43; BYTE $0x00; BYTE $0x08; BYTE $0x00; BYTE $0x00 // tileloadd tmm2,[r11+rax*2+0x800]
#define RESUME11 BYTE $0xC4; BYTE $0xC2; BYTE $0x7B; BYTE $0x4B; BYTE $0x9C; BYTE $0x43; BYTE $0x40; BYTE $0x08; BYTE $0x00; BYTE $0x00 // tileloadd tmm3,[r11+rax*2+0x840]
#define STORE00 BYTE $0xC4; BYTE $0xC2; BYTE $0x7A; BYTE $0x4B; BYTE $0x04; BYTE $0x43 // tilestored [r11+rax*2],tmm0
#define STORE01 BYTE $0xC4; BYTE $0xC2; BYTE $0x7A; BYTE $0x4B; BYTE $0x4C; BYTE $0x43; BYTE $0x40 // tilestored [r11+rax*2+0x40],tmm1
#define STORE10 BYTE $0xC4; BYTE $0xC2; BYTE $0x7A; BYTE $0x4B; BYTE $0x94; BYTE $0x43; BYTE $0x00; BYTE $0x08; BYTE $0x00; BYTE $0x00 // tilestored [r11+rax*2+0x800],tmm2
#define STORE11 BYTE $0xC4; BYTE $0xC2; BYTE $0x7A; BYTE $0x4B; BYTE $0x9C; BYTE $0x43; BYTE $0x40; BYTE $0x08; BYTE $0x00; BYTE $0x00 // tilestored [r11+rax*2+0x840],tmm3

// ROW scales the next row of sums and adds it to c, or to zeros where K1 is 0.
#define ROW \
	VBROADCASTSS (R9), Z28 \
	VMULPS (R12), Z28, Z29 \
	VMULPS 64(R12), Z28, Z28 \
	VMOVUPS.Z (R13), K1, Z27 \
	VMOVUPS.Z 64(R13), K1, Z26 \
	VFMADD213PS Z27, Z30, Z29 \
	VFMADD213PS Z26, Z31, Z28 \
	VMOVUPS Z29, (R13) \
	VMOVUPS Z28, 64(R13) \
	ADDQ $4, R9 \
	ADDQ $128, R12 \
	ADDQ R8, R13

#define TWOROWS \
	ROW \
	ROW

#define THREEROWS \
	TWOROWS \
	ROW

#define EIGHTROWS \
	TWOROWS \
	THREEROWS \
	THREEROWS

#define NONE

// A block of four chunks is 256 cycles of products. Beside them the nearest cache has 256
// loads of lines for tiles and 160 for rows, which are 208 cycles, and 128 stores, of the
// sums and of c: products with their loads reach 82 to 89 % of the peak of tiles (Sapphire
// Rapids, A in the second cache), with the stores of sums 70 to 75, with all of it 56 to 61.
// Neither later rows nor sums in two places by turns change that; adding two blocks to c
// at once would give another 4 to 6.
//
// CHUNK adds the products of a chunk to the sums, and does rows of the block before
// meanwhile: a tile's product takes 16 cycles and leaves the vector units idle. A, of
// which each tile is used once in a call, is loaded so that it does not drive B out
// of the nearest cache.
#define CHUNK(MEANWHILE) \
	LOADB0 \
	LOADA0 \
	MULTIPLY00 \
	MEANWHILE \
	LOADB1 \
	MULTIPLY01 \
	MEANWHILE \
	LOADA1 \
	MULTIPLY10 \
	MEANWHILE \
	MULTIPLY11 \
	MEANWHILE \
	ADDQ $2048, SI \
	ADDQ $2048, DX

// FIRSTCHUNK begins the sums of a block. Those of the block before are stored one by
// one, each when it is needed, since the last products that were begun take 52 cycles;
// then the first 8 rows of them are done.
#define FIRSTCHUNK \
	LOADB0 \
	LOADA0 \
	STORE00 \
	ZERO00 \
	MULTIPLY00 \
	LOADB1 \
	STORE01 \
	ZERO01 \
	MULTIPLY01 \
	TWOROWS \
	LOADA1 \
	STORE10 \
	ZERO10 \
	MULTIPLY10 \
	THREEROWS \
	STORE11 \
	ZERO11 \
	MULTIPLY11 \
	THREEROWS \
	ADDQ $2048, SI \
	ADDQ $2048, DX

// SCALES takes note of what the rows of a block that is over will need.
#define SCALES \
	MOVQ R11, R12 \
	MOVQ DI, R13 \
	VMOVUPS (R10), Z30 \
	VMOVUPS 64(R10), Z31 \
	ADDQ $128, R10 \
	KMOVW K2, K1 \
	KXNORW K2, K2, K2

// func multiplyAMX(c *float32, stride int, a, b *uint16, sa, sb *float32, chunks, blocks, strips int, p *float32, resume, hold, fresh bool)
TEXT ·multiplyAMX(SB), NOSPLIT, $0-83
	LEAQ config<>(SB), AX
	CONFIGURE
	MOVQ $64, AX             // bytes of a row of a tile; twice that, of one of p
	MOVQ c+0(FP), DI
	MOVQ stride+8(FP), R8
	SHLQ $2, R8
	MOVQ a+16(FP), SI
	MOVQ sa+32(FP), R9       // scales of the rows to come
	MOVQ p+72(FP), R11
	XORL R14, R14            // rows of the block before that are left to do
	MOVBLZX fresh+82(FP), BX
	DECL BX
	KMOVW BX, K3             // for the first block of a strip; K2 for the block to come

strip:
	KMOVW K3, K2
	MOVQ b+24(FP), DX
	MOVQ sb+40(FP), R10      // scales of the block's columns
	MOVQ blocks+56(FP), BX   // left
	MOVQ chunks+48(FP), CX
	CMPB resume+80(FP), $0
	JEQ first                // the tiles are zero
	RESUME00
	RESUME01
	RESUME10
	RESUME11

first:
	CHUNK(NONE)
	JMP next

following:
	MOVQ chunks+48(FP), CX
	FIRSTCHUNK
	MOVQ $24, R14

next:
	DECQ CX
	JZ rest
	TESTQ R14, R14
	JZ alone

both:
	CHUNK(TWOROWS)
	SUBQ $8, R14
	JZ next
	DECQ CX
	JNZ both

rest:
	TESTQ R14, R14
	JZ over
	EIGHTROWS
	SUBQ $8, R14
	JMP rest

alone:
	CHUNK(NONE)
	DECQ CX
	JNZ alone

over:
	MOVBLZX resume+80(FP), CX
	ORB hold+81(FP), CX
	JNE part
	SCALES
	DECQ BX
	JNZ following
	KMOVW K3, K2
	MOVQ b+24(FP), DX
	MOVQ sb+40(FP), R10
	MOVQ blocks+56(FP), BX
	MOVQ R8, R14
	SHLQ $5, R14
	ADDQ R14, DI
	DECQ strips+64(FP)
	JNZ following
	STORE00
	STORE01
	STORE10
	STORE11
	MOVQ $32, R14

last:
	EIGHTROWS
	SUBQ $8, R14
	JNZ last
	RELEASE
	VZEROUPPER
	RET

	// A part of a block, of which each strip has sums of its own.
part:
	STORE00
	STORE01
	STORE10
	STORE11
	ZERO00
	ZERO01
	ZERO10
	ZERO11
	CMPB hold+81(FP), $0
	JNE held
	SCALES
	MOVQ $32, R14

scale:
	EIGHTROWS
	SUBQ $8, R14
	JNZ scale
	MOVQ R13, DI

held:
	ADDQ $4096, R11
	DECQ strips+64(FP)
	JNZ strip
	RELEASE
	VZEROUPPER
	RET
