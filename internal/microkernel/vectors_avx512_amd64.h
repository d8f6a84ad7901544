// What the kernels of products share at level avx512.

#define PAIRS 16

#define MULTIPLY(Zb, Za, Zd) VMULPS Zb, Za, Zd
#define ADD(Zb, Za, Zd) VFMADD231PS Zb, Za, Zd

#define DOT(m, n, d) BYTE $0x62; BYTE $(0xF2 ^ (((d)&8)<<4) ^ ((d)&16) ^ (((m)&8)<<2) ^ (((m)&16)<<2)); BYTE $(0x7E ^ (((n)&15)<<3)); BYTE $(0x48 ^ (((n)&16)>>1)); BYTE $0x52; BYTE $(0xC0 | (((d)&7)<<3) | ((m)&7)) // vdpbf16ps zmmd,zmmn,zmmm

#define CLEAR2(Za, Zb) \
	VPXORD Za, Za, Za \
	VPXORD Zb, Zb, Zb

#define FOLD1(Ze, Zo, Zp) \
	VADDPS Zo, Ze, Ze \
	VADDPS Ze, Zp, Zp

#define LOAD2(P, Za, Zb) \
	VMOVUPS P, Za \
	VMOVUPS 64 P, Zb

#define STORE2(P, Za, Zb) \
	VMOVUPS Za, P \
	VMOVUPS Zb, 64 P

// Z24 and Z25 = the scales of B.
#define SCALEB \
	VMOVUPS (R12), Z24 \
	VMOVUPS 64(R12), Z25

// A row's p = fma(p*sa, sb, c).
#define SCALE2(A, C, Za, Zb) \
	VMULPS.BCST A, Za, Za \
	VMULPS.BCST A, Zb, Zb \
	VFMADD213PS C, Z24, Za \
	VFMADD213PS 64 C, Z25, Zb

#define NAN \
	MOVL $0x7FC00000, R13 \
	VPBROADCASTD R13, Z26

#define CANONICAL1(Zp) \
	VCMPPS $3, Zp, Zp, K1 \
	VMOVDQA32 Z26, K1, Zp

// Of a register block of 4 rows, each of two vectors, Z0 to Z7 are e, Z8 to Z15 are o and
// Z16 to Z23 are p.

#define CLEARP \
	CLEAR2(Z16, Z17) \
	CLEAR2(Z18, Z19) \
	CLEAR2(Z20, Z21) \
	CLEAR2(Z22, Z23)

#define FOLD \
	FOLD1(Z0, Z8, Z16) \
	FOLD1(Z1, Z9, Z17) \
	FOLD1(Z2, Z10, Z18) \
	FOLD1(Z3, Z11, Z19) \
	FOLD1(Z4, Z12, Z20) \
	FOLD1(Z5, Z13, Z21) \
	FOLD1(Z6, Z14, Z22) \
	FOLD1(Z7, Z15, Z23)

#define LOADP \
	LOAD2((R13), Z16, Z17) \
	LOAD2((R13)(R14*1), Z18, Z19) \
	LOAD2((R13)(R14*2), Z20, Z21) \
	LEAQ (R14)(R14*2), R14 \
	LOAD2((R13)(R14*1), Z22, Z23)

#define STOREP \
	STORE2((R13), Z16, Z17) \
	STORE2((R13)(R14*1), Z18, Z19) \
	STORE2((R13)(R14*2), Z20, Z21) \
	LEAQ (R14)(R14*2), R14 \
	STORE2((R13)(R14*1), Z22, Z23)

#define SCALE \
	SCALEB \
	SCALE2((R11), (DX), Z16, Z17) \
	SCALE2((R11)(R13*1), (DX)(R14*1), Z18, Z19) \
	SCALE2((R11)(R13*2), (DX)(R14*2), Z20, Z21) \
	LEAQ (R13)(R13*2), R13 \
	LEAQ (R14)(R14*2), R14 \
	SCALE2((R11)(R13*1), (DX)(R14*1), Z22, Z23)

#define CANONICAL \
	NAN \
	CANONICAL1(Z16) \
	CANONICAL1(Z17) \
	CANONICAL1(Z18) \
	CANONICAL1(Z19) \
	CANONICAL1(Z20) \
	CANONICAL1(Z21) \
	CANONICAL1(Z22) \
	CANONICAL1(Z23)

// R14 is 3 rows on entry.
#define STOREC \
	STORE2((DX)(R14*1), Z22, Z23) \
	MOVQ Task_StrideC(AX), R14 \
	STORE2((DX), Z16, Z17) \
	STORE2((DX)(R14*1), Z18, Z19) \
	STORE2((DX)(R14*2), Z20, Z21)
