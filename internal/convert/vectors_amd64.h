// What kernels of more than one file use.

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
