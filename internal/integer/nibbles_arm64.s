//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// V0 to V7 are the sums of a panel's columns, V16 the values of codes, V17 the mask of low
// nibbles, V18 a quad of the row of A in its first bytes and the next in the following ones.

// The assembler lacks these instructions. The test of package asmtable compares each
// WORD with the text beside it, for all registers.
#define SDOT(m, lane, n, d) WORD $(0x4F80E000 | ((lane)&1)<<21 | ((lane)>>1)<<11 | (m)<<16 | (n)<<5 | (d)) // sdot vd.4s, vn.16b, vm.4b[lane]
#define FADD(m, n, d) WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d)) // fadd vd.4s, vn.4s, vm.4s
#define FSUB(m, n, d) WORD $(0x4EA0D400 | (m)<<16 | (n)<<5 | (d)) // fsub vd.4s, vn.4s, vm.4s
#define FMUL(m, n, d) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d)) // fmul vd.4s, vn.4s, vm.4s
#define FCMEQ(m, n, d) WORD $(0x4E20E400 | (m)<<16 | (n)<<5 | (d)) // fcmeq vd.4s, vn.4s, vm.4s

#define task R0
#define a R1 // here
#define nibbles R2
#define c R3
#define start R4 // of this block
#define scaleA R5
#define scaleB R6
#define scaleStride R7
#define blocks R8 // left
#define quads R9  // left
#define flags R10
#define row R11
#define tmp R12

#define EACH(DO) \
	DO(V0, 0) \
	DO(V1, 1) \
	DO(V2, 2) \
	DO(V3, 3) \
	DO(V4, 4) \
	DO(V5, 5) \
	DO(V6, 6) \
	DO(V7, 7)

#define BEGIN(V, d) VORR V16.B16, V16.B16, V.B16
#define LESS(V, d) FSUB(24, d, d)
#define TIMES(V, d) FMUL(24, d, d)
#define MORE(V, d) \
	FMOVQ.P 16(row), F24 \
	FADD(24, d, d)
#define NAN(V, d) \
	FCMEQ(d, d, 25) \
	VBIF V25.B16, V24.B16, V.B16

// c = fma(p*sa, sb, c) of four columns.
#define SCALE(V, d) \
	FMOVQ.P 16(row), F24 \
	FMOVQ.P 16(tmp), F25 \
	VFMLA V24.S4, V.S4, V25.S4 \
	VORR V25.B16, V25.B16, V.B16

#define STORE(to) \
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(to) \
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (to)

// The columns in Vn: their low nibbles with the first quad, the high ones with the second.
#define PART(Vn, n, d) \
	VUSHR $4, Vn.B16, V28.B16 \
	VAND V17.B16, Vn.B16, Vn.B16 \
	VTBL V28.B16, [V19.B16], V28.B16 \
	VTBL Vn.B16, [V19.B16], Vn.B16 \
	SDOT(18, 0, n, d) \
	SDOT(18, 1, 28, d)

// func multiplyNibblesDotProd(t *Task)
TEXT ·multiplyNibblesDotProd(SB), NOSPLIT, $0-8
	MOVD t+0(FP), task
	MOVD Task_A(task), a
	MOVD Task_Nibbles(task), nibbles
	MOVD Task_C(task), c
	MOVD Task_Start(task), start
	MOVD Task_ScaleA(task), scaleA
	MOVD Task_ScaleB(task), scaleB
	MOVD Task_StrideScaleA(task), scaleStride
	MOVD Task_Blocks(task), blocks
	MOVD Task_Flags(task), flags
	MOVD Task_Table(task), tmp
	FMOVQ (tmp), F19
	VMOVI $15, V17.B16
	TBZ $3, flags, block // Zero
	VEOR V16.B16, V16.B16, V16.B16
	EACH(BEGIN)
	MOVD c, row
	STORE(row)

block:
	VLD1R (start), [V16.S4]
	EACH(BEGIN)
	MOVD Task_Quads(task), quads

octet:
	FMOVD.P 8(a), F18
	VLD1.P 64(nibbles), [V20.B16, V21.B16, V22.B16, V23.B16]
	VLD1.P 64(nibbles), [V24.B16, V25.B16, V26.B16, V27.B16]
	PART(V20, 20, 0)
	PART(V21, 21, 1)
	PART(V22, 22, 2)
	PART(V23, 23, 3)
	PART(V24, 24, 4)
	PART(V25, 25, 5)
	PART(V26, 26, 6)
	PART(V27, 27, 7)
	SUBS $2, quads
	BNE octet

	MOVWU Task_Magic(task), tmp
	VDUP tmp, V24.S4
	EACH(LESS)
	MOVD Task_P(task), row
	TBNZ $0, flags, summed // First
	EACH(MORE)
	MOVD Task_P(task), row

summed:
	TBZ $1, flags, store // not Last: to P
	VLD1R (scaleA), [V24.S4]
	EACH(TIMES)
	MOVD scaleB, row
	MOVD c, tmp
	EACH(SCALE)
	MOVD c, row
	CMP $1, blocks
	BNE store
	TBZ $2, flags, store // Canonical
	MOVW $0x7FC00000, tmp
	VDUP tmp, V24.S4
	EACH(NAN)
	MOVD Task_Out(task), tmp
	CMP $0, tmp
	CSEL NE, tmp, row, row

store:
	STORE(row)
	ADD scaleStride, start
	ADD scaleStride, scaleA
	ADD $(4*const_PanelWidth), scaleB
	SUBS $1, blocks
	BNE block
	RET
