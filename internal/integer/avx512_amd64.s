//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Register blocks of 8 rows and 32 columns, without VNNI: Z0 to Z15 are their sums, a row's
// beside each other. Z16 to Z19 are quads of the panel, whose values are 0 to 255; Z20 and
// Z21 are free, Z22 is Magic and Z23 ones of 16 bits.

#define ROWS 8
#define WIDTH 128

DATA ones<>+0(SB)/4, $0x00010001
GLOBL ones<>(SB), RODATA|NOPTR, $4

DATA nan<>+0(SB)/4, $0x7FC00000
GLOBL nan<>(SB), RODATA|NOPTR, $4

#define EACH(DO) \
	DO(0, Z0, Z1) \
	DO(1, Z2, Z3) \
	DO(2, Z4, Z5) \
	DO(3, Z6, Z7) \
	DO(4, Z8, Z9) \
	DO(5, Z10, Z11) \
	DO(6, Z12, Z13) \
	DO(7, Z14, Z15)

// Of a quad of a row of A each.
#define EACHOFA(DO, K) \
	DO((4*K)(SI), Z0, Z1) \
	DO((4*K)(SI)(R8*1), Z2, Z3) \
	DO((4*K)(SI)(R8*2), Z4, Z5) \
	DO((4*K)(R11), Z6, Z7) \
	DO((4*K)(R11)(R8*1), Z8, Z9) \
	DO((4*K)(R11)(R8*2), Z10, Z11) \
	DO((4*K)(SI)(R10*2), Z12, Z13) \
	DO((4*K)(R11)(R8*4), Z14, Z15)

#define LOADB(K) \
	VMOVDQU32 (128*K)(DI), Z16 \
	VMOVDQU32 (128*K+64)(DI), Z17

#define BEGINROW(row, Zd, Ze) \
	VPBROADCASTD (4*row)(R14)(R13*1), Zd \
	VMOVDQA32 Zd, Ze

#define SUBTRACT(row, Zd, Ze) \
	VSUBPS Z22, Zd, Zd \
	VSUBPS Z22, Ze, Ze

#define ADDPROW(row, Zd, Ze) \
	VADDPS (128*row)(R14), Zd, Zd \
	VADDPS (128*row+64)(R14), Ze, Ze

#define STOREPROW(row, Zd, Ze) \
	VMOVUPS Zd, (128*row)(R14) \
	VMOVUPS Ze, (128*row+64)(R14)

#define SCALEROW(row, Zd, Ze) \
	VBROADCASTSS (4*row)(R14)(R13*1), Z20 \
	VMULPS Z20, Zd, Zd \
	VMULPS Z20, Ze, Ze \
	VFMADD213PS (128*row)(DX), Z16, Zd \
	VFMADD213PS (128*row+64)(DX), Z17, Ze

#define CANONICALROW(row, Zd, Ze) \
	VCMPPS $3, Zd, Zd, K1 \
	VMOVUPS Z16, K1, Zd \
	VCMPPS $3, Ze, Ze, K2 \
	VMOVUPS Z16, K2, Ze

#define STORECROW(row, Zd, Ze) \
	VMOVUPS Zd, (128*row)(DX) \
	VMOVUPS Ze, (128*row+64)(DX)

#define STOREOUTROW(row, Zd, Ze) \
	VMOVUPS Zd, (R14) \
	VMOVUPS Ze, 64(R14) \
	ADDQ R11, R14

#define CLEARCROW(row, Zd, Ze) \
	VMOVUPS Z16, (128*row)(DX) \
	VMOVUPS Z16, (128*row+64)(DX)

#define CONSTANTS \
	VBROADCASTSS Task_Magic(AX), Z22 \
	VPBROADCASTD ones<>(SB), Z23
#define ADDP EACH(ADDPROW)
#define STOREP EACH(STOREPROW)
#define SCALE \
	VMOVUPS (R12), Z16 \
	VMOVUPS 64(R12), Z17 \
	EACH(SCALEROW)
#define CANONICALS \
	VBROADCASTSS nan<>(SB), Z16 \
	EACH(CANONICALROW)
