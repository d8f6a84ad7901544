// The loops of a micro-kernel that reads codes, for one register block: over blocks of K,
// chunks of 32 and pairs of k. Before this file is included these are defined, with the
// meaning that they have in loops_amd64.h: PAIR, MULTIPLY, ADD, FOLD, CLEARP, LOADP, STOREP,
// SCALE, CANONICAL and STOREC; and PREPARE, which sets up constants from the task in AX.
//
//	AX   the task                 SI   A here, rows R8 apart
//	BX   blocks left              DI   codes here
//	R13  pairs left in the chunk  R14  pairs left in the block
//	CX   how far to fetch ahead
	MOVQ t+0(FP), AX
	PREPARE
	MOVQ Task_StrideA(AX), R8
	MOVQ Task_A(AX), SI
	MOVQ Task_Codes(AX), DI
	MOVQ Task_Ahead(AX), CX
	MOVQ Task_C(AX), DX
	MOVQ Task_ScaleA(AX), R11
	MOVQ Task_ScaleB(AX), R12
	MOVQ Task_Blocks(AX), BX

block:
	TESTQ $const_First, Task_Flags(AX)
	JZ resume
	CLEARP

begin:
	MOVQ Task_Pairs(AX), R14

chunk:
	MOVQ $16, R13
	CMPQ R14, R13
	CMOVQLT R14, R13
	SUBQ R13, R14
	PAIR(MULTIPLY)
	DECQ R13
	JZ fold

pair:
	PAIR(ADD)
	DECQ R13
	JNZ pair

fold:
	FOLD
	TESTQ R14, R14
	JNZ chunk

	MOVQ Task_StrideC(AX), R14
	TESTQ $const_Last, Task_Flags(AX)
	JZ suspend
	MOVQ Task_StrideScaleA(AX), R13
	SCALE
	TESTQ $const_Canonical, Task_Flags(AX)
	JZ store
	CANONICAL

store:
	STOREC

next:
	ADDQ $4, R11
	ADDQ $(4*const_PanelWidth), R12
	DECQ BX
	JNZ block
	VZEROUPPER
	RET

resume:
	MOVQ Task_P(AX), R13
	MOVQ Task_StrideC(AX), R14
	LOADP
	JMP begin

suspend:
	MOVQ Task_P(AX), R13
	STOREP
	JMP next
