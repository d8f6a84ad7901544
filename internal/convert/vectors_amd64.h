// What kernels of more than one file use.

// Y0 = the maximum of each of the 8 vectors of 8 numbers at R13, in their order. Y1 to Y5
// are lost. OP may be of pairs of 16-bit numbers.
#define REDUCEEIGHT(OP) \
	REDUCEPAIR(OP, 0, Y0, Y4) \
	REDUCEPAIR(OP, 64, Y1, Y5) \
	REDUCEPAIR(OP, 128, Y2, Y4) \
	REDUCEPAIR(OP, 192, Y3, Y5) \
	VPUNPCKLQDQ Y1, Y0, Y4 \
	VPUNPCKHQDQ Y1, Y0, Y0 \
	VPUNPCKLQDQ Y3, Y2, Y5 \
	VPUNPCKHQDQ Y3, Y2, Y2 \
	OP Y4, Y0, Y0 \
	OP Y5, Y2, Y2 \
	VPERM2I128 $0x20, Y2, Y0, Y4 \
	VPERM2I128 $0x31, Y2, Y0, Y0 \
	OP Y4, Y0, Y0

// The numbers of two vectors at R13, alternating, each with its fellow of the other half.
#define REDUCEPAIR(OP, at, Yx, Yt) \
	VMOVDQU at(R13), Yx \
	VPUNPCKHDQ (at+32)(R13), Yx, Yt \
	VPUNPCKLDQ (at+32)(R13), Yx, Yx \
	OP Yt, Yx, Yx

// EACH(0) to EACH(7).
#define EACHOFEIGHT(EACH) \
	EACH(0) \
	EACH(1) \
	EACH(2) \
	EACH(3) \
	EACH(4) \
	EACH(5) \
	EACH(6) \
	EACH(7)

// Y0, without signs, become the values at DI that are larger, or NaN where one is; Y7 is NaN.
// Y1 is lost.
#define RAISEEIGHT \
	VPMAXUD (DI), Y0, Y0 \
	VCMPPS $3, Y0, Y0, Y1 \
	VBLENDVPS Y1, Y7, Y0, Y0 \
	VMOVUPS Y0, (DI) \
	ADDQ $32, DI

// X0 likewise becomes the value at DI. X1 is lost.
#define RAISEONE \
	VMOVD (DI), X1 \
	VPMAXUD X1, X0, X0 \
	VCMPPS $3, X0, X0, X1 \
	VBLENDVPS X1, X7, X0, X0 \
	VMOVSS X0, (DI) \
	ADDQ $4, DI

// Xx = the maximum (or minimum) of the lanes of Yx in its first; Xt is lost.
#define REDUCE256(OP, Yx, Xx, Xt) \
	VEXTRACTI128 $1, Yx, Xt \
	OP Xt, Xx, Xx \
	VPSHUFD $0x4E, Xx, Xt \
	OP Xt, Xx, Xx \
	VPSHUFD $0xB1, Xx, Xt \
	OP Xt, Xx, Xx

// Xx = the maximum (or minimum) of the lanes of Zx in its first; Yt is lost.
#define REDUCE512(OP, Zx, Yx, Yt, Xx, Xt) \
	VEXTRACTI64X4 $1, Zx, Yt \
	OP Yt, Yx, Yx \
	VEXTRACTI32X4 $1, Yx, Xt \
	OP Xt, Xx, Xx \
	VPSHUFD $0x4E, Xx, Xt \
	OP Xt, Xx, Xx \
	VPSHUFD $0xB1, Xx, Xt \
	OP Xt, Xx, Xx
