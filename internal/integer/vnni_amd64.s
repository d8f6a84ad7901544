//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// VPDPBUSD adds, in each lane of 32 bits, the products of four unsigned bytes, of the
// panel, with four signed ones, of A. A lane is a column; the four are a quad.

// Za and Zb = what the sums of a row begin from.
#define START(Row, Za, Zb) \
	VPBROADCASTD (4*Row)(R9), Za \
	VMOVDQA64 Za, Zb

// Z24 and Z25 are a quad of the panel's columns.
#define DOT(A, Za, Zb) \
	VPBROADCASTD A, Z26 \
	VPDPBUSD Z26, Z24, Za \
	VPDPBUSD Z26, Z25, Zb

#define LESS(Za, Zb) \
	VSUBPS Z27, Za, Za \
	VSUBPS Z27, Zb, Zb

// c = fma(p*sa, sb, c), with sb at R13.
#define SCALE(Row, Za, Zb, Zc, Zd) \
	VBROADCASTSS (4*Row)(R11), Z26 \
	VMULPS Z26, Za, Za \
	VMULPS Z26, Zb, Zb \
	VFMADD231PS (R13), Za, Zc \
	VFMADD231PS 64(R13), Zb, Zd

// Of row Row at R14, of P.
#define RESUME(Row, Za, Zb) \
	VADDPS (128*Row)(R14), Za, Za \
	VADDPS (128*Row+64)(R14), Zb, Zb

#define LOAD(Row, From, Za, Zb) \
	VMOVUPS (128*Row)(From), Za \
	VMOVUPS (128*Row+64)(From), Zb

#define STORE(Row, To, Za, Zb) \
	VMOVUPS Za, (128*Row)(To) \
	VMOVUPS Zb, (128*Row+64)(To)

#define CLEAR(Za, Zb) \
	VPXORD Za, Za, Za \
	VPXORD Zb, Zb, Zb

#define CANONICALNAN \
	MOVL $0x7FC00000, R14 \
	VPBROADCASTD R14, Z26

// With the canonical NaN in Z26.
#define NAN(Za) \
	VCMPPS $3, Za, Za, K1 \
	VMOVDQA32 Z26, K1, Za

#define NAN2(Za, Zb) \
	NAN(Za) \
	NAN(Zb)

// Rows of the output, R10 bytes apart, one after the other.
#define OUT(Za, Zb) \
	VMOVUPS Za, (R14) \
	VMOVUPS Zb, 64(R14) \
	ADDQ R10, R14

// Sums are in Z0 to Z11, results in Z12 to Z23.

#define SUMS(OP) \
	OP(0, Z0, Z1) \
	OP(1, Z2, Z3) \
	OP(2, Z4, Z5) \
	OP(3, Z6, Z7) \
	OP(4, Z8, Z9) \
	OP(5, Z10, Z11)

#define EACHSUM(OP) \
	OP(Z0, Z1) \
	OP(Z2, Z3) \
	OP(Z4, Z5) \
	OP(Z6, Z7) \
	OP(Z8, Z9) \
	OP(Z10, Z11)

#define EACHRESULT(OP) \
	OP(Z12, Z13) \
	OP(Z14, Z15) \
	OP(Z16, Z17) \
	OP(Z18, Z19) \
	OP(Z20, Z21) \
	OP(Z22, Z23)

#define RESULTS(OP) \
	OP(0, DX, Z12, Z13) \
	OP(1, DX, Z14, Z15) \
	OP(2, DX, Z16, Z17) \
	OP(3, DX, Z18, Z19) \
	OP(4, DX, Z20, Z21) \
	OP(5, DX, Z22, Z23)

#define SCALEALL \
	SCALE(0, Z0, Z1, Z12, Z13) \
	SCALE(1, Z2, Z3, Z14, Z15) \
	SCALE(2, Z4, Z5, Z16, Z17) \
	SCALE(3, Z6, Z7, Z18, Z19) \
	SCALE(4, Z8, Z9, Z20, Z21) \
	SCALE(5, Z10, Z11, Z22, Z23)

// func multiplyVNNI(t *Task)
//
//	AX   the task                 SI   A here, rows R8 apart; R10, R12 = 3, 5*R8
//	BX   blocks left              DI   the panel here
//	CX   quads left               DX   C
//	R9   Start                    R11  scales of A
//	R13  scales of B
TEXT ·multiplyVNNI(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), AX
	VBROADCASTSS Task_Magic(AX), Z27
	MOVQ Task_C(AX), DX

rows:
	MOVQ Task_StrideA(AX), R8
	LEAQ (R8)(R8*2), R10
	LEAQ (R8)(R8*4), R12
	MOVQ Task_A(AX), SI
	MOVQ Task_B(AX), DI
	MOVQ Task_Start(AX), R9
	MOVQ Task_ScaleA(AX), R11
	MOVQ Task_ScaleB(AX), R13
	MOVQ Task_Blocks(AX), BX
	EACHRESULT(CLEAR)
	TESTQ $const_Zero, Task_Flags(AX)
	JNZ block
	RESULTS(LOAD)

block:
	SUMS(START)
	MOVQ Task_Quads(AX), CX

quad:
	VMOVDQU64 (DI), Z24
	VMOVDQU64 64(DI), Z25
	DOT((SI), Z0, Z1)
	DOT((SI)(R8*1), Z2, Z3)
	DOT((SI)(R8*2), Z4, Z5)
	DOT((SI)(R10*1), Z6, Z7)
	DOT((SI)(R8*4), Z8, Z9)
	DOT((SI)(R12*1), Z10, Z11)
	ADDQ $4, SI
	ADDQ $128, DI
	DECQ CX
	JNZ quad

	EACHSUM(LESS)
	TESTQ $const_First, Task_Flags(AX)
	JZ resume

