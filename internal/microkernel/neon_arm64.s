//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// The assembler lacks these instructions. The test of package asmtable compares each
// WORD with the text beside it, for all registers.
#define FADD(m, n, d) WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d)) // fadd vd.4s, vn.4s, vm.4s
#define FMUL(m, n, d) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d)) // fmul vd.4s, vn.4s, vm.4s
#define FMULLANE(m, lane, n, d) WORD $(0x4F809000 | (lane&1)<<21 | (lane>>1)<<11 | (m)<<16 | (n)<<5 | (d)) // fmul vd.4s, vn.4s, vm.s[lane]
#define FMLALANE(m, lane, n, d) WORD $(0x4F801000 | (lane&1)<<21 | (lane>>1)<<11 | (m)<<16 | (n)<<5 | (d)) // fmla vd.4s, vn.4s, vm.s[lane]
#define CMHI(m, n, d) WORD $(0x6EA03400 | (m)<<16 | (n)<<5 | (d)) // cmhi vd.4s, vn.4s, vm.4s

#define task R0
#define aBlock R1 // A's rows
#define aStride R2
#define cBlock R3
#define scaleA R4 // of this block
#define rowBlocks R5  // left
#define a0 R6     // here, in each row
#define a1 R7
#define a2 R8
#define a3 R9
#define panel R10 // B here
#define scaleB R11
#define blocks R12 // left
#define pairs R13  // left in the chunk
#define left R14   // left in the block
#define flags R15
#define row R19
#define stride R20
#define tmp R21

// Of a register block of 4 rows, each of two vectors, V0 to V7 are e, V8 to V15 are o and V16
// to V23 are p. V24 to V27 are up to four k of A, whose values are multiplied from where
// they are, and V28 to V31 two k of B.
//
// A chunk's first products are stored, not added to +0. That can only leave a -0 in e
// or o, and p, which is never -0, is the same.

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

#define CLEAR(V) VEOR V.B16, V.B16, V.B16

// The rows of V from row on, stride apart.
#define MOVE4(MOVE, Va, Vb, Vc, Vd, Ve, Vf, Vg, Vh) \
	MOVE(Va, Vb) \
	ADD stride, row \
	MOVE(Vc, Vd) \
	ADD stride, row \
	MOVE(Ve, Vf) \
	ADD stride, row \
	MOVE(Vg, Vh)

#define LOAD(Va, Vb) VLD1 (row), [Va.S4, Vb.S4]
#define STORE(Va, Vb) VST1 [Va.S4, Vb.S4], (row)

// V24 = a row's scale of A.
#define SCALEA \
	VLD1R (row), [V24.S4] \
	ADD stride, row

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
	CLEAR(V16)
	CLEAR(V17)
	CLEAR(V18)
	CLEAR(V19)
	CLEAR(V20)
	CLEAR(V21)
	CLEAR(V22)
	CLEAR(V23)
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

fold: // p = p + (e + o)
	FADD(8, 0, 0)
	FADD(9, 1, 1)
	FADD(10, 2, 2)
	FADD(11, 3, 3)
	FADD(12, 4, 4)
	FADD(13, 5, 5)
	FADD(14, 6, 6)
	FADD(15, 7, 7)
	FADD(0, 16, 16)
	FADD(1, 17, 17)
	FADD(2, 18, 18)
	FADD(3, 19, 19)
	FADD(4, 20, 20)
	FADD(5, 21, 21)
	FADD(6, 22, 22)
	FADD(7, 23, 23)
	CBNZ left, chunk

	TBZ $1, flags, suspend // Last
	MOVD cBlock, row
	MOVD Task_StrideC(task), stride
	MOVE4(LOAD, V0, V1, V2, V3, V4, V5, V6, V7)

	// c = fma(p*sa, sb, c)
	MOVD scaleA, row
	MOVD Task_StrideScaleA(task), stride
	SCALEA
	FMUL(24, 16, 16)
	FMUL(24, 17, 17)
	SCALEA
	FMUL(24, 18, 18)
	FMUL(24, 19, 19)
	SCALEA
	FMUL(24, 20, 20)
	FMUL(24, 21, 21)
	SCALEA
	FMUL(24, 22, 22)
	FMUL(24, 23, 23)
	VLD1 (scaleB), [V24.S4, V25.S4]
	VFMLA V24.S4, V16.S4, V0.S4
	VFMLA V25.S4, V17.S4, V1.S4
	VFMLA V24.S4, V18.S4, V2.S4
	VFMLA V25.S4, V19.S4, V3.S4
	VFMLA V24.S4, V20.S4, V4.S4
	VFMLA V25.S4, V21.S4, V5.S4
	VFMLA V24.S4, V22.S4, V6.S4
	VFMLA V25.S4, V23.S4, V7.S4
	TBZ $2, flags, store // Canonical
	MOVW $0x7FFFFFFF, tmp
	VDUP tmp, V28.S4
	MOVW $0x7F800000, tmp
	VDUP tmp, V27.S4
	MOVW $0x7FC00000, tmp
	VDUP tmp, V29.S4
	VAND V28.B16, V0.B16, V26.B16
	CMHI(27, 26, 26)
	VBIT V26.B16, V29.B16, V0.B16
	VAND V28.B16, V1.B16, V26.B16
	CMHI(27, 26, 26)
	VBIT V26.B16, V29.B16, V1.B16
	VAND V28.B16, V2.B16, V26.B16
	CMHI(27, 26, 26)
	VBIT V26.B16, V29.B16, V2.B16
	VAND V28.B16, V3.B16, V26.B16
	CMHI(27, 26, 26)
	VBIT V26.B16, V29.B16, V3.B16
	VAND V28.B16, V4.B16, V26.B16
	CMHI(27, 26, 26)
	VBIT V26.B16, V29.B16, V4.B16
	VAND V28.B16, V5.B16, V26.B16
	CMHI(27, 26, 26)
	VBIT V26.B16, V29.B16, V5.B16
	VAND V28.B16, V6.B16, V26.B16
	CMHI(27, 26, 26)
	VBIT V26.B16, V29.B16, V6.B16
	VAND V28.B16, V7.B16, V26.B16
	CMHI(27, 26, 26)
	VBIT V26.B16, V29.B16, V7.B16

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
