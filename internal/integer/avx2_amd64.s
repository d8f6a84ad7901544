//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Register blocks of 6 rows and 16 columns: Y0 to Y11 are their sums, a row's beside each
// other. Y12 and Y13 are a quad of the panel, whose values are 0 to 255; Y14 and Y15 are
// free.

#define ROWS 6
#define WIDTH 64

DATA ones<>+0(SB)/8, $0x0001000100010001
DATA ones<>+8(SB)/8, $0x0001000100010001
DATA ones<>+16(SB)/8, $0x0001000100010001
DATA ones<>+24(SB)/8, $0x0001000100010001
GLOBL ones<>(SB), RODATA|NOPTR, $32

DATA nan<>+0(SB)/4, $0x7FC00000
GLOBL nan<>(SB), RODATA|NOPTR, $4

#define EACH(DO) \
	DO(0, Y0, Y1) \
	DO(1, Y2, Y3) \
	DO(2, Y4, Y5) \
	DO(3, Y6, Y7) \
	DO(4, Y8, Y9) \
	DO(5, Y10, Y11)

// Of a quad of a row of A each.
#define EACHOFA(DO, K) \
	DO(K, (4*K)(SI), Y0, Y1) \
	DO(K, (4*K)(SI)(R8*1), Y2, Y3) \
	DO(K, (4*K)(SI)(R8*2), Y4, Y5) \
	DO(K, (4*K)(R11), Y6, Y7) \
	DO(K, (4*K)(R11)(R8*1), Y8, Y9) \
	DO(K, (4*K)(R11)(R8*2), Y10, Y11)

#define LOADB(K) \
	VMOVDQU (128*K)(DI), Y12 \
	VMOVDQU (128*K+32)(DI), Y13

#define BEGINROW(row, Yd, Ye) \
	VPBROADCASTD (4*row)(R14)(R13*1), Yd \
	VMOVDQA Yd, Ye

#define SUBTRACT(row, Yd, Ye) \
	VSUBPS Y12, Yd, Yd \
	VSUBPS Y12, Ye, Ye

#define ADDPROW(row, Yd, Ye) \
	VADDPS (128*row)(R14), Yd, Yd \
	VADDPS (128*row+32)(R14), Ye, Ye

#define STOREPROW(row, Yd, Ye) \
	VMOVUPS Yd, (128*row)(R14) \
	VMOVUPS Ye, (128*row+32)(R14)

#define SCALEROW(row, Yd, Ye) \
	VBROADCASTSS (4*row)(R14)(R13*1), Y14 \
	VMULPS Y14, Yd, Yd \
	VMULPS Y14, Ye, Ye \
	VFMADD213PS (128*row)(DX), Y12, Yd \
	VFMADD213PS (128*row+32)(DX), Y13, Ye

#define CANONICALROW(row, Yd, Ye) \
	VCMPPS $3, Yd, Yd, Y13 \
	VBLENDVPS Y13, Y12, Yd, Yd \
	VCMPPS $3, Ye, Ye, Y14 \
	VBLENDVPS Y14, Y12, Ye, Ye

#define STORECROW(row, Yd, Ye) \
	VMOVUPS Yd, (128*row)(DX) \
	VMOVUPS Ye, (128*row+32)(DX)

#define STOREOUTROW(row, Yd, Ye) \
	VMOVUPS Yd, (R14) \
	VMOVUPS Ye, 32(R14) \
	ADDQ R11, R14

#define CLEARCROW(row, Yd, Ye) \
	VMOVUPS Y12, (128*row)(DX) \
	VMOVUPS Y12, (128*row+32)(DX)

#define CONSTANTS
#define ADDP EACH(ADDPROW)
#define STOREP EACH(STOREPROW)
#define SCALE \
	VMOVUPS (R12), Y12 \
	VMOVUPS 32(R12), Y13 \
	EACH(SCALEROW)
#define CANONICALS \
	VBROADCASTSS nan<>(SB), Y12 \
	EACH(CANONICALROW)
#define STOREC EACH(STORECROW)
#define STOREOUT EACH(STOREOUTROW)
#define CLEARC \
	VPXOR Y12, Y12, Y12 \
	EACH(CLEARCROW)

// Sums of two products in 16 bits stay there for a whole block.

#define CLEARROW(row, Yd, Ye) \
	VPXOR Yd, Yd, Yd \
	VPXOR Ye, Ye, Ye

#define ADDROW(K, A, Yd, Ye) \
	VPBROADCASTD A, Y14 \
	VPMADDUBSW Y14, Y12, Y15 \
	VPADDW Y15, Yd, Yd \
	VPMADDUBSW Y14, Y13, Y14 \
	VPADDW Y14, Ye, Ye

