// What the kernels of products share at level avx2.

#define PAIRS 16

#define MULTIPLY(Yb, Ya, Yd) VMULPS Yb, Ya, Yd
#define ADD(Yb, Ya, Yd) VFMADD231PS Yb, Ya, Yd

#define FOLD1(Ye, Yo, P) \
	VADDPS Yo, Ye, Ye \
	VADDPS P, Ye, Ye \
	VMOVUPS Ye, P

#define MOVE2(From, From1, To, To1) \
	VMOVUPS From, Y12 \
	VMOVUPS From1, Y13 \
	VMOVUPS Y12, To \
	VMOVUPS Y13, To1

#define STORE2(To, To1, Ya, Yb) \
	VMOVUPS Ya, To \
	VMOVUPS Yb, To1

// Of 16 columns of a row, Ya and Yb = fma(p*sa, sb, c), of scales in Y8 and Y9.
#define SCALE2(A, C, C1, P, P1, Ya, Yb) \
	VBROADCASTSS A, Y14 \
	VMULPS P, Y14, Ya \
	VMULPS P1, Y14, Yb \
	VFMADD213PS C, Y8, Ya \
	VFMADD213PS C1, Y9, Yb

#define NAN \
	MOVL $0x7FC00000, R13 \
	VMOVD R13, X13 \
	VPBROADCASTD X13, Y13

#define CANONICAL1(Yp) \
	VCMPPS $3, Yp, Yp, Y12 \
	VBLENDVPS Y12, Y13, Yp, Yp

// Of a register block of 3 rows, each of two vectors, Y0 to Y5 are e and Y6 to Y11 are o; p
// is on the stack, below the 32 bytes where kernels that read codes have the mask.

#define CLEARP \
	VPXOR Y12, Y12, Y12 \
	STORE2(p0-224(SP), p1-192(SP), Y12, Y12) \
	STORE2(p2-160(SP), p3-128(SP), Y12, Y12) \
	STORE2(p4-96(SP), p5-64(SP), Y12, Y12)

#define FOLD \
	FOLD1(Y0, Y6, p0-224(SP)) \
	FOLD1(Y1, Y7, p1-192(SP)) \
	FOLD1(Y2, Y8, p2-160(SP)) \
	FOLD1(Y3, Y9, p3-128(SP)) \
	FOLD1(Y4, Y10, p4-96(SP)) \
	FOLD1(Y5, Y11, p5-64(SP))

#define LOADP \
	MOVE2((R13), 32(R13), p0-224(SP), p1-192(SP)) \
	MOVE2((R13)(R14*1), 32(R13)(R14*1), p2-160(SP), p3-128(SP)) \
	MOVE2((R13)(R14*2), 32(R13)(R14*2), p4-96(SP), p5-64(SP))

#define STOREP \
	MOVE2(p0-224(SP), p1-192(SP), (R13), 32(R13)) \
	MOVE2(p2-160(SP), p3-128(SP), (R13)(R14*1), 32(R13)(R14*1)) \
	MOVE2(p4-96(SP), p5-64(SP), (R13)(R14*2), 32(R13)(R14*2))

#define SCALE \
	VMOVUPS (R12), Y8 \
	VMOVUPS 32(R12), Y9 \
	SCALE2((R11), (DX), 32(DX), p0-224(SP), p1-192(SP), Y0, Y1) \
	SCALE2((R11)(R13*1), (DX)(R14*1), 32(DX)(R14*1), p2-160(SP), p3-128(SP), Y2, Y3) \
	SCALE2((R11)(R13*2), (DX)(R14*2), 32(DX)(R14*2), p4-96(SP), p5-64(SP), Y4, Y5)

#define CANONICAL \
	NAN \
	CANONICAL1(Y0) \
	CANONICAL1(Y1) \
	CANONICAL1(Y2) \
	CANONICAL1(Y3) \
	CANONICAL1(Y4) \
	CANONICAL1(Y5)

#define STOREC \
	STORE2((DX), 32(DX), Y0, Y1) \
	STORE2((DX)(R14*1), 32(DX)(R14*1), Y2, Y3) \
	STORE2((DX)(R14*2), 32(DX)(R14*2), Y4, Y5)
