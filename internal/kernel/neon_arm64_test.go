//go:build !purego

package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/stretchr/testify/require"
)

// neonLayout is a format. Codes above max are special, and so is lone.
type neonLayout struct {
	mantissa, bias int
	max, lone      uint32
}

var neonLayouts = []neonLayout{
	{3, 7, 0x7E, 0x100},  // E4M3
	{2, 15, 0x7B, 0x100}, // E5M2
	{3, 8, 0x7F, 0x80},   // E4M3FNUZ
}

func (l neonLayout) encoding(mode Mode, divide uint32) *Encoding {
	shift := uint32(23 - l.mantissa)
	base := -(uint32(127-l.bias) << 23)
	e := &Encoding{
		Scale: 1.7, Divide: divide, Mode: mode,
		MinNormal: uint32(128-l.bias) << 23,
		Unit:      float32(math.Ldexp(1, l.bias-1+l.mantissa)),
		Addend:    float32(math.Ldexp(1, 24-l.bias-l.mantissa)),
		Shift:     shift, FracShift: 32 - shift,
		Round: base + 1<<(shift-1) - 1, Base: base,
		MaxCode: l.max, Normal: 1 << l.mantissa, ZeroSign: 0x80,
		K0: 0x9E3779B9, K1: 0xF00DFACE, Index: 0xFFFFFF00,
	}
	if l.lone < 0x100 {
		e.ZeroSign = 0
	}
	return e
}

// encode is what a kernel does with element i, in whole numbers of the step
// between the codes around it.
func (l neonLayout) encode(e *Encoding, x float32, i uint32, c *Counts) byte {
	y := x * e.Scale
	if e.Divide != 0 {
		y = x / e.Scale
	}
	abs := math.Abs(float64(y))
	binade := max(math.Ilogb(abs), 1-l.bias)
	steps := math.Ldexp(abs, l.mantissa-binade)
	whole, frac := math.Modf(steps)
	switch e.Mode {
	case NearestEven:
		whole = math.RoundToEven(steps)
	case Stochastic:
		if uint32(math.Ldexp(frac, 32)) > neonMix(neonMix((e.Index+i)^e.K0)+e.K1) {
			whole++
		}
	}
	code := uint32(binade+l.bias-1)<<l.mantissa + uint32(whole)

	bits := math.Float32bits(x) &^ (1 << 31)
	c.MaxScaled = max(c.MaxScaled, math.Float32bits(float32(abs)))
	c.MaxBits, c.MinBits = max(c.MaxBits, bits), min(c.MinBits, bits-1)
	count := func(field *uint32, happened bool) {
		if happened {
			*field++
		}
	}
	count(&c.Saturated, code > l.max)
	count(&c.SaturatedNeg, code > l.max && y < 0)
	count(&c.BelowNormal, code < e.Normal)
	count(&c.ZeroCodes, code == 0)
	count(&c.Zeros, x == 0)
	code = min(code, l.max)
	if math.Signbit(float64(y)) && (code != 0 || e.ZeroSign != 0) {
		code |= 0x80
	}
	return byte(code)
}

func neonMix(h uint32) uint32 {
	h = (h ^ h>>16) * 0x85EBCA6B
	h = (h ^ h>>13) * 0xC2B2AE35
	return h ^ h>>16
}

// neonRuns calls f for every length and alignment, in elements, of interest.
func neonRuns(f func(n, at int)) {
	for n := 16; n <= 96; n += 16 {
		for at := range 16 {
			f(n, at)
		}
	}
}

// neonValue returns a float32 within the range of a format or a little outside,
// often a tie or zero.
func neonValue(r *rand.Rand) float32 {
	bits := uint32(127-20+r.IntN(40))<<23 | r.Uint32()&0x807FFFFF
	switch r.IntN(8) {
	case 0:
		bits &= 0x80000000
	case 1, 2, 3:
		bits &= 0xFFF80000
	case 4:
		bits &= 0x807FFFFF // subnormal
	}
	return math.Float32frombits(bits)
}

