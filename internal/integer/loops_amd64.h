// The loops of a kernel: over vectors of columns, register blocks, blocks of K and quads.
// Before this file is included these are defined:
//
//	ROWS, WIDTH   of a register block: rows, and bytes of C
//	CONSTANTS     what stays in registers
//	BEGIN         begins the sums of a block
//	ONE(K)        adds the products of the quad 4*K behind SI and R11 and 128*K behind DI
//	TWO           adds those of two quads
//	SUM           makes the sums p, with the bits to start from at R14, indexed by R13
//	ADDP, STOREP  p = p + P, and P = p, at R14
//	SCALE         c = fma(p*sa, sb, c), with sa at R14, indexed by R13, sb at R12, c at DX
//	CANONICALS    each NaN in c gets the canonical bits
//	STOREC        c to DX
//	STOREOUT      c to R14, rows R11 apart
//	CLEARC        0 to DX
//
//	AX   the task                  SI, R11  rows 0 and 3 of A here
//	CX   register blocks left      R8, R10  one row, and three
//	BX   blocks left               DI       B here
//	R14  quads left, or see above  R9       A's rows
//	R13  of the register block and the block, from their first
	MOVQ t+0(FP), AX
	MOVQ Task_StrideA(AX), R8
	LEAQ (R8)(R8*2), R10
	CONSTANTS
	XORL R14, R14

columns:
	MOVQ R14, column-8(SP)
	MOVQ Task_A(AX), R9
	MOVQ Task_C(AX), DX
	ADDQ R14, DX
	ADDQ Task_Out(AX), R14
	MOVQ R14, out-16(SP)
	MOVQ Task_RowBlocks(AX), CX
	XORL R13, R13

rows:
	MOVQ R9, SI
	LEAQ (R9)(R10*1), R11
	MOVQ column-8(SP), R12
	MOVQ Task_B(AX), DI
	ADDQ R12, DI
	ADDQ Task_ScaleB(AX), R12
	MOVQ Task_Blocks(AX), BX
	TESTQ $const_Zero, Task_Flags(AX)
	JZ block
	CLEARC

block:
	MOVQ Task_Start(AX), R14
	BEGIN
	MOVQ Task_Quads(AX), R14
	SUBQ $2, R14
	JLT odd

pair:
	TWO
	ADDQ $8, SI
	ADDQ $8, R11
	ADDQ $256, DI
	SUBQ $2, R14
	JGE pair

odd:
	INCQ R14
	JNZ sum
	ONE(0)
	ADDQ $4, SI
	ADDQ $4, R11
	ADDQ $128, DI

sum:
	MOVQ Task_Start(AX), R14
	SUM
	TESTQ $const_First, Task_Flags(AX)
	JZ resume

resumed:
	TESTQ $const_Last, Task_Flags(AX)
	JZ suspend
	MOVQ Task_ScaleA(AX), R14
	SCALE
	CMPQ BX, $1
	JNE store
	TESTQ $const_Canonical, Task_Flags(AX)
	JNZ canonical

store:
	STOREC

next:
	ADDQ Task_StrideScaleA(AX), R13
	ADDQ $(4*const_PanelWidth), R12
	DECQ BX
	JNZ block

	// The next register block.
	MOVQ Task_Blocks(AX), R14
	IMULQ Task_StrideScaleA(AX), R14
	SUBQ R14, R13
	ADDQ $(4*ROWS), R13
	IMUL3Q $ROWS, R8, R14
	ADDQ R14, R9
	ADDQ $(4*const_PanelWidth*ROWS), DX
	MOVQ Task_StrideOut(AX), R14
	IMUL3Q $ROWS, R14, R14
	ADDQ R14, out-16(SP)
	DECQ CX
	JNZ rows
	MOVQ column-8(SP), R14
	ADDQ $WIDTH, R14
	CMPQ R14, $(4*const_PanelWidth)
	JLT columns
	VZEROUPPER
	RET

canonical:
	CANONICALS
	CMPQ Task_Out(AX), $0
	JEQ store
	MOVQ out-16(SP), R14
	MOVQ Task_StrideOut(AX), R11
	STOREOUT
	JMP next

resume:
	MOVQ Task_P(AX), R14
	SUBQ Task_C(AX), R14
	ADDQ DX, R14
	ADDP
	JMP resumed

suspend:
	MOVQ Task_P(AX), R14
	SUBQ Task_C(AX), R14
	ADDQ DX, R14
	STOREP
	JMP next
