//go:build !purego

#include "textflag.h"

// As with AVX2, but each piece of 16 bytes of a vector has a row of its own, 8 rows from
// the next piece's: then a vector has the codes of an even k and of the next, and a
// permutation of its eighths puts those of one k side by side.
#define INTERLEAVE(Za, Zb, Zlow, Zhigh) \
	VPUNPCKLBW Zb, Za, Zlow \
	VPUNPCKHBW Zb, Za, Zhigh

// A vector of 16 codes of rows A, B, C and D, of which the last may be missing.
#define LOAD4(A, B, C, D, X, Z) \
	VMOVDQU A, X \
	VBROADCASTI32X4 B, K1, Z \
	VBROADCASTI32X4 C, K2, Z \
	VBROADCASTI32X4 D, K3, Z

#define STORE(K, Z) \
	VPERMQ Z, Z31, Z \
	VMOVDQU64 Z, (64*K)(DI)

DATA evenOdd<>+0(SB)/8, $0
DATA evenOdd<>+8(SB)/8, $2
DATA evenOdd<>+16(SB)/8, $4
DATA evenOdd<>+24(SB)/8, $6
DATA evenOdd<>+32(SB)/8, $1
DATA evenOdd<>+40(SB)/8, $3
DATA evenOdd<>+48(SB)/8, $5
DATA evenOdd<>+56(SB)/8, $7
GLOBL evenOdd<>(SB), RODATA|NOPTR, $64

// The mask of piece Bit/4 of a vector, if there are more than so many rows in BX.
#define MASK(Rows, Bits, K) \
	XORL AX, AX \
	CMPQ BX, $Rows \
	MOVL $Bits, DX \
	CMOVLGT DX, AX \
	KMOVW AX, K

// func transposeAVX512(dst, src *byte, stride, rows, n int)
TEXT ·transposeAVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), R8
	MOVQ rows+24(FP), BX
	MOVQ n+32(FP), CX
	MASK(8, 0x00F0, K1)
	MASK(16, 0x0F00, K2)
	MASK(24, 0xF000, K3)
	VMOVDQU64 evenOdd<>(SB), Z31
	LEAQ (R8)(R8*2), R9
	LEAQ (SI)(R8*4), R10
	LEAQ (SI)(R8*8), R11
	LEAQ (R10)(R8*8), R12
	LEAQ (R11)(R8*8), R13
	LEAQ (R12)(R8*8), BX
	LEAQ (R13)(R8*8), DX
	LEAQ (BX)(R8*8), AX

piece:
	LOAD4((SI), (R11), (R13), (DX), X0, Z0)
	LOAD4((SI)(R8*1), (R11)(R8*1), (R13)(R8*1), (DX)(R8*1), X1, Z1)
	LOAD4((SI)(R8*2), (R11)(R8*2), (R13)(R8*2), (DX)(R8*2), X2, Z2)
	LOAD4((SI)(R9*1), (R11)(R9*1), (R13)(R9*1), (DX)(R9*1), X3, Z3)
	LOAD4((R10), (R12), (BX), (AX), X4, Z4)
	LOAD4((R10)(R8*1), (R12)(R8*1), (BX)(R8*1), (AX)(R8*1), X5, Z5)
	LOAD4((R10)(R8*2), (R12)(R8*2), (BX)(R8*2), (AX)(R8*2), X6, Z6)
	LOAD4((R10)(R9*1), (R12)(R9*1), (BX)(R9*1), (AX)(R9*1), X7, Z7)
	INTERLEAVE(Z0, Z4, Z8, Z9)
	INTERLEAVE(Z1, Z5, Z10, Z11)
	INTERLEAVE(Z2, Z6, Z12, Z13)
	INTERLEAVE(Z3, Z7, Z14, Z15)
	INTERLEAVE(Z8, Z12, Z0, Z1)
	INTERLEAVE(Z9, Z13, Z2, Z3)
	INTERLEAVE(Z10, Z14, Z4, Z5)
	INTERLEAVE(Z11, Z15, Z6, Z7)
	INTERLEAVE(Z0, Z4, Z8, Z9)
	INTERLEAVE(Z1, Z5, Z10, Z11)
	INTERLEAVE(Z2, Z6, Z12, Z13)
	INTERLEAVE(Z3, Z7, Z14, Z15)
	STORE(0, Z8)
	STORE(1, Z9)
	STORE(2, Z10)
	STORE(3, Z11)
	STORE(4, Z12)
	STORE(5, Z13)
	STORE(6, Z14)
	STORE(7, Z15)
	ADDQ $16, SI
	ADDQ $16, R10
	ADDQ $16, R11
	ADDQ $16, R12
	ADDQ $16, R13
	ADDQ $16, BX
	ADDQ $16, DX
	ADDQ $16, AX
	ADDQ $512, DI
	DECQ CX
	JNZ piece
	VZEROUPPER
	RET
