//go:build !purego

#include "textflag.h"

#define sums0 R0
#define sums1 R1
#define between R2 // rows of sums
#define row0 R3
#define row1 R4
#define apart R5 // rows of x
#define from R6 // the panel
#define left R7 // products
#define rowsLeft R8
#define x0 R9
#define x1 R10

#define ZERO(V) VEOR V.B16, V.B16, V.B16

// func multiplyNEON(sums *float64, sumsStride int, x *float64, stride int, panel *float64, n, rows int)
//
// V0 to V7 are the sums of a row, V8 to V15 those of the next; V16 to V23 are of the panel.
TEXT ·multiplyNEON(SB), NOSPLIT, $0-56
	MOVD sums+0(FP), sums0
	MOVD sumsStride+8(FP), between
	MOVD x+16(FP), row0
	MOVD stride+24(FP), apart
	MOVD rows+48(FP), rowsLeft

two:
	ADD between, sums0, sums1
	ADD apart, row0, row1
	MOVD row0, x0
	MOVD row1, x1
	MOVD panel+32(FP), from
	MOVD n+40(FP), left
	ZERO(V0)
	ZERO(V1)
	ZERO(V2)
	ZERO(V3)
	ZERO(V4)
	ZERO(V5)
	ZERO(V6)
	ZERO(V7)
	ZERO(V8)
	ZERO(V9)
	ZERO(V10)
	ZERO(V11)
	ZERO(V12)
	ZERO(V13)
	ZERO(V14)
	ZERO(V15)

product:
	VLD1R.P 8(x0), [V24.D2]
	VLD1R.P 8(x1), [V25.D2]
	VLD1.P 64(from), [V16.D2, V17.D2, V18.D2, V19.D2]
	VLD1.P 64(from), [V20.D2, V21.D2, V22.D2, V23.D2]
	VFMLA V16.D2, V24.D2, V0.D2
	VFMLA V17.D2, V24.D2, V1.D2
	VFMLA V18.D2, V24.D2, V2.D2
	VFMLA V19.D2, V24.D2, V3.D2
	VFMLA V20.D2, V24.D2, V4.D2
	VFMLA V21.D2, V24.D2, V5.D2
	VFMLA V22.D2, V24.D2, V6.D2
	VFMLA V23.D2, V24.D2, V7.D2
	VFMLA V16.D2, V25.D2, V8.D2
	VFMLA V17.D2, V25.D2, V9.D2
	VFMLA V18.D2, V25.D2, V10.D2
	VFMLA V19.D2, V25.D2, V11.D2
	VFMLA V20.D2, V25.D2, V12.D2
	VFMLA V21.D2, V25.D2, V13.D2
	VFMLA V22.D2, V25.D2, V14.D2
	VFMLA V23.D2, V25.D2, V15.D2
	SUBS $1, left
	BNE product

	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(sums0)
	VST1 [V4.D2, V5.D2, V6.D2, V7.D2], (sums0)
	VST1.P [V8.D2, V9.D2, V10.D2, V11.D2], 64(sums1)
	VST1 [V12.D2, V13.D2, V14.D2, V15.D2], (sums1)
	SUB $64, sums1, sums0
	ADD between, sums0
	ADD apart, row1, row0
	SUBS $2, rowsLeft
	BNE two
	RET