summed:
	TESTQ $const_Last, Task_Flags(AX)
	JZ suspend
	SCALEALL

next:
	MOVQ Task_StrideScaleA(AX), R14
	ADDQ R14, R9
	ADDQ R14, R11
	ADDQ $128, R13
	DECQ BX
	JNZ block

	TESTQ $const_Canonical, Task_Flags(AX)
	JNZ canonical

store:
	RESULTS(STORE)

stored:
	// The next register block. Pointers never leave what they point to.
	DECQ Task_RowBlocks(AX)
	JZ done
	MOVQ Task_StrideA(AX), R8
	IMUL3Q $6, R8, R8
	ADDQ R8, Task_A(AX)
	ADDQ $24, Task_Start(AX)
	ADDQ $24, Task_ScaleA(AX)
	ADDQ $768, DX
	MOVQ Task_StrideOut(AX), R14
	IMUL3Q $6, R14, R14
	ADDQ R14, Task_Out(AX)
	JMP rows

done:
	VZEROUPPER
	RET

canonical:
	CANONICALNAN
	EACHRESULT(NAN2)
	MOVQ Task_Out(AX), R14
	TESTQ R14, R14
	JZ store
	MOVQ Task_StrideOut(AX), R10
	EACHRESULT(OUT)
	JMP stored

resume:
	MOVQ Task_P(AX), R14
	SUBQ Task_C(AX), R14
	ADDQ DX, R14
	SUMS(RESUME)
	JMP summed

#define SUSPEND(Row, Za, Zb) STORE(Row, R14, Za, Zb)

suspend:
	MOVQ Task_P(AX), R14
	SUBQ Task_C(AX), R14
	ADDQ DX, R14
	SUMS(SUSPEND)
	JMP next

// How many bytes of nibbles are fetched before they are needed.
#define AHEAD 4096

// func multiplyNibblesVNNI(t *Task)
//
// Z0 and Z1 are the columns' sums of low nibbles, Z2 and Z3 those of high ones.
TEXT ·multiplyNibblesVNNI(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), AX
	VBROADCASTSS Task_Magic(AX), Z27
	MOVQ Task_Table(AX), R14
	VBROADCASTI32X4 (R14), Z23
	MOVL $0x0F0F0F0F, R14
	VPBROADCASTD R14, Z24
	MOVQ Task_A(AX), SI
	MOVQ Task_Nibbles(AX), DI
	MOVQ Task_C(AX), DX
	MOVQ Task_Start(AX), R9
	MOVQ Task_ScaleA(AX), R11
	MOVQ Task_ScaleB(AX), R12
	MOVQ Task_Blocks(AX), BX
	MOVQ Task_StrideScaleA(AX), R8
	TESTQ $const_Zero, Task_Flags(AX)
	JZ load
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5

block:
	START(0, Z0, Z1)
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	MOVQ Task_Quads(AX), CX

octet:
	VMOVDQU64 (DI), Z16
	VMOVDQU64 64(DI), Z17
	VPSRLD $4, Z16, Z18
	VPSRLD $4, Z17, Z19
	VPANDD Z24, Z16, Z16
	VPANDD Z24, Z17, Z17
	VPANDD Z24, Z18, Z18
	VPANDD Z24, Z19, Z19
	VPSHUFB Z16, Z23, Z16
	VPSHUFB Z17, Z23, Z17
	VPSHUFB Z18, Z23, Z18
	VPSHUFB Z19, Z23, Z19
	VPDPBUSD.BCST (SI), Z16, Z0
	VPDPBUSD.BCST (SI), Z17, Z1
	VPDPBUSD.BCST 4(SI), Z18, Z2
	VPDPBUSD.BCST 4(SI), Z19, Z3
	PREFETCHT0 AHEAD(DI)
	PREFETCHT0 (AHEAD+64)(DI)
	ADDQ $8, SI
	ADDQ $128, DI
	SUBQ $2, CX
	JNZ octet

	VPADDD Z2, Z0, Z0
	VPADDD Z3, Z1, Z1
	LESS(Z0, Z1)
	TESTQ $const_First, Task_Flags(AX)
	JZ resume

summed:
	TESTQ $const_Last, Task_Flags(AX)
	JZ suspend
	VBROADCASTSS (R11), Z20
	VMULPS Z20, Z0, Z0
	VMULPS Z20, Z1, Z1
	VFMADD231PS (R12), Z0, Z4
	VFMADD231PS 64(R12), Z1, Z5

next:
	ADDQ R8, R9
	ADDQ R8, R11
	ADDQ $128, R12
	DECQ BX
	JNZ block

	TESTQ $const_Canonical, Task_Flags(AX)
	JZ store
	CANONICALNAN
	NAN2(Z4, Z5)
	MOVQ Task_Out(AX), R14
	TESTQ R14, R14
	CMOVQNE R14, DX

store:
	STORE(0, DX, Z4, Z5)
	VZEROUPPER
	RET

load:
	VMOVUPS (DX), Z4
	VMOVUPS 64(DX), Z5
	JMP block

resume:
	MOVQ Task_P(AX), R14
	RESUME(0, Z0, Z1)
	JMP summed

suspend:
	MOVQ Task_P(AX), R14
	STORE(0, R14, Z0, Z1)
	JMP next
