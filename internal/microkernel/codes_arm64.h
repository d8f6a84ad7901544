// The loops of a micro-kernel that reads codes, for one register block: over blocks of K,
// chunks of 32 and pairs of k. Before this file is included these are defined:
//
//	PREPARE        set up constants from the task
//	FIRST, NEXT    e = a*b of an even k and o of the next, or e and o more by that; a0
//	               and panel advance
//	LOADP, STOREP  V16 to V23, which are p, from and to the sums at row
//	LOADC, STOREC  V0 to V7 from and to C
//	SCALES         C = fma(p*sa, sb, c)
	MOVD t+0(FP), task
	PREPARE
	MOVD Task_A(task), a0
	MOVD Task_Codes(task), panel
	MOVD Task_C(task), cBlock
	MOVD Task_ScaleA(task), scaleA
	MOVD Task_ScaleB(task), scaleB
	MOVD Task_Blocks(task), blocks
	MOVD Task_Flags(task), flags

block:
	CLEARP
	TBNZ $0, flags, begin // First
	MOVD Task_P(task), row
	LOADP

begin:
	MOVD Task_Pairs(task), left

chunk:
	MOVD $16, pairs
	CMP pairs, left
	CSEL LT, left, pairs, pairs
	SUB pairs, left
	FIRST
	SUBS $1, pairs
	BEQ fold

pair:
	NEXT
	SUBS $1, pairs
	BNE pair

fold:
	FOLD
	CBNZ left, chunk

	TBZ $1, flags, suspend // Last
	MOVD cBlock, row
	LOADC
	MOVD scaleA, row
	SCALES
	TBZ $2, flags, store // Canonical
	CANONICAL

store:
	MOVD cBlock, row
	STOREC

next:
	ADD $4, scaleA
	ADD $(4*const_PanelWidth), scaleB
	SUBS $1, blocks
	BNE block
	RET

suspend:
	MOVD Task_P(task), row
	STOREP
	JMP next