func TestNEONEncode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, l := range neonLayouts {
		for _, mode := range []Mode{NearestEven, TowardZero, Stochastic} {
			for divide := range uint32(2) {
				neonRuns(func(n, at int) {
					e := l.encoding(mode, divide)
					if at == 0 {
						// Ties stay such, and the random bits of element 0 are 0.
						e.Scale, e.K0, e.K1 = 1, e.Index, 0
					}
					src := make([]float32, at+n)
					want := make([]byte, 128)
					for i := range want {
						want[i] = 0xA5
					}
					got := append([]byte(nil), want...)
					counts := Counts{MinBits: math.MaxUint32}
					for i := range n {
						src[at+i] = neonValue(r)
						want[at+i] = l.encode(e, src[at+i], uint32(i), &counts)
					}
					c := Counts{1, 2, 3, 4, 5, 6, 7, 8}
					Encode(cpu.NEON, &got[at], &src[at], n, e, &c)
					what := fmt.Sprintf("%+v mode %d divide %d n %d at %d", l, mode, divide, n, at)
					require.Equal(t, want, got, what)
					require.Equal(t, counts, c, what)

					src[at+at*n/16] = []float32{float32(math.NaN()), float32(math.Inf(-1))}[n/16%2]
					Encode(cpu.NEON, &got[at], &src[at], n, e, &c)
					require.GreaterOrEqual(t, c.MaxScaled, uint32(0x7F800000), what)
				})
			}
		}
	}
}

func TestNEONDecode(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, l := range neonLayouts {
		finite := func(code uint32) bool { return code&0x7F <= l.max && code != l.lone }
		shift := 23 - l.mantissa
		d := &Decoding{
			Shift: uint32(shift), Mask: 0x7F << shift, Rebias: float32(math.Ldexp(1, 127-l.bias)),
			Scale: 0.3, Max: l.max, Lone: l.lone,
		}
		neonRuns(func(n, at int) {
			src := make([]byte, at+n)
			want := make([]float32, 128)
			for i := range want {
				want[i] = -77
			}
			got := append([]float32(nil), want...)
			for i := range n {
				code := r.Uint32() & 0xFF
				for !finite(code) {
					code = r.Uint32() & 0xFF
				}
				src[at+i] = byte(code)
				exponent := int(code & 0x7F >> l.mantissa)
				m := int(code & (1<<l.mantissa - 1))
				if exponent > 0 {
					m |= 1 << l.mantissa
				}
				v := math.Ldexp(float64(m), max(exponent, 1)-l.bias-l.mantissa)
				if code&0x80 != 0 {
					v = math.Copysign(v, -1)
				}
				want[at+i] = float32(v) * d.Scale
			}
			require.False(t, Decode(cpu.NEON, &got[at], &src[at], n, d))
			for i := range want {
				require.Equalf(t, math.Float32bits(want[i]), math.Float32bits(got[i]), "%+v n %d at %d: %d", l, n, at, i)
			}
			for code := range uint32(256) {
				i := at + r.IntN(n)
				before := src[i]
				src[i] = byte(code)
				special := Decode(cpu.NEON, &got[at], &src[at], n, d)
				require.Equalf(t, !finite(code), special, "%+v n %d at %d: code %02X", l, n, at, code)
				src[i] = before
			}
		})
	}
}

func TestNEONMaxBits(t *testing.T) {
	neonRuns(func(n, at int) {
		for i := range n {
			src := make([]float32, at+n+16)
			for j := range src {
				src[j] = float32(math.Inf(-1)) // canaries
			}
			for j := range n {
				src[at+j] = -float32(j%7) / 8
			}
			src[at+i] = -3
			require.Equal(t, math.Float32bits(3), MaxBits(cpu.NEON, &src[at], n))
			src[at+i] = float32(math.Copysign(math.NaN(), -1))
			require.Greater(t, MaxBits(cpu.NEON, &src[at], n), uint32(0x7F800000))
		}
	})
}
