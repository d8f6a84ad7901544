//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

#define SIGN Z16
#define INFINITY Z17
#define MULTIPLIER Z18
#define STORED Z19
#define LARGEST Z20
#define MINNORMAL Z21
#define DROP Z22
#define MANTISSA Z23
#define FRACTION Z24
#define FIRST Z25
#define THEN Z26
#define SIXTEEN Z27
#define ODD Z28

#define LOADJOB \
	VBROADCASTSS job_multiplier(AX), MULTIPLIER \
	VBROADCASTSS job_stored(AX), STORED \
	VPBROADCASTD job_largest(AX), LARGEST \
	VPBROADCASTD job_minNormal(AX), MINNORMAL \
	VPTERNLOGD $0xFF, SIGN, SIGN, SIGN \
	VPSRLD $24, SIGN, INFINITY \
	VPSLLD $23, INFINITY, INFINITY \
	VPSLLD $31, SIGN, SIGN

// The factors of random.Mix, and the index, with the number that it adds, of the next
// eight elements in Z30 and of those after them in Z31.
#define LOADMIX(index) \
	VPBROADCASTQ mixing_first(BX), FIRST \
	VPBROADCASTQ mixing_then(BX), THEN \
	VPBROADCASTQ mixing_eight(BX), SIXTEEN \
	VPBROADCASTQ index, Z30 \
	VPADDQ mixing_lanes(BX), Z30, Z30 \
	VPADDQ SIXTEEN, Z30, Z31 \
	VPADDQ SIXTEEN, SIXTEEN, SIXTEEN

// K1 = the elements that are left, at most 16.
#define LEFT \
	MOVL $0xFFFF, DX \
	CMPQ CX, $16 \
	JGE whole \
	MOVL $1, DX \
	SHLL CX, DX \
	DECL DX \
whole: \
	KMOVW DX, K1

// Z1 = the scaled values of Z0, Z2 = their magnitudes, at most the largest number; K2 =
// those that are not finite.
#define MAGNITUDES \
	VMULPS MULTIPLIER, Z0, Z1 \
	VPANDND Z1, SIGN, Z2 \
	VPCMPD $5, INFINITY, Z2, K2 \
	VPMINUD LARGEST, Z2, Z2

// Z2, rounded magnitudes, gets the signs of Z1 and the scale; what is not finite is that
// of Z0.
#define FINISH \
	VPTERNLOGD $0xF8, SIGN, Z1, Z2 \
	VMULPS STORED, Z2, Z2 \
	VMOVDQU32 Z0, K2, Z2 \
	VMOVDQU32 Z2, K1, (DI)

#define NEXT \
	ADDQ $64, SI \
	ADDQ $64, DI \
	SUBQ $16, CX \
	JG loop \
	VZEROUPPER \
	RET

// The last steps of random.Mix of Zx but for the last exclusive or: Zx^Zt is the result.
#define MIX(Zx, Zt) \
	VPSRLQ $30, Zx, Zt \
	VPXORQ Zt, Zx, Zx \
	VPMULLQ FIRST, Zx, Zx \
	VPSRLQ $27, Zx, Zt \
	VPXORQ Zt, Zx, Zx \
	VPMULLQ THEN, Zx, Zx \
	VPSRLQ $31, Zx, Zt

// func nearestAVX512(dst, src *float32, n int, j *job)
TEXT ·nearestAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ j+24(FP), AX
	LOADJOB
	VPBROADCASTD job_drop(AX), DROP

loop:
	LEFT
	VMOVDQU32.Z (SI), K1, Z0
	MAGNITUDES
	VPANDD INFINITY, Z2, Z3
	VPMAXUD MINNORMAL, Z3, Z3
	VPADDD DROP, Z3, Z3
	VADDPS Z3, Z2, Z2
	VSUBPS Z3, Z2, Z2
	FINISH
	NEXT

