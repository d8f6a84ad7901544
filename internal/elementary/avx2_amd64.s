//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

#define FLOOR VROUNDPD
#define LIMIT numbers_limit(AX)
#define MINUSLIMIT numbers_minusLimit(AX)
#define LOG2E numbers_log2E(AX)
#define LN2 numbers_ln2(AX)
#define HALF numbers_half(AX)
#define TERM2 numbers_term2(AX)
#define TERM3 numbers_term3(AX)
#define TERM4 numbers_term4(AX)
#define TERM5 numbers_term5(AX)
#define TERM6 numbers_term6(AX)
#define TERM7 numbers_term7(AX)
#define TERM8 numbers_term8(AX)
#define TERM9 numbers_term9(AX)
#define TERM10 numbers_term10(AX)
#define TERM11 numbers_term11(AX)
#define ONE numbers_one(AX)
#define POWER numbers_power(AX)

#include "exp_amd64.h"

// Y15 = the first CX lanes.
#define LANES \
	VMOVD CX, X15 \
	VPBROADCASTD X15, Y15 \
	VPCMPGTD numbers_lanes(AX), Y15, Y15

// Y0 and Y1 = the float32 Y0 as float64; Y14 = which are NaN.
#define WIDEN \
	VCMPPS $3, Y0, Y0, Y14 \
	VEXTRACTF128 $1, Y0, X1 \
	VCVTPS2PD X0, Y0 \
	VCVTPS2PD X1, Y1

// Yx = the float64 Yx and Yhi as float32.
#define NARROW(Yx, Xx, Yhi, Xhi) \
	VCVTPD2PSY Yx, Xx \
	VCVTPD2PSY Yhi, Xhi \
	VINSERTF128 $1, Xhi, Yx, Yx

// The canonical NaN in the lanes of Y14.
#define NAN(Yx) VBLENDVPS Y14, numbers_nan(AX), Yx, Yx

// The canonical NaN for every NaN of Yx, whose sign and payload may come from an
// operand or be the processor's; Y14 is lost.
#define CANONICAL(Yx) \
	VCMPPS $3, Yx, Yx, Y14 \
	NAN(Yx)

// func expAVX2(dst, src *float32, n int, minus, times, factor float32, v *numbers)
//
// n is positive.
TEXT ·expAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS minus+24(FP), Y11
	VBROADCASTSS times+28(FP), Y12
	VBROADCASTSS factor+32(FP), Y13
	MOVQ v+40(FP), AX

loop:
	LANES
	VMASKMOVPS (SI), Y15, Y0
	VSUBPS Y11, Y0, Y0
	VMULPS Y12, Y0, Y0
	WIDEN
	EXP(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y0, Y1, Y8, Y9)
	NARROW(Y2, X2, Y3, X3)
	NAN(Y2)
	VMULPS Y13, Y2, Y2
	CANONICAL(Y2)
	CMPQ CX, $8
	JLT last
	VMOVUPS Y2, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

last:
	VMASKMOVPS Y2, Y15, (DI)
	VZEROUPPER
	RET

// func exp2AVX2(dst, src *float32, n int, minus, plus float32, v *numbers)
//
// n is positive.
TEXT ·exp2AVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS minus+24(FP), Y11
	VBROADCASTSS plus+28(FP), Y12
	MOVQ v+32(FP), AX

loop:
	LANES
	VMASKMOVPS (SI), Y15, Y0
	VSUBPS Y11, Y0, Y0
	VADDPS Y12, Y0, Y0
	WIDEN
	EXP2(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y0, Y1, Y8, Y9)
	NARROW(Y2, X2, Y3, X3)
	NAN(Y2)
	CMPQ CX, $8
	JLT last
	VMOVUPS Y2, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

last:
	VMASKMOVPS Y2, Y15, (DI)
	VZEROUPPER
	RET

// func swigluAVX2(z, u, gate, s *float32, n int, each bool, v *numbers)
//
// n is positive.
TEXT ·swigluAVX2(SB), NOSPLIT, $0-56
	MOVQ z+0(FP), DI
	MOVQ u+8(FP), R8
	MOVQ gate+16(FP), R9
	MOVQ s+24(FP), R10
	MOVQ n+32(FP), CX
	MOVBLZX each+40(FP), R11
	MOVQ v+48(FP), AX
	VBROADCASTSS (R10), Y12
	VMOVUPS numbers_sign(AX), Y13

loop:
	LANES
	VMASKMOVPS (R9), Y15, Y0
	VXORPS Y13, Y0, Y0
	WIDEN
	SIGMOID(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11)
	EACH(VMULPD, Y2, Y3, Y0, Y1)
	NARROW(Y0, X0, Y1, X1)
	VXORPS Y13, Y0, Y0
	NAN(Y0)
	TESTL R11, R11
	JEQ scaled
	VMASKMOVPS (R10), Y15, Y12
	ADDQ $32, R10

scaled:
	VMASKMOVPS (R8), Y15, Y2
	VMULPS Y2, Y12, Y2
	VMULPS Y0, Y2, Y2
	CANONICAL(Y2)
	CMPQ CX, $8
	JLT last
	VMOVUPS Y2, (DI)
	ADDQ $32, DI
	ADDQ $32, R8
	ADDQ $32, R9
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

last:
	VMASKMOVPS Y2, Y15, (DI)
	VZEROUPPER
	RET

// func swigluGradAVX2(du, dg, dz, u, gate, s *float32, n int, each bool, v *numbers)
//
// n is positive.
TEXT ·swigluGradAVX2(SB), NOSPLIT, $0-72
	MOVQ du+0(FP), DI
	MOVQ dg+8(FP), SI
	MOVQ dz+16(FP), R12
	MOVQ u+24(FP), R8
	MOVQ gate+32(FP), R9
	MOVQ s+40(FP), R10
	MOVQ n+48(FP), CX
	MOVBLZX each+56(FP), R11
	MOVQ v+64(FP), AX
	VBROADCASTSS (R10), Y12
	VMOVUPS numbers_sign(AX), Y13

loop:
	LANES
	VMASKMOVPS (R9), Y15, Y0
	VXORPS Y13, Y0, Y0
	WIDEN
	SIGMOID(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11)
	DERIVATIVE(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9)
	EACH(VMULPD, Y2, Y3, Y0, Y1)
	NARROW(Y0, X0, Y1, X1)
	NARROW(Y6, X6, Y7, X7)
	VXORPS Y13, Y0, Y0
	NAN(Y0)
	NAN(Y6)
	TESTL R11, R11
	JEQ scaled
	VMASKMOVPS (R10), Y15, Y12
	ADDQ $32, R10

scaled:
	VMASKMOVPS (R12), Y15, Y1
	VMULPS Y1, Y12, Y2
	VMULPS Y0, Y2, Y2
	VMASKMOVPS (R8), Y15, Y3
	VMULPS Y3, Y12, Y3
	VMULPS Y6, Y3, Y3
	VMULPS Y1, Y3, Y3
	CANONICAL(Y2)
	CANONICAL(Y3)
	CMPQ CX, $8
	JLT last
	VMOVUPS Y2, (DI)
	VMOVUPS Y3, (SI)
	ADDQ $32, DI
	ADDQ $32, SI
	ADDQ $32, R8
	ADDQ $32, R9
	ADDQ $32, R12
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

last:
	VMASKMOVPS Y2, Y15, (DI)
	VMASKMOVPS Y3, Y15, (SI)
	VZEROUPPER
	RET
