package fp8_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

func allCodes() []byte {
	codes := make([]byte, 256)
	for i := range codes {
		codes[i] = byte(i)
	}
	return codes
}

// float16Value is the definition of a binary16.
func float16Value(h float16.Float16) float64 {
	sign, exponent, fraction := 1-2*float64(h>>15), int(h>>10&31), float64(h&1023)
	switch {
	case exponent == 31 && fraction == 0:
		return math.Inf(int(sign))
	case exponent == 31:
		return signedNaN(sign < 0)
	case exponent == 0:
		return math.Copysign(math.Ldexp(fraction, -24), sign)
	}
	return math.Copysign(math.Ldexp(fraction+1024, exponent-25), sign)
}

func bfloat16Value(b fp8.BFloat16) float64 {
	return float32Value(math.Float32frombits(uint32(b) << 16))
}

func TestDecode(t *testing.T) {
	codes := allCodes()
	for _, d := range definitions {
		t.Run(d.format.String(), func(t *testing.T) {
			single, double := make([]float32, 256), make([]float64, 256)
			half, brain := make([]float16.Float16, 256), make([]fp8.BFloat16, 256)
			fp8.Decode(single, codes, d.format)
			fp8.Decode(double, codes, d.format)
			fp8.Decode(half, codes, d.format)
			fp8.Decode(brain, codes, d.format)
			for i, code := range codes {
				want := d.decode(code)
				require.True(t, alike(float32Value(single[i]), want), "%02x: float32 %v, want %v", code, single[i], want)
				require.True(t, alike(double[i], want), "%02x: float64 %v, want %v", code, double[i], want)
				require.True(t, alike(float16Value(half[i]), want), "%02x: float16 %v, want %v", code, half[i], want)
				require.True(t, alike(bfloat16Value(brain[i]), want), "%02x: bfloat16 %04x, want %v", code, brain[i], want)
				require.Equal(t, math.Float32bits(single[i]), math.Float32bits(d.format.Float32(code)))
				if want != want {
					require.Equal(t, uint32(0x7FC00000), math.Float32bits(single[i])&^(1<<31), "%02x: quiet NaN", code)
				}
			}
		})
	}
}

// A few codes, from the tables of the specifications.
func TestDecodeValues(t *testing.T) {
	for _, v := range []struct {
		format fp8.Format
		code   byte
		value  float32
	}{
		{fp8.E4M3, 0x01, 0x1p-9}, {fp8.E4M3, 0x07, 0.875 * 0x1p-6}, {fp8.E4M3, 0x08, 0x1p-6},
		{fp8.E4M3, 0x38, 1}, {fp8.E4M3, 0x7E, 448}, {fp8.E4M3, 0xB8, -1},
		{fp8.E5M2, 0x01, 0x1p-16}, {fp8.E5M2, 0x03, 0.75 * 0x1p-14}, {fp8.E5M2, 0x04, 0x1p-14},
		{fp8.E5M2, 0x3C, 1}, {fp8.E5M2, 0x7B, 57344}, {fp8.E5M2, 0xC0, -2},
		{fp8.E4M3FNUZ, 0x01, 0x1p-10}, {fp8.E4M3FNUZ, 0x08, 0x1p-7}, {fp8.E4M3FNUZ, 0x40, 1}, {fp8.E4M3FNUZ, 0x7F, 240},
		{fp8.E5M2FNUZ, 0x01, 0x1p-17}, {fp8.E5M2FNUZ, 0x04, 0x1p-15}, {fp8.E5M2FNUZ, 0x40, 1}, {fp8.E5M2FNUZ, 0x7F, 57344},
	} {
		require.Equal(t, v.value, v.format.Float32(v.code), "%v %02x", v.format, v.code)
	}
}

func TestDecodeScaled(t *testing.T) {
	codes := allCodes()
	binary16, bfloat16 := newGrid(10, 15, 0x7BFF), newGrid(7, 127, 0x7F7F)
	scales := []float32{1, 0.5, 0x1p127, 0x1p-149, 0x1p-140, 1.0 / 3, 0.0022321429, 123456.79, math.MaxFloat32, 0x1.fffffep-10}
	for _, d := range definitions {
		for _, scale := range scales {
			single, double := make([]float32, 256), make([]float64, 256)
			half, brain := make([]float16.Float16, 256), make([]fp8.BFloat16, 256)
			fp8.DecodeScaled(single, codes, d.format, scale)
			fp8.DecodeScaled(double, codes, d.format, scale)
			fp8.DecodeScaled(half, codes, d.format, scale)
			fp8.DecodeScaled(brain, codes, d.format, scale)
			for i, code := range codes {
				v := d.decode(code)
				if v != v || math.IsInf(v, 0) {
					for _, got := range []float64{float32Value(single[i]), double[i], float16Value(half[i]), bfloat16Value(brain[i])} {
						require.True(t, alike(got, v), "%v %02x * %v: %v", d.format, code, scale, got)
					}
					continue
				}
				product := new(big.Rat).Mul(new(big.Rat).SetFloat64(v), new(big.Rat).SetFloat64(float64(scale)))
				sign := math.Copysign(1, v)
				narrow, _ := product.Float32()
				wide, exact := product.Float64()
				require.True(t, exact)
				require.Equal(t, math.Copysign(wide, sign), double[i], "%v %02x * %v", d.format, code, scale)
				magnitude := math.Abs(float64(narrow))
				check := func(name string, got, want float64) {
					require.True(t, alike(got, math.Copysign(want, sign)), "%v %02x * %v as %s: %v, want %v",
						d.format, code, scale, name, got, want)
				}
				check("float32", float32Value(single[i]), magnitude)
				check("float16", float16Value(half[i]), binary16.rounded(magnitude))
				check("bfloat16", bfloat16Value(brain[i]), bfloat16.rounded(magnitude))
			}

			// More codes than there are have their values from a table.
			twice := slices.Concat(codes, codes)
			halves, brains := make([]float16.Float16, 512), make([]fp8.BFloat16, 512)
			fp8.DecodeScaled(halves, twice, d.format, scale)
			fp8.DecodeScaled(brains, twice, d.format, scale)
			require.Equal(t, slices.Concat(half, half), halves, "%v * %v", d.format, scale)
			require.Equal(t, slices.Concat(brain, brain), brains, "%v * %v", d.format, scale)
		}
	}
}

