//go:build !purego

#include "go_asm.h"
#include "textflag.h"

#include "vectors_arm64.h"

// Of a register block of 4 rows, each of two vectors, V0 to V7 are e, V8 to V15 are o and V16
// to V23 are p. V24 to V27 are up to four k of A, whose values are multiplied from where
// they are, and V28 to V31 two k of B.

#define EVEN(OP, lane) \
	OP(24, lane, 28, 0) \
	OP(24, lane, 29, 1) \
	OP(25, lane, 28, 2) \
	OP(25, lane, 29, 3) \
	OP(26, lane, 28, 4) \
	OP(26, lane, 29, 5) \
	OP(27, lane, 28, 6) \
	OP(27, lane, 29, 7)

#define ODD(OP, lane) \
	OP(24, lane, 30, 8) \
	OP(24, lane, 31, 9) \
	OP(25, lane, 30, 10) \
	OP(25, lane, 31, 11) \
	OP(26, lane, 30, 12) \
	OP(26, lane, 31, 13) \
	OP(27, lane, 30, 14) \
	OP(27, lane, 31, 15)

// Loads at negative offsets that write no address back are a single operation on every
// processor; others are two or three on some.
#define LOADB(at, Fa, Fb) \
	FMOVQ (at)(panel), Fa \
	FMOVQ (at+16)(panel), Fb

#define PAIR(OP) \
	FMOVD.P 8(a0), F24 \
	FMOVD.P 8(a1), F25 \
	FMOVD.P 8(a2), F26 \
	FMOVD.P 8(a3), F27 \
	ADD $256, panel \
	LOADB(-256, F28, F29) \
	LOADB(-128, F30, F31) \
	EVEN(OP, 0) \
	ODD(OP, 1)

// Two pairs of k.
#define PAIRS(OP, at) \
	FMOVQ at(a0), F24 \
	FMOVQ at(a1), F25 \
	FMOVQ at(a2), F26 \
	FMOVQ at(a3), F27 \
	ADD $256, panel \
	LOADB(-256, F28, F29) \
	LOADB(-128, F30, F31) \
	EVEN(OP, 0) \
	ADD $256, panel \
	LOADB(-256, F28, F29) \
	ODD(OP, 1) \
	LOADB(-128, F30, F31) \
	EVEN(FMLALANE, 2) \
	ODD(FMLALANE, 3)

// Eight pairs.
#define HALF(OP) \
	ADD $64, a0 \
	ADD $64, a1 \
	ADD $64, a2 \
	ADD $64, a3 \
	PAIRS(OP, -64) \
	PAIRS(FMLALANE, -48) \
	PAIRS(FMLALANE, -32) \
	PAIRS(FMLALANE, -16)

// func multiplyNEON(t *Task)
TEXT ·multiplyNEON(SB), NOSPLIT, $0-8
	MOVD t+0(FP), task
	MOVD Task_A(task), aBlock
	MOVD Task_StrideA(task), aStride
	MOVD Task_C(task), cBlock
	MOVD Task_ScaleA(task), scaleA
	MOVD Task_RowBlocks(task), rowBlocks
	MOVD Task_Flags(task), flags

rows:
	MOVD aBlock, a0
	ADD aStride, a0, a1
	ADD aStride, a1, a2
	ADD aStride, a2, a3
	ADD aStride, a3, aBlock
	MOVD Task_B(task), panel
	MOVD Task_ScaleB(task), scaleB
	MOVD Task_Blocks(task), blocks

block:
	CLEARP
	TBNZ $0, flags, begin // First
	MOVD Task_P(task), row
	MOVD Task_C(task), tmp
	SUB tmp, row
	ADD cBlock, row
	MOVD Task_StrideC(task), stride
	MOVE4(LOAD, V16, V17, V18, V19, V20, V21, V22, V23)

begin:
	MOVD Task_Pairs(task), left

chunk:
	MOVD $16, pairs
	CMP pairs, left
	CSEL LT, left, pairs, pairs
	SUB pairs, left
	TST $7, pairs
	BEQ halves

	PAIR(FMULLANE)
	SUBS $1, pairs
	BEQ fold

pair:
	PAIR(FMLALANE)
	SUBS $1, pairs
	BNE pair
	JMP fold

halves:
	HALF(FMULLANE)
	SUBS $8, pairs
	BEQ fold
	HALF(FMLALANE)

fold:
	FOLD
	CBNZ left, chunk

	TBZ $1, flags, suspend // Last
	MOVD cBlock, row
	MOVD Task_StrideC(task), stride
	MOVE4(LOAD, V0, V1, V2, V3, V4, V5, V6, V7)

	// c = fma(p*sa, sb, c)
	MOVD scaleA, row
	MOVD Task_StrideScaleA(task), stride
	SCALE
	TBZ $2, flags, store // Canonical
	CANONICAL

store:
	MOVD cBlock, row
	MOVD Task_StrideC(task), stride
	MOVE4(STORE, V0, V1, V2, V3, V4, V5, V6, V7)

next:
	ADD $4, scaleA
	ADD $(4*const_PanelWidth), scaleB
	SUB $1, blocks
	CBNZ blocks, block

	// The next register block.
	MOVD Task_StrideC(task), tmp
	ADD tmp<<2, cBlock
	MOVD Task_StrideScaleA(task), tmp
	ADD tmp<<2, scaleA
	MOVD Task_Blocks(task), tmp
	SUB tmp<<2, scaleA
	SUB $1, rowBlocks
	CBNZ rowBlocks, rows
	RET

suspend:
	MOVD Task_P(task), row
	MOVD Task_C(task), tmp
	SUB tmp, row
	ADD cBlock, row
	MOVD Task_StrideC(task), stride
	MOVE4(STORE, V16, V17, V18, V19, V20, V21, V22, V23)
	JMP next
