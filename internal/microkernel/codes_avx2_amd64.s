//go:build !purego

#include "go_asm.h"
#include "textflag.h"

#include "vectors_avx2_amd64.h"

// Y15 is the multiplier, the mask is on the stack.
#define PREPARE \
	VPBROADCASTQ Task_Mask(AX), Y15 \
	VMOVDQU Y15, mask-32(SP) \
	VPBROADCASTQ Task_Multiplier(AX), Y15

// Y12 = 16 codes as float16s, for memory, where conversion takes less.
#define FLOAT16S(From, To) \
	VPMOVSXBW From, Y12 \
	VPMULLW Y15, Y12, Y12 \
	VPAND mask-32(SP), Y12, Y12 \
	VMOVDQU Y12, To

// OP for a value of A and 16 columns, as float16s.
#define COLUMNS(OP, Low, High, Ya, Yb) \
	VCVTPH2PS Low, Y12 \
	VCVTPH2PS High, Y13 \
	OP(Y12, Y14, Ya) \
	OP(Y13, Y14, Yb)

// Of 3 rows, 16 columns.

#define ROW(OP, A, Ya, Yb) \
	VBROADCASTSS A, Y14 \
	OP(Y12, Y14, Ya) \
	OP(Y13, Y14, Yb)

#define PAIR(OP) \
	FLOAT16S((DI), f0-288(SP)) \
	FLOAT16S(32(DI), f2-256(SP)) \
	VCVTPH2PS f0-288(SP), Y12 \
	VCVTPH2PS f1-272(SP), Y13 \
	ROW(OP, (SI), Y0, Y1) \
	ROW(OP, (SI)(R8*1), Y2, Y3) \
	ROW(OP, (SI)(R8*2), Y4, Y5) \
	VCVTPH2PS f2-256(SP), Y12 \
	VCVTPH2PS f3-240(SP), Y13 \
	ROW(OP, 4(SI), Y6, Y7) \
	ROW(OP, 4(SI)(R8*1), Y8, Y9) \
	ROW(OP, 4(SI)(R8*2), Y10, Y11) \
	ADDQ $8, SI \
	PREFETCHT0 (DI)(CX*1) \
	ADDQ $64, DI

// func multiplyCodesAVX2(t *Task)
TEXT ·multiplyCodesAVX2(SB), NOSPLIT, $288-8
#include "codes_amd64.h"

// Of a single row, all columns: Y0 to Y3 are e, Y4 to Y7 are o; p is on the stack.

#undef PAIR
#undef CLEARP
#undef FOLD
#undef LOADP
#undef STOREP
#undef SCALE
#undef CANONICAL
#undef STOREC

#define PAIR(OP) \
	FLOAT16S((DI), f0-96(SP)) \
	FLOAT16S(16(DI), f2-64(SP)) \
	VBROADCASTSS (SI), Y14 \
	COLUMNS(OP, f0-96(SP), f1-80(SP), Y0, Y1) \
	COLUMNS(OP, f2-64(SP), f3-48(SP), Y2, Y3) \
	FLOAT16S(32(DI), f0-96(SP)) \
	FLOAT16S(48(DI), f2-64(SP)) \
	VBROADCASTSS 4(SI), Y14 \
	COLUMNS(OP, f0-96(SP), f1-80(SP), Y4, Y5) \
	COLUMNS(OP, f2-64(SP), f3-48(SP), Y6, Y7) \
	ADDQ $8, SI \
	PREFETCHT0 (DI)(CX*1) \
	ADDQ $64, DI

#define CLEARP \
	VPXOR Y12, Y12, Y12 \
	STORE2(p0-224(SP), p1-192(SP), Y12, Y12) \
	STORE2(p2-160(SP), p3-128(SP), Y12, Y12)

#define FOLD \
	FOLD1(Y0, Y4, p0-224(SP)) \
	FOLD1(Y1, Y5, p1-192(SP)) \
	FOLD1(Y2, Y6, p2-160(SP)) \
	FOLD1(Y3, Y7, p3-128(SP))

#define LOADP \
	MOVE2((R13), 32(R13), p0-224(SP), p1-192(SP)) \
	MOVE2(64(R13), 96(R13), p2-160(SP), p3-128(SP))

