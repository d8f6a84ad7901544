// The loops of a micro-kernel: over register blocks, blocks of K, chunks of 32 and pairs of
// k. Before this file is included PAIR(OP) and HALF(OP) are defined, which do OP, MULTIPLY
// or MULTIPLYADD, of a pair of k and of eight pairs; a0 to a3 and panel advance.
	MOVD t+0(FP), task
	MOVD Task_A(task), aBlock
	MOVD Task_StrideA(task), aStride
	MOVD Task_C(task), cBlock
	MOVD Task_Out(task), outBlock
	MOVD Task_ScaleA(task), scaleA
	MOVD Task_RowBlocks(task), rowBlocks
	MOVD Task_Flags(task), flags

rows:
	MOVD aBlock, a0
	ADD aStride, a0, a1
	ADD aStride, a1, a2
	ADD aStride, a2, a3
	ADD aStride, a3, aBlock
	MOVD Task_B(task), panel
	MOVD Task_ScaleB(task), scaleB
	MOVD Task_Blocks(task), blocks
	TBZ $3, flags, block // Zero
	CLEAR(V0)
	CLEAR(V1)
	MOVD cBlock, row
	MOVD Task_StrideC(task), stride
	MOVE4(STORE, V0, V1, V0, V1, V0, V1, V0, V1)

block:
	CLEARP
	TBNZ $0, flags, begin // First
	MOVD Task_P(task), row
	MOVD Task_C(task), tmp
	SUB tmp, row
	ADD cBlock, row
	MOVD Task_StrideC(task), stride
	MOVE4(LOAD, V16, V17, V18, V19, V20, V21, V22, V23)

begin:
	MOVD Task_Pairs(task), left

chunk:
	MOVD $16, pairs
	CMP pairs, left
	CSEL LT, left, pairs, pairs
	SUB pairs, left
	TST $7, pairs
	BEQ halves

	PAIR(MULTIPLY)
	SUBS $1, pairs
	BEQ fold

pair:
	PAIR(MULTIPLYADD)
	SUBS $1, pairs
	BNE pair
	JMP fold

halves:
	HALF(MULTIPLY)
	SUBS $8, pairs
	BEQ fold
	HALF(MULTIPLYADD)

fold:
	FOLD
	CBNZ left, chunk

	TBZ $1, flags, suspend // Last
	MOVD cBlock, row
	MOVD Task_StrideC(task), stride
	MOVE4(LOAD, V0, V1, V2, V3, V4, V5, V6, V7)

	// c = fma(p*sa, sb, c)
	MOVD scaleA, row
	MOVD Task_StrideScaleA(task), stride
	SCALE
	CMP $1, blocks
	BNE store
	TBZ $2, flags, store // Canonical
	CANONICAL
	CBZ outBlock, store
	MOVD outBlock, row
	MOVD Task_StrideOut(task), stride
	MOVE4(STORE, V0, V1, V2, V3, V4, V5, V6, V7)
	JMP next

store:
	MOVD cBlock, row
	MOVD Task_StrideC(task), stride
	MOVE4(STORE, V0, V1, V2, V3, V4, V5, V6, V7)

next:
	ADD $4, scaleA
	ADD $(4*const_PanelWidth), scaleB
	SUB $1, blocks
	CBNZ blocks, block

	// The next register block.
	MOVD Task_StrideC(task), tmp
	ADD tmp<<2, cBlock
	MOVD Task_StrideOut(task), tmp
	ADD tmp<<2, outBlock
	MOVD Task_StrideScaleA(task), tmp
	ADD tmp<<2, scaleA
	MOVD Task_Blocks(task), tmp
	SUB tmp<<2, scaleA
	SUB $1, rowBlocks
	CBNZ rowBlocks, rows
	RET

suspend:
	MOVD Task_P(task), row
	MOVD Task_C(task), tmp
	SUB tmp, row
	ADD cBlock, row
	MOVD Task_StrideC(task), stride
	MOVE4(STORE, V16, V17, V18, V19, V20, V21, V22, V23)
	JMP next
