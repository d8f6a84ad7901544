//go:build !purego

#include "go_asm.h"
#include "textflag.h"

#include "vectors_avx512_amd64.h"

// Z24 and Z25 = the values of a panel of codes for one k, Z26 and Z27 for the next. Loads
// are scarce: float16s that went through memory took 8 % longer with 4 rows, half as long
// again with one.
#define CODES \
	VPMOVSXBW (DI), Z24 \
	VPMOVSXBW 32(DI), Z26 \
	VPMULLW Z28, Z24, Z24 \
	VPMULLW Z28, Z26, Z26 \
	VPANDQ Z29, Z24, Z24 \
	VPANDQ Z29, Z26, Z26 \
	VEXTRACTI64X4 $1, Z24, Y25 \
	VEXTRACTI64X4 $1, Z26, Y27 \
	VCVTPH2PS Y24, Z24 \
	VCVTPH2PS Y25, Z25 \
	VCVTPH2PS Y26, Z26 \
	VCVTPH2PS Y27, Z27

#define ROW(OP, A, Zb, Zc, Zd, Ze) \
	VBROADCASTSS A, Z30 \
	OP(Zb, Z30, Zd) \
	OP(Zc, Z30, Ze)

// Of 4 rows.

// Z28 is the multiplier, Z29 the mask, R10 is 3 rows of A.
#define PREPARE \
	VPBROADCASTQ Task_Multiplier(AX), Z28 \
	VPBROADCASTQ Task_Mask(AX), Z29 \
	MOVQ Task_StrideA(AX), R10 \
	LEAQ (R10)(R10*2), R10

#define PAIR(OP) \
	CODES \
	ROW(OP, (SI), Z24, Z25, Z0, Z1) \
	ROW(OP, (SI)(R8*1), Z24, Z25, Z2, Z3) \
	ROW(OP, (SI)(R8*2), Z24, Z25, Z4, Z5) \
	ROW(OP, (SI)(R10*1), Z24, Z25, Z6, Z7) \
	ROW(OP, 4(SI), Z26, Z27, Z8, Z9) \
	ROW(OP, 4(SI)(R8*1), Z26, Z27, Z10, Z11) \
	ROW(OP, 4(SI)(R8*2), Z26, Z27, Z12, Z13) \
	ROW(OP, 4(SI)(R10*1), Z26, Z27, Z14, Z15) \
	ADDQ $8, SI \
	PREFETCHT0 (DI)(CX*1) \
	ADDQ $64, DI

// func multiplyCodesAVX512(t *Task)
TEXT ·multiplyCodesAVX512(SB), NOSPLIT, $0-8
#include "codes_amd64.h"

// Of a single row, Z0 and Z1 are e, Z8 and Z9 are o and Z16 and Z17 are p.

#undef PREPARE
#undef PAIR
#undef CLEARP
#undef FOLD
#undef LOADP
#undef STOREP
#undef SCALE
#undef CANONICAL
#undef STOREC

#define PREPARE \
	VPBROADCASTQ Task_Multiplier(AX), Z28 \
	VPBROADCASTQ Task_Mask(AX), Z29

#define PAIR(OP) \
	CODES \
	ROW(OP, (SI), Z24, Z25, Z0, Z1) \
	ROW(OP, 4(SI), Z26, Z27, Z8, Z9) \
	ADDQ $8, SI \
	PREFETCHT0 (DI)(CX*1) \
	ADDQ $64, DI

#define CLEARP CLEAR2(Z16, Z17)

#define FOLD \
	FOLD1(Z0, Z8, Z16) \
	FOLD1(Z1, Z9, Z17)

#define LOADP LOAD2((R13), Z16, Z17)

#define STOREP STORE2((R13), Z16, Z17)

#define SCALE \
	SCALEB \
	SCALE2((R11), (DX), Z16, Z17)

#define CANONICAL \
	NAN \
	CANONICAL1(Z16) \
	CANONICAL1(Z17)

#define STOREC STORE2((DX), Z16, Z17)

// func multiplyCodesRowAVX512(t *Task)
TEXT ·multiplyCodesRowAVX512(SB), NOSPLIT, $0-8
#include "codes_amd64.h"

// func decodeFloat16AVX512(dst *float32, codes *byte, n int, multiplier, mask uint64, ahead int)
TEXT ·decodeFloat16AVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), SI
	MOVQ codes+8(FP), DI
	MOVQ n+16(FP), CX
	VPBROADCASTQ multiplier+24(FP), Z28
	VPBROADCASTQ mask+32(FP), Z29
	MOVQ ahead+40(FP), AX

// Of a register: with all these stores, others of memory would wait for them.
decode:
	VPMOVSXBW (DI), Z24
	VPMULLW Z28, Z24, Z24
	VPANDQ Z29, Z24, Z24
	VEXTRACTI64X4 $1, Z24, Y25
	VCVTPH2PS Y24, Z24
	VCVTPH2PS Y25, Z25
	STORE2((SI), Z24, Z25)
	PREFETCHT0 (DI)(AX*1)
	ADDQ $32, DI
	ADDQ $128, SI
	SUBQ $32, CX
	JNZ decode
	VZEROUPPER
	RET
