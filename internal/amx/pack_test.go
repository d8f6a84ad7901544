//go:build linux && amd64 && !purego

package amx

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "amx.")) }

// specialsOf says how many of the last magnitudes of a format are not finite.
var specialsOf = map[fp8.Format]int{fp8.E4M3: 1, fp8.E5M2: 4}

func codesOf(f fp8.Format) *Decoder {
	return NewDecoder(f.Mantissa(), f.Bias(), specialsOf[f], f.Float32)
}

// narrowed is the value of a code as bfloat16.
func narrowed(t *testing.T, f fp8.Format, code byte) uint16 {
	bits := math.Float32bits(f.Float32(code))
	require.Zero(t, bits&0xFFFF)
	require.True(t, bits<<1 == 0 || bits&0x7F800000 != 0, "a value that AMX takes for zero")
	return uint16(bits >> 16)
}

// TestPackRows has every code in every place, and no memory behind operands.
func TestPackRows(t *testing.T) {
	kernelstest.Compare(t, packRows.Name(), func(t *testing.T, _ cpu.Level) {
		for _, f := range fp8.Formats()[:fp8.E2M1] {
			c := codesOf(f)
			next := byte(0)
			for _, rows := range []int{1, 2, 15, 16, 17, 31, 32} {
				for _, n := range []int{1, 2, 31, 32, 33, 63, 64, 65, 100, 128} {
					stride, chunks := n+rows%3, (n+31)/32
					codes := guarded(t, make([]byte, (rows-1)*stride+n))
					for i := range codes {
						codes[i] = next
						next++
					}
					next += 7
					dst := guarded(t, slices.Repeat([]uint16{0xAAAA}, chunks*Pack))
					PackRows(dst, codes, stride, rows, n, c)
					for at, got := range dst {
						i, k := at%Pack/Chunk, at/Pack*Chunk+at%Chunk
						want := uint16(0)
						if i < rows && k < n {
							want = narrowed(t, f, codes[i*stride+k])
						}
						if got != want {
							t.Fatalf("%v, %d rows of %d: row %d, k %d: %04x, want %04x", f, rows, n, i, k, got, want)
						}
					}
				}
			}
		}
	})
}

func TestPackColumns(t *testing.T) {
	kernelstest.Compare(t, packColumns.Name(), func(t *testing.T, _ cpu.Level) {
		for _, f := range fp8.Formats()[:fp8.E2M1] {
			c := codesOf(f)
			for _, n := range []int{1, 2, 3, 30, 31, 32, 33, 34, 63, 64, 65, 100, 255, 256} {
				codes := guarded(t, make([]byte, n*Size))
				for i := range codes {
					codes[i] = byte(i + i/256*11)
				}
				dst := guarded(t, slices.Repeat([]uint16{0xAAAA}, (n+31)/32*Pack))
				PackColumns(dst, codes, c)
				for at, got := range dst {
					tile, row, column := at%Pack/512, at%512/32, at%32
					j, k := 16*tile+column/2, at/Pack*Chunk+2*row+column%2
					want := uint16(0)
					if k < n {
						want = narrowed(t, f, codes[k*Size+j])
					}
					if got != want {
						t.Fatalf("%v, %d rows: column %d, k %d: %04x, want %04x", f, n, j, k, got, want)
					}
				}
			}
		}
	})
}

// TestPackTransposed has every code in every place, and no memory behind operands.
func TestPackTransposed(t *testing.T) {
	kernelstest.Compare(t, packTransposed.Name(), func(t *testing.T, _ cpu.Level) {
		for _, f := range fp8.Formats()[:fp8.E2M1] {
			c := codesOf(f)
			next := byte(0)
			var s Scratch
			for _, columns := range []int{1, 2, 15, 16, 17, 31, 32} {
				for _, n := range []int{1, 2, 31, 32, 33, 63, 64, 65, 100, 128} {
					stride, chunks := n+columns%3, (n+31)/32
					codes := guarded(t, make([]byte, (columns-1)*stride+n))
					for i := range codes {
						codes[i] = next
						next++
					}
					next += 7
					dst := guarded(t, slices.Repeat([]uint16{0xAAAA}, chunks*Pack))
					PackTransposed(dst, codes, stride, columns, n, c, &s)
					for at, got := range dst {
						tile, row, column := at%Pack/512, at%512/32, at%32
						j, k := 16*tile+column/2, at/Pack*Chunk+2*row+column%2
						want := uint16(0)
						if j < columns && k < n {
							want = narrowed(t, f, codes[j*stride+k])
						}
						if got != want {
							t.Fatalf("%v, %d columns of %d: column %d, k %d: %04x, want %04x", f, columns, n, j, k, got, want)
						}
					}
				}
			}
		}
	})
}

// TestCopyRows has rows that begin where a cache line does, and others.
func TestCopyRows(t *testing.T) {
	kernelstest.Compare(t, copyRows.Name(), func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(7, 8))
		for rows := range 6 {
			for _, stride := range []int{32, 33, 48, 1024} {
				c := make([]float32, rows*Size)
				for i := range c {
					c[i] = math.Float32frombits(r.Uint32())
					if i%5 == 0 {
						c[i] = math.Float32frombits(0x7F800001 | r.Uint32())
					}
				}
				length := max(rows-1, 0)*stride + Size
				want := make([]float32, length+1)
				for i, x := range c {
					if x != x {
						x = math.Float32frombits(0x7FC00000)
					}
					want[i/Size*stride+i%Size] = x
				}
				for _, stream := range []bool{false, true} {
					for from := range 2 { // whether a cache line begins there
						dst := guarded(t, make([]float32, length+from))
						CopyRows(dst[:length], stride, c, stream)
						for i := range dst {
							require.Equal(t, math.Float32bits(want[i]), math.Float32bits(dst[i]))
						}
					}
				}
				CopyRows(c, Size, c, false)
				for i, x := range c {
					require.Equal(t, math.Float32bits(want[i/Size*stride+i%Size]), math.Float32bits(x))
				}
			}
		}
	})
}
