//go:build !purego

#include "textflag.h"

// The assembler has no AMX. The test of package asmtable compares each row of
// bytes with the instruction beside it.
#define LDTILECFG BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0x00 // ldtilecfg [rax]
#define TILERELEASE BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0xC0 // tilerelease
#define TILEZERO0 BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x49; BYTE $0xC0 // tilezero tmm0
#define TILEZERO7 BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x49; BYTE $0xF8 // tilezero tmm7
#define TILELOADD0 BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; BYTE $0x04; BYTE $0x0E // tileloadd tmm0,[rsi+rcx*1]
#define TILELOADD1 BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; BYTE $0x0C; BYTE $0x0E // tileloadd tmm1,[rsi+rcx*1]
#define TILELOADD2 BYTE $0xC4; BYTE $0x82; BYTE $0x7B; BYTE $0x4B; BYTE $0x14; BYTE $0x2C // tileloadd tmm2,[r12+r13*1]
#define TILELOADDT1_7 BYTE $0xC4; BYTE $0x82; BYTE $0x79; BYTE $0x4B; BYTE $0x7C; BYTE $0x4D; BYTE $0xC0 // tileloaddt1 tmm7,[r13+r9*2-0x40]
#define TILESTORED0 BYTE $0xC4; BYTE $0xE2; BYTE $0x7A; BYTE $0x4B; BYTE $0x04; BYTE $0x0F // tilestored [rdi+rcx*1],tmm0
#define TILESTORED7 BYTE $0xC4; BYTE $0x82; BYTE $0x7A; BYTE $0x4B; BYTE $0xBC; BYTE $0xA3; BYTE $0x00; BYTE $0x10; BYTE $0x00; BYTE $0x00 // tilestored [r11+r12*4+0x1000],tmm7
#define TDPBF16PS012 BYTE $0xC4; BYTE $0xE2; BYTE $0x6A; BYTE $0x5C; BYTE $0xC1 // tdpbf16ps tmm0,tmm1,tmm2
#define TDPBF16PS721 BYTE $0xC4; BYTE $0xE2; BYTE $0x72; BYTE $0x5C; BYTE $0xFA // tdpbf16ps tmm7,tmm2,tmm1
#define TDPBSSD012 BYTE $0xC4; BYTE $0xE2; BYTE $0x6B; BYTE $0x5E; BYTE $0xC1 // tdpbssd tmm0,tmm1,tmm2
#define TDPBSUD012 BYTE $0xC4; BYTE $0xE2; BYTE $0x6A; BYTE $0x5E; BYTE $0xC1 // tdpbsud tmm0,tmm1,tmm2
#define TDPBUSD012 BYTE $0xC4; BYTE $0xE2; BYTE $0x69; BYTE $0x5E; BYTE $0xC1 // tdpbusd tmm0,tmm1,tmm2
#define TDPBUUD012 BYTE $0xC4; BYTE $0xE2; BYTE $0x68; BYTE $0x5E; BYTE $0xC1 // tdpbuud tmm0,tmm1,tmm2

// func Configure(config *[64]byte)
TEXT ·Configure(SB), NOSPLIT, $0-8
	MOVQ config+0(FP), AX
	LDTILECFG
	RET

// func Release()
TEXT ·Release(SB), NOSPLIT, $0-0
	TILERELEASE
	RET

// func Zero0()
TEXT ·Zero0(SB), NOSPLIT, $0-0
	TILEZERO0
	RET

// func Load0(src *byte, stride int)
TEXT ·Load0(SB), NOSPLIT, $0-16
	MOVQ src+0(FP), SI
	MOVQ stride+8(FP), CX
	TILELOADD0
	RET

// func Load1(src *byte, stride int)
TEXT ·Load1(SB), NOSPLIT, $0-16
	MOVQ src+0(FP), SI
	MOVQ stride+8(FP), CX
	TILELOADD1
	RET

// func Load2(src *byte, stride int)
TEXT ·Load2(SB), NOSPLIT, $0-16
	MOVQ src+0(FP), R12
	MOVQ stride+8(FP), R13
	TILELOADD2
	RET

// func Load7(src *byte, stride int)
TEXT ·Load7(SB), NOSPLIT, $0-16
	MOVQ src+0(FP), R13
	ADDQ $0x40, R13
	MOVQ stride+8(FP), R9
	SHRQ $1, R9
	TILELOADDT1_7
	RET

// func Store0(dst *byte, stride int)
TEXT ·Store0(SB), NOSPLIT, $0-16
	MOVQ dst+0(FP), DI
	MOVQ stride+8(FP), CX
	TILESTORED0
	RET

// func Store7(dst *byte, stride int)
TEXT ·Store7(SB), NOSPLIT, $0-16
	MOVQ dst+0(FP), R11
	SUBQ $0x1000, R11
	MOVQ stride+8(FP), R12
	SHRQ $2, R12
	TILESTORED7
	RET

// func Multiply012()
TEXT ·Multiply012(SB), NOSPLIT, $0-0
	TDPBF16PS012
	RET

// func Multiply721()
TEXT ·Multiply721(SB), NOSPLIT, $0-0
	TDPBF16PS721
	RET

// func MultiplySigned012()
TEXT ·MultiplySigned012(SB), NOSPLIT, $0-0
	TDPBSSD012
	RET

// func MultiplySignedUnsigned012()
TEXT ·MultiplySignedUnsigned012(SB), NOSPLIT, $0-0
	TDPBSUD012
	RET

// func MultiplyUnsignedSigned012()
TEXT ·MultiplyUnsignedSigned012(SB), NOSPLIT, $0-0
	TDPBUSD012
	RET

// func MultiplyUnsigned012()
TEXT ·MultiplyUnsigned012(SB), NOSPLIT, $0-0
	TDPBUUD012
	RET

// func Rounds(c, a, b *byte, config *[64]byte, n int)
TEXT ·Rounds(SB), NOSPLIT, $0-40
	MOVQ c+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), R12
	MOVQ config+24(FP), AX
	MOVQ n+32(FP), DX
	MOVQ $64, CX
	MOVQ $64, R13
	LDTILECFG
	TILEZERO0

next:
	TILELOADD1
	TILELOADD2
	TDPBF16PS012
	TILEZERO7
	TDPBF16PS721
	DECQ DX
	JNZ next
	TILESTORED0
	TILERELEASE
	RET

// func Illegal()
TEXT ·Illegal(SB), NOSPLIT, $0-0
	UD2
	RET