// A NaN that the product makes is the same on all hardware.
func TestDecodeScaledNaN(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, v := range []struct {
		code   byte // of E5M2
		scale  float32
		single uint32
	}{
		{0x7C, 0, 0x7FC00000}, {0xFC, 0, 0x7FC00000},
		{0x00, inf, 0x7FC00000}, {0x80, inf, 0x7FC00000},
		{0x3C, nan, 0x7FC00000}, {0xBC, nan, 0x7FC00000}, {0x3C, -nan, 0x7FC00000},
		{0x7F, nan, 0x7FC00000}, {0xFF, nan, 0xFFC00000}, {0xFF, 3, 0xFFC00000}, {0x7D, -3, 0x7FC00000},
		{0xFC, 3, 0xFF800000}, {0xBC, inf, 0xFF800000},
	} {
		codes := []byte{v.code}
		single, double := make([]float32, 1), make([]float64, 1)
		half, brain := make([]float16.Float16, 1), make([]fp8.BFloat16, 1)
		fp8.DecodeScaled(single, codes, fp8.E5M2, v.scale)
		fp8.DecodeScaled(double, codes, fp8.E5M2, v.scale)
		fp8.DecodeScaled(half, codes, fp8.E5M2, v.scale)
		fp8.DecodeScaled(brain, codes, fp8.E5M2, v.scale)
		require.Equal(t, v.single, math.Float32bits(single[0]), "%02x * %v", v.code, v.scale)
		want := float32Value(single[0])
		for _, got := range []float64{double[0], float16Value(half[0]), bfloat16Value(brain[0])} {
			require.True(t, alike(got, want), "%02x * %v: %v, want %v", v.code, v.scale, got, want)
		}
	}
}

// rounded returns the nearest value of g, or Inf.
func (g *grid) rounded(x float64) float64 {
	if c := lookup(g.nearest, x); c <= g.max {
		return g.value[c]
	}
	return math.Inf(1)
}

func TestRoundTrip(t *testing.T) {
	codes, again := allCodes(), make([]byte, 256)
	keep := fp8.Policy{Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate}
	for _, f := range fp8.Formats() {
		values := make([]float32, 256)
		fp8.Decode(values, codes, f)
		for _, r := range []fp8.Rounding{fp8.NearestEven, fp8.TowardZero, fp8.Stochastic, fp8.NearestTowardZero} {
			keep.Rounding = r
			fp8.Encode(again, values, f, keep, nil)
			for i, code := range codes {
				code &= 1<<f.Bits() - 1
				if f.IsNaN(code) { // the payload is not kept
					code = code&0x80 | f.NaNCode()
				}
				require.Equal(t, code, again[i], "%v, rounding %v", f, r)
			}
		}
	}
}

// TestDecodeBlocks compares blocks of a row with DecodeScaled of each.
func TestDecodeBlocks(t *testing.T) {
	forLevels(t, func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(17, 4))
		special := []float32{0, -1, float32(math.Inf(1)), float32(math.NaN()), 0x1p-140, 0x1p120}
		for _, f := range fp8.Formats() {
			for _, block := range []int{1, 7, 16, 32, 128, 1024} {
				src := make([]byte, 1+r.IntN(5000))
				for i := range src {
					src[i] = byte(r.Uint32()) & byte(1<<f.Bits()-1)
				}
				scales := make([]float32, (len(src)+block-1)/block)
				for i := range scales {
					scales[i] = r.Float32() + 0.5
					if r.IntN(20) == 0 {
						scales[i] = special[r.IntN(len(special))]
					}
				}
				got, want := make([]float32, len(src)+1), make([]float32, len(src)+1)
				got[len(src)], want[len(src)] = 77, 77
				half, wantHalf := make([]fp8.BFloat16, len(src)), make([]fp8.BFloat16, len(src))
				fp8.DecodeBlocks(got, src, f, scales, block)
				fp8.DecodeBlocks(half, src, f, scales, block)
				for i, s := range scales {
					lo, hi := i*block, min((i+1)*block, len(src))
					fp8.DecodeScaled(want[lo:hi], src[lo:hi], f, s)
					fp8.DecodeScaled(wantHalf[lo:hi], src[lo:hi], f, s)
				}
				require.Equal(t, patterns(want), patterns(got), "%v, blocks of %d", f, block)
				require.Equal(t, wantHalf, half)
			}
		}
	})
	for want, call := range map[string]func(){
		"fp8: destination shorter than source":             func() { fp8.DecodeBlocks(make([]float32, 1), make([]byte, 2), fp8.E4M3, make([]float32, 2), 1) },
		"fp8: fewer scales or places for amax than blocks": func() { fp8.DecodeBlocks(make([]float32, 2), make([]byte, 2), fp8.E4M3, make([]float32, 1), 1) },
		"fp8: blocks must have at least one value":         func() { fp8.DecodeBlocks(make([]float32, 2), make([]byte, 2), fp8.E4M3, make([]float32, 1), 0) },
	} {
		require.PanicsWithValue(t, want, call)
	}
}
