//go:build !purego

#include "go_asm.h" // made by the compiler: the fields of structures
#include "textflag.h"

DATA bits<>+0(SB)/4, $1
DATA bits<>+4(SB)/4, $2
DATA bits<>+8(SB)/4, $4
DATA bits<>+12(SB)/4, $8
DATA bits<>+16(SB)/4, $16
DATA bits<>+20(SB)/4, $32
DATA bits<>+24(SB)/4, $64
DATA bits<>+28(SB)/4, $128
GLOBL bits<>(SB), RODATA|NOPTR, $32

#define SCALE Y12
#define LOWEST Y13
#define BITS Y14

// Y15 = the larger of it and of a vector of scores, times SCALE where they are kept; Y11
// is not 0 where one of them is NaN.
#define SCORES(At) \
	VPBROADCASTB (Row_Kept+At)(BX), Y0 \
	VPAND BITS, Y0, Y0 \
	VPCMPEQD BITS, Y0, Y0 \
	VMULPS (32*At)(SI), SCALE, Y1 \
	VBLENDVPS Y0, Y1, LOWEST, Y1 \
	VMOVUPS Y1, (32*At)(SI) \
	VCMPPS $3, Y1, Y1, Y2 \
	VORPS Y2, Y11, Y11 \
	VMAXPS Y1, Y15, Y15

// func scaleAVX2(z *float32, rows *Row, n int, scale float32)
TEXT ·scaleAVX2(SB), NOSPLIT, $0-28
	MOVQ z+0(FP), SI
	MOVQ rows+8(FP), BX
	MOVQ n+16(FP), CX
	VBROADCASTSS scale+24(FP), SCALE
	VPCMPEQD LOWEST, LOWEST, LOWEST
	VPSLLD $23, LOWEST, LOWEST // -Inf
	VMOVDQU bits<>(SB), BITS

row:
	CMPQ Row_Kept(BX), $0
	JEQ next
	VMOVAPS LOWEST, Y15
	VXORPS Y11, Y11, Y11
	SCORES(0)
	SCORES(1)
	SCORES(2)
	SCORES(3)
	SCORES(4)
	SCORES(5)
	SCORES(6)
	SCORES(7)
	VEXTRACTF128 $1, Y15, X1
	VMAXPS X15, X1, X0
	VPERMILPS $0x4E, X0, X1
	VMAXPS X0, X1, X0
	VPERMILPS $0xB1, X0, X1
	VMAXPS X0, X1, X0
	VMOVSS X0, Row_tile(BX)
	VMOVMSKPS Y11, AX
	TESTL AX, AX
	JEQ next
	MOVL $0x7FC00000, Row_tile(BX) // NaN

next:
	ADDQ $256, SI
	ADDQ $Row__size, BX
	DECQ CX
	JNZ row
	VZEROUPPER
	RET

// func sumAVX2(p *float32) float32
TEXT ·sumAVX2(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), SI
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VADDPS 64(SI), Y0, Y0
	VADDPS 96(SI), Y1, Y1
	VADDPS 128(SI), Y0, Y0
	VADDPS 160(SI), Y1, Y1
	VADDPS 192(SI), Y0, Y0
	VADDPS 224(SI), Y1, Y1
	VADDPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0x4E, X0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0xB1, X0, X1
	VADDPS X1, X0, X0
	VMOVSS X0, ret+8(FP)
	VZEROUPPER
	RET
