//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

// func nearestAVX2(dst, src *float32, n int, j *job)
TEXT ·nearestAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ j+24(FP), AX
	VBROADCASTSS job_multiplier(AX), Y8
	VBROADCASTSS job_stored(AX), Y9
	VPBROADCASTD job_largest(AX), Y10
	VPBROADCASTD job_minNormal(AX), Y11
	VPBROADCASTD job_drop(AX), Y12
	VPCMPEQD Y13, Y13, Y13
	VPSLLD $31, Y13, Y13 // the sign
	VPCMPEQD Y14, Y14, Y14
	VPSRLD $24, Y14, Y14
	VPSLLD $23, Y14, Y14 // an infinity

loop:
	VMOVUPS (SI), Y0
	VMULPS Y8, Y0, Y1
	VPANDN Y1, Y13, Y2
	VPCMPGTD Y2, Y14, Y6 // finite
	VPMINUD Y10, Y2, Y3
	VPAND Y14, Y3, Y4
	VPMAXUD Y11, Y4, Y4
	VPADDD Y12, Y4, Y4
	VADDPS Y4, Y3, Y3
	VSUBPS Y4, Y3, Y3
	VPAND Y13, Y1, Y5
	VPOR Y5, Y3, Y3
	VMULPS Y9, Y3, Y3
	VBLENDVPS Y6, Y3, Y0, Y3
	VMOVUPS Y3, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// func nearestBF16AVX2(dst, src *float32, n int, h *halves)
TEXT ·nearestBF16AVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ h+24(FP), AX
	VPBROADCASTD halves_one(AX), Y8
	VPBROADCASTD halves_below(AX), Y9
	VPBROADCASTD halves_upper(AX), Y10
	VPBROADCASTD halves_quiet(AX), Y11

loop:
	VMOVUPS (SI), Y0
	VPSRLD $16, Y0, Y1
	VPAND Y8, Y1, Y1
	VPADDD Y9, Y1, Y1
	VPADDD Y0, Y1, Y1
	VCMPPS $3, Y0, Y0, Y2 // NaN
	VPOR Y11, Y0, Y3
	VBLENDVPS Y2, Y3, Y1, Y1
	VPAND Y10, Y1, Y1
	VMOVUPS Y1, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// func extremesAVX2(src *float32, n int, e *extremes)
//
// n is a multiple of 16.
TEXT ·extremesAVX2(SB), NOSPLIT, $0-24
	MOVQ src+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ e+16(FP), AX
	VPCMPEQD Y8, Y8, Y8  // -1
	VPSRLD $1, Y8, Y9    // all but the sign
	VMOVDQU extremes_below(AX), Y0
	VMOVDQU Y8, Y1
	VMOVDQU extremes_greatest(AX), Y2
	VPXOR Y3, Y3, Y3
	TESTQ CX, CX
	JZ done

loop:
	VPAND (SI), Y9, Y4
	VPAND 32(SI), Y9, Y5
	VPMAXUD Y4, Y2, Y2
	VPMAXUD Y5, Y3, Y3
	VPADDD Y8, Y4, Y4
	VPADDD Y8, Y5, Y5
	VPMINUD Y4, Y0, Y0
	VPMINUD Y5, Y1, Y1
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ loop

done:
	VPMINUD Y1, Y0, Y0
	VPMAXUD Y3, Y2, Y2
	VMOVDQU Y0, extremes_below(AX)
	VMOVDQU Y2, extremes_greatest(AX)
	VZEROUPPER
	RET
