//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// TDPBSSD adds, to each of 16 x 16 integers of a tile, the products of up to 64 signed bytes
// of a row of A with as many of a column: of 16 quads.
//
// Register blocks of 16 rows and 16 columns: Z0 to Z15 are C, from the first block of K to
// the last. The sums of a block go from their tile to memory, and from there row by row to
// C, while the products of the next block are added up: blocks take two sets of tiles, and
// two places in memory, by turns. Z30 is Magic, Z31 a block's scales of the columns; Z16 to
// Z23 are free.

// The assembler has no AMX. The test of package asmtable compares each row of bytes with the
// instruction beside it; who renames a register must look here too.
#define CONFIGURE BYTE $0xC4; BYTE $0xC2; BYTE $0x78; BYTE $0x49; BYTE $0x03 // ldtilecfg [r11]
#define RELEASE BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0xC0 // tilerelease
#define CLEAREVEN BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x49; BYTE $0xC0 // tilezero tmm0
#define LOADEVENA BYTE $0xC4; BYTE $0xA2; BYTE $0x7B; BYTE $0x4B; BYTE $0x14; BYTE $0x06 // tileloadd tmm2,[rsi+r8*1]
#define LOADEVENB BYTE $0xC4; BYTE $0xA2; BYTE $0x7B; BYTE $0x4B; BYTE $0x1C; BYTE $0x17 // tileloadd tmm3,[rdi+r10*1]
#define ADDEVEN BYTE $0xC4; BYTE $0xE2; BYTE $0x63; BYTE $0x5E; BYTE $0xC2 // tdpbssd tmm0,tmm2,tmm3
#define STOREEVEN BYTE $0xC4; BYTE $0x82; BYTE $0x7A; BYTE $0x4B; BYTE $0x04; BYTE $0x23 // tilestored [r11+r12*1],tmm0
#define CLEARODD BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x49; BYTE $0xC8 // tilezero tmm1
#define LOADODDA BYTE $0xC4; BYTE $0xA2; BYTE $0x7B; BYTE $0x4B; BYTE $0x24; BYTE $0x06 // tileloadd tmm4,[rsi+r8*1]
#define LOADODDB BYTE $0xC4; BYTE $0xA2; BYTE $0x7B; BYTE $0x4B; BYTE $0x2C; BYTE $0x17 // tileloadd tmm5,[rdi+r10*1]
#define ADDODD BYTE $0xC4; BYTE $0xE2; BYTE $0x53; BYTE $0x5E; BYTE $0xCC // tdpbssd tmm1,tmm4,tmm5
#define STOREODD BYTE $0xC4; BYTE $0x82; BYTE $0x7A; BYTE $0x4B; BYTE $0x8C; BYTE $0x23; BYTE $0x00; BYTE $0x04; BYTE $0x00; BYTE $0x00 // tilestored [r11+r12*1+0x400],tmm1

#define EACH(DO, at) \
	DO(0, at, Z0, Z16) \
	DO(1, at, Z1, Z17) \
	DO(2, at, Z2, Z18) \
	DO(3, at, Z3, Z19) \
	DO(4, at, Z4, Z20) \
	DO(5, at, Z5, Z21) \
	DO(6, at, Z6, Z22) \
	DO(7, at, Z7, Z23) \
	DO(8, at, Z8, Z16) \
	DO(9, at, Z9, Z17) \
	DO(10, at, Z10, Z18) \
	DO(11, at, Z11, Z19) \
	DO(12, at, Z12, Z20) \
	DO(13, at, Z13, Z21) \
	DO(14, at, Z14, Z22) \
	DO(15, at, Z15, Z23)

#define LOADC(row, at, Zc, Zp) VMOVUPS (128*row)(DX), Zc
#define STOREC(row, at, Zc, Zp) VMOVUPS Zc, (128*row)(DX)
#define CLEARC(row, at, Zc, Zp) VPXORD Zc, Zc, Zc

#define P(row, at, Zp) \
	VPADDD (64*row+at)(R11), Z30, Zp \
	VSUBPS Z30, Zp, Zp

// c = fma(p*sa, sb, c)
#define SCALE(row, Zc, Zp) \
	VMULPS.BCST (4*row)(R13), Zp, Zp \
	VFMADD231PS Z31, Zp, Zc

#define WHOLE(row, at, Zc, Zp) \
	P(row, at, Zp) \
	SCALE(row, Zc, Zp)

// The sums at an offset, of the next block.
#define BLOCK(at) \
	VMOVUPS (R9), Z31 \
	EACH(WHOLE, at) \
	ADDQ Task_StrideScaleA(AX), R13 \
	ADDQ $(4*const_PanelWidth), R9

// Of part of a block, with P at R14.
#define FIRSTPART(row, at, Zc, Zp) \
	P(row, at, Zp) \
	VMOVUPS Zp, (128*row)(R14)

#define NEXTPART(row, at, Zc, Zp) \
	P(row, at, Zp) \
	VADDPS (128*row)(R14), Zp, Zp \
	VMOVUPS Zp, (128*row)(R14)

#define LASTPART(row, at, Zc, Zp) \
	P(row, at, Zp) \
	VADDPS (128*row)(R14), Zp, Zp \
	SCALE(row, Zc, Zp)

#define CANONICAL(row, at, Zc, Zp) \
	VCMPPS $3, Zc, Zc, K1 \
	VMOVUPS Z31, K1, Zc

#define STOREOUT(row, at, Zc, Zp) \
	VMOVUPS Zc, (R14) \
	ADDQ CX, R14

DATA nan<>+0(SB)/4, $0x7FC00000
GLOBL nan<>(SB), RODATA|NOPTR, $4

