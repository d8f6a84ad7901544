//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Z16 and Z17 are the high bytes of codes 0 to 127, Z18 and Z19 the low ones, Z21 is 0x80, Z22
// and Z23 are the bytes of the value of that code, and Z24 is the bit of codes that is the sign;
// Z20 puts codes in order.
#define TABLE(Order) \
	VMOVDQU64 BFloat16Table_High(AX), Z16 \
	VMOVDQU64 (BFloat16Table_High+64)(AX), Z17 \
	VMOVDQU64 BFloat16Table_Low(AX), Z18 \
	VMOVDQU64 (BFloat16Table_Low+64)(AX), Z19 \
	VMOVDQU64 Order, Z20 \
	MOVL $0x80, BX \
	VPBROADCASTB BX, Z21 \
	VPBROADCASTB BFloat16Table_SpecialHigh(AX), Z22 \
	VPBROADCASTB BFloat16Table_SpecialLow(AX), Z23 \
	VPBROADCASTB BFloat16Table_Sign(AX), Z24

// The bytes of codes Zc: Zh and Zl.
#define LOOKUP(Zc, Zh, Zl) \
	VPCMPEQB Z21, Zc, K3 \
	VMOVDQA64 Zc, Zh \
	VMOVDQA64 Zc, Zl \
	VPERMI2B Z17, Z16, Zh \
	VPERMI2B Z19, Z18, Zl \
	VPTERNLOGD $0xF8, Z24, Zc, Zh \
	VMOVDQU8 Z22, K3, Zh \
	VMOVDQU8 Z23, K3, Zl

// Of each four codes the third, first, fourth and second; eights so that interleaved bytes of
// both halves of registers follow each other.
DATA inRows<>+0(SB)/8, $0x0507040601030002
DATA inRows<>+8(SB)/8, $0x2527242621232022
DATA inRows<>+16(SB)/8, $0x0D0F0C0E090B080A
DATA inRows<>+24(SB)/8, $0x2D2F2C2E292B282A
DATA inRows<>+32(SB)/8, $0x1517141611131012
DATA inRows<>+40(SB)/8, $0x3537343631333032
DATA inRows<>+48(SB)/8, $0x1D1F1C1E191B181A
DATA inRows<>+56(SB)/8, $0x3D3F3C3E393B383A
GLOBL inRows<>(SB), RODATA|NOPTR, $64

// func packDotRows(dst *uint16, dstStride int, codes *byte, stride, rows, n int, t *BFloat16Table)
TEXT ·packDotRows(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), R9
	MOVQ dstStride+8(FP), R10
	MOVQ codes+16(FP), R11
	MOVQ stride+24(FP), R12
	MOVQ rows+32(FP), DX
	MOVQ n+40(FP), R8
	MOVQ t+48(FP), AX
	TABLE(inRows<>(SB))

row:
	MOVQ R9, DI
	MOVQ R11, SI
	MOVQ R8, CX
	MOVQ $-1, BX

codes:
	CMPQ CX, $64
	JGE whole
	MOVL $1, BX
	SHLQ CX, BX
	DECQ BX

whole:
	KMOVQ BX, K1
	KSHIFTRQ $32, K1, K2
	VMOVDQU8.Z (SI), K1, Z0
	VPERMB Z0, Z20, Z0
	LOOKUP(Z0, Z1, Z2)
	VPUNPCKLBW Z1, Z2, Z3
	VPUNPCKHBW Z1, Z2, Z4
	VMOVDQU16 Z3, K1, (DI)
	VMOVDQU16 Z4, K2, 64(DI)
	ADDQ $64, SI
	ADDQ $128, DI
	SUBQ $64, CX
	JGT codes
	ADDQ R10, R9
	ADDQ R12, R11
	DECQ DX
	JNZ row
	VZEROUPPER
	RET

// Of two k of 32 columns, columns 4i to 4i+3 and 16 columns later, of the first and then of the
// second.
DATA inPanels<>+0(SB)/8, $0x0000000400000000
DATA inPanels<>+8(SB)/8, $0x0000000C00000008
DATA inPanels<>+16(SB)/8, $0x0000000500000001
DATA inPanels<>+24(SB)/8, $0x0000000D00000009
DATA inPanels<>+32(SB)/8, $0x0000000600000002
DATA inPanels<>+40(SB)/8, $0x0000000E0000000A
DATA inPanels<>+48(SB)/8, $0x0000000700000003
DATA inPanels<>+56(SB)/8, $0x0000000F0000000B
GLOBL inPanels<>(SB), RODATA|NOPTR, $64

