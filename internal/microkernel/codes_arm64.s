//go:build !purego

#include "go_asm.h"
#include "textflag.h"

#include "vectors_arm64.h"

// V30 = how far a code at the top of 16 bits is to be shifted; tmp is that.
#define SHIFT \
	MOVHU Task_Multiplier(task), tmp \
	CLZ tmp, tmp \
	MOVD $55, row \
	SUB tmp, row, tmp \
	VDUP tmp, V30.H8

// V31 = the mask.
#define MASK \
	MOVHU Task_Mask(task), tmp \
	VDUP tmp, V31.H8

#define PREPARE \
	SHIFT \
	MASK

// V, of number v, which holds codes at the top of 16 bits, becomes float16s.
#define FLOAT16S(V, v) \
	SSHL(30, v, v) \
	VAND V31.B16, V.B16, V.B16

// Of a single row, all columns: V0 to V7 are e, V8 to V15 are o and V16 to V23 are p. V24 is
// A, V29 is 0.

// OP for element lane of A and the 16 codes at at(panel), whose sums begin at Vd.
#define COLUMNS(OP, at, lane, d) \
	FMOVQ at(panel), F25 \
	VZIP2 V25.B16, V29.B16, V26.B16 \
	VZIP1 V25.B16, V29.B16, V25.B16 \
	FLOAT16S(V25, 25) \
	FLOAT16S(V26, 26) \
	FCVTL(25, 27) \
	FCVTL2(25, 28) \
	OP(24, lane, 27, d) \
	OP(24, lane, 28, d+1) \
	FCVTL(26, 27) \
	FCVTL2(26, 28) \
	OP(24, lane, 27, d+2) \
	OP(24, lane, 28, d+3)

#define CODES(OP) \
	CLEAR(V29) \
	FMOVD.P 8(a0), F24 \
	COLUMNS(OP, 0, 0, 0) \
	COLUMNS(OP, 16, 0, 4) \
	COLUMNS(OP, 32, 1, 8) \
	COLUMNS(OP, 48, 1, 12) \
	ADD $(2*const_PanelWidth), panel

#define FIRST CODES(FMULLANE)
#define NEXT CODES(FMLALANE)

#define LOADP \
	VLD1.P 64(row), [V16.S4, V17.S4, V18.S4, V19.S4] \
	VLD1 (row), [V20.S4, V21.S4, V22.S4, V23.S4]

#define STOREP \
	VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(row) \
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (row)

#define LOADC \
	VLD1.P 64(row), [V0.S4, V1.S4, V2.S4, V3.S4] \
	VLD1 (row), [V4.S4, V5.S4, V6.S4, V7.S4]

#define STOREC \
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(row) \
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (row)

// V16 to V23 times V.
#define TIMES(v) \
	FMUL(v, 16, 16) \
	FMUL(v, 17, 17) \
	FMUL(v, 18, 18) \
	FMUL(v, 19, 19) \
	FMUL(v, 20, 20) \
	FMUL(v, 21, 21) \
	FMUL(v, 22, 22) \
	FMUL(v, 23, 23)

#define SCALE8 \
	VLD1R (row), [V24.S4] \
	MOVD scaleB, row \
	VLD1.P 64(row), [V8.S4, V9.S4, V10.S4, V11.S4] \
	VLD1 (row), [V12.S4, V13.S4, V14.S4, V15.S4] \
	TIMES(24) \
	VFMLA V8.S4, V16.S4, V0.S4 \
	VFMLA V9.S4, V17.S4, V1.S4 \
	VFMLA V10.S4, V18.S4, V2.S4 \
	VFMLA V11.S4, V19.S4, V3.S4 \
	VFMLA V12.S4, V20.S4, V4.S4 \
	VFMLA V13.S4, V21.S4, V5.S4 \
	VFMLA V14.S4, V22.S4, V6.S4 \
	VFMLA V15.S4, V23.S4, V7.S4

#define SCALES SCALE8

// func multiplyCodesRowNEON(t *Task)
TEXT ·multiplyCodesRowNEON(SB), NOSPLIT, $0-8
#include "codes_arm64.h"

