// A kernel for a row and a panel in nibbles. Before this file is included PART(at, Yd, d)
// is defined, which adds to Yd, register d, the products of the 8 columns whose nibbles are
// at an offset behind DI: the low ones with the quad in Y7, the high ones with that in Y8. Y4
// is the values of codes, Y5 the mask of low nibbles, Y6 ones of 16 bits; Y9 to Y12 are free.
//
//	AX   the task        SI   A here       R9   what the block's sums begin from
//	BX   blocks left     DI   nibbles      R11  the block's scale of A, R12 those of columns
//	CX   quads left      DX   C            R8   from block to block
	MOVQ t+0(FP), AX
	MOVQ Task_Table(AX), R14
	VBROADCASTI128 (R14), Y4
	VPBROADCASTD low<>(SB), Y5
	VPBROADCASTD ones<>(SB), Y6
	MOVQ Task_A(AX), SI
	MOVQ Task_Nibbles(AX), DI
	MOVQ Task_C(AX), DX
	MOVQ Task_Start(AX), R9
	MOVQ Task_ScaleA(AX), R11
	MOVQ Task_ScaleB(AX), R12
	MOVQ Task_Blocks(AX), BX
	MOVQ Task_StrideScaleA(AX), R8
	TESTQ $const_Zero, Task_Flags(AX)
	JZ block
	VPXOR Y0, Y0, Y0
	ROW(STORE, DX, Y0, Y0, Y0, Y0)

block:
	VPBROADCASTD (R9), Y0
	VMOVDQA Y0, Y1
	VMOVDQA Y0, Y2
	VMOVDQA Y0, Y3
	MOVQ Task_Quads(AX), CX

octet:
	VPBROADCASTD (SI), Y7
	VPBROADCASTD 4(SI), Y8
	PART(0, Y0, 0)
	PART(32, Y1, 1)
	PART(64, Y2, 2)
	PART(96, Y3, 3)
	PREFETCHT0 AHEAD(DI)
	PREFETCHT0 (AHEAD+64)(DI)
	ADDQ $8, SI
	ADDQ $128, DI
	SUBQ $2, CX
	JNZ octet

	VBROADCASTSS Task_Magic(AX), Y7
	EACH(LESS)
	MOVQ Task_P(AX), R14
	TESTQ $const_First, Task_Flags(AX)
	JNZ summed
	ROW(MORE, R14, Y0, Y1, Y2, Y3)

summed:
	TESTQ $const_Last, Task_Flags(AX)
	JZ store
	VBROADCASTSS (R11), Y7
	EACH(TIMES)
	ROW(LOAD, R12, Y9, Y10, Y11, Y12)
	VFMADD213PS (DX), Y9, Y0
	VFMADD213PS 32(DX), Y10, Y1
	VFMADD213PS 64(DX), Y11, Y2
	VFMADD213PS 96(DX), Y12, Y3
	MOVQ DX, R14
	CMPQ BX, $1
	JNE store
	TESTQ $const_Canonical, Task_Flags(AX)
	JZ store
	VBROADCASTSS nan<>(SB), Y7
	EACH(CANONICAL)
	MOVQ Task_Out(AX), CX
	TESTQ CX, CX
	CMOVQNE CX, R14

store:
	ROW(STORE, R14, Y0, Y1, Y2, Y3)
	ADDQ R8, R9
	ADDQ R8, R11
	ADDQ $(4*const_PanelWidth), R12
	DECQ BX
	JNZ block
	VZEROUPPER
	RET
