//go:build !purego

#include "go_asm.h"
#include "textflag.h"

#include "vectors_avx512_amd64.h"

// Products with panels of pairs: one load has a row's values for both k, and Z0 to Z15, four
// vectors for each of 4 rows, have e in even lanes and o in odd ones. Loads are what products
// of vectors wait for; this has two for each three of those of float32 K-major.
//
// Each pair of k has four vectors, in the order in which codes of two k are unpacked. In each
// are two lanes of columns 0 to 3 and two of 8 to 11, or of 16 to 19 and 24 to 27, and so on:
// pairs<> says of the first and of the third vector which of two vectors' elements they have.
DATA pairs<>+0(SB)/4, $0
DATA pairs<>+4(SB)/4, $16
DATA pairs<>+8(SB)/4, $1
DATA pairs<>+12(SB)/4, $17
DATA pairs<>+16(SB)/4, $2
DATA pairs<>+20(SB)/4, $18
DATA pairs<>+24(SB)/4, $3
DATA pairs<>+28(SB)/4, $19
DATA pairs<>+32(SB)/4, $8
DATA pairs<>+36(SB)/4, $24
DATA pairs<>+40(SB)/4, $9
DATA pairs<>+44(SB)/4, $25
DATA pairs<>+48(SB)/4, $10
DATA pairs<>+52(SB)/4, $26
DATA pairs<>+56(SB)/4, $11
DATA pairs<>+60(SB)/4, $27
GLOBL pairs<>(SB), RODATA|NOPTR, $64

// What FOLD leaves of 16 columns has the second and the third of each four pairs of them in
// each other's places.
DATA columns<>+0(SB)/4, $0
DATA columns<>+4(SB)/4, $1
DATA columns<>+8(SB)/4, $4
DATA columns<>+12(SB)/4, $5
DATA columns<>+16(SB)/4, $2
DATA columns<>+20(SB)/4, $3
DATA columns<>+24(SB)/4, $6
DATA columns<>+28(SB)/4, $7
DATA columns<>+32(SB)/4, $8
DATA columns<>+36(SB)/4, $9
DATA columns<>+40(SB)/4, $12
DATA columns<>+44(SB)/4, $13
DATA columns<>+48(SB)/4, $10
DATA columns<>+52(SB)/4, $11
DATA columns<>+56(SB)/4, $14
DATA columns<>+60(SB)/4, $15
GLOBL columns<>(SB), RODATA|NOPTR, $64

#define ARRANGE \
	VMOVDQU32 columns<>(SB), Z24 \
	VPERMPS Z16, Z24, Z16 \
	VPERMPS Z17, Z24, Z17 \
	VPERMPS Z18, Z24, Z18 \
	VPERMPS Z19, Z24, Z19 \
	VPERMPS Z20, Z24, Z20 \
	VPERMPS Z21, Z24, Z21 \
	VPERMPS Z22, Z24, Z22 \
	VPERMPS Z23, Z24, Z23

#undef FOLD

// p = p + (e + o), of two vectors.
#define FOLDPAIRS(Za, Zb, Zp) \
	VSHUFPS $0x88, Zb, Za, Z24 \
	VSHUFPS $0xDD, Zb, Za, Z25 \
	VADDPS Z25, Z24, Z24 \
	VADDPS Z24, Zp, Zp

#define FOLD \
	FOLDPAIRS(Z0, Z2, Z16) \
	FOLDPAIRS(Z1, Z3, Z17) \
	FOLDPAIRS(Z4, Z6, Z18) \
	FOLDPAIRS(Z5, Z7, Z19) \
	FOLDPAIRS(Z8, Z10, Z20) \
	FOLDPAIRS(Z9, Z11, Z21) \
	FOLDPAIRS(Z12, Z14, Z22) \
	FOLDPAIRS(Z13, Z15, Z23)

#define ROW(OP, A, Za, Zb, Zc, Zd) \
	VBROADCASTSD A, Z28 \
	OP(Z24, Z28, Za) \
	OP(Z25, Z28, Zb) \
	OP(Z26, Z28, Zc) \
	OP(Z27, Z28, Zd)

