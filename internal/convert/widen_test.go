package convert

import (
	"math"
	"slices"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/stretchr/testify/require"
)

// float16 returns the bits of h as float32: a NaN keeps its sign and its payload,
// and is quiet.
func float16(h uint16) uint32 {
	sign, exponent, fraction := uint32(h>>15)<<31, int(h>>10&0x1F), uint32(h&0x3FF)
	switch {
	case exponent == 0x1F && fraction != 0:
		return sign | 0x7FC00000 | fraction<<13
	case exponent == 0x1F:
		return sign | infinity
	case exponent == 0:
		return sign | math.Float32bits(float32(math.Ldexp(float64(fraction), -24)))
	}
	return sign | math.Float32bits(float32(math.Ldexp(float64(fraction|0x400), exponent-25)))
}

// TestWiden has every 16-bit value, in pieces of all lengths and alignments,
// between guards.
func TestWiden(t *testing.T) {
	const canary = float32(-12345.5)
	for _, c := range []struct {
		operation *kernels.Operation[widenFunc]
		widen     func(l cpu.Level, dst *float32, src *uint16, n int)
		bits      func(h uint16) uint32
	}{
		{widenBF16, WidenBF16, func(h uint16) uint32 { return uint32(h) << 16 }},
		{widenF16, WidenF16, float16},
	} {
		t.Run(c.operation.Name(), func(t *testing.T) {
			kernelstest.Compare(t, c.operation.Name(), func(t *testing.T, l cpu.Level) {
				first, n := 0, 16
				for first < 1<<16 {
					at := first / 16 % 16
					src := aligned[uint16](n + 32)[at*2%32:]
					dst := slices.Repeat([]float32{canary}, n+32)
					want := slices.Clone(dst)
					for i := range n {
						src[i] = uint16(first + i)
						want[at+i+1] = math.Float32frombits(c.bits(src[i]))
					}
					c.widen(l, &dst[at+1], &src[0], n)
					for i := range want {
						if !sameBits(dst[i], want[i]) {
							t.Fatalf("%v, n %d, element %d: %08x, want %08x", l, n, i-at-1, math.Float32bits(dst[i]), math.Float32bits(want[i]))
						}
					}
					first += n
					n = n%272 + 16
				}
			})
		})
	}
}

// TestTruncateBF16 has every upper half, over lower ones that change.
func TestTruncateBF16(t *testing.T) {
	const canary = 0xA55A
	kernelstest.Compare(t, truncateBF16.Name(), func(t *testing.T, l cpu.Level) {
		first, n := 0, 16
		for first < 1<<16 {
			at := first / 16 % 16
			src := aligned[float32](n + 16)[at:]
			dst := slices.Repeat([]uint16{canary}, n+32)
			want := slices.Clone(dst)
			for i := range n {
				h := uint16(first + i)
				src[i] = math.Float32frombits(uint32(h)<<16 | uint32(h*0x9E37))
				want[at+i+1] = h
			}
			TruncateBF16(l, &dst[at+1], &src[0], n)
			require.Equal(t, want, dst, "n %d, at %d", n, at)
			first += n
			n = n%272 + 16
		}
	})
}
