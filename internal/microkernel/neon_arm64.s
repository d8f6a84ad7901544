//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// WORDs are explained in package convert. The loops are those of loops_amd64.h.

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
// to V23 are p. The first products are added to +0.

#define ROW(A, Va, Vb) \
	VLD1R.P 4(A), [V26.S4] \
	VFMLA V24.S4, V26.S4, Va.S4 \
	VFMLA V25.S4, V26.S4, Vb.S4

#define ONE(Va, Vb, Vc, Vd, Ve, Vf, Vg, Vh) \
	VLD1 (panel), [V24.S4, V25.S4] \
	ADD $(4*const_PanelWidth), panel \
	ROW(a0, Va, Vb) \
	ROW(a1, Vc, Vd) \
	ROW(a2, Ve, Vf) \
	ROW(a3, Vg, Vh)

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
	CLEAR(V0)
	CLEAR(V1)
	CLEAR(V2)
	CLEAR(V3)
	CLEAR(V4)
	CLEAR(V5)
	CLEAR(V6)
	CLEAR(V7)
	CLEAR(V8)
	CLEAR(V9)
	CLEAR(V10)
	CLEAR(V11)
	CLEAR(V12)
	CLEAR(V13)
	CLEAR(V14)
	CLEAR(V15)

pair:
	ONE(V0, V1, V2, V3, V4, V5, V6, V7)
	ONE(V8, V9, V10, V11, V12, V13, V14, V15)
	SUB $1, pairs
	CBNZ pairs, pair

	// p = p + (e + o)
	WORD $0x4E28D400 // fadd v0.4s, v0.4s, v8.4s
	WORD $0x4E29D421 // fadd v1.4s, v1.4s, v9.4s
	WORD $0x4E2AD442 // fadd v2.4s, v2.4s, v10.4s
	WORD $0x4E2BD463 // fadd v3.4s, v3.4s, v11.4s
	WORD $0x4E2CD484 // fadd v4.4s, v4.4s, v12.4s
	WORD $0x4E2DD4A5 // fadd v5.4s, v5.4s, v13.4s
	WORD $0x4E2ED4C6 // fadd v6.4s, v6.4s, v14.4s
	WORD $0x4E2FD4E7 // fadd v7.4s, v7.4s, v15.4s
	WORD $0x4E20D610 // fadd v16.4s, v16.4s, v0.4s
	WORD $0x4E21D631 // fadd v17.4s, v17.4s, v1.4s
	WORD $0x4E22D652 // fadd v18.4s, v18.4s, v2.4s
	WORD $0x4E23D673 // fadd v19.4s, v19.4s, v3.4s
	WORD $0x4E24D694 // fadd v20.4s, v20.4s, v4.4s
	WORD $0x4E25D6B5 // fadd v21.4s, v21.4s, v5.4s
	WORD $0x4E26D6D6 // fadd v22.4s, v22.4s, v6.4s
	WORD $0x4E27D6F7 // fadd v23.4s, v23.4s, v7.4s
	CBNZ left, chunk

	TBZ $1, flags, suspend // Last
	MOVD cBlock, row
	MOVD Task_StrideC(task), stride
	MOVE4(LOAD, V0, V1, V2, V3, V4, V5, V6, V7)

	// c = fma(p*sa, sb, c)
	MOVD scaleA, row
	MOVD Task_StrideScaleA(task), stride
	SCALEA
	WORD $0x6E38DE10 // fmul v16.4s, v16.4s, v24.4s
	WORD $0x6E38DE31 // fmul v17.4s, v17.4s, v24.4s
	SCALEA
	WORD $0x6E38DE52 // fmul v18.4s, v18.4s, v24.4s
	WORD $0x6E38DE73 // fmul v19.4s, v19.4s, v24.4s
	SCALEA
	WORD $0x6E38DE94 // fmul v20.4s, v20.4s, v24.4s
	WORD $0x6E38DEB5 // fmul v21.4s, v21.4s, v24.4s
	SCALEA
	WORD $0x6E38DED6 // fmul v22.4s, v22.4s, v24.4s
	WORD $0x6E38DEF7 // fmul v23.4s, v23.4s, v24.4s
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
	WORD $0x6EBB375A // cmhi v26.4s, v26.4s, v27.4s
	VBIT V26.B16, V29.B16, V0.B16
	VAND V28.B16, V1.B16, V26.B16
	WORD $0x6EBB375A // cmhi v26.4s, v26.4s, v27.4s
	VBIT V26.B16, V29.B16, V1.B16
	VAND V28.B16, V2.B16, V26.B16
	WORD $0x6EBB375A // cmhi v26.4s, v26.4s, v27.4s
	VBIT V26.B16, V29.B16, V2.B16
	VAND V28.B16, V3.B16, V26.B16
	WORD $0x6EBB375A // cmhi v26.4s, v26.4s, v27.4s
	VBIT V26.B16, V29.B16, V3.B16
	VAND V28.B16, V4.B16, V26.B16
	WORD $0x6EBB375A // cmhi v26.4s, v26.4s, v27.4s
	VBIT V26.B16, V29.B16, V4.B16
	VAND V28.B16, V5.B16, V26.B16
	WORD $0x6EBB375A // cmhi v26.4s, v26.4s, v27.4s
	VBIT V26.B16, V29.B16, V5.B16
	VAND V28.B16, V6.B16, V26.B16
	WORD $0x6EBB375A // cmhi v26.4s, v26.4s, v27.4s
	VBIT V26.B16, V29.B16, V6.B16
	VAND V28.B16, V7.B16, V26.B16
	WORD $0x6EBB375A // cmhi v26.4s, v26.4s, v27.4s
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