#define STOREP \
	MOVE2(p0-224(SP), p1-192(SP), (R13), 32(R13)) \
	MOVE2(p2-160(SP), p3-128(SP), 64(R13), 96(R13))

#define SCALE \
	VMOVUPS (R12), Y8 \
	VMOVUPS 32(R12), Y9 \
	SCALE2((R11), (DX), 32(DX), p0-224(SP), p1-192(SP), Y0, Y1) \
	VMOVUPS 64(R12), Y8 \
	VMOVUPS 96(R12), Y9 \
	SCALE2((R11), 64(DX), 96(DX), p2-160(SP), p3-128(SP), Y2, Y3)

#define CANONICAL \
	NAN \
	CANONICAL1(Y0) \
	CANONICAL1(Y1) \
	CANONICAL1(Y2) \
	CANONICAL1(Y3)

#define STOREC \
	STORE2((DX), 32(DX), Y0, Y1) \
	STORE2(64(DX), 96(DX), Y2, Y3)

// For formats whose float16s may be no numbers, and processors that are slow at denormals.
TEXT halvesRow<>(SB), NOSPLIT, $224-8
#include "codes_amd64.h"

// The same without conversions, which take about as long as all else: the bits of a float16
// are put 13 higher, into a float32, which is then 2^-112 of its value, a small one denormal.
// A is taken times 2^96. Sums are 2^-16 of what they are, with the same bits, until they are
// folded into p. A float16 that is no number would become one: this is for formats that have
// none.

#undef PREPARE
#undef PAIR
#undef CLEARP
#undef FOLD
#undef LOADP

// Y10 and Y11 put 8 of 16 codes on top of a float32 each, Y15 is the multiplier from there,
// Y12 is 2^96 and Y13 the mask, which scales of blocks leave to the stack.
#define PREPARE \
	VMOVDQU lowCodes<>(SB), Y10 \
	VMOVDQU highCodes<>(SB), Y11 \
	MOVWLZX Task_Multiplier(AX), R8 \
	SHLL $21, R8 \
	VMOVD R8, X15 \
	VPBROADCASTD X15, Y15 \
	MOVL Task_Mask(AX), R8 \
	ANDL $0x7FFF, R8 \
	SHLL $13, R8 \
	ORL $(1<<31), R8 \
	VMOVD R8, X12 \
	VPBROADCASTD X12, Y12 \
	VMOVDQU Y12, mask-32(SP)

// What scales of a block take.
#define RESTORE \
	VBROADCASTSS large<>(SB), Y12 \
	VMOVDQU mask-32(SP), Y13

#define CLEARP \
	VPXOR Y12, Y12, Y12 \
	STORE2(p0-224(SP), p1-192(SP), Y12, Y12) \
	STORE2(p2-160(SP), p3-128(SP), Y12, Y12) \
	RESTORE

#define LOADP \
	MOVE2((R13), 32(R13), p0-224(SP), p1-192(SP)) \
	MOVE2(64(R13), 96(R13), p2-160(SP), p3-128(SP)) \
	RESTORE

DATA lowCodes<>+0(SB)/8, $0x0180808000808080
DATA lowCodes<>+8(SB)/8, $0x0380808002808080
DATA lowCodes<>+16(SB)/8, $0x0580808004808080
DATA lowCodes<>+24(SB)/8, $0x0780808006808080
GLOBL lowCodes<>(SB), RODATA|NOPTR, $32
DATA highCodes<>+0(SB)/8, $0x0980808008808080
DATA highCodes<>+8(SB)/8, $0x0B8080800A808080
DATA highCodes<>+16(SB)/8, $0x0D8080800C808080
DATA highCodes<>+24(SB)/8, $0x0F8080800E808080
GLOBL highCodes<>(SB), RODATA|NOPTR, $32
DATA large<>+0(SB)/4, $0x6F800000
GLOBL large<>(SB), RODATA|NOPTR, $4
DATA whole<>+0(SB)/4, $0x47800000
GLOBL whole<>(SB), RODATA|NOPTR, $4

