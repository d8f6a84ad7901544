// What the kernels of both levels share. They work on two vectors of float64 at
// once, a small letter and its capital, so that one need not wait for the other.
// Each level has its own registers, names for the numbers, and FLOOR.

#define BOTH(OP, number, x, X) \
	OP number, x, x \
	OP number, X, X

#define EACH(OP, a, A, x, X) \
	OP a, x, x \
	OP A, X, X

// r = y cut at the limit, and NaN is taken for it; r may be y, and y is lost.
#define CUT(y, Y, r, R) \
	BOTH(VMINPD, LIMIT, y, Y) \
	VMAXPD MINUSLIMIT, y, r \
	VMAXPD MINUSLIMIT, Y, R

// e = (1 + term1·r + term2·r·r + ...)·2**n; n, o and s are lost.
#define SERIES(term1, e, E, n, N, o, O, r, R, s, S) \
	VMULPD r, r, s \
	VMULPD R, R, S \
	VMULPD TERM10, s, e \
	VMULPD TERM10, S, E \
	VMULPD TERM11, s, o \
	VMULPD TERM11, S, O \
	BOTH(VADDPD, TERM8, e, E) \
	BOTH(VADDPD, TERM9, o, O) \
	EACH(VMULPD, s, S, e, E) \
	EACH(VMULPD, s, S, o, O) \
	BOTH(VADDPD, TERM6, e, E) \
	BOTH(VADDPD, TERM7, o, O) \
	EACH(VMULPD, s, S, e, E) \
	EACH(VMULPD, s, S, o, O) \
	BOTH(VADDPD, TERM4, e, E) \
	BOTH(VADDPD, TERM5, o, O) \
	EACH(VMULPD, s, S, e, E) \
	EACH(VMULPD, s, S, o, O) \
	BOTH(VADDPD, TERM2, e, E) \
	BOTH(VADDPD, TERM3, o, O) \
	EACH(VMULPD, s, S, e, E) \
	EACH(VMULPD, s, S, o, O) \
	BOTH(VADDPD, ONE, e, E) \
	BOTH(VADDPD, term1, o, O) \
	EACH(VMULPD, r, R, o, O) \
	EACH(VADDPD, o, O, e, E) \
	BOTH(VADDPD, POWER, n, N) \
	VPSLLQ $52, n, n \
	VPSLLQ $52, N, N \
	EACH(VMULPD, n, N, e, E)

// e = exp(y), as exp.go has it; n, o, r and s are lost. y is cut; r may be y.
#define EXP(y, Y, e, E, n, N, o, O, r, R, s, S) \
	CUT(y, Y, r, R) \
	VMULPD LOG2E, r, n \
	VMULPD LOG2E, R, N \
	BOTH(VADDPD, HALF, n, N) \
	FLOOR $9, n, n \
	FLOOR $9, N, N \
	VMULPD LN2, n, s \
	VMULPD LN2, N, S \
	EACH(VSUBPD, s, S, r, R) \
	SERIES(ONE, e, E, n, N, o, O, r, R, s, S)

// e = exp2(y), as exp2.go has it, with its numbers, of which TERM1 is LN2; n, o, r and s
// are lost. y is cut; r may be y.
#define EXP2(y, Y, e, E, n, N, o, O, r, R, s, S) \
	CUT(y, Y, r, R) \
	VADDPD HALF, r, n \
	VADDPD HALF, R, N \
	FLOOR $9, n, n \
	FLOOR $9, N, N \
	EACH(VSUBPD, n, N, r, R) \
	SERIES(LN2, e, E, n, N, o, O, r, R, s, S)

// With y = -x: e = sigmoid(x) and n = 1; the rest as for EXP.
#define SIGMOID(y, Y, e, E, n, N, o, O, r, R, s, S) \
	EXP(y, Y, e, E, n, N, o, O, r, R, s, S) \
	VMOVUPD ONE, n \
	VMOVUPD ONE, N \
	EACH(VADDPD, n, N, e, E) \
	VDIVPD e, n, e \
	VDIVPD E, N, E

// With what SIGMOID left: o = the derivative of SiLU at x; r is lost.
#define DERIVATIVE(y, Y, e, E, n, N, o, O, r, R) \
	VMAXPD MINUSLIMIT, y, r \
	VMAXPD MINUSLIMIT, Y, R \
	VSUBPD e, n, o \
	VSUBPD E, N, O \
	EACH(VMULPD, r, R, o, O) \
	VSUBPD o, n, o \
	VSUBPD O, N, O \
	EACH(VMULPD, e, E, o, O)
