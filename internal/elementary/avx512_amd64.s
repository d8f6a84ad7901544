//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

#define FLOOR VRNDSCALEPD
#define LIMIT Z16
#define MINUSLIMIT Z17
#define LOG2E Z18
#define LN2 Z19
#define HALF Z20
#define TERM2 Z21
#define TERM3 Z22
#define TERM4 Z23
#define TERM5 Z24
#define TERM6 Z25
#define TERM7 Z26
#define TERM8 Z27
#define TERM9 Z28
#define TERM10 Z29
#define TERM11 Z30
#define ONE Z31
#define POWER Z15

#include "exp_amd64.h"

#define LOADNUMBERS \
	VBROADCASTSD numbers_limit(AX), LIMIT \
	VBROADCASTSD numbers_minusLimit(AX), MINUSLIMIT \
	VBROADCASTSD numbers_log2E(AX), LOG2E \
	VBROADCASTSD numbers_ln2(AX), LN2 \
	VBROADCASTSD numbers_half(AX), HALF \
	VBROADCASTSD numbers_term2(AX), TERM2 \
	VBROADCASTSD numbers_term3(AX), TERM3 \
	VBROADCASTSD numbers_term4(AX), TERM4 \
	VBROADCASTSD numbers_term5(AX), TERM5 \
	VBROADCASTSD numbers_term6(AX), TERM6 \
	VBROADCASTSD numbers_term7(AX), TERM7 \
	VBROADCASTSD numbers_term8(AX), TERM8 \
	VBROADCASTSD numbers_term9(AX), TERM9 \
	VBROADCASTSD numbers_term10(AX), TERM10 \
	VBROADCASTSD numbers_term11(AX), TERM11 \
	VBROADCASTSD numbers_one(AX), ONE \
	VBROADCASTSD numbers_power(AX), POWER

// K1 = the first CX lanes; Z0 is lost.
#define LANES \
	VPBROADCASTD CX, Z0 \
	VPCMPD $6, numbers_lanes(AX), Z0, K1

// Z0 and Z1 = the float32 Z0 as float64; K2 = which are NaN.
#define WIDEN \
	VCMPPS $3, Z0, Z0, K2 \
	VEXTRACTF64X4 $1, Z0, Y1 \
	VCVTPS2PD Y0, Z0 \
	VCVTPS2PD Y1, Z1

// Zx = the float64 Zx and Zhi as float32.
#define NARROW(Zx, Yx, Zhi, Yhi) \
	VCVTPD2PS Zx, Yx \
	VCVTPD2PS Zhi, Yhi \
	VINSERTF64X4 $1, Yhi, Zx, Zx

// The canonical NaN in the lanes of K2.
#define NAN(Zx) VBROADCASTSS numbers_nan(AX), K2, Zx

// The canonical NaN for every NaN of Zx, whose sign and payload may come from an
// operand or be the processor's; K2 is lost.
#define CANONICAL(Zx) \
	VCMPPS $3, Zx, Zx, K2 \
	NAN(Zx)

// func expAVX512(dst, src *float32, n int, minus, times, factor float32, v *numbers)
//
// n is positive.
TEXT ·expAVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS minus+24(FP), Z12
	VBROADCASTSS times+28(FP), Z13
	VBROADCASTSS factor+32(FP), Z14
	MOVQ v+40(FP), AX
	LOADNUMBERS

loop:
	LANES
	VMOVUPS.Z (SI), K1, Z0
	VSUBPS Z12, Z0, Z0
	VMULPS Z13, Z0, Z0
	WIDEN
	EXP(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z8, Z9)
	NARROW(Z2, Y2, Z3, Y3)
	NAN(Z2)
	VMULPS Z14, Z2, Z2
	CANONICAL(Z2)
	VMOVUPS Z2, K1, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JG loop
	VZEROUPPER
	RET

// func exp2AVX512(dst, src *float32, n int, minus, plus float32, v *numbers)
//
// n is positive.
TEXT ·exp2AVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS minus+24(FP), Z12
	VBROADCASTSS plus+28(FP), Z13
	MOVQ v+32(FP), AX
	LOADNUMBERS

