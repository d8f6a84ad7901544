#include "textflag.h"

// Palette 1, and eight tiles of 16 rows of 64 bytes.
DATA tiles<>+0(SB)/8, $1
DATA tiles<>+8(SB)/8, $0
DATA tiles<>+16(SB)/8, $0x0040004000400040
DATA tiles<>+24(SB)/8, $0x0040004000400040
DATA tiles<>+32(SB)/8, $0
DATA tiles<>+40(SB)/8, $0
DATA tiles<>+48(SB)/8, $0x1010101010101010
DATA tiles<>+56(SB)/8, $0
GLOBL tiles<>(SB), RODATA|NOPTR, $64

// func spinTiles(n int)
TEXT ·spinTiles(SB), NOSPLIT, $0-8
	MOVQ n+0(FP), CX
	LEAQ tiles<>(SB), AX
	BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0x00 // ldtilecfg [rax]

spin:
	BYTE $0xC4; BYTE $0xE2; BYTE $0x4A; BYTE $0x5C; BYTE $0xC4 // tdpbf16ps tmm0,tmm4,tmm6
	BYTE $0xC4; BYTE $0xE2; BYTE $0x42; BYTE $0x5C; BYTE $0xCC // tdpbf16ps tmm1,tmm4,tmm7
	BYTE $0xC4; BYTE $0xE2; BYTE $0x4A; BYTE $0x5C; BYTE $0xD5 // tdpbf16ps tmm2,tmm5,tmm6
	BYTE $0xC4; BYTE $0xE2; BYTE $0x42; BYTE $0x5C; BYTE $0xDD // tdpbf16ps tmm3,tmm5,tmm7
	DECQ CX
	JNZ spin
	BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0xC0 // tilerelease
	VZEROUPPER
	RET
