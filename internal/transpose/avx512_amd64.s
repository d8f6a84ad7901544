//go:build !purego

#include "textflag.h"

// Four rows, in Z0 to Z3 of each group of four, become their columns: in lane L of the
// result j is column 4L+j.
#define FOURROWS(Za, Zb, Zc, Zd, T0, T1, T2, T3) \
	VUNPCKLPS Zb, Za, T0 \
	VUNPCKHPS Zb, Za, T1 \
	VUNPCKLPS Zd, Zc, T2 \
	VUNPCKHPS Zd, Zc, T3 \
	VUNPCKLPD T2, T0, Za \
	VUNPCKHPD T2, T0, Zb \
	VUNPCKLPD T3, T1, Zc \
	VUNPCKHPD T3, T1, Zd

// Column j of four groups of rows, of which each lane is another column, becomes the
// columns j, 4+j, 8+j and 12+j of all 16 rows.
#define FOURCOLUMNS(Za, Zb, Zc, Zd, T0, T1, T2, T3) \
	VSHUFF32X4 $0x88, Zb, Za, T0 \
	VSHUFF32X4 $0xDD, Zb, Za, T1 \
	VSHUFF32X4 $0x88, Zd, Zc, T2 \
	VSHUFF32X4 $0xDD, Zd, Zc, T3 \
	VSHUFF32X4 $0x88, T2, T0, Za \
	VSHUFF32X4 $0x88, T3, T1, Zb \
	VSHUFF32X4 $0xDD, T2, T0, Zc \
	VSHUFF32X4 $0xDD, T3, T1, Zd

// func transposeAVX512(dst, src *float32, dstStride, srcStride, n int)
TEXT ·transposeAVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ dstStride+16(FP), R8
	MOVQ srcStride+24(FP), R9
	MOVQ n+32(FP), CX
	LEAQ (R8)(R8*2), R10
	LEAQ (R9)(R9*2), R11

square:
	MOVQ SI, AX
	VMOVUPS (AX), Z0
	VMOVUPS (AX)(R9*1), Z1
	VMOVUPS (AX)(R9*2), Z2
	VMOVUPS (AX)(R11*1), Z3
	LEAQ (AX)(R9*4), AX
	VMOVUPS (AX), Z4
	VMOVUPS (AX)(R9*1), Z5
	VMOVUPS (AX)(R9*2), Z6
	VMOVUPS (AX)(R11*1), Z7
	LEAQ (AX)(R9*4), AX
	VMOVUPS (AX), Z8
	VMOVUPS (AX)(R9*1), Z9
	VMOVUPS (AX)(R9*2), Z10
	VMOVUPS (AX)(R11*1), Z11
	LEAQ (AX)(R9*4), AX
	VMOVUPS (AX), Z12
	VMOVUPS (AX)(R9*1), Z13
	VMOVUPS (AX)(R9*2), Z14
	VMOVUPS (AX)(R11*1), Z15
	FOURROWS(Z0, Z1, Z2, Z3, Z16, Z17, Z18, Z19)
	FOURROWS(Z4, Z5, Z6, Z7, Z20, Z21, Z22, Z23)
	FOURROWS(Z8, Z9, Z10, Z11, Z24, Z25, Z26, Z27)
	FOURROWS(Z12, Z13, Z14, Z15, Z28, Z29, Z30, Z31)
	FOURCOLUMNS(Z0, Z4, Z8, Z12, Z16, Z17, Z18, Z19)
	FOURCOLUMNS(Z1, Z5, Z9, Z13, Z20, Z21, Z22, Z23)
	FOURCOLUMNS(Z2, Z6, Z10, Z14, Z24, Z25, Z26, Z27)
	FOURCOLUMNS(Z3, Z7, Z11, Z15, Z28, Z29, Z30, Z31)
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, (DI)(R8*1)
	VMOVUPS Z2, (DI)(R8*2)
	VMOVUPS Z3, (DI)(R10*1)
	LEAQ (DI)(R8*4), DI
	VMOVUPS Z4, (DI)
	VMOVUPS Z5, (DI)(R8*1)
	VMOVUPS Z6, (DI)(R8*2)
	VMOVUPS Z7, (DI)(R10*1)
	LEAQ (DI)(R8*4), DI
	VMOVUPS Z8, (DI)
	VMOVUPS Z9, (DI)(R8*1)
	VMOVUPS Z10, (DI)(R8*2)
	VMOVUPS Z11, (DI)(R10*1)
	LEAQ (DI)(R8*4), DI
	VMOVUPS Z12, (DI)
	VMOVUPS Z13, (DI)(R8*1)
	VMOVUPS Z14, (DI)(R8*2)
	VMOVUPS Z15, (DI)(R10*1)
	LEAQ (DI)(R8*4), DI
	ADDQ $64, SI
	DECQ CX
	JNZ square
	VZEROUPPER
	RET
