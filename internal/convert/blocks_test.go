package convert

import (
	"math"
	"slices"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestMaxBlocksHalves has larger and smaller values in every place.
func TestMaxBlocksHalves(t *testing.T) {
	bits := map[Source]func(uint16) uint32{
		BFloat16: func(h uint16) uint32 { return uint32(h) << 16 },
		Float16:  float16,
	}
	extremes := []uint16{0x7F80, 0xFF80, 0x7FC0, 0xFFFF, 0x7F81, 0x7F7F, 0xFF7F, 0, 0x8000, 0x4000, 0xC001, 0x7C00, 0xFC01, 0xFBFF, 0x7E00, 1, 0x83FF}
	kernelstest.Compare(t, maxBlocksHalves.Name(), func(t *testing.T, l cpu.Level) {
		lengths(func(block int) {
			for blocks := 1; blocks <= blocksFor(block); blocks++ {
				src := slices.Repeat([]uint16{0xFF80}, blocks*block+2) // before and after: not to be seen
				part := src[1:][:blocks*block]
				for i := range part {
					part[i] = 0xBF80 + uint16(i/block) // what the block has
				}
				for place := range part {
					before := part[place]
					part[place] = extremes[place%len(extremes)]
					of := Source(place+blocks)%2 + BFloat16
					dst := slices.Repeat([]float32{123}, blocks+2)
					want := slices.Clone(dst)
					for b := range blocks {
						dst[b+1] = float32((b + place) % 3 * 2)
						most := math.Float32bits(dst[b+1])
						for _, x := range part[b*block : (b+1)*block] {
							most = max(most, bits[of](x)&^(1<<31))
						}
						want[b+1] = canonical(most)
					}
					if !MaxBlocksHalves(l, &dst[1], &part[0], blocks, block, of) {
						t.Fatal("there is no kernel")
					}
					if !slices.EqualFunc(dst, want, sameBits) {
						t.Fatalf("source %d, %d blocks of %d, %04x at %d: %v, want %v", of, blocks, block, part[place], place, dst, want)
					}
					part[place] = before
				}
			}
		})
	})
}

// TestScaleBlocks multiplies and divides values of all kinds.
func TestScaleBlocks(t *testing.T) {
	scales := []float32{3, 0.7, 0x1p-140, 0x1p100}
	values := exponents()
	kernelstest.Compare(t, scaleBlocks.Name(), func(t *testing.T, l cpu.Level) {
		at := 0
		lengths(func(block int) {
			for blocks := 1; blocks <= len(scales); blocks++ {
				for divide := range uint32(2) {
					n := blocks * block
					at = (at + n) % (len(values) - n)
					got := slices.Concat([]float32{77}, values[at:][:n], []float32{77})
					want := slices.Clone(got)
					for i := range n {
						want[i+1] = scaling{scales[i/block], divide}.of(values[at+i])
					}
					if !ScaleBlocks(l, &got[1], blocks, block, &scales[0], divide) {
						t.Fatal("there is no kernel")
					}
					if !slices.EqualFunc(got, want, sameBits) {
						t.Fatalf("%d blocks of %d, divide %d: %v, want %v", blocks, block, divide, got, want)
					}
				}
			}
		})
	})
}

// TestSpread has extremes of all kinds in every place.
func TestSpread(t *testing.T) {
	const canary = float32(77)
	kernelstest.Compare(t, spread.Name(), func(t *testing.T, l cpu.Level) {
		for n := 1; n <= 40; n++ {
			for _, each := range []int{1, 2, 3, 4, 5, 8, 11, 16} {
				for place := range n {
					stored, factors := make([]float32, n), make([]float32, n)
					want := Extremes{Smallest: math.MaxUint32}
					dst := slices.Repeat([]float32{canary}, n*each+2)
					wantDst := slices.Clone(dst)
					for i := range n {
						s, f := uint32(0x3F800000+i), uint32(0x40000000+5*i)
						if i == place {
							s, f = extremes[(n+each)%len(extremes)], extremes[(n+place)%len(extremes)]
						}
						stored[i], factors[i] = math.Float32frombits(s), math.Float32frombits(f)
						want = Extremes{max(want.Stored, s), max(want.Largest, f), min(want.Smallest, f)}
						for k := range each {
							wantDst[1+i*each+k] = factors[i]
						}
					}
					got, ok := Spread(l, &dst[1], &stored[0], &factors[0], n, each)
					if !ok || got != want || !slices.EqualFunc(dst, wantDst, sameBits) {
						t.Fatalf("%d, each %d times, %d is extreme: %x %v, want %x", n, each, place, got, ok, want)
					}
				}
			}
		}
	})
}