// Of a single row again, with FMLAL, which multiplies float16s and adds in float32, fused:
// A must be float16s too. It is values of FP8, times up to 256 where the multiplier is 128,
// so that all are float16s after division by 256 then; e, o and p are less by that.

#undef PREPARE
#undef FIRST
#undef NEXT
#undef LOADP
#undef STOREP

#define less R22 // 1/256, or 1, and its inverse
#define more R23

#define PREPARE \
	SHIFT \
	LSL $(3+23), tmp, less \
	MOVD $0x3F800000, row \
	SUB less, row, more \
	ADD less, row, less \
	MASK

// The 16 codes at at(panel) times V, of which each half has the value of A.
#define COLUMNSHALF(at, v, d) \
	FMOVQ at(panel), F26 \
	VZIP2 V26.B16, V29.B16, V27.B16 \
	VZIP1 V26.B16, V29.B16, V26.B16 \
	FLOAT16S(V26, 26) \
	FLOAT16S(V27, 27) \
	FMLAL(v, 26, d) \
	FMLAL2(v, 26, d+1) \
	FMLAL(v, 27, d+2) \
	FMLAL2(v, 27, d+3)

#define FIRST \
	VDUP less, V28.S4 \
	CLEAR(V29) \
	CLEAR(V0) \
	CLEAR(V1) \
	CLEAR(V2) \
	CLEAR(V3) \
	CLEAR(V4) \
	CLEAR(V5) \
	CLEAR(V6) \
	CLEAR(V7) \
	CLEAR(V8) \
	CLEAR(V9) \
	CLEAR(V10) \
	CLEAR(V11) \
	CLEAR(V12) \
	CLEAR(V13) \
	CLEAR(V14) \
	CLEAR(V15) \
	NEXT

#define NEXT \
	FMOVD.P 8(a0), F25 \
	FMUL(28, 25, 25) \
	FCVTN(25, 25) \
	VDUP V25.H[0], V24.H8 \
	VDUP V25.H[1], V25.H8 \
	COLUMNSHALF(0, 24, 0) \
	COLUMNSHALF(16, 24, 4) \
	COLUMNSHALF(32, 25, 8) \
	COLUMNSHALF(48, 25, 12) \
	ADD $(2*const_PanelWidth), panel

#define LOADP \
	VLD1.P 64(row), [V16.S4, V17.S4, V18.S4, V19.S4] \
	VLD1 (row), [V20.S4, V21.S4, V22.S4, V23.S4] \
	VDUP less, V28.S4 \
	TIMES(28)

#define STOREP \
	VDUP more, V28.S4 \
	TIMES(28) \
	VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(row) \
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (row)

#undef SCALES

#define SCALES \
	VDUP more, V28.S4 \
	TIMES(28) \
	SCALE8

// func multiplyCodesRowFHM(t *Task)
TEXT ·multiplyCodesRowFHM(SB), NOSPLIT, $0-8
#include "codes_arm64.h"

// Of 4 rows, 8 columns, with registers as in multiplyNEON.

#undef PREPARE
#undef CODES
#undef FIRST
#undef NEXT
#undef LOADP
#undef STOREP
#undef LOADC
#undef STOREC
#undef SCALES

#define PREPARE \
	SHIFT \
	MASK

// V28 and V29 = the 8 codes at at(panel).
#define EIGHT(at) \
	FMOVD at(panel), F28 \
	SHLL(28, 28) \
	FLOAT16S(V28, 28) \
	FCVTL2(28, 29) \
	FCVTL(28, 28)

#define CODES(OP) \
	MOVD Task_StrideA(task), aStride \
	FMOVD (a0), F24 \
	FMOVD (a0)(aStride), F25 \
	ADD aStride<<1, a0, a1 \
	FMOVD (a1), F26 \
	FMOVD (a1)(aStride), F27 \
	ADD $8, a0 \
	EIGHT(0) \
	OP(24, 0, 28, 0) \
	OP(24, 0, 29, 1) \
	OP(25, 0, 28, 2) \
	OP(25, 0, 29, 3) \
	OP(26, 0, 28, 4) \
	OP(26, 0, 29, 5) \
	OP(27, 0, 28, 6) \
	OP(27, 0, 29, 7) \
	EIGHT(const_PanelWidth) \
	OP(24, 1, 28, 8) \
	OP(24, 1, 29, 9) \
	OP(25, 1, 28, 10) \
	OP(25, 1, 29, 11) \
	OP(26, 1, 28, 12) \
	OP(26, 1, 29, 13) \
	OP(27, 1, 28, 14) \
	OP(27, 1, 29, 15) \
	ADD $(2*const_PanelWidth), panel

