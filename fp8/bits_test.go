package fp8_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

// TestBitsGolden compares with gfloat and with TransformerEngine's function.
func TestBitsGolden(t *testing.T) {
	file, err := safetensors.Open(testutil.Shared(t, "golden", "narrow", "scaling.safetensors"))
	require.NoError(t, err)
	defer file.Close()
	x, err := file.Float32s("sr.x")
	require.NoError(t, err)
	random, err := file.Bytes("sr.bits")
	require.NoError(t, err)
	for name, v := range map[string]struct {
		format fp8.Format
		factor float32
		rule   fp8.BitRule
	}{
		"sr.exact.E2M1": {fp8.E2M1, 1, fp8.BitsExact}, "sr.exact.E2M3": {fp8.E2M3, 1, fp8.BitsExact},
		"sr.exact.E3M2": {fp8.E3M2, 2, fp8.BitsExact}, "sr.exact.E4M3": {fp8.E4M3, 16, fp8.BitsExact},
		"sr.exact.E5M2": {fp8.E5M2, 256, fp8.BitsExact}, "sr.te.E2M1": {fp8.E2M1, 1, fp8.BitsAdded},
	} {
		want, err := file.Bytes(name + ".codes")
		require.NoError(t, err)
		require.Len(t, want, len(x))
		got := make([]byte, len(x))
		fp8.EncodeBits(got, x, v.format, fp8.Policy{}, fp8.Scale{Stored: 1 / v.factor, Multiplier: v.factor}, random, v.rule, nil)
		for i := range want {
			if y := x[i] * v.factor; y-y != 0 && v.rule == fp8.BitsExact {
				continue // the file has no code where the input is not finite
			}
			require.Equal(t, want[i], got[i], "%s, element %d: %v (%08x), bits %02x", name, i, x[i], math.Float32bits(x[i]), random[i])
		}
	}
}

// everyBit returns every byte n times.
func everyBit(n int) []byte {
	all := make([]byte, 0, 256*n)
	for k := range 256 {
		for range n {
			all = append(all, byte(k))
		}
	}
	return all
}

// repeated returns src 256 times.
func repeated[T any](src []T) (all []T) {
	for range 256 {
		all = append(all, src...)
	}
	return all
}

// TestBits compares all formats with the definition, in exact arithmetic, for all 256
// bytes of values at and beside codes, beside 256ths of steps, of any magnitude, and of
// all types.
func TestBits(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 16))
	for _, d := range definitions {
		var single []float32
		for range 40 {
			c := r.IntN(d.max + 1)
			low, step := d.value[c], d.value[c+1]-d.value[c]
			single = append(single, near32(low+step*float64(r.IntN(257))/256, 1)...)
		}
		single = append(single, edges(d, r, 1, 100)...)
		double := make([]float64, len(single))
		for i, x := range single {
			double[i] = float32Value(x) * (1 + float64(r.IntN(3)-1)*0x1p-30)
		}
		p := fp8.Policy{Overflow: fp8.Overflow(r.IntN(2)), Zero: fp8.Zero(r.IntN(4)), Rounding: fp8.TowardZero, Seed: 7}
		random := everyBit(len(single))
		checkBits(t, d, single, random, p, float32Value)
		checkBits(t, d, double, random, p, identity)
		half, brain := make([]float16.Float16, len(single)), make([]fp8.BFloat16, len(single))
		for i, x := range single {
			half[i], brain[i] = float16.Fromfloat32(x), fp8.BFloat16FromFloat32(x)
		}
		checkBits(t, d, half, random, p, float16Value)
		checkBits(t, d, brain, random, p, bfloat16Value)
	}
}

func checkBits[T fp8.Float](t *testing.T, d *definition, src []T, random []byte, p fp8.Policy, value func(T) float64) {
	codes := make([]byte, len(random))
	var got, want fp8.Stats
	fp8.EncodeBits(codes, repeated(src), d.format, p, fp8.Scale{}, random, fp8.BitsExact, &got)
	for i, code := range codes {
		x := value(src[i%len(src)])
		expected, saturated := d.encode(x, fp8.Policy{Overflow: p.Overflow, Zero: p.Zero}, 0)
		if magnitude := math.Abs(x); magnitude <= math.MaxFloat64 && x != 0 {
			sign := 0
			if x < 0 {
				sign = 1
			}
			c := min(lookup(d.value, magnitude), d.max+1)
			if c <= d.max {
				delta := math.Floor((magnitude - d.value[c]) / (d.value[c+1] - d.value[c]) * 256)
				if int(delta)+int(random[i]) >= 256 {
					c++
				}
			}
			expected, saturated = d.code(sign, c, p), c > d.limit(sign)
		}
		if saturated {
			want.SaturatedPos++
		}
		if code != expected {
			t.Fatalf("%v of %T %v, byte %02x, %+v: %02x, want %02x", d.format, src[0], x, random[i], p, code, expected)
		}
	}
	require.Equal(t, want.SaturatedPos, got.Saturated())
}

