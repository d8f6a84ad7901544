//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// 8 rows are shuffled perfectly three times: each time, row i is interleaved with row
// i+4 to become rows 2i and 2i+1. Then a vector has the 8 codes of an even k and those of
// the next.
#define SHUFFLE(a, b, c, d, e, f, g, h, A, B, C, D, E, F, G, H) \
	VZIP1 e.B16, a.B16, A.B16 \
	VZIP2 e.B16, a.B16, B.B16 \
	VZIP1 f.B16, b.B16, C.B16 \
	VZIP2 f.B16, b.B16, D.B16 \
	VZIP1 g.B16, c.B16, E.B16 \
	VZIP2 g.B16, c.B16, F.B16 \
	VZIP1 h.B16, d.B16, G.B16 \
	VZIP2 h.B16, d.B16, H.B16

#define to R0
#define toOdd R1 // of odd k
#define left R2
#define two R3 // what two k take of dst
#define between R4 // rows of src
#define from0 R5
#define from1 R6
#define from2 R7
#define from3 R8
#define from4 R9
#define from5 R10
#define from6 R11
#define from7 R12
#define column R13 // of dst, the first of eight
#define groups R14 // of 8 rows left, times 8

#define LOAD(from, F) \
	ADD $16, from \
	FMOVQ -16(from), F

// Two k, of which this is number k.
#define STORE(k, F, V) \
	FMOVD F, (2*const_PanelWidth*k)(to) \
	VST1.P V.D[1], (toOdd)(two)

// func transposeNEON(dst, src *byte, stride, rows, n int)
TEXT ·transposeNEON(SB), NOSPLIT, $0-40
	MOVD dst+0(FP), column
	MOVD src+8(FP), from0
	MOVD stride+16(FP), between
	MOVD rows+24(FP), groups
	MOVD $(2*const_PanelWidth), two

rows8:
	MOVD column, to
	ADD $const_PanelWidth, column, toOdd
	ADD between, from0, from1
	ADD between, from1, from2
	ADD between, from2, from3
	ADD between, from3, from4
	ADD between, from4, from5
	ADD between, from5, from6
	ADD between, from6, from7
	MOVD n+32(FP), left

piece:
	LOAD(from0, F0)
	LOAD(from1, F1)
	LOAD(from2, F2)
	LOAD(from3, F3)
	LOAD(from4, F4)
	LOAD(from5, F5)
	LOAD(from6, F6)
	LOAD(from7, F7)
	SHUFFLE(V0, V1, V2, V3, V4, V5, V6, V7, V8, V9, V10, V11, V12, V13, V14, V15)
	SHUFFLE(V8, V9, V10, V11, V12, V13, V14, V15, V0, V1, V2, V3, V4, V5, V6, V7)
	SHUFFLE(V0, V1, V2, V3, V4, V5, V6, V7, V8, V9, V10, V11, V12, V13, V14, V15)
	STORE(0, F8, V8)
	STORE(1, F9, V9)
	STORE(2, F10, V10)
	STORE(3, F11, V11)
	STORE(4, F12, V12)
	STORE(5, F13, V13)
	STORE(6, F14, V14)
	STORE(7, F15, V15)
	ADD $(16*const_PanelWidth), to
	SUBS $1, left
	BNE piece

	// from7 is past its codes by as much as from0.
	MOVD n+32(FP), left
	ADD between, from7, from0
	SUB left<<4, from0
	ADD $8, column
	SUBS $8, groups
	BNE rows8
	RET