// func multiplyTiles(t *Task, quads int)
//
//	AX   the task                   SI       A here, rows R8 apart
//	BX   blocks left                DI       the panel here, quads R10 apart
//	CX   tiles left                 R11      the sums, rows R12 apart
//	R13  scales of A, of the block  R9, R14  scales of the columns; P, or the output
TEXT ·multiplyTiles(SB), 0, $2176-16
	MOVQ t+0(FP), AX
	LEAQ buffer-2168(SP), R11
	ADDQ $63, R11
	ANDQ $~63, R11

	// Palette 1 and the shapes of tiles.
	VPXORD Z0, Z0, Z0
	VMOVDQU32 Z0, (R11)
	MOVB $1, (R11)
	MOVQ quads+8(FP), CX
	MOVW $64, 16(R11)
	MOVW $64, 18(R11)
	MOVW $64, 22(R11)
	MOVW $64, 26(R11)
	MOVB $16, 48(R11)
	MOVB $16, 49(R11)
	MOVB $16, 50(R11)
	MOVB CX, 51(R11)
	MOVB $16, 52(R11)
	MOVB CX, 53(R11)
	SHLQ $2, CX
	MOVW CX, 20(R11)
	MOVW CX, 24(R11)
	CONFIGURE
	MOVQ CX, stepA-40(SP)
	SHLQ $5, CX
	MOVQ CX, stepB-48(SP)
	MOVQ Task_Quads(AX), AX
	XORL DX, DX
	DIVQ quads+8(FP)
	MOVQ AX, tiles-56(SP)
	MOVQ t+0(FP), AX

	MOVQ Task_StrideA(AX), R8
	MOVQ $128, R10
	MOVQ $64, R12
	VBROADCASTSS Task_Magic(AX), Z30
	MOVQ Task_C(AX), DX
	MOVQ Task_RowBlocks(AX), CX
	MOVQ CX, left-16(SP)
	MOVQ Task_ScaleA(AX), R13
	MOVQ Task_A(AX), SI
	MOVQ Task_Out(AX), CX
	MOVQ CX, out-24(SP)

rows:
	MOVQ SI, a-32(SP)
	XORL R9, R9

columns:
	MOVQ R9, column-8(SP)
	MOVQ Task_B(AX), DI
	ADDQ R9, DI
	ADDQ Task_ScaleB(AX), R9
	MOVQ Task_Blocks(AX), BX
	TESTQ $const_Zero, Task_Flags(AX)
	JNZ fresh
	EACH(LOADC, 0)
	JMP first

fresh:
	EACH(CLEARC, 0)

first:
	MOVQ tiles-56(SP), CX
	CLEAREVEN

firstTile:
	LOADEVENB
	LOADEVENA
	ADDEVEN
	ADDQ stepA-40(SP), SI
	ADDQ stepB-48(SP), DI
	DECQ CX
	JNZ firstTile
	STOREEVEN
	DECQ BX
	JZ lastEven

odd:
	MOVQ tiles-56(SP), CX
	CLEARODD

oddTile:
	LOADODDB
	LOADODDA
	ADDODD
	ADDQ stepA-40(SP), SI
	ADDQ stepB-48(SP), DI
	DECQ CX
	JNZ oddTile
	BLOCK(0)
	STOREODD
	DECQ BX
	JZ lastOdd

	MOVQ tiles-56(SP), CX
	CLEAREVEN

evenTile:
	LOADEVENB
	LOADEVENA
	ADDEVEN
	ADDQ stepA-40(SP), SI
	ADDQ stepB-48(SP), DI
	DECQ CX
	JNZ evenTile
	BLOCK(1024)
	STOREEVEN
	DECQ BX
	JNZ odd

lastEven:
	MOVQ Task_Flags(AX), CX
	ANDQ $(const_First|const_Last), CX
	CMPQ CX, $(const_First|const_Last)
	JNE part
	BLOCK(0)
	JMP ended

lastOdd:
	BLOCK(1024)

ended:
	TESTQ $const_Canonical, Task_Flags(AX)
	JZ store
	VBROADCASTSS nan<>(SB), Z31
	EACH(CANONICAL, 0)
	CMPQ Task_Out(AX), $0
	JEQ store
	MOVQ out-24(SP), R14
	MOVQ Task_StrideOut(AX), CX
	ADDQ column-8(SP), R14
	EACH(STOREOUT, 0)
	JMP done

store:
	EACH(STOREC, 0)

done:
	// The other columns.
	MOVQ Task_Blocks(AX), CX
	IMULQ Task_StrideScaleA(AX), CX
	SUBQ CX, R13
	MOVQ a-32(SP), SI
	MOVQ column-8(SP), R9
	ADDQ $64, DX
	ADDQ $64, R9
	CMPQ R9, $128
	JLT columns

	// The next register block.
	ADDQ $64, R13
	ADDQ $(2048-128), DX
	MOVQ R8, CX
	SHLQ $4, CX
	ADDQ CX, SI
	MOVQ Task_StrideOut(AX), CX
	SHLQ $4, CX
	ADDQ CX, out-24(SP)
	DECQ left-16(SP)
	JNZ rows
	RELEASE
	VZEROUPPER
	RET

	// A block that begins, goes on or ends in P, which is laid out as C.
part:
	MOVQ Task_P(AX), R14
	SUBQ Task_C(AX), R14
	ADDQ DX, R14
	TESTQ $const_First, CX
	JNZ firstPart
	TESTQ $const_Last, CX
	JNZ lastPart
	EACH(NEXTPART, 0)
	JMP partDone

firstPart:
	EACH(FIRSTPART, 0)

partDone:
	ADDQ Task_StrideScaleA(AX), R13
	JMP done

lastPart:
	VMOVUPS (R9), Z31
	EACH(LASTPART, 0)
	ADDQ Task_StrideScaleA(AX), R13
	JMP ended
