//go:build !purego

#include "textflag.h"

// func widenBF16AVX2(dst *float32, src *uint16, n int)
//
// n is a positive multiple of 16.
TEXT ·widenBF16AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

bf16Loop:
	VPMOVZXWD (SI), Y0
	VPMOVZXWD 16(SI), Y1
	VPSLLD $16, Y0, Y0
	VPSLLD $16, Y1, Y1
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ bf16Loop
	VZEROUPPER
	RET

// func widenF16AVX2(dst *float32, src *uint16, n int)
//
// n is a positive multiple of 16.
TEXT ·widenF16AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

f16Loop:
	VCVTPH2PS (SI), Y0
	VCVTPH2PS 16(SI), Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ f16Loop
	VZEROUPPER
	RET

// func truncateBF16AVX2(dst *uint16, src *float32, n int)
//
// n is a positive multiple of 16.
TEXT ·truncateBF16AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

halvesLoop:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VPSRLD $16, Y0, Y0
	VPSRLD $16, Y1, Y1
	VPACKUSDW Y1, Y0, Y0
	VPERMQ $0xD8, Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ $64, SI
	ADDQ $32, DI
	SUBQ $16, CX
	JNZ halvesLoop
	VZEROUPPER
	RET
