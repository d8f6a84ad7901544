//go:build !purego

#include "textflag.h"
#include "vectors_arm64.h"

// func widenBF16NEON(dst *float32, src *uint16, n int)
//
// n is a positive multiple of 16.
TEXT ·widenBF16NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD n+16(FP), left
	VEOR V6.B16, V6.B16, V6.B16

bf16Loop:
	VLD1.P 32(from), [V4.H8, V5.H8]
	VZIP1 V4.H8, V6.H8, V0.H8
	VZIP2 V4.H8, V6.H8, V1.H8
	VZIP1 V5.H8, V6.H8, V2.H8
	VZIP2 V5.H8, V6.H8, V3.H8
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(to)
	SUBS $16, left, left
	BNE bf16Loop
	RET

// func widenF16NEON(dst *float32, src *uint16, n int)
//
// n is a positive multiple of 16.
TEXT ·widenF16NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD n+16(FP), left

f16Loop:
	VLD1.P 32(from), [V4.H8, V5.H8]
	WORD $0x0E217880 // fcvtl v0.4s, v4.4h
	WORD $0x4E217881 // fcvtl2 v1.4s, v4.8h
	WORD $0x0E2178A2 // fcvtl v2.4s, v5.4h
	WORD $0x4E2178A3 // fcvtl2 v3.4s, v5.8h
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(to)
	SUBS $16, left, left
	BNE f16Loop
	RET

// func truncateBF16NEON(dst *uint16, src *float32, n int)
//
// n is a positive multiple of 16.
TEXT ·truncateBF16NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), to
	MOVD src+8(FP), from
	MOVD n+16(FP), left

halvesLoop:
	VLD1.P 64(from), [V0.S4, V1.S4, V2.S4, V3.S4]
	VUZP2 V1.H8, V0.H8, V0.H8
	VUZP2 V3.H8, V2.H8, V1.H8
	VST1.P [V0.H8, V1.H8], 32(to)
	SUBS $16, left, left
	BNE halvesLoop
	RET