#define WIDENROW(row, Yd, Ye) \
	VPBROADCASTD (4*row)(R14)(R13*1), Y14 \
	VPMADDWD Y13, Yd, Yd \
	VPADDD Y14, Yd, Yd \
	VSUBPS Y12, Yd, Yd \
	VPMADDWD Y13, Ye, Ye \
	VPADDD Y14, Ye, Ye \
	VSUBPS Y12, Ye, Ye

#define BEGIN EACH(CLEARROW)
#define ONE(K) \
	LOADB(K) \
	EACHOFA(ADDROW, K)
#define TWO \
	ONE(0) \
	ONE(1)
#define SUM \
	VBROADCASTSS Task_Magic(AX), Y12 \
	VMOVDQU ones<>(SB), Y13 \
	EACH(WIDENROW)

// func addNarrowAVX2(t *Task)
TEXT ·addNarrowAVX2(SB), NOSPLIT, $16-8
#include "loops_amd64.h"
#undef BEGIN
#undef ONE
#undef TWO
#undef SUM

// The sums of two products of two quads each are added in 16 bits, and widened.

#define ADDWIDE(Yd) \
	VPMADDWD ones<>(SB), Y14, Y14 \
	VPADDD Y14, Yd, Yd

#define ADDPAIR(A0, A1, Yd) \
	VPBROADCASTD A0, Y14 \
	VPMADDUBSW Y14, Y12, Y14 \
	VPBROADCASTD A1, Y15 \
	VPMADDUBSW Y15, Y13, Y15 \
	VPADDW Y15, Y14, Y14 \
	ADDWIDE(Yd)

// The columns at an offset, for both quads.
#define PAIROFCOLUMNS(at, Ya, Yb, Yc, Yd, Ye, Yf) \
	VMOVDQU (at)(DI), Y12 \
	VMOVDQU (128+at)(DI), Y13 \
	ADDPAIR((SI), 4(SI), Ya) \
	ADDPAIR((SI)(R8*1), 4(SI)(R8*1), Yb) \
	ADDPAIR((SI)(R8*2), 4(SI)(R8*2), Yc) \
	ADDPAIR((R11), 4(R11), Yd) \
	ADDPAIR((R11)(R8*1), 4(R11)(R8*1), Ye) \
	ADDPAIR((R11)(R8*2), 4(R11)(R8*2), Yf)

#define ADDONEROW(K, A, Yd, Ye) \
	VPBROADCASTD A, Y15 \
	VPMADDUBSW Y15, Y12, Y14 \
	ADDWIDE(Yd) \
	VPMADDUBSW Y15, Y13, Y14 \
	ADDWIDE(Ye)

#define BEGIN EACH(BEGINROW)
#define ONE(K) \
	LOADB(K) \
	EACHOFA(ADDONEROW, K)
#define TWO \
	PAIROFCOLUMNS(0, Y0, Y2, Y4, Y6, Y8, Y10) \
	PAIROFCOLUMNS(32, Y1, Y3, Y5, Y7, Y9, Y11)
#define SUM \
	VBROADCASTSS Task_Magic(AX), Y12 \
	EACH(SUBTRACT)

// func addWideAVX2(t *Task)
TEXT ·addWideAVX2(SB), NOSPLIT, $16-8
#include "loops_amd64.h"
#undef ONE
#undef TWO

// With AVX-VNNI a quad's four products are added to the sum at once. The assembler has that
// of AVX-512 only; package asmtable compares the bytes.
#define DOT(m, n, d) BYTE $0xC4; BYTE $(0xE2 ^ (((d)&8)<<4) ^ (((m)&8)<<2)); BYTE $(0x7D ^ ((n)<<3)); BYTE $0x50; BYTE $(0xC0 | (((d)&7)<<3) | ((m)&7)) // {vex} vpdpbusd ymmd,ymmn,ymmm

#define DOTROW(A, d) \
	VPBROADCASTD A, Y14 \
	DOT(14, 12, d) \
	DOT(14, 13, d+1)

#define ONE(K) \
	LOADB(K) \
	DOTROW((4*K)(SI), 0) \
	DOTROW((4*K)(SI)(R8*1), 2) \
	DOTROW((4*K)(SI)(R8*2), 4) \
	DOTROW((4*K)(R11), 6) \
	DOTROW((4*K)(R11)(R8*1), 8) \
	DOTROW((4*K)(R11)(R8*2), 10)
#define TWO \
	ONE(0) \
	ONE(1)

// func multiplyAVXVNNI(t *Task)
TEXT ·multiplyAVXVNNI(SB), NOSPLIT, $16-8
#include "loops_amd64.h"
