package fp8_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
)

// nearestOf rounds y to a multiple, of so many bits, of the smallest number of a type, ties to
// even; what is beyond its largest is the largest float32.
func nearestOf(y float64, bits, smallest int, largest float64) float64 {
	if math.IsNaN(y) || math.IsInf(y, 0) {
		return y
	}
	_, exponent := math.Frexp(y)
	step := max(exponent-bits, smallest)
	y = math.Ldexp(math.RoundToEven(math.Ldexp(y, -step)), step)
	if math.Abs(y) > largest {
		return math.Copysign(math.MaxFloat32, y)
	}
	return y
}

func quotientOf(q fp8.Quotient, y float64) float64 {
	switch q {
	case fp8.QuotientBFloat16:
		return nearestOf(y, 8, -133, 0x1.FEp127)
	case fp8.QuotientFloat16:
		return nearestOf(y, 11, -24, 65504)
	}
	return y
}

// TestQuotient encodes every bfloat16 under random scales, and has its definition: what the
// rounded quotient would have been encoded as.
func TestQuotient(t *testing.T) {
	forLevels(t, func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(17, 3))
		src := make([]fp8.BFloat16, 1<<16)
		wide := make([]float32, len(src))
		for i, p := range r.Perm(len(src)) {
			src[i] = fp8.BFloat16(p)
			wide[i] = src[i].Float32()
		}
		formats := []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E2M1, fp8.E4M3FNUZ, fp8.MXINT8}
		for i, q := range []fp8.Quotient{fp8.QuotientBFloat16, fp8.QuotientBFloat16, fp8.QuotientFloat16} {
			for k, f := range formats {
				if testing.Short() && (i+k)%3 != 0 {
					continue
				}
				s := fp8.Scale{Stored: float32(math.Ldexp(1+r.Float64(), r.IntN(120)-60))}
				if i == 1 { // three times which is half way between bfloat16s, the upper between codes
					s.Multiplier = float32(math.Ldexp(101./64, r.IntN(120)-60))
				}
				p := fp8.Policy{Quotient: q, Zero: fp8.Zero(k % 4)}
				want := make([]byte, len(src))
				var quotients fp8.Stats
				flushed := int64(0)
				for i, x := range wide {
					y := float64(x / s.Stored)
					if s.Multiplier != 0 {
						y = float64(x * s.Multiplier)
					}
					if math.IsInf(y, 0) && !math.IsInf(float64(x), 0) {
						y = math.Copysign(math.MaxFloat32, y)
					}
					y = quotientOf(q, y)
					fp8.Encode(want[i:i+1], []float32{float32(y)}, f, fp8.Policy{Zero: p.Zero}, &quotients)
					if y == 0 && x != 0 {
						flushed++
					}
				}
				got, gotWide := make([]byte, len(src)), make([]byte, len(src))
				var st, stWide fp8.Stats
				fp8.EncodeScaled(got, src, f, p, s, 0, &st)
				fp8.EncodeScaled(gotWide, wide, f, p, s, 0, &stWide)
				require.Equal(t, want, got, "%v %v %v", q, f, s)
				require.Equal(t, want, gotWide)
				require.Equal(t, st, stWide)
				require.Equal(t, quotients.Saturated(), st.Saturated())
				require.Equal(t, quotients.Subnormal, st.Subnormal)
				require.Equal(t, quotients.Flushed+flushed, st.Flushed)
				require.Equal(t, int64(2), st.Zeros)
				require.Equal(t, 0x1.FEp127, st.Amax)
				require.Equal(t, 0x1p-133, st.Smallest)

				blocks := make([]byte, len(src))
				e := fp8.NewEncoder(f, p)
				var row fp8.BlockScales
				row.Set([]fp8.Scale{s, s, s, s}, 128)
				for i := 0; i < len(src); i += 512 {
					fp8.EncodeBlocks(&e, blocks[i:], src[i:i+512], &row, 0, nil)
				}
				require.Equal(t, want, blocks)
			}
		}
	})
}

// TestQuotientOfFloat64 has values that are half way between two quotients, and two codes, once
// they are rounded to float32.
func TestQuotientOfFloat64(t *testing.T) {
	for _, sign := range []float64{1, -1} {
		tie := 1.0625 + 0x1p-8 // half way between bfloat16s, the lower of which is half way between codes
		for _, c := range []struct{ x, want float64 }{
			{tie, 1}, {tie + 0x1p-40, 1.125}, {tie - 0x1p-40, 1}, {1e300, 448}, {1e-300, 0},
		} {
			code := fp8.EncodeOne(sign*c.x, fp8.E4M3, fp8.Policy{Quotient: fp8.QuotientBFloat16})
			require.Equal(t, float32(sign*c.want), fp8.E4M3.Float32(code), "%v", c.x)
		}
		half := 1.0625 + 0x1p-11
		for _, c := range []struct{ x, want float64 }{{half, 1}, {half + 0x1p-40, 1.125}, {70000, 448}} {
			p := fp8.Policy{Quotient: fp8.QuotientFloat16}
			require.Equal(t, float32(sign*c.want), fp8.E4M3.Float32(fp8.EncodeOne(sign*c.x, fp8.E4M3, p)), "%v", c.x)
		}
	}
	require.Equal(t, float32(1), fp8.E4M3.Float32(fp8.EncodeOne(float16.Fromfloat32(1.0625), fp8.E4M3, fp8.Policy{Quotient: fp8.QuotientBFloat16})))
	require.ErrorIs(t, fp8.Policy{Quotient: 3}.Check(), fp8.ErrPolicy)
}