// func stochasticAVX512(dst, src *float32, n int, j *job, m *mixing)
TEXT ·stochasticAVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ j+24(FP), AX
	MOVQ m+32(FP), BX
	LOADJOB
	VPBROADCASTD job_mantissa(AX), MANTISSA
	VPBROADCASTD job_fraction(AX), FRACTION
	LOADMIX(job_index(AX))
	VMOVDQU32 mixing_odd(BX), ODD

loop:
	LEFT
	VMOVDQU32.Z (SI), K1, Z0
	MAGNITUDES
	VPANDD INFINITY, Z2, Z3
	VPMAXUD MINNORMAL, Z3, Z3
	VPSUBD MANTISSA, Z3, Z3 // steps
	VPSUBD Z3, FRACTION, Z4
	VMULPS Z4, Z2, Z4
	VEXTRACTF64X4 $1, Z4, Y5
	VCVTTPS2QQ Y4, Z4
	VCVTTPS2QQ Y5, Z5
	VMOVDQA64 Z30, Z6
	VMOVDQA64 Z31, Z7
	VPADDQ SIXTEEN, Z30, Z30
	VPADDQ SIXTEEN, Z31, Z31
	MIX(Z6, Z8)
	MIX(Z7, Z9)
	VPTERNLOGQ $0xC3, Z8, Z8, Z6 // not of the exclusive or
	VPTERNLOGQ $0xC3, Z9, Z9, Z7
	VPSRLQ $32, Z6, Z6
	VPSRLQ $32, Z7, Z7
	VPADDQ Z6, Z4, Z4
	VPADDQ Z7, Z5, Z5
	VPERMT2D Z5, ODD, Z4
	VCVTDQ2PS Z4, Z4
	VMULPS Z3, Z4, Z2
	FINISH
	NEXT

// func nearestBF16AVX512(dst, src *float32, n int, h *halves)
TEXT ·nearestBF16AVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ h+24(FP), AX
	VPBROADCASTD halves_one(AX), Z16
	VPBROADCASTD halves_below(AX), Z17
	VPBROADCASTD halves_upper(AX), Z18
	VPBROADCASTD halves_quiet(AX), Z19

loop:
	LEFT
	VMOVDQU32.Z (SI), K1, Z0
	VPSRLD $16, Z0, Z1
	VPANDD Z16, Z1, Z1
	VPADDD Z17, Z1, Z1
	VPADDD Z0, Z1, Z1
	VCMPPS $3, Z0, Z0, K2 // NaN
	VPORD Z19, Z0, K2, Z1
	VPANDD Z18, Z1, Z1
	VMOVDQU32 Z1, K1, (DI)
	NEXT

// func randomBF16AVX512(dst, src *float32, n int, index uint64, m *mixing, h *halves)
TEXT ·randomBF16AVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ m+32(FP), BX
	MOVQ h+40(FP), AX
	LOADMIX(index+24(FP))
	VMOVDQU32 mixing_odd(BX), ODD
	VPBROADCASTD halves_infinity(AX), INFINITY
	VPBROADCASTD halves_upper(AX), Z18

loop:
	LEFT
	VMOVDQU32.Z (SI), K1, Z0
	VPANDD INFINITY, Z0, Z1
	VPCMPD $4, INFINITY, Z1, K2 // finite
	VMOVDQA64 Z30, Z6
	VMOVDQA64 Z31, Z7
	VPADDQ SIXTEEN, Z30, Z30
	VPADDQ SIXTEEN, Z31, Z31
	MIX(Z6, Z8)
	MIX(Z7, Z9)
	VPXORQ Z8, Z6, Z6
	VPXORQ Z9, Z7, Z7
	VPERMT2D Z7, ODD, Z6
	VPSRLD $16, Z6, Z6
	VPADDD Z6, Z0, Z6
	VPANDD Z18, Z6, K2, Z0
	VMOVDQU32 Z0, K1, (DI)
	NEXT
