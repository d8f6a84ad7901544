package amx

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestBlockRefuses(t *testing.T) {
	call := func(c, stride, a, b, sa, sb, chunks int) func() {
		return func() {
			Multiply(make([]float32, c), stride, make([]uint16, a), make([]uint16, b), make([]float32, sa), make([]float32, sb), chunks, new(Scratch), false)
		}
	}
	const two = 2 * Pack
	require.PanicsWithValue(t, badChunks, call(1024, 32, two, two, 64, 64, 0))
	require.PanicsWithValue(t, badChunks, call(1024, 32, two, two, 64, 64, -1))
	require.PanicsWithValue(t, badScales, call(1024, 32, two, two, 65, 65, 1))
	require.PanicsWithValue(t, badScales, call(1024, 32, two, two, 32, 64, 1))
	require.PanicsWithValue(t, badScales, call(2048, 32, 2*two, two, 96, 64, 1))
	require.PanicsWithValue(t, badPack, call(2048, 32, two, two, 128, 64, 1))
	require.PanicsWithValue(t, shortC, call(2047, 32, 2*two, two, 128, 64, 1))
	require.PanicsWithValue(t, badPack, call(1024, 32, two-1, two, 64, 64, 1))
	require.PanicsWithValue(t, badPack, call(1024, 32, two, two-1, 64, 64, 1))
	require.PanicsWithValue(t, badPack, call(1024, 32, two, two, 64, 64, 2))
	require.PanicsWithValue(t, badStride, call(1024, 31, two, two, 64, 64, 1))
	require.PanicsWithValue(t, shortC, call(1023, 32, two, two, 64, 64, 1))
	require.PanicsWithValue(t, shortC, call(31*33+31, 33, two, two, 64, 64, 1))
	call(1024, 32, 0, 0, 0, 0, 1)() // no blocks: nothing to do
}

func TestPartRefuses(t *testing.T) {
	call := func(c, a, b, scales int) func() {
		return func() {
			MultiplyPart(make([]float32, c), 32, make([]uint16, a), make([]uint16, b), make([]float32, scales), make([]float32, 32), make([]Sums, 1), true, true, false)
		}
	}
	require.PanicsWithValue(t, badChunks, call(1024, 0, 0, 32))
	require.PanicsWithValue(t, badScales, call(1024, Pack, Pack, 33))
	require.PanicsWithValue(t, badPack, call(1024, Pack, Pack, 64))
	require.PanicsWithValue(t, badSums, call(2048, 2*Pack, Pack, 64))
	require.PanicsWithValue(t, badPack, call(1024, Pack+1, Pack+1, 32))
	require.PanicsWithValue(t, badPack, call(1024, Pack, 2*Pack, 32))
	require.PanicsWithValue(t, shortC, call(1023, Pack, Pack, 32))
}

func TestPackRefuses(t *testing.T) {
	rows := func(dst, codes, stride, rows, n int) func() {
		return func() { PackRows(make([]uint16, dst), make([]byte, codes), stride, rows, n, new(Decoder)) }
	}
	require.PanicsWithValue(t, badRows, rows(Pack, 100, 1, 0, 1))
	require.PanicsWithValue(t, badRows, rows(Pack, 100, 1, 33, 1))
	require.PanicsWithValue(t, badRows, rows(0, 100, 1, 1, 0))
	require.PanicsWithValue(t, shortRows, rows(Pack, 99, 80, 2, 20))
	require.PanicsWithValue(t, badPack, rows(Pack, 100, 1, 1, 33))
	transposed := func(dst, codes, stride, columns, n int) func() {
		return func() {
			PackTransposed(make([]uint16, dst), make([]byte, codes), stride, columns, n, new(Decoder), new(Scratch))
		}
	}
	require.PanicsWithValue(t, badColumns, transposed(Pack, 100, 1, 0, 1))
	require.PanicsWithValue(t, badColumns, transposed(Pack, 100, 1, 33, 1))
	require.PanicsWithValue(t, badColumns, transposed(0, 100, 1, 1, 0))
	require.PanicsWithValue(t, shortColumns, transposed(Pack, 99, 80, 2, 20))
	require.PanicsWithValue(t, badPack, transposed(Pack, 100, 1, 1, 33))
	columns := func(dst, codes int) func() {
		return func() { PackColumns(make([]uint16, dst), make([]byte, codes), new(Decoder)) }
	}
	require.PanicsWithValue(t, badColumn, columns(0, 0))
	require.PanicsWithValue(t, badColumn, columns(Pack, 33))
	require.PanicsWithValue(t, badPack, columns(Pack, 33*32))
	copied := func(dst, stride, c int) func() {
		return func() { CopyRows(make([]float32, dst), stride, make([]float32, c), false) }
	}
	require.PanicsWithValue(t, badRow, copied(100, 32, 33))
	require.PanicsWithValue(t, badStride, copied(100, 31, 32))
	require.PanicsWithValue(t, shortC, copied(132, 101, 64))
	copied(0, 32, 0)()
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
