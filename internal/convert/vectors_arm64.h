// What kernels of more than one file use.

// The assembler lacks many vector instructions. Those are written as WORD with
// the instruction beside it in the notation of the Arm manual, where the
// destination comes first; the test of package asmtable compares the two. They
// name registers by number: who renames one must look there too.

#define to R0
#define from R1
#define left R2
#define params R3
#define tmp R7

// All lanes of v = the 32 bits at offset off of the parameters.
#define SPLAT(off, v) \
	MOVWU off(params), tmp \
	VDUP tmp, v.S4

// F0 = the maximum (or minimum) of v's lanes.
#define EXTREME(OP, v) \
	VEXT $8, v.B16, v.B16, V0.B16 \
	OP V0.S4, v.S4, v.S4 \
	VEXT $4, v.B16, v.B16, V0.B16 \
	OP V0.S4, v.S4, V0.S4
