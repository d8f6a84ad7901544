//go:build !purego

#include "textflag.h"

// The rows of the square in src and in dst.
#define from0 R0
#define from1 R1
#define from2 R2
#define from3 R3
#define to0 R4
#define to1 R5
#define to2 R6
#define to3 R7
#define stride R8
#define left R9

// func transposeNEON(dst, src *float32, dstStride, srcStride, n int)
TEXT ·transposeNEON(SB), NOSPLIT, $0-40
	MOVD src+8(FP), from0
	MOVD srcStride+24(FP), stride
	ADD stride, from0, from1
	ADD stride, from1, from2
	ADD stride, from2, from3
	MOVD dst+0(FP), to0
	MOVD dstStride+16(FP), stride
	ADD stride, to0, to1
	ADD stride, to1, to2
	ADD stride, to2, to3
	MOVD n+32(FP), left

square:
	ADD $16, from0
	ADD $16, from1
	ADD $16, from2
	ADD $16, from3
	FMOVQ -16(from0), F0
	FMOVQ -16(from1), F1
	FMOVQ -16(from2), F2
	FMOVQ -16(from3), F3
	VTRN1 V1.S4, V0.S4, V4.S4
	VTRN2 V1.S4, V0.S4, V5.S4
	VTRN1 V3.S4, V2.S4, V6.S4
	VTRN2 V3.S4, V2.S4, V7.S4
	VZIP1 V6.D2, V4.D2, V0.D2
	VZIP1 V7.D2, V5.D2, V1.D2
	VZIP2 V6.D2, V4.D2, V2.D2
	VZIP2 V7.D2, V5.D2, V3.D2
	VST1 [V0.S4], (to0)
	VST1 [V1.S4], (to1)
	VST1 [V2.S4], (to2)
	VST1 [V3.S4], (to3)
	ADD stride<<2, to0
	ADD stride<<2, to1
	ADD stride<<2, to2
	ADD stride<<2, to3
	SUBS $1, left
	BNE square
	RET