// OP for a value of A and 16 codes.
#define CODES(OP, From, Ya, Yb) \
	VBROADCASTI128 From, Y8 \
	VPSHUFB Y11, Y8, Y9 \
	VPSHUFB Y10, Y8, Y8 \
	VPMADDWD Y15, Y8, Y8 \
	VPMADDWD Y15, Y9, Y9 \
	VPAND Y13, Y8, Y8 \
	VPAND Y13, Y9, Y9 \
	OP(Y8, Y14, Ya) \
	OP(Y9, Y14, Yb)

#define PAIR(OP) \
	VBROADCASTSS (SI), Y14 \
	VMULPS Y12, Y14, Y14 \
	CODES(OP, (DI), Y0, Y1) \
	CODES(OP, 16(DI), Y2, Y3) \
	VBROADCASTSS 4(SI), Y14 \
	VMULPS Y12, Y14, Y14 \
	CODES(OP, 32(DI), Y4, Y5) \
	CODES(OP, 48(DI), Y6, Y7) \
	ADDQ $8, SI \
	PREFETCHT0 (DI)(CX*1) \
	ADDQ $64, DI

#define FOLDWHOLE(Ye, Yo, P) \
	VADDPS Yo, Ye, Ye \
	VFMADD213PS P, Y8, Ye \
	VMOVUPS Ye, P

#define FOLD \
	VBROADCASTSS whole<>(SB), Y8 \
	FOLDWHOLE(Y0, Y4, p0-224(SP)) \
	FOLDWHOLE(Y1, Y5, p1-192(SP)) \
	FOLDWHOLE(Y2, Y6, p2-160(SP)) \
	FOLDWHOLE(Y3, Y7, p3-128(SP))

TEXT numbersRow<>(SB), NOSPLIT, $224-8
#include "codes_amd64.h"

// Register blocks of 4 rows and 16 columns, whose A is taken times 2^112/Whole already, in the
// same way. Y0 to Y7 are e, of the even k of a chunk, and then o, of the odd ones, since both at
// once would take all registers; e and p are on the stack.

#define ROW4(OP, A, Ya, Yb) \
	VBROADCASTSS A, Y14 \
	OP(Y8, Y14, Ya) \
	OP(Y9, Y14, Yb)

#define CODES4(OP, A, At) \
	VBROADCASTI128 At(DI), Y8 \
	VPSHUFB Y11, Y8, Y9 \
	VPSHUFB Y10, Y8, Y8 \
	VPMADDWD Y15, Y8, Y8 \
	VPMADDWD Y15, Y9, Y9 \
	VPAND Y13, Y8, Y8 \
	VPAND Y13, Y9, Y9 \
	ROW4(OP, A(SI), Y0, Y1) \
	ROW4(OP, A(SI)(R8*1), Y2, Y3) \
	ROW4(OP, A(SI)(R8*2), Y4, Y5) \
	ROW4(OP, A(SI)(R10*1), Y6, Y7) \
	ADDQ $8, SI \
	ADDQ $64, DI

#define EIGHT(OP) \
	OP(Y0, 0) \
	OP(Y1, 32) \
	OP(Y2, 64) \
	OP(Y3, 96) \
	OP(Y4, 128) \
	OP(Y5, 160) \
	OP(Y6, 192) \
	OP(Y7, 224)

#define CLEARP4(Yx, At) VMOVUPS Y12, p-288+At(SP)
#define STOREE4(Yx, At) VMOVUPS Yx, e-544+At(SP)
#define FOLD4(Yx, At) \
	VADDPS e-544+At(SP), Yx, Yx \
	VFMADD213PS p-288+At(SP), Y12, Yx \
	VMOVUPS Yx, p-288+At(SP)

#define SCALE4(At) \
	SCALE2((R13), (DX), 32(DX), p-288+At(SP), p-256+At(SP), Y0, Y1) \
	STORE2((DX), 32(DX), Y0, Y1) \
	ADDQ Task_StrideScaleA(AX), R13 \
	ADDQ R14, DX

