package convert

import (
	"math"
	"slices"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestMaxBlocksBF16 has larger and smaller values in every place.
func TestMaxBlocksBF16(t *testing.T) {
	extremes := []uint16{0x7F80, 0xFF80, 0x7FC0, 0xFFFF, 0x7F81, 0x7F7F, 0xFF7F, 0, 0x8000, 0x4000, 0xC001}
	kernelstest.Compare(t, maxBlocksBF16.Name(), func(t *testing.T, l cpu.Level) {
		lengths(func(block int) {
			for blocks := 1; blocks <= 3; blocks++ {
				src := slices.Repeat([]uint16{0xFF80}, blocks*block+2) // before and after: not to be seen
				part := src[1:][:blocks*block]
				for i := range part {
					part[i] = 0xBF80 + uint16(i/block) // what the block has
				}
				for place := range part {
					before := part[place]
					part[place] = extremes[place%len(extremes)]
					dst := slices.Repeat([]float32{123}, blocks+2)
					want := slices.Clone(dst)
					for b := range blocks {
						dst[b+1] = float32((b + place) % 3 * 2)
						most := math.Float32bits(dst[b+1])
						for _, x := range part[b*block : (b+1)*block] {
							most = max(most, uint32(x&0x7FFF)<<16)
						}
						want[b+1] = canonical(most)
					}
					if !MaxBlocksBF16(l, &dst[1], &part[0], blocks, block) {
						t.Fatal("there is no kernel")
					}
					if !slices.EqualFunc(dst, want, sameBits) {
						t.Fatalf("%d blocks of %d, %04x at %d: %v, want %v", blocks, block, part[place], place, dst, want)
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