// TestBitsAdded is TestBits of what TransformerEngine does for E2M1: the sum is made
// exactly and rounded once.
func TestBitsAdded(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 16))
	d := definitions[fp8.E2M1]
	src := edges(d, r, 1, 60)
	for range 40 {
		c := r.IntN(7) * r.IntN(2) // most often between 0 and the next
		low, step := d.value[c], d.value[c+1]-d.value[c]
		src = append(src, near32(low+step*float64(r.IntN(257))/256, 2)...)
	}
	random := everyBit(len(src))
	codes, differ := make([]byte, len(random)), 0
	fp8.EncodeBits(codes, repeated(src), fp8.E2M1, fp8.Policy{}, fp8.Scale{}, random, fp8.BitsAdded, nil)
	exact := make([]byte, len(random))
	fp8.EncodeBits(exact, repeated(src), fp8.E2M1, fp8.Policy{}, fp8.Scale{}, random, fp8.BitsExact, nil)
	for i, code := range codes {
		x := src[i%len(src)]
		want, _ := d.encode(float32Value(x), fp8.Policy{}, 0)
		if magnitude := math.Abs(float64(x)); magnitude <= math.MaxFloat32 && x != 0 {
			step := 2.0
			if magnitude < 2 {
				step = 0.5
			} else if magnitude < 4 {
				step = 1
			}
			sum := new(big.Rat).SetFloat64(step * float64(random[i]) / 256)
			t32, _ := sum.Add(sum, new(big.Rat).SetFloat64(magnitude)).Float32()
			want = byte(min(lookup(d.value, float64(t32)), 7))
			if math.Signbit(float64(x)) {
				want |= 8
			}
		}
		if code != want {
			t.Fatalf("%v (%08x), byte %02x: %02x, want %02x", x, math.Float32bits(x), random[i], code, want)
		}
		if code != exact[i] {
			differ++
		}
	}
	require.Greater(t, differ, 5, "values at which the rules differ")
	narrowed := make([]byte, len(random)) // float64 is rounded to float32 first
	double := make([]float64, len(src))
	for i, x := range src {
		double[i] = float32Value(x) * (1 + 0x1p-40)
	}
	fp8.EncodeBits(narrowed, repeated(double), fp8.E2M1, fp8.Policy{}, fp8.Scale{}, random, fp8.BitsAdded, nil)
	for i := range narrowed {
		if x := src[i%len(src)]; x == 0 || math.Abs(float64(x)) >= 0x1p-126 {
			require.Equal(t, codes[i], narrowed[i], "%v", x)
		}
	}
}

// TestBitsHuge: a float64 beyond float32 is saturated, not an infinity.
func TestBitsHuge(t *testing.T) {
	for _, rule := range []fp8.BitRule{fp8.BitsExact, fp8.BitsAdded} {
		var st fp8.Stats
		codes := make([]byte, 2)
		fp8.EncodeBits(codes, []float64{1e300, -1e300}, fp8.E2M1, fp8.Policy{}, fp8.Scale{}, make([]byte, 2), rule, &st)
		require.Equal(t, []byte{0x07, 0x0F}, codes)
		require.Equal(t, fp8.Stats{Elements: 2, Amax: 1e300, Smallest: 1e300, SaturatedPos: 1, SaturatedNeg: 1}, st)
	}
}

// TestBitsMean: the mean over all bytes is the value, to within the 256th of a step that
// they resolve.
func TestBitsMean(t *testing.T) {
	random := everyBit(1)
	for _, d := range definitions {
		for c := 0; c < d.limit(0); c += 1 + d.max/12 {
			low, step := d.value[c], d.value[c+1]-d.value[c]
			for part := range 256 {
				src, codes := make([]float32, 256), make([]byte, 256)
				for i := range src {
					src[i] = float32(low + step*float64(part)/256)
				}
				fp8.EncodeBits(codes, src, d.format, fp8.Policy{}, fp8.Scale{}, random, fp8.BitsExact, nil)
				up := 0
				for _, code := range codes {
					up += int(code) - c
				}
				require.Equal(t, part, up, "%v of %v", d.format, src[0])
			}
		}
	}
}

func TestBitsMisuse(t *testing.T) {
	src, dst, random := make([]float32, 5), make([]byte, 5), make([]byte, 5)
	for want, call := range map[string]func(){
		"fp8: destination shorter than source":     func() { fp8.EncodeBits(dst[:4], src, fp8.E2M1, fp8.Policy{}, fp8.Scale{}, random, 0, nil) },
		"fp8: fewer random bytes than values":      func() { fp8.EncodeBits(dst, src, fp8.E2M1, fp8.Policy{}, fp8.Scale{}, random[:4], 0, nil) },
		"fp8: policy has an unknown value":         func() { fp8.EncodeBits(dst, src, fp8.E2M1, fp8.Policy{}, fp8.Scale{}, random, 2, nil) },
		"fp8: unknown format":                      func() { fp8.EncodeBits(dst, src, 99, fp8.Policy{}, fp8.Scale{}, random, 0, nil) },
		"fp8: random bits are added for E2M1 only": func() { fp8.EncodeBits(dst, src, fp8.E4M3, fp8.Policy{}, fp8.Scale{}, random, fp8.BitsAdded, nil) },
	} {
		require.PanicsWithValue(t, want, call)
	}
	var r fp8.BitRule
	require.NoError(t, r.UnmarshalText([]byte("added")))
	require.Equal(t, fp8.BitsAdded, r)
	require.Equal(t, "exact", fp8.BitsExact.String())
	text, err := r.MarshalText()
	require.NoError(t, err)
	require.Equal(t, "added", string(text))
	require.ErrorIs(t, r.UnmarshalText([]byte("x")), fp8.ErrPolicy)
}
