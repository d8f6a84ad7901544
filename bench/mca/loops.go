package main

// loop is an inner loop of a kernel.
type loop struct {
	arch, pkg, function string

	label string         // where it begins
	times map[string]int // how often loops within it go round
	taken []string       // labels that conditional jumps ahead go to

	work  int    // what once round does, in units
	unit  string // "MAC" for multiply-adds of float32
	bytes int    // read and written by a unit, of memory that streams past; 0 if it all stays in L1
}

const (
	microkernel = "internal/microkernel"
	integer     = "internal/integer"
	convert     = "internal/convert"
	elementary  = "internal/elementary"
	rounding    = "internal/rounding"
	transpose   = "internal/transpose"
)

// A chunk is 16 pairs of k, with p = p + (e + o).
var loops = []loop{
	{"arm64", microkernel, "multiplyNEON", "chunk", nil, []string{"halves"}, 4 * 8 * 32, "MAC", 0},
	{"arm64", microkernel, "multiplyRoundedNEON", "chunk", nil, []string{"halves"}, 4 * 8 * 32, "MAC", 0},
	{"arm64", microkernel, "multiplyCodesNEON", "chunk", map[string]int{"pair": 15}, nil, 4 * 8 * 32, "MAC", 0},
	{"arm64", microkernel, "multiplyCodesRowNEON", "chunk", map[string]int{"pair": 15}, nil, 32 * 32, "MAC", 1},
	{"arm64", microkernel, "multiplyCodesRowFHM", "chunk", map[string]int{"pair": 15}, nil, 32 * 32, "MAC", 1},
	{"arm64", microkernel, "decodeFloat16NEON", "decode", nil, nil, 32, "value", 5},
	{"arm64", microkernel, "containsNEON", "look", nil, nil, 32, "code", 1},
	{"arm64", integer, "multiplyDotProd", "block", map[string]int{"four": 2}, []string{"sum", "resumed", "store"}, 4 * 16 * 32, "product", 0},
	{"arm64", microkernel, "transposeNEON", "piece", nil, nil, 8 * 16, "code", 2},
	{"arm64", transpose, "transposeNEON", "square", nil, nil, 16, "value", 8},
	{"arm64", rounding, "nearestNEON", "loop", nil, nil, 8, "value", 8},
	{"arm64", rounding, "nearestBF16NEON", "loop", nil, nil, 8, "value", 8},
	{"arm64", rounding, "stochasticNEON", "loop", nil, nil, 4, "value", 8},
	{"arm64", rounding, "randomBF16NEON", "loop", nil, nil, 4, "value", 8},
	{"arm64", rounding, "extremesNEON", "loop", nil, nil, 8, "value", 4},
	{"arm64", elementary, "expNEON", "loop", nil, nil, 8, "value", 8},
	{"arm64", elementary, "swigluNEON", "loop", nil, nil, 8, "value", 12},
	{"arm64", elementary, "swigluGradNEON", "loop", nil, nil, 8, "value", 20},
	{"arm64", convert, "decodeNEON", "decodeLoop", nil, nil, 16, "value", 5},
	{"arm64", convert, "encodeNEON", "loop", nil, nil, 16, "value", 5},
	{"arm64", convert, "maxBitsNEON", "maxLoop", nil, nil, 16, "value", 4},
	{"arm64", convert, "maxBlocksNEON", "nextBlock", map[string]int{"inBlock": 8}, nil, 128, "value", 4},
	{"arm64", convert, "maxElementsNEON", "nextElements", nil, nil, 16, "value", 4},
	{"arm64", convert, "widenBF16NEON", "bf16Loop", nil, nil, 16, "value", 6},
	{"arm64", convert, "widenF16NEON", "f16Loop", nil, nil, 16, "value", 6},
	{"arm64", convert, "truncateBF16NEON", "halvesLoop", nil, nil, 16, "value", 6},

	{"amd64", microkernel, "multiplyAVX512", "chunk", map[string]int{"pair": 15}, nil, 4 * 32 * 32, "MAC", 0},
	{"amd64", microkernel, "multiplyAVX2", "chunk", map[string]int{"pair": 15}, nil, 3 * 16 * 32, "MAC", 0},
	{"amd64", elementary, "expAVX512", "loop", nil, nil, 16, "value", 8},
	{"amd64", elementary, "expAVX2", "loop", nil, nil, 8, "value", 8},
}
