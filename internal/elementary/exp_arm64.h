// What the kernels share. They work on four vectors of two float64 at once, of which a
// macro is given the first one's number, so that none need wait for the others.
//
// The assembler lacks these instructions. The test of package asmtable compares each
// WORD with the text beside it, for all registers.
#define FADDS(m, n, d) WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d)) // fadd vd.4s, vn.4s, vm.4s
#define FSUBS(m, n, d) WORD $(0x4EA0D400 | (m)<<16 | (n)<<5 | (d)) // fsub vd.4s, vn.4s, vm.4s
#define FMULS(m, n, d) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d)) // fmul vd.4s, vn.4s, vm.4s
#define FNEGS(n, d) WORD $(0x6EA0F800 | (n)<<5 | (d)) // fneg vd.4s, vn.4s
#define FCMEQS(m, n, d) WORD $(0x4E20E400 | (m)<<16 | (n)<<5 | (d)) // fcmeq vd.4s, vn.4s, vm.4s
#define FADDD(m, n, d) WORD $(0x4E60D400 | (m)<<16 | (n)<<5 | (d)) // fadd vd.2d, vn.2d, vm.2d
#define FSUBD(m, n, d) WORD $(0x4EE0D400 | (m)<<16 | (n)<<5 | (d)) // fsub vd.2d, vn.2d, vm.2d
#define FMULD(m, n, d) WORD $(0x6E60DC00 | (m)<<16 | (n)<<5 | (d)) // fmul vd.2d, vn.2d, vm.2d
#define FDIVD(m, n, d) WORD $(0x6E60FC00 | (m)<<16 | (n)<<5 | (d)) // fdiv vd.2d, vn.2d, vm.2d
#define FMAXD(m, n, d) WORD $(0x4E60F400 | (m)<<16 | (n)<<5 | (d)) // fmax vd.2d, vn.2d, vm.2d
#define FMIND(m, n, d) WORD $(0x4EE0F400 | (m)<<16 | (n)<<5 | (d)) // fmin vd.2d, vn.2d, vm.2d
#define FRINTMD(n, d) WORD $(0x4E619800 | (n)<<5 | (d)) // frintm vd.2d, vn.2d
#define FCVTL(n, d) WORD $(0x0E617800 | (n)<<5 | (d)) // fcvtl vd.2d, vn.2s
#define FCVTL2(n, d) WORD $(0x4E617800 | (n)<<5 | (d)) // fcvtl2 vd.2d, vn.4s
#define FCVTN(n, d) WORD $(0x0E616800 | (n)<<5 | (d)) // fcvtn vd.2s, vn.2d
#define FCVTN2(n, d) WORD $(0x4E616800 | (n)<<5 | (d)) // fcvtn2 vd.4s, vn.2d

// OP with one vector, and with four.
#define WITH(OP, m, n, d) \
	OP(m, n, d) \
	OP(m, n+1, d+1) \
	OP(m, n+2, d+2) \
	OP(m, n+3, d+3)

#define EACH(OP, m, n, d) \
	OP(m, n, d) \
	OP(m+1, n+1, d+1) \
	OP(m+2, n+2, d+2) \
	OP(m+3, n+3, d+3)

#define UNARY(OP, n, d) \
	OP(n, d) \
	OP(n+1, d+1) \
	OP(n+2, d+2) \
	OP(n+3, d+3)

// WITH one of the numbers.
#define NUMBER(OP, number, n, d) \
	FMOVQ number(constants), F31 \
	WITH(OP, 31, n, d)

// V4 to V7 = V0 to V3 cut at the limit, and so are these. NaN stays NaN, of some kind.
#define CUT \
	NUMBER(FMIND, numbers_limit, 0, 0) \
	NUMBER(FMAXD, numbers_minusLimit, 0, 4)