// func packDotPanel(dst *uint16, codes *byte, n int, t *BFloat16Table)
TEXT ·packDotPanel(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ codes+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ t+24(FP), AX
	TABLE(inPanels<>(SB))

quad:
	VPERMD (SI), Z20, Z0
	VPERMD 64(SI), Z20, Z1
	LOOKUP(Z0, Z2, Z3)
	LOOKUP(Z1, Z4, Z5)
	VPUNPCKLBW Z2, Z3, Z6
	VPUNPCKLBW Z4, Z5, Z7
	VPUNPCKHBW Z2, Z3, Z8
	VPUNPCKHBW Z4, Z5, Z9
	VPUNPCKLWD Z6, Z7, Z10
	VPUNPCKHWD Z6, Z7, Z11
	VPUNPCKLWD Z8, Z9, Z12
	VPUNPCKHWD Z8, Z9, Z13
	VMOVDQU64 Z10, (DI)
	VMOVDQU64 Z11, 64(DI)
	VMOVDQU64 Z12, 128(DI)
	VMOVDQU64 Z13, 192(DI)
	ADDQ $128, SI
	ADDQ $256, DI
	SUBQ $4, CX
	JNZ quad
	VZEROUPPER
	RET

// The upper halves of two vectors: of each four float32 of a row the third, first, fourth and
// second; of float32 of a k and of the second after it, in turns, the later first.
DATA quadsOfRows<>+0(SB)/8, $0x0003000700010005
DATA quadsOfRows<>+8(SB)/8, $0x000B000F0009000D
DATA quadsOfRows<>+16(SB)/8, $0x0013001700110015
DATA quadsOfRows<>+24(SB)/8, $0x001B001F0019001D
DATA quadsOfRows<>+32(SB)/8, $0x0023002700210025
DATA quadsOfRows<>+40(SB)/8, $0x002B002F0029002D
DATA quadsOfRows<>+48(SB)/8, $0x0033003700310035
DATA quadsOfRows<>+56(SB)/8, $0x003B003F0039003D
GLOBL quadsOfRows<>(SB), RODATA|NOPTR, $64

DATA quadsOfPanels<>+0(SB)/8, $0x0003002300010021
DATA quadsOfPanels<>+8(SB)/8, $0x0007002700050025
DATA quadsOfPanels<>+16(SB)/8, $0x000B002B00090029
DATA quadsOfPanels<>+24(SB)/8, $0x000F002F000D002D
DATA quadsOfPanels<>+32(SB)/8, $0x0013003300110031
DATA quadsOfPanels<>+40(SB)/8, $0x0017003700150035
DATA quadsOfPanels<>+48(SB)/8, $0x001B003B00190039
DATA quadsOfPanels<>+56(SB)/8, $0x001F003F001D003D
GLOBL quadsOfPanels<>(SB), RODATA|NOPTR, $64

#define HALVES(A, B, To) \
	VMOVDQU64 A(SI), Z1 \
	VPERMT2W B(SI), Z0, Z1 \
	VMOVDQU64 Z1, To(DI)

#define QUADS(Order, A0, B0, A1, B1, A2, B2, A3, B3) \
	MOVQ values+0(FP), SI \
	MOVQ SI, DI \
	MOVQ n+8(FP), CX \
	VMOVDQU64 Order, Z0 \
quads: \
	HALVES(A0, B0, 0) \
	HALVES(A1, B1, 64) \
	HALVES(A2, B2, 128) \
	HALVES(A3, B3, 192) \
	ADDQ $512, SI \
	ADDQ $256, DI \
	SUBQ $128, CX \
	JNZ quads \
	VZEROUPPER \
	RET

// func quadRows(values *float32, n int)
TEXT ·quadRows(SB), NOSPLIT, $0-16
	QUADS(quadsOfRows<>(SB), 0, 64, 128, 192, 256, 320, 384, 448)

// func quadPanel(values *float32, n int)
TEXT ·quadPanel(SB), NOSPLIT, $0-16
	QUADS(quadsOfPanels<>(SB), 0, 256, 64, 320, 128, 384, 192, 448)
