//go:build !purego

package tile

import "github.com/octavo-fp8/octavo/internal/cpu"

func kernelFor(l cpu.Level) *Kernel {
	switch l {
	case cpu.AVX512, cpu.AMX: // package amx has the tiles of the latter
		return &avx512
	case cpu.AVX2:
		return &avx2
	}
	return nil
}

var avx512 = Kernel{
	Rows: 4, Width: 32,
	Tiles: tilesAVX512, RoundedTiles: roundedTilesAVX512,
	ThinTiles: thinTilesAVX512, ThinRow: thinRowAVX512,
	Halves: halvesAVX512, Has: hasAVX2,
	Transpose: transposeAVX512, Down: 16, Across: 64,
}

//go:noescape
func tilesAVX512(t *Task)

//go:noescape
func roundedTilesAVX512(t *Task)

//go:noescape
func thinTilesAVX512(t *Task)

//go:noescape
func thinRowAVX512(t *Task)

//go:noescape
func halvesAVX512(dst *float32, codes *byte, n int, multiplier, mask uint64)

//go:noescape
func transposeAVX512(dst, src *byte, stride, n int)

var avx2 = Kernel{
	Rows: 3, Width: 16,
	Tiles: tilesAVX2, RoundedTiles: roundedTilesAVX2,
	ThinTiles: thinTilesAVX2, ThinRow: thinRowAVX2,
	Halves: halvesAVX2, Has: hasAVX2,
	Transpose: transposeAVX2, Down: 8, Across: 32,
}

//go:noescape
func tilesAVX2(t *Task)

//go:noescape
func roundedTilesAVX2(t *Task)

//go:noescape
func thinTilesAVX2(t *Task)

//go:noescape
func thinRowAVX2(t *Task)

//go:noescape
func halvesAVX2(dst *float32, codes *byte, n int, multiplier, mask uint64)

//go:noescape
func hasAVX2(codes *byte, n int, mask, value uint64) bool

//go:noescape
func transposeAVX2(dst, src *byte, stride, n int)