// V8 to V11 = (1 + term1·r + term2·r·r + ...)·2**n, with r in V4 to V7 and n in V16 to V19,
// which become 2**n; V12 to V15 and V20 to V23 are lost.
#define SERIES(term1) \
	EACH(FMULD, 4, 4, 20) \
	NUMBER(FMULD, numbers_term10, 20, 8) \
	NUMBER(FMULD, numbers_term11, 20, 12) \
	NUMBER(FADDD, numbers_term8, 8, 8) \
	NUMBER(FADDD, numbers_term9, 12, 12) \
	EACH(FMULD, 20, 8, 8) \
	EACH(FMULD, 20, 12, 12) \
	NUMBER(FADDD, numbers_term6, 8, 8) \
	NUMBER(FADDD, numbers_term7, 12, 12) \
	EACH(FMULD, 20, 8, 8) \
	EACH(FMULD, 20, 12, 12) \
	NUMBER(FADDD, numbers_term4, 8, 8) \
	NUMBER(FADDD, numbers_term5, 12, 12) \
	EACH(FMULD, 20, 8, 8) \
	EACH(FMULD, 20, 12, 12) \
	NUMBER(FADDD, numbers_term2, 8, 8) \
	NUMBER(FADDD, numbers_term3, 12, 12) \
	EACH(FMULD, 20, 8, 8) \
	EACH(FMULD, 20, 12, 12) \
	NUMBER(FADDD, numbers_one, 8, 8) \
	NUMBER(FADDD, term1, 12, 12) \
	EACH(FMULD, 4, 12, 12) \
	EACH(FADDD, 12, 8, 8) \
	NUMBER(FADDD, numbers_power, 16, 16) \
	VSHL $52, V16.D2, V16.D2 \
	VSHL $52, V17.D2, V17.D2 \
	VSHL $52, V18.D2, V18.D2 \
	VSHL $52, V19.D2, V19.D2 \
	EACH(FMULD, 16, 8, 8)

// V8 to V11 = exp of V0 to V3, as exp.go has it; V4 to V7 and V12 to V23 are lost, V16 to
// V19 are 2**n. V0 to V3 are cut.
#define EXP \
	CUT \
	NUMBER(FMULD, numbers_log2E, 4, 16) \
	NUMBER(FADDD, numbers_half, 16, 16) \
	UNARY(FRINTMD, 16, 16) \
	NUMBER(FMULD, numbers_ln2, 16, 20) \
	EACH(FSUBD, 20, 4, 4) \
	SERIES(numbers_one)

// V8 to V11 = exp2 of V0 to V3, as exp2.go has it, with its numbers, of which the first
// term's is ln2; otherwise as EXP.
#define EXP2 \
	CUT \
	NUMBER(FADDD, numbers_half, 4, 16) \
	UNARY(FRINTMD, 16, 16) \
	EACH(FSUBD, 16, 4, 4) \
	SERIES(numbers_ln2)

// With V0 to V3 = -x: V8 to V11 = sigmoid(x), V16 to V19 = 1; the rest as for EXP.
#define SIGMOID \
	EXP \
	FMOVQ numbers_one(constants), F16 \
	VMOV V16.B16, V17.B16 \
	VMOV V16.B16, V18.B16 \
	VMOV V16.B16, V19.B16 \
	WITH(FADDD, 16, 8, 8) \
	EACH(FDIVD, 8, 16, 8)

// With what SIGMOID left: V12 to V15 = the derivative of SiLU at x; V4 to V7 are lost.
#define DERIVATIVE \
	NUMBER(FMAXD, numbers_minusLimit, 0, 4) \
	EACH(FSUBD, 8, 16, 12) \
	EACH(FMULD, 4, 12, 12) \
	EACH(FSUBD, 12, 16, 12) \
	EACH(FMULD, 8, 12, 12)

// Vd to Vd+3 = the float32s of Vn and Vn+1 as float64, and back.
#define WIDEN(n, d) \
	FCVTL2(n+1, d+3) \
	FCVTL(n+1, d+2) \
	FCVTL2(n, d+1) \
	FCVTL(n, d)

#define NARROW(n, d) \
	FCVTN(n, d) \
	FCVTN2(n+1, d) \
	FCVTN(n+2, d+1) \
	FCVTN2(n+3, d+1)

// The canonical NaN, that of V30, for every NaN of V, which has number n; F31 is lost.
#define CANONICAL(V, n) \
	FCMEQS(n, n, 31) \
	VBIF V31.B16, V30.B16, V.B16