loop:
	LANES
	VMOVUPS.Z (SI), K1, Z0
	VSUBPS Z12, Z0, Z0
	VADDPS Z13, Z0, Z0
	WIDEN
	EXP2(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z0, Z1, Z8, Z9)
	NARROW(Z2, Y2, Z3, Y3)
	NAN(Z2)
	VMOVUPS Z2, K1, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JG loop
	VZEROUPPER
	RET

// func swigluAVX512(z, u, gate, s *float32, n int, each bool, v *numbers)
//
// n is positive.
TEXT ·swigluAVX512(SB), NOSPLIT, $0-56
	MOVQ z+0(FP), DI
	MOVQ u+8(FP), R8
	MOVQ gate+16(FP), R9
	MOVQ s+24(FP), R10
	MOVQ n+32(FP), CX
	MOVBLZX each+40(FP), R11
	MOVQ v+48(FP), AX
	LOADNUMBERS
	VBROADCASTSS numbers_sign(AX), Z13
	VBROADCASTSS (R10), Z12

loop:
	LANES
	VXORPS.Z (R9), Z13, K1, Z0
	WIDEN
	SIGMOID(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11)
	EACH(VMULPD, Z2, Z3, Z0, Z1)
	NARROW(Z0, Y0, Z1, Y1)
	VXORPS Z13, Z0, Z0
	NAN(Z0)
	TESTL R11, R11
	JEQ scaled
	VMOVUPS.Z (R10), K1, Z12
	ADDQ $64, R10

scaled:
	VMULPS.Z (R8), Z12, K1, Z2
	VMULPS Z0, Z2, Z2
	CANONICAL(Z2)
	VMOVUPS Z2, K1, (DI)
	ADDQ $64, DI
	ADDQ $64, R8
	ADDQ $64, R9
	SUBQ $16, CX
	JG loop
	VZEROUPPER
	RET

// func swigluGradAVX512(du, dg, dz, u, gate, s *float32, n int, each bool, v *numbers)
//
// n is positive.
TEXT ·swigluGradAVX512(SB), NOSPLIT, $0-72
	MOVQ du+0(FP), DI
	MOVQ dg+8(FP), SI
	MOVQ dz+16(FP), R12
	MOVQ u+24(FP), R8
	MOVQ gate+32(FP), R9
	MOVQ s+40(FP), R10
	MOVQ n+48(FP), CX
	MOVBLZX each+56(FP), R11
	MOVQ v+64(FP), AX
	LOADNUMBERS
	VBROADCASTSS numbers_sign(AX), Z13
	VBROADCASTSS (R10), Z12

loop:
	LANES
	VXORPS.Z (R9), Z13, K1, Z0
	WIDEN
	SIGMOID(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11)
	DERIVATIVE(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9)
	EACH(VMULPD, Z2, Z3, Z0, Z1)
	NARROW(Z0, Y0, Z1, Y1)
	NARROW(Z6, Y6, Z7, Y7)
	VXORPS Z13, Z0, Z0
	NAN(Z0)
	NAN(Z6)
	TESTL R11, R11
	JEQ scaled
	VMOVUPS.Z (R10), K1, Z12
	ADDQ $64, R10

scaled:
	VMOVUPS.Z (R12), K1, Z1
	VMULPS Z1, Z12, Z2
	VMULPS Z0, Z2, Z2
	VMULPS.Z (R8), Z12, K1, Z3
	VMULPS Z6, Z3, Z3
	VMULPS Z1, Z3, Z3
	CANONICAL(Z2)
	CANONICAL(Z3)
	VMOVUPS Z2, K1, (DI)
	VMOVUPS Z3, K1, (SI)
	ADDQ $64, DI
	ADDQ $64, SI
	ADDQ $64, R8
	ADDQ $64, R9
	ADDQ $64, R12
	SUBQ $16, CX
	JG loop
	VZEROUPPER
	RET
