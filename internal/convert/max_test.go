package convert

import (
	"math"
	"slices"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/stretchr/testify/require"
)

// TestMaxBits puts the largest value in every place at every alignment.
func TestMaxBits(t *testing.T) {
	kernelstest.Compare(t, maxBits.Name(), func(t *testing.T, l cpu.Level) {
		for n := 16; n <= 272; n += 16 {
			for from := range 16 {
				src := aligned[float32](n + 32)
				for i := range src {
					src[i] = float32(math.Inf(1)) // before and after: not to be seen
				}
				part := src[from+1 : from+1+n]
				clear(part)
				require.Zero(t, MaxBits(l, &part[0], n))
				for i := range part {
					for _, b := range []uint32{1, 0x80000001, 0x3F800000, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFFFFFFF} {
						part[i] = math.Float32frombits(b)
						part[n-1-i] = math.Float32frombits(b &^ 1)
						want := max(magnitude(part[i]), magnitude(part[n-1-i]))
						if got := MaxBits(l, &part[0], n); got != want {
							t.Fatalf("%v, n %d, from %d, %08x at %d: %08x, want %08x", l, n, from, b, i, got, want)
						}
					}
					part[i], part[n-1-i] = 0, 0
				}
			}
		}
	})
}

// extremes are bits that are large in some way, of both signs.
var extremes = []uint32{1, 0x80000001, 0x3F800000, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFFFFFFF}

// blocksFor is how many blocks of a length are tested: more than kernels take at a time.
func blocksFor(block int) int {
	if block <= 32 {
		return 18
	}
	return 3
}

// TestMaxBlocks puts the largest value in every place of one of several blocks,
// larger or smaller than what is there, with others before and after.
func TestMaxBlocks(t *testing.T) {
	const canary = float32(12345.5)
	kernelstest.Compare(t, maxBlocks.Name(), func(t *testing.T, l cpu.Level) {
		lengths(func(block int) {
			for blocks := 1; blocks <= blocksFor(block); blocks++ {
				src := aligned[float32](blocks*block + 32)
				for i := range src {
					src[i] = float32(math.Inf(-1)) // before and after: not to be seen
				}
				from := (block/16*5 + blocks) % 16
				part := src[from+1:][:blocks*block]
				for i := range part {
					part[i] = -float32(i/block + 1) // what the block has
				}
				for place := range part {
					bits := extremes[place%len(extremes)]
					before := part[place]
					part[place] = math.Float32frombits(bits)
					dst := slices.Repeat([]float32{canary}, blocks+2)
					want := slices.Clone(dst)
					for b := range blocks {
						dst[b+1] = float32((b + place) % 3 * 2) // 0, or more or less than the block has
						most := math.Float32bits(dst[b+1])
						for _, x := range part[b*block : (b+1)*block] {
							most = max(most, magnitude(x))
						}
						want[b+1] = canonical(most)
					}
					MaxBlocks(l, &dst[1], &part[0], blocks, block)
					if !slices.EqualFunc(dst, want, sameBits) {
						t.Fatalf("%v, %d blocks of %d, %08x at %d: %v, want %v", l, blocks, block, bits, place, dst, want)
					}
					part[place] = before
				}
			}
		})
	})
}

func sameBits(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// TestMaxElements has larger and smaller values in every place at every
// alignment.
func TestMaxElements(t *testing.T) {
	const canary = float32(12345.5)
	kernelstest.Compare(t, maxElements.Name(), func(t *testing.T, l cpu.Level) {
		lengths(func(n int) {
			for at := range 16 {
				src, dst := aligned[float32](n + 32)[at:], aligned[float32](n+32)
				for i := range dst {
					dst[i] = canary
				}
				want := slices.Clone(dst)
				to := 15 - at + 1
				for i := range n {
					src[i] = math.Float32frombits(extremes[(i*3+at)%len(extremes)])
					dst[to+i] = math.Float32frombits(extremes[(i/8+i)%len(extremes)] &^ (1 << 31))
					want[to+i] = canonical(max(magnitude(src[i]), magnitude(dst[to+i])))
				}
				MaxElements(l, &dst[to], &src[0], n)
				if !slices.EqualFunc(dst, want, sameBits) {
					t.Fatalf("%v, n %d, at %d: %v, want %v", l, n, at, dst, want)
				}
			}
		})
	})
}

// canonical returns the float32 of bits, or the canonical NaN for any other.
func canonical(bits uint32) float32 {
	if bits > infinity {
		bits = 0x7FC00000
	}
	return math.Float32frombits(bits)
}
