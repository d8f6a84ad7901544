package amx

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestBlockRefuses(t *testing.T) {
	call := func(c, stride, a, b, sa, sb, chunks int) func() {
		return func() {
			Block(make([]float32, c), stride, make([]uint16, a), make([]uint16, b), make([]float32, sa), make([]float32, sb), chunks, new(Scratch))
		}
	}
	const two = 2 * Pack
	require.PanicsWithValue(t, badChunks, call(1024, 32, two, two, 64, 64, 0))
	require.PanicsWithValue(t, badChunks, call(1024, 32, two, two, 64, 64, -1))
	require.PanicsWithValue(t, badScales, call(1024, 32, two, two, 65, 65, 1))
	require.PanicsWithValue(t, badScales, call(1024, 32, two, two, 64, 32, 1))
	require.PanicsWithValue(t, badPack, call(1024, 32, two-1, two, 64, 64, 1))
	require.PanicsWithValue(t, badPack, call(1024, 32, two, two-1, 64, 64, 1))
	require.PanicsWithValue(t, badPack, call(1024, 32, two, two, 64, 64, 2))
	require.PanicsWithValue(t, badStride, call(1024, 31, two, two, 64, 64, 1))
	require.PanicsWithValue(t, shortC, call(1023, 32, two, two, 64, 64, 1))
	require.PanicsWithValue(t, shortC, call(31*33+31, 33, two, two, 64, 64, 1))
	call(1024, 32, 0, 0, 0, 0, 1)() // no blocks: nothing to do
}

func TestScratch(t *testing.T) {
	memory := make([]Scratch, 17)
	for i := range memory { // each begins elsewhere in a cache line
		s := &memory[i]
		p := uintptr(unsafe.Pointer(s.sums()))
		require.Zero(t, p%alignment)
		begin := uintptr(unsafe.Pointer(s))
		require.True(t, begin <= p && p+4*Size*Size <= begin+unsafe.Sizeof(*s))
	}
}