#define PAIR(OP) \
	VMOVUPS (DI), Z24 \
	VMOVUPS 64(DI), Z25 \
	VMOVUPS 128(DI), Z26 \
	VMOVUPS 192(DI), Z27 \
	ROW(OP, (SI), Z0, Z1, Z2, Z3) \
	ROW(OP, (SI)(R8*1), Z4, Z5, Z6, Z7) \
	ROW(OP, (SI)(R8*2), Z8, Z9, Z10, Z11) \
	ROW(OP, (SI)(R10*1), Z12, Z13, Z14, Z15) \
	ADDQ $8, SI \
	ADDQ $256, DI

#define CLEARC \
	VPXORD Z24, Z24, Z24 \
	STORE2((DX), Z24, Z24) \
	STORE2((DX)(R14*1), Z24, Z24) \
	STORE2((DX)(R14*2), Z24, Z24) \
	LEAQ (R14)(R14*2), R14 \
	STORE2((DX)(R14*1), Z24, Z24)

#define STOREOUT STOREP

#define ROWS 4

// func multiplyPairsAVX512(t *Task)
TEXT ·multiplyPairsAVX512(SB), NOSPLIT, $0-8
#include "loops_amd64.h"

// func decodePairsAVX512(dst *float32, codes *byte, n int, multiplier, mask uint64, ahead int)
TEXT ·decodePairsAVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), SI
	MOVQ codes+8(FP), DI
	MOVQ n+16(FP), CX
	VPBROADCASTQ multiplier+24(FP), Z28
	VPBROADCASTQ mask+32(FP), Z29
	MOVQ ahead+40(FP), AX

decode:
	VPMOVSXBW (DI), Z24
	VPMOVSXBW 32(DI), Z26
	VPMULLW Z28, Z24, Z24
	VPMULLW Z28, Z26, Z26
	VPANDQ Z29, Z24, Z24
	VPANDQ Z29, Z26, Z26
	VPUNPCKLWD Z26, Z24, Z25
	VPUNPCKHWD Z26, Z24, Z27
	VEXTRACTI64X4 $1, Z25, Y30
	VEXTRACTI64X4 $1, Z27, Y31
	VCVTPH2PS Y25, Z24
	VCVTPH2PS Y30, Z25
	VCVTPH2PS Y27, Z26
	VCVTPH2PS Y31, Z27
	VMOVUPS Z24, (SI)
	VMOVUPS Z25, 64(SI)
	VMOVUPS Z26, 128(SI)
	VMOVUPS Z27, 192(SI)
	PREFETCHT0 (DI)(AX*1)
	ADDQ $64, DI
	ADDQ $256, SI
	SUBQ $64, CX
	JNZ decode
	VZEROUPPER
	RET

// func pairUpAVX512(panel *float32, n int)
TEXT ·pairUpAVX512(SB), NOSPLIT, $0-16
	MOVQ panel+0(FP), SI
	MOVQ n+8(FP), CX
	VMOVDQU32 pairs<>(SB), Z28
	MOVL $4, AX
	VPBROADCASTD AX, Z29
	VPADDD Z29, Z28, Z29

pair:
	VMOVUPS (SI), Z16
	VMOVUPS 64(SI), Z17
	VMOVUPS 128(SI), Z18
	VMOVUPS 192(SI), Z19
	VMOVDQA32 Z28, Z24
	VMOVDQA32 Z28, Z25
	VMOVDQA32 Z29, Z26
	VMOVDQA32 Z29, Z27
	VPERMI2PS Z18, Z16, Z24
	VPERMI2PS Z19, Z17, Z25
	VPERMI2PS Z18, Z16, Z26
	VPERMI2PS Z19, Z17, Z27
	VMOVUPS Z24, (SI)
	VMOVUPS Z25, 64(SI)
	VMOVUPS Z26, 128(SI)
	VMOVUPS Z27, 192(SI)
	ADDQ $256, SI
	SUBQ $64, CX
	JNZ pair
	VZEROUPPER
	RET
