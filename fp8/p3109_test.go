package fp8_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/stretchr/testify/require"
)

// p3109Tables returns the working group's values of all codes of all formats.
func p3109Tables(t *testing.T) map[string][]float64 {
	text, err := os.ReadFile(testutil.Shared(t, "golden", "narrow", "p3109.json"))
	require.NoError(t, err)
	var spelled map[string][]string
	require.NoError(t, json.Unmarshal(text, &spelled))
	tables := map[string][]float64{}
	for name, values := range spelled {
		for _, v := range values {
			x, err := strconv.ParseFloat(v, 64)
			require.NoError(t, err)
			tables[name] = append(tables[name], x)
		}
	}
	require.Len(t, tables, 120)
	return tables
}

// TestP3109Tables compares every code of every format with the working group's tables.
func TestP3109Tables(t *testing.T) {
	for name, values := range p3109Tables(t) {
		f, err := fp8.ParseP3109(name)
		require.NoError(t, err)
		require.Equal(t, name, f.String())
		require.Len(t, values, 1<<f.Bits)
		codes, decoded := allCodes(), make([]float32, 256)
		f.Decode(decoded, codes)
		for _, code := range codes {
			want := values[int(code)&(len(values)-1)]
			got := f.Float32(code)
			require.True(t, alike(float32Value(got), want), "%s %02x: %v, want %v", name, code, got, want)
			require.Equal(t, bitsOf(got), bitsOf(decoded[code]))
		}
	}
}

// p3109Definition is a format by the golden file's words: the bias, and where its codes lie.
func p3109Definition(f fp8.P3109) *definition {
	d := &definition{hasInf: f.Infinite, unsigned: !f.Signed}
	last, bias := 1<<f.Bits-2, 1<<(f.Bits-f.Precision)
	nan := byte(last + 1)
	if f.Signed {
		last, bias = 1<<(f.Bits-1)-1, 1<<(f.Bits-f.Precision-1)
		nan, d.sign = byte(last+1), byte(last+1)
	}
	d.nan, d.infinity = [2]byte{nan, nan}, [2]byte{nan, nan}
	if f.Infinite {
		d.infinity[0] = byte(last)
		if f.Signed {
			d.infinity[1] = byte(last) | d.sign
		}
		last--
	}
	d.grid = newGrid(f.Precision-1, bias, last)
	return d
}

// TestP3109Encode compares codes with the definition under every policy, for values at and
// beside all codes and ties, of any magnitude, and not finite.
func TestP3109Encode(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 9))
	for name, table := range p3109Tables(t) {
		f, err := fp8.ParseP3109(name)
		require.NoError(t, err)
		d := p3109Definition(f)
		require.Equal(t, slices.Max(slices.DeleteFunc(slices.Clone(table), func(x float64) bool { return x-x != 0 })), d.value[d.max])
		src := []float64{0, math.Inf(1), math.NaN(), math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxFloat32}
		for range 60 {
			c := r.IntN(d.max + 1)
			for _, x := range []float64{d.value[c], d.midpoint(c), d.value[c+1], d.value[c] + r.Float64()*(d.value[c+1]-d.value[c])} {
				src = append(src, x, math.Nextafter(x, 0), math.Nextafter(x, math.Inf(1)))
			}
			src = append(src, math.Ldexp(1+r.Float64(), r.IntN(300)-150))
		}
		for _, x := range []float64{d.midpoint(d.max), d.value[d.max+1], d.midpoint(0)} {
			src = append(src, x, math.Nextafter(x, 0), math.Nextafter(x, math.Inf(1)))
		}
		src = withNegatives(src)
		codes := make([]byte, len(src))
		for _, rounding := range []fp8.Rounding{fp8.NearestEven, fp8.NearestTowardZero, fp8.TowardZero} {
			for _, p := range policies(rounding) {
				f.Encode(codes, src, p)
				for i, x := range src {
					if want, _ := d.encode(x, p, 0); codes[i] != want {
						t.Fatalf("%s of %v, %+v: %02x, want %02x", name, x, p, codes[i], want)
					}
				}
			}
		}
		p := stochastic(3)
		f.Encode(codes, src[:40], p)
		for i, x := range src[:40] {
			want, _ := d.encode(x, p, uint64(i))
			require.Equal(t, want, codes[i], "%s of %v", name, x)
		}
	}
}

// TestP3109Names parses what is a name and nothing else, and has as many as there are.
func TestP3109Names(t *testing.T) {
	valid := 0
	for bits := -1; bits < 12; bits++ {
		for precision := -1; precision < 12; precision++ {
			for i := range 4 {
				f := fp8.P3109{Bits: bits, Precision: precision, Signed: i&1 == 0, Infinite: i&2 == 0}
				parsed, err := fp8.ParseP3109(f.String())
				if f.Check() == nil {
					valid++
					require.NoError(t, err)
					require.Equal(t, f, parsed)
					text, err := f.MarshalText()
					require.NoError(t, err)
					var back fp8.P3109
					require.NoError(t, back.UnmarshalText(text))
					require.Equal(t, f, back)
					continue
				}
				require.ErrorIs(t, err, fp8.ErrFormat)
				require.ErrorIs(t, f.Check(), fp8.ErrFormat)
				_, err = f.MarshalText()
				require.ErrorIs(t, err, fp8.ErrFormat)
				require.ErrorIs(t, new(fp8.P3109).UnmarshalText([]byte(f.String())), fp8.ErrFormat)
				require.PanicsWithValue(t, "fp8: no P3109 format", func() { f.Float32(0) })
				require.PanicsWithValue(t, "fp8: no P3109 format", func() { f.Encode(nil, nil, fp8.Policy{}) })
			}
		}
	}
	require.Equal(t, 120, valid)
	for _, name := range []string{"", "binary8p4se", "Binary8p4s", "Binary8p4see", "Binary08p4se", "Binary8p4xe", "Binary8p4sx", "Binary8 p4se", "Binary+8p4se", "Binary8p4se ", strings.Repeat("9", 99)} {
		_, err := fp8.ParseP3109(name)
		require.ErrorIs(t, err, fp8.ErrFormat, "%q", name)
	}
}

func TestP3109Misuse(t *testing.T) {
	f := fp8.P3109{Bits: 8, Precision: 4, Signed: true}
	require.PanicsWithValue(t, shortDestination, func() { f.Encode(make([]byte, 1), make([]float64, 2), fp8.Policy{}) })
	require.PanicsWithValue(t, shortDestination, func() { f.Decode(make([]float32, 1), make([]byte, 2)) })
	require.PanicsWithValue(t, "fp8: policy has an unknown value", func() { f.Encode(make([]byte, 1), make([]float64, 1), fp8.Policy{Inf: 9}) })
}
