// What the kernels of products share.

// The assembler lacks these instructions. The test of package asmtable compares each
// WORD with the text beside it, for all registers.
#define FADD(m, n, d) WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d)) // fadd vd.4s, vn.4s, vm.4s
#define FMUL(m, n, d) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d)) // fmul vd.4s, vn.4s, vm.4s
#define FMULLANE(m, lane, n, d) WORD $(0x4F809000 | ((lane)&1)<<21 | ((lane)>>1)<<11 | (m)<<16 | (n)<<5 | (d)) // fmul vd.4s, vn.4s, vm.s[lane]
#define FMLALANE(m, lane, n, d) WORD $(0x4F801000 | ((lane)&1)<<21 | ((lane)>>1)<<11 | (m)<<16 | (n)<<5 | (d)) // fmla vd.4s, vn.4s, vm.s[lane]
#define FCMEQ(m, n, d) WORD $(0x4E20E400 | (m)<<16 | (n)<<5 | (d)) // fcmeq vd.4s, vn.4s, vm.4s
#define SSHL(m, n, d) WORD $(0x4E604400 | (m)<<16 | (n)<<5 | (d)) // sshl vd.8h, vn.8h, vm.8h
#define SHLL(n, d) WORD $(0x2E213800 | (n)<<5 | (d)) // shll vd.8h, vn.8b, #8
#define FCVTL(n, d) WORD $(0x0E217800 | (n)<<5 | (d)) // fcvtl vd.4s, vn.4h
#define FCVTL2(n, d) WORD $(0x4E217800 | (n)<<5 | (d)) // fcvtl2 vd.4s, vn.8h
#define FCVTN(n, d) WORD $(0x0E216800 | (n)<<5 | (d)) // fcvtn vd.4h, vn.4s
#define FMLAL(m, n, d) WORD $(0x4E20EC00 | (m)<<16 | (n)<<5 | (d)) // fmlal vd.4s, vn.4h, vm.4h
#define FMLAL2(m, n, d) WORD $(0x6E20CC00 | (m)<<16 | (n)<<5 | (d)) // fmlal2 vd.4s, vn.4h, vm.4h

// A chunk's first products are stored, not added to +0. That can only leave a -0 in e
// or o, and p, which is never -0, is the same.

#define task R0
#define aBlock R1 // A's rows
#define aStride R2
#define cBlock R3
#define scaleA R4 // of this block
#define rowBlocks R5  // left
#define a0 R6     // here, in each row
#define a1 R7
#define a2 R8
#define a3 R9
#define panel R10 // B here
#define scaleB R11
#define blocks R12 // left
#define pairs R13  // left in the chunk
#define left R14   // left in the block
#define flags R15
#define row R19
#define stride R20
#define tmp R21
#define outBlock R24 // where results go in place of C, or nil

#define CLEAR(V) VEOR V.B16, V.B16, V.B16

#define CLEARP \
	CLEAR(V16) \
	CLEAR(V17) \
	CLEAR(V18) \
	CLEAR(V19) \
	CLEAR(V20) \
	CLEAR(V21) \
	CLEAR(V22) \
	CLEAR(V23)

// The rows of V from row on, stride apart.
#define MOVE4(MOVE, Va, Vb, Vc, Vd, Ve, Vf, Vg, Vh) \
	MOVE(Va, Vb) \
	ADD stride, row \
	MOVE(Vc, Vd) \
	ADD stride, row \
	MOVE(Ve, Vf) \
	ADD stride, row \
	MOVE(Vg, Vh)

#define LOAD(Va, Vb) VLD1 (row), [Va.S4, Vb.S4]
#define STORE(Va, Vb) VST1 [Va.S4, Vb.S4], (row)

// V24 = a row's scale of A.
#define SCALEA \
	VLD1R (row), [V24.S4] \
	ADD stride, row

// p = p + (e + o), of V0 to V7, V8 to V15 and V16 to V23.
#define FOLD \
	FADD(8, 0, 0) \
	FADD(9, 1, 1) \
	FADD(10, 2, 2) \
	FADD(11, 3, 3) \
	FADD(12, 4, 4) \
	FADD(13, 5, 5) \
	FADD(14, 6, 6) \
	FADD(15, 7, 7) \
	FADD(0, 16, 16) \
	FADD(1, 17, 17) \
	FADD(2, 18, 18) \
	FADD(3, 19, 19) \
	FADD(4, 20, 20) \
	FADD(5, 21, 21) \
	FADD(6, 22, 22) \
	FADD(7, 23, 23)

// V0 to V7, which is C, = fma(p*sa, sb, c), with sa of a row in row, stride apart.
#define SCALE \
	SCALEA \
	FMUL(24, 16, 16) \
	FMUL(24, 17, 17) \
	SCALEA \
	FMUL(24, 18, 18) \
	FMUL(24, 19, 19) \
	SCALEA \
	FMUL(24, 20, 20) \
	FMUL(24, 21, 21) \
	SCALEA \
	FMUL(24, 22, 22) \
	FMUL(24, 23, 23) \
	VLD1 (scaleB), [V24.S4, V25.S4] \
	VFMLA V24.S4, V16.S4, V0.S4 \
	VFMLA V25.S4, V17.S4, V1.S4 \
	VFMLA V24.S4, V18.S4, V2.S4 \
	VFMLA V25.S4, V19.S4, V3.S4 \
	VFMLA V24.S4, V20.S4, V4.S4 \
	VFMLA V25.S4, V21.S4, V5.S4 \
	VFMLA V24.S4, V22.S4, V6.S4 \
	VFMLA V25.S4, V23.S4, V7.S4

// The canonical NaN for every NaN of V0 to V7; V24 and V25 are lost.
#define CANONICAL1(V, n) \
	FCMEQ(n, n, 25) \
	VBIF V25.B16, V24.B16, V.B16

#define CANONICAL \
	MOVW $0x7FC00000, tmp \
	VDUP tmp, V24.S4 \
	CANONICAL1(V0, 0) \
	CANONICAL1(V1, 1) \
	CANONICAL1(V2, 2) \
	CANONICAL1(V3, 3) \
	CANONICAL1(V4, 4) \
	CANONICAL1(V5, 5) \
	CANONICAL1(V6, 6) \
	CANONICAL1(V7, 7)
