//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// SDOT adds, in each lane of 32 bits, the products of four signed bytes of the panel with
// four of A: a lane is a column, the four are a quad.
//
// Of a register block of 4 rows and 16 columns V0 to V15 are the sums, four of a row after
// the other. V16 to V19 and V20 to V23 are quads of the panel, V24 to V27 up to four quads
// of the rows of A, which are multiplied from where they are.

// The assembler lacks these instructions. The test of package asmtable compares each
// WORD with the text beside it, for all registers.
#define SDOT(m, lane, n, d) WORD $(0x4F80E000 | ((lane)&1)<<21 | ((lane)>>1)<<11 | (m)<<16 | (n)<<5 | (d)) // sdot vd.4s, vn.16b, vm.4b[lane]
#define FADD(m, n, d) WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d)) // fadd vd.4s, vn.4s, vm.4s
#define FSUB(m, n, d) WORD $(0x4EA0D400 | (m)<<16 | (n)<<5 | (d)) // fsub vd.4s, vn.4s, vm.4s
#define FMULLANE(m, lane, n, d) WORD $(0x4F809000 | ((lane)&1)<<21 | ((lane)>>1)<<11 | (m)<<16 | (n)<<5 | (d)) // fmul vd.4s, vn.4s, vm.s[lane]
#define FCMEQ(m, n, d) WORD $(0x4E20E400 | (m)<<16 | (n)<<5 | (d)) // fcmeq vd.4s, vn.4s, vm.4s

#define task R0
#define aBlock R1 // A's rows
#define aStride R2
#define c R3
#define start R4 // of this block
#define scaleA R5
#define scaleB R6
#define scaleStride R7
#define rowBlocks R8 // left
#define a0 R9        // here, in each row
#define a1 R10
#define a2 R11
#define a3 R12
#define panel R13  // B here
#define blocks R14 // left
#define quads R15  // left
#define flags R16
#define column R17 // in bytes of C
#define row R19
#define tmp R20
#define out R21 // where results go in place of C
#define stride R22

// Four vectors of a row.
#define ALIKE(V, Va, Vb, Vc) \
	VLD1R.P 4(row), [V.S4] \
	VORR V.B16, V.B16, Va.B16 \
	VORR V.B16, V.B16, Vb.B16 \
	VORR V.B16, V.B16, Vc.B16

#define DOT4(a, lane, b, d) \
	SDOT(a, lane, b, d) \
	SDOT(a, lane, b+1, d+1) \
	SDOT(a, lane, b+2, d+2) \
	SDOT(a, lane, b+3, d+3)

// Loads at negative offsets that write no address back are a single operation on every
// processor; others are two or three on some.
#define QUAD(lane, b, Fa, Fb, Fc, Fd) \
	ADD $128, panel \
	FMOVQ -128(panel), Fa \
	FMOVQ -112(panel), Fb \
	FMOVQ -96(panel), Fc \
	FMOVQ -80(panel), Fd \
	DOT4(24, lane, b, 0) \
	DOT4(25, lane, b, 4) \
	DOT4(26, lane, b, 8) \
	DOT4(27, lane, b, 12)

#define STEP(n) \
	ADD $n, a0 \
	ADD $n, a1 \
	ADD $n, a2 \
	ADD $n, a3

#define LESS4(d) \
	FSUB(31, d, d) \
	FSUB(31, d+1, d+1) \
	FSUB(31, d+2, d+2) \
	FSUB(31, d+3, d+3)

#define MORE4(d) \
	VLD1 (row), [V16.S4, V17.S4, V18.S4, V19.S4] \
	ADD $128, row \
	FADD(16, d, d) \
	FADD(17, d+1, d+1) \
	FADD(18, d+2, d+2) \
	FADD(19, d+3, d+3)

// c = fma(p*sa, sb, c) of a row, with its sa in an element of V24 and sb in V16 to V19.
#define SCALE4(lane, d, Va, Vb, Vc, Vd) \
	FMULLANE(24, lane, d, 28) \
	FMULLANE(24, lane, d+1, 29) \
	FMULLANE(24, lane, d+2, 30) \
	FMULLANE(24, lane, d+3, 31) \
	VLD1 (row), [Va.S4, Vb.S4, Vc.S4, Vd.S4] \
	ADD $128, row \
	VFMLA V28.S4, V16.S4, Va.S4 \
	VFMLA V29.S4, V17.S4, Vb.S4 \
	VFMLA V30.S4, V18.S4, Vc.S4 \
	VFMLA V31.S4, V19.S4, Vd.S4

#define STORE4(Va, Vb, Vc, Vd) \
	VST1 [Va.S4, Vb.S4, Vc.S4, Vd.S4], (row) \
	ADD stride, row

#define STORE \
	STORE4(V0, V1, V2, V3) \
	STORE4(V4, V5, V6, V7) \
	STORE4(V8, V9, V10, V11) \
	STORE4(V12, V13, V14, V15)

