//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

#define constants R9

#include "exp_arm64.h"

// func expNEON(dst, src *float32, n int, minus, times, factor float32, v *numbers)
//
// n is a positive multiple of 8.
TEXT ·expNEON(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R2
	MOVWU minus+24(FP), R3
	VDUP R3, V24.S4
	MOVWU times+28(FP), R3
	VDUP R3, V25.S4
	MOVWU factor+32(FP), R3
	VDUP R3, V26.S4
	MOVD v+40(FP), constants
	FMOVQ numbers_nan(constants), F30

loop:
	VLD1.P 32(R1), [V28.S4, V29.S4]
	FSUBS(24, 28, 28)
	FSUBS(24, 29, 29)
	FMULS(25, 28, 28)
	FMULS(25, 29, 29)
	WIDEN(28, 0)
	EXP
	NARROW(8, 28)
	FMULS(26, 28, 28)
	FMULS(26, 29, 29)
	CANONICAL(V28, 28)
	CANONICAL(V29, 29)
	VST1.P [V28.S4, V29.S4], 32(R0)
	SUBS $8, R2
	BNE loop
	RET

// func exp2NEON(dst, src *float32, n int, minus, plus float32, v *numbers)
//
// n is a positive multiple of 8.
TEXT ·exp2NEON(SB), NOSPLIT, $0-40
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R2
	MOVWU minus+24(FP), R3
	VDUP R3, V24.S4
	MOVWU plus+28(FP), R3
	VDUP R3, V25.S4
	MOVD v+32(FP), constants
	FMOVQ numbers_nan(constants), F30

loop:
	VLD1.P 32(R1), [V28.S4, V29.S4]
	FSUBS(24, 28, 28)
	FSUBS(24, 29, 29)
	FADDS(25, 28, 28)
	FADDS(25, 29, 29)
	WIDEN(28, 0)
	EXP2
	NARROW(8, 28)
	CANONICAL(V28, 28)
	CANONICAL(V29, 29)
	VST1.P [V28.S4, V29.S4], 32(R0)
	SUBS $8, R2
	BNE loop
	RET

// func swigluNEON(z, u, gate, s *float32, n int, each bool, v *numbers)
//
// n is a positive multiple of 8.
TEXT ·swigluNEON(SB), NOSPLIT, $0-56
	MOVD z+0(FP), R0
	MOVD u+8(FP), R1
	MOVD gate+16(FP), R3
	MOVD s+24(FP), R4
	MOVD n+32(FP), R2
	MOVBU each+40(FP), R5
	MOVD v+48(FP), constants
	FMOVQ numbers_nan(constants), F30
	VLD1R (R4), [V26.S4]
	VMOV V26.B16, V27.B16

loop:
	VLD1.P 32(R3), [V28.S4, V29.S4]
	FNEGS(28, 28)
	FNEGS(29, 29)
	WIDEN(28, 0)
	SIGMOID
	EACH(FMULD, 0, 8, 8)
	NARROW(8, 28)
	FNEGS(28, 28)
	FNEGS(29, 29)
	CBZ R5, scaled
	VLD1.P 32(R4), [V26.S4, V27.S4]

scaled:
	VLD1.P 32(R1), [V24.S4, V25.S4]
	FMULS(24, 26, 24)
	FMULS(25, 27, 25)
	FMULS(28, 24, 24)
	FMULS(29, 25, 25)
	CANONICAL(V24, 24)
	CANONICAL(V25, 25)
	VST1.P [V24.S4, V25.S4], 32(R0)
	SUBS $8, R2
	BNE loop
	RET

// func swigluGradNEON(du, dg, dz, u, gate, s *float32, n int, each bool, v *numbers)
//
// n is a positive multiple of 8.
TEXT ·swigluGradNEON(SB), NOSPLIT, $0-72
	MOVD du+0(FP), R0
	MOVD dg+8(FP), R1
	MOVD dz+16(FP), R3
	MOVD u+24(FP), R4
	MOVD gate+32(FP), R5
	MOVD s+40(FP), R6
	MOVD n+48(FP), R2
	MOVBU each+56(FP), R7
	MOVD v+64(FP), constants
	FMOVQ numbers_nan(constants), F30
	VLD1R (R6), [V26.S4]
	VMOV V26.B16, V27.B16

loop:
	VLD1.P 32(R5), [V28.S4, V29.S4]
	FNEGS(28, 28)
	FNEGS(29, 29)
	WIDEN(28, 0)
	SIGMOID
	DERIVATIVE
	EACH(FMULD, 0, 8, 8)
	NARROW(8, 28)
	NARROW(12, 16)
	FNEGS(28, 28)
	FNEGS(29, 29)
	CBZ R7, scaled
	VLD1.P 32(R6), [V26.S4, V27.S4]

scaled:
	VLD1.P 32(R3), [V0.S4, V1.S4]
	VLD1.P 32(R4), [V2.S4, V3.S4]
	FMULS(0, 26, 4)
	FMULS(1, 27, 5)
	FMULS(28, 4, 4)
	FMULS(29, 5, 5)
	FMULS(2, 26, 2)
	FMULS(3, 27, 3)
	FMULS(16, 2, 2)
	FMULS(17, 3, 3)
	FMULS(0, 2, 2)
	FMULS(1, 3, 3)
	CANONICAL(V4, 4)
	CANONICAL(V5, 5)
	CANONICAL(V2, 2)
	CANONICAL(V3, 3)
	VST1.P [V4.S4, V5.S4], 32(R0)
	VST1.P [V2.S4, V3.S4], 32(R1)
	SUBS $8, R2
	BNE loop
	RET
