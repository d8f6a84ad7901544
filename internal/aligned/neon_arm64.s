//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// The assembler lacks these instructions. The test of package asmtable compares each
// WORD with the text beside it, for all registers.
#define SMAX8H(m, n, d) WORD $(0x4E606400 | (m)<<16 | (n)<<5 | (d)) // smax vd.8h, vn.8h, vm.8h
#define SMAX(m, n, d) WORD $(0x4EA06400 | (m)<<16 | (n)<<5 | (d)) // smax vd.4s, vn.4s, vm.4s
#define SSHL(m, n, d) WORD $(0x4EA04400 | (m)<<16 | (n)<<5 | (d)) // sshl vd.4s, vn.4s, vm.4s
#define USHL(m, n, d) WORD $(0x6EA04400 | (m)<<16 | (n)<<5 | (d)) // ushl vd.4s, vn.4s, vm.4s
#define SMULL(m, n, d) WORD $(0x0E60C000 | (m)<<16 | (n)<<5 | (d)) // smull vd.4s, vn.4h, vm.4h
#define SMULL2(m, n, d) WORD $(0x4E60C000 | (m)<<16 | (n)<<5 | (d)) // smull2 vd.4s, vn.8h, vm.8h
#define SMLAL(m, n, d) WORD $(0x0EA08000 | (m)<<16 | (n)<<5 | (d)) // smlal vd.2d, vn.2s, vm.2s
#define SMLAL2(m, n, d) WORD $(0x4EA08000 | (m)<<16 | (n)<<5 | (d)) // smlal2 vd.2d, vn.4s, vm.4s

#define from R0
#define panel R1 // y, at the first of the columns
#define left R2
#define params R3
#define cuts R4 // what s has of the columns: tops and cuts of 32 bits, sums of 64
#define values R5
#define stride R6
#define now R7 // of what is left, at most 16
#define tmp R8
#define tops R9
#define columns R10 // left
#define to R11

// V16 is top+Right. V17 and V18 are sums of at most 16, V21 to V24 all; V19 and V20 count
// -1 for each product that is not cut.
#define ones 25 // of 16 bits
#define leastShift 26
#define shiftLeft 27
#define shiftSign 28
#define none V29
#define ones32 30

// Magnitudes of products V, of number v, and how far they are shifted, S, of number s;
// sums to T, cuts to C.
#define ADDCUT(V, v, S, s, T, C) \
	SSHL(shiftSign, v, 1) \
	VEOR V1.B16, V.B16, V.B16 \
	VSUB V1.S4, V.S4, V.S4 \
	USHL(shiftLeft, v, v) \
	USHL(s, v, 2) \
	VSUB S.S4, none.S4, S.S4 \
	USHL(s, 2, 3) \
	VCMEQ V3.S4, V.S4, V3.S4 \
	VADD V3.S4, C.S4, C.S4 \
	VEOR V1.B16, V2.B16, V2.B16 \
	VSUB V1.S4, V2.S4, V2.S4 \
	VADD V2.S4, T.S4, T.S4

// func multiplyNEON(x, y *Term, n int, p *Places, s *Sums)
//
// Eight columns go together: V0 and V2 have significands, V1 and V3 exponents.
TEXT ·multiplyNEON(SB), NOSPLIT, $0-40
	MOVD y+8(FP), to
	MOVD p+24(FP), params
	MOVD s+32(FP), tops
	ADD $Sums_Cut, tops, cuts
	ADD $Sums_Value, tops, values
	MOVD $64, stride
	MOVD $2, columns
	MOVD $1, tmp
	VDUP tmp, V25.H8
	VDUP tmp, V30.S4
	MOVD $-64, tmp
	VDUP tmp, V26.H8
	MOVD Places_Left(params), tmp
	VDUP tmp, V27.S4
	MOVD $-31, tmp
	VDUP tmp, V28.S4
	VEOR none.B16, none.B16, none.B16

eight:
	MOVD x+0(FP), from
	MOVD to, panel
	MOVD n+16(FP), left
	VLD2R (from), [V0.H8, V1.H8]
	VLD2 (panel), [V2.H8, V3.H8]
	VADD V1.H8, V3.H8, V16.H8

largest:
	VLD2R.P 4(from), [V0.H8, V1.H8]
	VLD2.P (panel)(stride), [V2.H8, V3.H8]
	VADD V1.H8, V3.H8, V3.H8
	SMAX8H(3, 16, 16)
	SUBS $1, left
	BNE largest

	SMULL(ones, 16, 17)
	SMULL2(ones, 16, 18)
	VLD1 (tops), [V0.S4, V1.S4]
	SMAX(0, 17, 17)
	SMAX(1, 18, 18)
	VST1.P [V17.S4, V18.S4], 32(tops)
	MOVD Places_Right(params), tmp
	VDUP tmp, V0.S4
	VADD V0.S4, V17.S4, V17.S4
	VADD V0.S4, V18.S4, V18.S4
	VUZP1 V18.H8, V17.H8, V16.H8
	MOVD x+0(FP), from
	MOVD to, panel
	MOVD n+16(FP), left
	VEOR V19.B16, V19.B16, V19.B16
	VEOR V20.B16, V20.B16, V20.B16
	VEOR V21.B16, V21.B16, V21.B16
	VEOR V22.B16, V22.B16, V22.B16
	VEOR V23.B16, V23.B16, V23.B16
	VEOR V24.B16, V24.B16, V24.B16

sixteen:
	MOVD $16, now
	CMP now, left
	CSEL LT, left, now, now
	SUB now, left
	VEOR V17.B16, V17.B16, V17.B16
	VEOR V18.B16, V18.B16, V18.B16

product:
	VLD2R.P 4(from), [V0.H8, V1.H8]
	VLD2.P (panel)(stride), [V2.H8, V3.H8]
	VADD V1.H8, V3.H8, V1.H8
	VSUB V16.H8, V1.H8, V1.H8
	SMAX8H(leastShift, 1, 1)
	SMULL(ones, 1, 4)
	SMULL2(ones, 1, 5)
	SMULL(2, 0, 6)
	SMULL2(2, 0, 7)
	ADDCUT(V6, 6, V4, 4, V17, V19)
	ADDCUT(V7, 7, V5, 5, V18, V20)
	SUBS $1, now
	BNE product

	SMLAL(ones32, 17, 21)
	SMLAL2(ones32, 17, 22)
	SMLAL(ones32, 18, 23)
	SMLAL2(ones32, 18, 24)
	CBNZ left, sixteen

	MOVD n+16(FP), tmp
	VDUP tmp, V0.S4
	VADD V0.S4, V19.S4, V19.S4
	VADD V0.S4, V20.S4, V20.S4
	VST1.P [V19.S4, V20.S4], 32(cuts)
	VST1.P [V21.D2, V22.D2, V23.D2, V24.D2], 64(values)
	ADD $32, to
	SUBS $1, columns
	BNE eight
	RET