#define STOREC EACH(STORECROW)
#define STOREOUT EACH(STOREOUTROW)
#define CLEARC \
	VPXORD Z16, Z16, Z16 \
	EACH(CLEARCROW)

// Sums of two products in 16 bits stay there for a whole block.

#define CLEARROW(row, Zd, Ze) \
	VPXORD Zd, Zd, Zd \
	VPXORD Ze, Ze, Ze

#define ADDROW(A, Zd, Ze) \
	VPBROADCASTD A, Z20 \
	VPMADDUBSW Z20, Z16, Z21 \
	VPADDW Z21, Zd, Zd \
	VPMADDUBSW Z20, Z17, Z20 \
	VPADDW Z20, Ze, Ze

#define WIDENROW(row, Zd, Ze) \
	VPBROADCASTD (4*row)(R14)(R13*1), Z20 \
	VPMADDWD Z23, Zd, Zd \
	VPADDD Z20, Zd, Zd \
	VSUBPS Z22, Zd, Zd \
	VPMADDWD Z23, Ze, Ze \
	VPADDD Z20, Ze, Ze \
	VSUBPS Z22, Ze, Ze

#define BEGIN EACH(CLEARROW)
#define ONE(K) \
	LOADB(K) \
	EACHOFA(ADDROW, K)
#define TWO \
	ONE(0) \
	ONE(1)
#define SUM EACH(WIDENROW)

// func addNarrowAVX512(t *Task)
TEXT ·addNarrowAVX512(SB), NOSPLIT, $16-8
#include "loops_amd64.h"
#undef BEGIN
#undef ONE
#undef TWO
#undef SUM

// The sums of two products of two quads each are added in 16 bits, and widened.

#define ADDWIDE(Zs, Zd) \
	VPMADDWD Z23, Zs, Zs \
	VPADDD Zs, Zd, Zd

#define ADDPAIR(A0, A1, Zd, Ze) \
	VPBROADCASTD A0, Z20 \
	VPBROADCASTD A1, Z21 \
	VPMADDUBSW Z20, Z16, Z24 \
	VPMADDUBSW Z20, Z17, Z25 \
	VPMADDUBSW Z21, Z18, Z26 \
	VPMADDUBSW Z21, Z19, Z27 \
	VPADDW Z26, Z24, Z24 \
	VPADDW Z27, Z25, Z25 \
	ADDWIDE(Z24, Zd) \
	ADDWIDE(Z25, Ze)

#define ADDONEROW(A, Zd, Ze) \
	VPBROADCASTD A, Z20 \
	VPMADDUBSW Z20, Z16, Z24 \
	ADDWIDE(Z24, Zd) \
	VPMADDUBSW Z20, Z17, Z25 \
	ADDWIDE(Z25, Ze)

#define BEGIN EACH(BEGINROW)
#define ONE(K) \
	LOADB(K) \
	EACHOFA(ADDONEROW, K)
#define TWO \
	LOADB(0) \
	VMOVDQU32 128(DI), Z18 \
	VMOVDQU32 192(DI), Z19 \
	ADDPAIR((SI), 4(SI), Z0, Z1) \
	ADDPAIR((SI)(R8*1), 4(SI)(R8*1), Z2, Z3) \
	ADDPAIR((SI)(R8*2), 4(SI)(R8*2), Z4, Z5) \
	ADDPAIR((R11), 4(R11), Z6, Z7) \
	ADDPAIR((R11)(R8*1), 4(R11)(R8*1), Z8, Z9) \
	ADDPAIR((R11)(R8*2), 4(R11)(R8*2), Z10, Z11) \
	ADDPAIR((SI)(R10*2), 4(SI)(R10*2), Z12, Z13) \
	ADDPAIR((R11)(R8*4), 4(R11)(R8*4), Z14, Z15)
#define SUM EACH(SUBTRACT)

// func addWideAVX512(t *Task)
TEXT ·addWideAVX512(SB), NOSPLIT, $16-8
#include "loops_amd64.h"
