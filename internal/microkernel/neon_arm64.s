//go:build !purego

#include "go_asm.h"
#include "textflag.h"

#include "vectors_arm64.h"

// Of a register block of 4 rows, each of two vectors, V0 to V7 are e, V8 to V15 are o and V16
// to V23 are p. V24 to V27 are up to four k of A, whose values are multiplied from where
// they are, and V28 to V31 two k of B.

// e = a*b, or e and o more by that, of a row's element lane of A and two vectors.
#define MULTIPLY(a, lane, b, d) \
	FMULLANE(a, lane, b, d) \
	FMULLANE(a, lane, b+1, d+1)

#define MULTIPLYADD(a, lane, b, d) \
	FMLALANE(a, lane, b, d) \
	FMLALANE(a, lane, b+1, d+1)

#define ROWS(OP, lane, b, d) \
	OP(24, lane, b, d) \
	OP(25, lane, b, d+2) \
	OP(26, lane, b, d+4) \
	OP(27, lane, b, d+6)

// Loads at negative offsets that write no address back are a single operation on every
// processor; others are two or three on some.
#define LOADB(at, Fa, Fb) \
	FMOVQ (at)(panel), Fa \
	FMOVQ (at+16)(panel), Fb

// Two k, the elements lane and lane+1 of A.
#define TWO(OP, lane) \
	ADD $256, panel \
	LOADB(-256, F28, F29) \
	LOADB(-128, F30, F31) \
	ROWS(OP, lane, 28, 0) \
	ROWS(OP, lane+1, 30, 8)

#define PAIR(OP) \
	FMOVD.P 8(a0), F24 \
	FMOVD.P 8(a1), F25 \
	FMOVD.P 8(a2), F26 \
	FMOVD.P 8(a3), F27 \
	TWO(OP, 0)

#define PAIRS(OP, at) \
	FMOVQ at(a0), F24 \
	FMOVQ at(a1), F25 \
	FMOVQ at(a2), F26 \
	FMOVQ at(a3), F27 \
	TWO(OP, 0) \
	TWO(MULTIPLYADD, 2)

// Eight pairs.
#define HALF(OP) \
	ADD $64, a0 \
	ADD $64, a1 \
	ADD $64, a2 \
	ADD $64, a3 \
	PAIRS(OP, -64) \
	PAIRS(MULTIPLYADD, -48) \
	PAIRS(MULTIPLYADD, -32) \
	PAIRS(MULTIPLYADD, -16)

// func multiplyNEON(t *Task)
TEXT ·multiplyNEON(SB), NOSPLIT, $0-8
#include "loops_arm64.h"

// Products are rounded in V30 and V31, before they are added: B of an odd k is where that
// of an even one was.

#undef MULTIPLYADD
#undef TWO

#define MULTIPLYADD(a, lane, b, d) \
	FMULLANE(a, lane, b, 30) \
	FMULLANE(a, lane, b+1, 31) \
	FADD(30, d, d) \
	FADD(31, d+1, d+1)

#define TWO(OP, lane) \
	ADD $256, panel \
	LOADB(-256, F28, F29) \
	ROWS(OP, lane, 28, 0) \
	LOADB(-128, F28, F29) \
	ROWS(OP, lane+1, 28, 8)

// func multiplyRoundedNEON(t *Task)
TEXT ·multiplyRoundedNEON(SB), NOSPLIT, $0-8
#include "loops_arm64.h"