// The canonical NaN, which V24 is, for every NaN.
#define NAN(V, n) \
	FCMEQ(n, n, 25) \
	VBIF V25.B16, V24.B16, V.B16

// func multiplyDotProd(t *Task)
TEXT ·multiplyDotProd(SB), NOSPLIT, $0-8
	MOVD t+0(FP), task
	MOVD Task_StrideA(task), aStride
	MOVD Task_StrideScaleA(task), scaleStride
	MOVD Task_Flags(task), flags
	MOVD ZR, column

columns:
	MOVD Task_A(task), aBlock
	MOVD Task_C(task), c
	ADD column, c
	MOVD Task_Out(task), out
	ADD column, out
	MOVD Task_Start(task), start
	MOVD Task_ScaleA(task), scaleA
	MOVD Task_RowBlocks(task), rowBlocks

rows:
	MOVD aBlock, a0
	ADD aStride, a0, a1
	ADD aStride, a1, a2
	ADD aStride, a2, a3
	ADD aStride, a3, aBlock
	MOVD Task_B(task), panel
	ADD column, panel
	MOVD Task_ScaleB(task), scaleB
	ADD column, scaleB
	MOVD Task_Blocks(task), blocks
	TBZ $3, flags, block // Zero
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	MOVD c, row
	MOVD $128, stride
	STORE4(V0, V1, V2, V3)
	STORE4(V0, V1, V2, V3)
	STORE4(V0, V1, V2, V3)
	STORE4(V0, V1, V2, V3)

block:
	MOVD start, row
	ALIKE(V0, V1, V2, V3)
	ALIKE(V4, V5, V6, V7)
	ALIKE(V8, V9, V10, V11)
	ALIKE(V12, V13, V14, V15)
	MOVD Task_Quads(task), quads
	SUBS $4, quads
	BLT few

four:
	STEP(16)
	FMOVQ -16(a0), F24
	FMOVQ -16(a1), F25
	FMOVQ -16(a2), F26
	FMOVQ -16(a3), F27
	QUAD(0, 16, F16, F17, F18, F19)
	QUAD(1, 20, F20, F21, F22, F23)
	QUAD(2, 16, F16, F17, F18, F19)
	QUAD(3, 20, F20, F21, F22, F23)
	SUBS $4, quads
	BGE four

few:
	ADDS $4, quads
	BEQ sum

one:
	STEP(4)
	FMOVS -4(a0), F24
	FMOVS -4(a1), F25
	FMOVS -4(a2), F26
	FMOVS -4(a3), F27
	QUAD(0, 16, F16, F17, F18, F19)
	SUBS $1, quads
	BNE one

sum:
	MOVWU Task_Magic(task), tmp
	VDUP tmp, V31.S4
	LESS4(0)
	LESS4(4)
	LESS4(8)
	LESS4(12)
	MOVD Task_P(task), row
	MOVD Task_C(task), tmp
	SUB tmp, row
	ADD c, row
	TBNZ $0, flags, resumed // First
	MORE4(0)
	MORE4(4)
	MORE4(8)
	MORE4(12)
	SUB $512, row

resumed:
	MOVD $128, stride
	TBZ $1, flags, store // not Last: to P
	FMOVQ (scaleA), F24
	VLD1 (scaleB), [V16.S4, V17.S4, V18.S4, V19.S4]
	MOVD c, row
	SCALE4(0, 0, V0, V1, V2, V3)
	SCALE4(1, 4, V4, V5, V6, V7)
	SCALE4(2, 8, V8, V9, V10, V11)
	SCALE4(3, 12, V12, V13, V14, V15)
	MOVD c, row
	CMP $1, blocks
	BNE store
	TBNZ $2, flags, canonical

store:
	STORE

	ADD scaleStride, start
	ADD scaleStride, scaleA
	ADD $(4*const_PanelWidth), scaleB
	SUBS $1, blocks
	BNE block

	// The next register block.
	MOVD Task_Blocks(task), tmp
	MUL scaleStride, tmp
	SUB tmp, start
	SUB tmp, scaleA
	ADD $16, start
	ADD $16, scaleA
	ADD $512, c
	MOVD Task_StrideOut(task), tmp
	ADD tmp<<2, out
	SUBS $1, rowBlocks
	BNE rows
	ADD $64, column
	CMP $128, column
	BLT columns
	RET

canonical:
	MOVW $0x7FC00000, tmp
	VDUP tmp, V24.S4
	NAN(V0, 0)
	NAN(V1, 1)
	NAN(V2, 2)
	NAN(V3, 3)
	NAN(V4, 4)
	NAN(V5, 5)
	NAN(V6, 6)
	NAN(V7, 7)
	NAN(V8, 8)
	NAN(V9, 9)
	NAN(V10, 10)
	NAN(V11, 11)
	NAN(V12, 12)
	NAN(V13, 13)
	NAN(V14, 14)
	NAN(V15, 15)
	MOVD Task_Out(task), tmp
	CBZ tmp, store
	MOVD out, row
	MOVD Task_StrideOut(task), stride
	JMP store