#define FIRST CODES(FMULLANE)
#define NEXT CODES(FMLALANE)

#define LOADP \
	MOVD Task_StrideC(task), stride \
	MOVE4(LOAD, V16, V17, V18, V19, V20, V21, V22, V23)

#define STOREP \
	MOVD Task_StrideC(task), stride \
	MOVE4(STORE, V16, V17, V18, V19, V20, V21, V22, V23)

#define LOADC \
	MOVD Task_StrideC(task), stride \
	MOVE4(LOAD, V0, V1, V2, V3, V4, V5, V6, V7)

#define STOREC \
	MOVD Task_StrideC(task), stride \
	MOVE4(STORE, V0, V1, V2, V3, V4, V5, V6, V7)

#define SCALES \
	MOVD Task_StrideScaleA(task), stride \
	SCALE

// func multiplyCodesNEON(t *Task)
TEXT ·multiplyCodesNEON(SB), NOSPLIT, $0-8
#include "codes_arm64.h"

// func decodeFloat16NEON(dst *float32, codes *byte, n int, multiplier, mask uint64, ahead int)
//
// n is a positive multiple of PanelWidth.
TEXT ·decodeFloat16NEON(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD codes+8(FP), R1
	MOVD n+16(FP), R2
	MOVHU multiplier+24(FP), R3
	CLZ R3, R3
	MOVD $55, R4
	SUB R3, R4, R3
	VDUP R3, V30.H8
	MOVHU mask+32(FP), R3
	VDUP R3, V31.H8
	CLEAR(V29)

decode:
	VLD1.P 32(R1), [V16.B16, V17.B16]
	VZIP1 V16.B16, V29.B16, V18.B16
	VZIP2 V16.B16, V29.B16, V19.B16
	VZIP1 V17.B16, V29.B16, V20.B16
	VZIP2 V17.B16, V29.B16, V21.B16
	FLOAT16S(V18, 18)
	FLOAT16S(V19, 19)
	FLOAT16S(V20, 20)
	FLOAT16S(V21, 21)
	FCVTL(18, 0)
	FCVTL2(18, 1)
	FCVTL(19, 2)
	FCVTL2(19, 3)
	FCVTL(20, 4)
	FCVTL2(20, 5)
	FCVTL(21, 6)
	FCVTL2(21, 7)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R0)
	SUBS $32, R2
	BNE decode
	RET

// func containsNEON(codes *byte, n int, mask, value uint64) bool
//
// n is a positive multiple of PanelWidth.
TEXT ·containsNEON(SB), NOSPLIT, $0-33
	MOVD codes+0(FP), R0
	MOVD n+8(FP), R1
	MOVD mask+16(FP), R2
	VDUP R2, V30.D2
	MOVD value+24(FP), R2
	VDUP R2, V31.D2
	CLEAR(V0)
	CLEAR(V1)

look:
	VLD1.P 32(R0), [V2.B16, V3.B16]
	VAND V30.B16, V2.B16, V2.B16
	VAND V30.B16, V3.B16, V3.B16
	VCMEQ V31.B16, V2.B16, V2.B16
	VCMEQ V31.B16, V3.B16, V3.B16
	VORR V2.B16, V0.B16, V0.B16
	VORR V3.B16, V1.B16, V1.B16
	SUBS $32, R1
	BNE look

	VORR V1.B16, V0.B16, V0.B16
	VMOV V0.D[0], R1
	VMOV V0.D[1], R2
	ORR R2, R1
	CMP $0, R1
	CSET NE, R1
	MOVB R1, ret+32(FP)
	RET
