// The loops of a micro-kernel: over register blocks, blocks of K, chunks of 32 and pairs of
// k. Before this file is included these are defined:
//
//	PAIR(OP)      OP, for b, a and e, of the k at SI and DI, and for o of the next;
//	              SI and DI advance. Where a value is a pair of bfloat16, of two pairs of k
//	PAIRS         how many are a chunk
//	MULTIPLY, ADD what OP is: e = a*b, or e = e + a*b
//	FOLD          p = p + (e + o)
//	CLEARP        p = 0
//	LOADP, STOREP p to and from the sums at R13, rows R14 apart
//	ARRANGE       puts p, which pairs may have in an order of their own, into that of
//	              columns, or back
//	SCALE         p = fma(p*sa, sb, c), with sa at R11, rows R13 apart, sb at R12
//	              and c at DX, rows R14 apart
//	CANONICAL     each NaN in p gets the canonical bits
//	STOREC        p to DX, rows R14 apart
//	CLEARC        0 to DX, rows R14 apart
//	STOREOUT      p to R13, rows R14 apart, after SCALE
//
// A chunk's first products are stored, not added to +0. That can only leave a -0
// in e or o, and p, which is never -0, is the same.
//
//	AX   the task                 SI   A here, rows R8 apart, R10 = 3*R8
//	CX   register blocks left     DI   B here
//	BX   blocks left              R13  pairs left in the chunk
//	R9   A's rows                 R14  pairs left in the block
	MOVQ t+0(FP), AX
	MOVQ Task_StrideA(AX), R8
	LEAQ (R8)(R8*2), R10
	MOVQ Task_A(AX), R9
	MOVQ Task_C(AX), DX
	MOVQ Task_ScaleA(AX), R11
	MOVQ Task_RowBlocks(AX), CX

rows:
	MOVQ R9, SI
	MOVQ Task_B(AX), DI
	MOVQ Task_ScaleB(AX), R12
	MOVQ Task_Blocks(AX), BX
	TESTQ $const_Zero, Task_Flags(AX)
	JZ block
	MOVQ Task_StrideC(AX), R14
	CLEARC

block:
	TESTQ $const_First, Task_Flags(AX)
	JZ resume
	CLEARP

begin:
	MOVQ Task_Pairs(AX), R14

chunk:
	DECQ Task_Prefetches(AX)
	JGE fetch

fetched:
	MOVQ $PAIRS, R13
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
	ARRANGE
	SCALE
	CMPQ BX, $1
	JNE store
	TESTQ $const_Canonical, Task_Flags(AX)
	JNZ canonical

store:
	STOREC

next:
	ADDQ $4, R11
	ADDQ $(4*const_PanelWidth), R12
	DECQ BX
	JNZ block

	// The next register block.
	DECQ CX
	JZ done
	MOVQ Task_Blocks(AX), BX
	SHLQ $2, BX
	SUBQ BX, R11
	MOVQ Task_StrideScaleA(AX), R13
	IMUL3Q $ROWS, R13, R13
	ADDQ R13, R11
	IMUL3Q $ROWS, R8, R13
	ADDQ R13, R9
	MOVQ Task_StrideC(AX), R13
	IMUL3Q $ROWS, R13, R13
	ADDQ R13, DX
	MOVQ Task_StrideOut(AX), R13
	IMUL3Q $ROWS, R13, R13
	ADDQ R13, Task_Out(AX)
	JMP rows

canonical:
	CANONICAL
	MOVQ Task_Out(AX), R13
	TESTQ R13, R13
	JZ store
	MOVQ Task_StrideOut(AX), R14
	STOREOUT
	JMP next

fetch:
	MOVQ Task_Prefetch(AX), R13
	PREFETCHT1 (R13)
	PREFETCHT1 64(R13)
	PREFETCHT1 128(R13)
	PREFETCHT1 192(R13)
	ADDQ Task_PrefetchStep(AX), R13
	MOVQ R13, Task_Prefetch(AX)
	JMP fetched

resume:
	MOVQ Task_P(AX), R13
	SUBQ Task_C(AX), R13
	ADDQ DX, R13
	MOVQ Task_StrideC(AX), R14
	LOADP
	ARRANGE
	JMP begin

suspend:
	MOVQ Task_P(AX), R13
	SUBQ Task_C(AX), R13
	ADDQ DX, R13
	ARRANGE
	STOREP
	JMP next

done:
	VZEROUPPER
	RET