// func multiplyCodeBlocksAVX2(t *Task)
TEXT ·multiplyCodeBlocksAVX2(SB), NOSPLIT, $552-8
	MOVQ t+0(FP), AX
	PREPARE
	VMOVDQU mask-32(SP), Y13
	MOVQ Task_StrideA(AX), R8
	LEAQ (R8)(R8*2), R10
	MOVQ Task_A(AX), R9
	MOVQ Task_ScaleA(AX), R11
	MOVQ Task_ScaleB(AX), R12
	MOVQ Task_C(AX), DX
	MOVQ Task_Ahead(AX), CX
	MOVQ Task_RowBlocks(AX), BX
	MOVQ BX, blocks-552(SP)

rows:
	MOVQ R9, SI
	MOVQ Task_Codes(AX), DI
	MOVQ Task_Pairs(AX), R14
	VPXOR Y12, Y12, Y12
	EIGHT(CLEARP4)

chunk:
	MOVQ $16, R13
	CMPQ R14, R13
	CMOVQLT R14, R13
	SUBQ R13, R14
	MOVQ R13, BX
	CODES4(MULTIPLY, 0, 0)
	DECQ BX
	JZ odd

even:
	PREFETCHT0 (DI)(CX*1)
	CODES4(ADD, 0, 0)
	DECQ BX
	JNZ even

odd:
	EIGHT(STOREE4)
	MOVQ R13, BX
	SHLQ $3, BX
	SUBQ BX, SI
	SHLQ $3, BX
	SUBQ BX, DI
	CODES4(MULTIPLY, 4, 32)
	DECQ R13
	JZ fold

next:
	CODES4(ADD, 4, 32)
	DECQ R13
	JNZ next

fold:
	VBROADCASTSS Task_Whole(AX), Y12
	EIGHT(FOLD4)
	TESTQ R14, R14
	JNZ chunk

	VMOVUPS (R12), Y8
	VMOVUPS 32(R12), Y9
	MOVQ R11, R13
	MOVQ Task_StrideC(AX), R14
	TESTQ $const_Zero, Task_Flags(AX)
	JZ scale
	VPXOR Y12, Y12, Y12
	STORE2((DX), 32(DX), Y12, Y12)
	STORE2((DX)(R14*1), 32(DX)(R14*1), Y12, Y12)
	LEAQ (DX)(R14*2), BX
	STORE2((BX), 32(BX), Y12, Y12)
	STORE2((BX)(R14*1), 32(BX)(R14*1), Y12, Y12)

scale:
	SCALE4(0)
	SCALE4(64)
	SCALE4(128)
	SCALE4(192)
	MOVQ R13, R11
	LEAQ (R9)(R8*4), R9
	DECQ blocks-552(SP)
	JNZ rows
	VZEROUPPER
	RET

// func multiplyCodesRowAVX2(t *Task)
TEXT ·multiplyCodesRowAVX2(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), AX
	CMPW Task_Multiplier(AX), $0x100
	JEQ halves
	CMPB ·fastDenormals(SB), $0
	JEQ halves
	JMP numbersRow<>(SB)

halves:
	JMP halvesRow<>(SB)

// func decodeFloat16AVX2(dst *float32, codes *byte, n int, multiplier, mask uint64, ahead int)
//
// The float16s lie where their values will: on the stack, whose place in a page the
// values pass again and again, they would wait for stores of those.
TEXT ·decodeFloat16AVX2(SB), NOSPLIT, $32-48
	MOVQ dst+0(FP), SI
	MOVQ codes+8(FP), DI
	MOVQ n+16(FP), CX
	VPBROADCASTQ mask+32(FP), Y15
	VMOVDQU Y15, mask-32(SP)
	VPBROADCASTQ multiplier+24(FP), Y15
	MOVQ ahead+40(FP), AX

decode:
	FLOAT16S((DI), (SI))
	FLOAT16S(16(DI), 32(SI))
	VCVTPH2PS (SI), Y8
	VCVTPH2PS 16(SI), Y9
	VCVTPH2PS 32(SI), Y10
	VCVTPH2PS 48(SI), Y11
	STORE2((SI), 32(SI), Y8, Y9)
	STORE2(64(SI), 96(SI), Y10, Y11)
	PREFETCHT0 (DI)(AX*1)
	ADDQ $32, DI
	ADDQ $128, SI
	SUBQ $32, CX
	JNZ decode
	VZEROUPPER
	RET
