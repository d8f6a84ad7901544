//go:build !purego

#include "textflag.h"

// The rows are shuffled perfectly four times: each time, row i is interleaved
// with row i+8 to become rows 2i and 2i+1. Seen as the 8 bits of a row's number
// and a byte's place, that is a rotation by one, so row and place change roles
// after four. A vector has four pieces of 16 bytes, all of which go along.
#define INTERLEAVE(Za, Zb, Zlow, Zhigh) \
	VPUNPCKLBW Zb, Za, Zlow \
	VPUNPCKHBW Zb, Za, Zhigh

#define EVENODD \
	INTERLEAVE(Z0, Z8, Z16, Z17) \
	INTERLEAVE(Z1, Z9, Z18, Z19) \
	INTERLEAVE(Z2, Z10, Z20, Z21) \
	INTERLEAVE(Z3, Z11, Z22, Z23) \
	INTERLEAVE(Z4, Z12, Z24, Z25) \
	INTERLEAVE(Z5, Z13, Z26, Z27) \
	INTERLEAVE(Z6, Z14, Z28, Z29) \
	INTERLEAVE(Z7, Z15, Z30, Z31) \
	INTERLEAVE(Z16, Z24, Z0, Z1) \
	INTERLEAVE(Z17, Z25, Z2, Z3) \
	INTERLEAVE(Z18, Z26, Z4, Z5) \
	INTERLEAVE(Z19, Z27, Z6, Z7) \
	INTERLEAVE(Z20, Z28, Z8, Z9) \
	INTERLEAVE(Z21, Z29, Z10, Z11) \
	INTERLEAVE(Z22, Z30, Z12, Z13) \
	INTERLEAVE(Z23, Z31, Z14, Z15)

#define STORE(K, Z, X) \
	VMOVDQU X, (32*K)(DI) \
	VEXTRACTI32X4 $1, Z, (32*K+512)(DI) \
	VEXTRACTI32X4 $2, Z, (32*K+1024)(DI) \
	VEXTRACTI32X4 $3, Z, (32*K+1536)(DI)

// func transposeAVX512(dst, src *byte, stride, n int)
TEXT ·transposeAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), R8
	MOVQ n+24(FP), CX
	LEAQ (R8)(R8*2), R9

piece:
	LEAQ (SI)(R8*4), R10
	LEAQ (SI)(R8*8), R11
	LEAQ (R10)(R8*8), R12
	VMOVDQU64 (SI), Z0
	VMOVDQU64 (SI)(R8*1), Z1
	VMOVDQU64 (SI)(R8*2), Z2
	VMOVDQU64 (SI)(R9*1), Z3
	VMOVDQU64 (R10), Z4
	VMOVDQU64 (R10)(R8*1), Z5
	VMOVDQU64 (R10)(R8*2), Z6
	VMOVDQU64 (R10)(R9*1), Z7
	VMOVDQU64 (R11), Z8
	VMOVDQU64 (R11)(R8*1), Z9
	VMOVDQU64 (R11)(R8*2), Z10
	VMOVDQU64 (R11)(R9*1), Z11
	VMOVDQU64 (R12), Z12
	VMOVDQU64 (R12)(R8*1), Z13
	VMOVDQU64 (R12)(R8*2), Z14
	VMOVDQU64 (R12)(R9*1), Z15
	EVENODD
	EVENODD
	STORE(0, Z0, X0)
	STORE(1, Z1, X1)
	STORE(2, Z2, X2)
	STORE(3, Z3, X3)
	STORE(4, Z4, X4)
	STORE(5, Z5, X5)
	STORE(6, Z6, X6)
	STORE(7, Z7, X7)
	STORE(8, Z8, X8)
	STORE(9, Z9, X9)
	STORE(10, Z10, X10)
	STORE(11, Z11, X11)
	STORE(12, Z12, X12)
	STORE(13, Z13, X13)
	STORE(14, Z14, X14)
	STORE(15, Z15, X15)
	ADDQ $64, SI
	ADDQ $2048, DI
	DECQ CX
	JNZ piece
	VZEROUPPER
	RET
