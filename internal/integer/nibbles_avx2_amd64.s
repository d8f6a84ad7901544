//go:build !purego

#include "go_asm.h"
#include "textflag.h"

DATA low<>+0(SB)/4, $0x0F0F0F0F
GLOBL low<>(SB), RODATA|NOPTR, $4

DATA ones<>+0(SB)/4, $0x00010001
GLOBL ones<>(SB), RODATA|NOPTR, $4

DATA nan<>+0(SB)/4, $0x7FC00000
GLOBL nan<>(SB), RODATA|NOPTR, $4

// How many bytes of nibbles are fetched before they are needed.
#define AHEAD 4096

#define EACH(DO) \
	DO(Y0) \
	DO(Y1) \
	DO(Y2) \
	DO(Y3)

#define LESS(Y) VSUBPS Y7, Y, Y
#define TIMES(Y) VMULPS Y7, Y, Y
#define CANONICAL(Y) \
	VCMPPS $3, Y, Y, Y8 \
	VBLENDVPS Y8, Y7, Y, Y

// All columns of what is at R.
#define ROW(DO, R, Ya, Yb, Yc, Yd) \
	DO(0, R, Ya) \
	DO(32, R, Yb) \
	DO(64, R, Yc) \
	DO(96, R, Yd)

#define LOAD(at, R, Y) VMOVUPS at(R), Y
#define STORE(at, R, Y) VMOVUPS Y, at(R)
#define MORE(at, R, Y) VADDPS at(R), Y, Y

// Y9 and Y10 = the values of the low and of the high nibbles.
#define VALUES(at) \
	VMOVDQU at(DI), Y9 \
	VPSRLW $4, Y9, Y10 \
	VPAND Y5, Y9, Y9 \
	VPAND Y5, Y10, Y10 \
	VPSHUFB Y9, Y4, Y9 \
	VPSHUFB Y10, Y4, Y10

#define PART(at, Yd, d) \
	VALUES(at) \
	VPMADDUBSW Y7, Y9, Y9 \
	VPMADDUBSW Y8, Y10, Y10 \
	VPADDW Y10, Y9, Y9 \
	VPMADDWD Y6, Y9, Y9 \
	VPADDD Y9, Yd, Yd

// func multiplyNibblesAVX2(t *Task)
TEXT ·multiplyNibblesAVX2(SB), NOSPLIT, $0-8
#include "nibbles_amd64.h"
#undef PART

// The assembler has that of AVX-512 only; package asmtable compares the bytes.
#define DOT(m, n, d) BYTE $0xC4; BYTE $(0xE2 ^ (((d)&8)<<4) ^ (((m)&8)<<2)); BYTE $(0x7D ^ ((n)<<3)); BYTE $0x50; BYTE $(0xC0 | (((d)&7)<<3) | ((m)&7)) // {vex} vpdpbusd ymmd,ymmn,ymmm

#define PART(at, Yd, d) \
	VALUES(at) \
	DOT(7, 9, d) \
	DOT(8, 10, d)

// func multiplyNibblesAVXVNNI(t *Task)
TEXT ·multiplyNibblesAVXVNNI(SB), NOSPLIT, $0-8
#include "nibbles_amd64.h"
