package fp8_test

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/stretchr/testify/require"
)

// stride is the distance between the float32 bit patterns that are tried: all
// of them on request, else a prime, so that no mantissa bit stays the same.
func stride() uint64 {
	switch {
	case testutil.Full():
		return 1
	case testing.Short():
		return 8191
	}
	return 127
}

// sweep gives the float32 of positive sign, ascending and in chunks, to as many
// checkers as there are processors. NaNs are among them.
func sweep(t *testing.T, newChecker func() func(chunk []float32) error) {
	const chunk = 1 << 16
	step := stride()
	patterns := (1<<31 + step - 1) / step
	var next atomic.Uint64
	var failed atomic.Bool
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			check, src := newChecker(), make([]float32, chunk)
			for !failed.Load() {
				first := (next.Add(1) - 1) * chunk
				if first >= patterns {
					return
				}
				src := src[:min(chunk, patterns-first)]
				for i := range src {
					src[i] = math.Float32frombits(uint32((first + uint64(i)) * step))
				}
				if err := check(src); err != nil {
					failed.Store(true)
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
}

func TestEncodeFloat32(t *testing.T) {
	swept := []fp8.Policy{
		{},
		{Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate, NaN: fp8.NaNCanonical},
		{Rounding: fp8.TowardZero},
		{Rounding: fp8.NearestTowardZero, Zero: fp8.ZeroPositive},
	}
	for _, d := range definitions {
		t.Run(d.format.String(), func(t *testing.T) {
			sweep(t, func() func([]float32) error {
				checkers := make([]*float32Checker, len(swept))
				for i, p := range swept {
					checkers[i] = newFloat32Checker(d, p)
				}
				return func(chunk []float32) error {
					for _, c := range checkers {
						if err := c.check(chunk); err != nil {
							return err
						}
					}
					return nil
				}
			})
		})
	}
}

// float32Checker compares the codes of values and of their negatives with a
// definition.
type float32Checker struct {
	*definition
	policy   fp8.Policy
	cursor   cursor
	codes    [2][]byte // by sign and rounded magnitude
	negative []float32
	got      [2][]byte
}

func newFloat32Checker(d *definition, p fp8.Policy) *float32Checker {
	k := &float32Checker{definition: d, policy: p, cursor: cursor{first: d.first(p.Rounding)}}
	for sign := range 2 {
		for c := range d.value {
			k.codes[sign] = append(k.codes[sign], d.code(sign, c, p))
		}
	}
	return k
}

func (k *float32Checker) check(src []float32) error {
	if len(k.negative) < len(src) {
		k.negative = make([]float32, len(src))
		k.got = [2][]byte{make([]byte, len(src)), make([]byte, len(src))}
	}
	negative := k.negative[:len(src)]
	for i, x := range src {
		negative[i] = math.Float32frombits(math.Float32bits(x) | 1<<31)
	}
	fp8.Encode(k.got[0], src, k.format, k.policy, nil)
	fp8.Encode(k.got[1], negative, k.format, k.policy, nil)
	for i, x := range src {
		var plus, minus byte
		if 0 < x && x <= math.MaxFloat32 {
			c := k.cursor.at(float64(x))
			plus, minus = k.codes[0][c], k.codes[1][c]
		} else {
			plus, _ = k.encode(float32Value(x), k.policy, 0)
			minus, _ = k.encode(float32Value(negative[i]), k.policy, 0)
		}
		if k.got[0][i] != plus || k.got[1][i] != minus {
			return fmt.Errorf("%v of ±%v (%08x), %+v: codes %02x %02x, want %02x %02x", k.format,
				x, math.Float32bits(x), k.policy, k.got[0][i], k.got[1][i], plus, minus)
		}
	}
	return nil
}

// near32 returns x and the n float32 below and above it, of both signs.
func near32(x float64, n int) (values []float32) {
	b := int(math.Float32bits(float32(x)))
	for v := max(b-n, 0); v <= b+n; v++ {
		y := math.Float32frombits(uint32(v))
		values = append(values, y, -y)
	}
	return values
}

func TestEncodeFloat32Boundaries(t *testing.T) {
	var src []float32
	for _, d := range definitions {
		for c := range d.max + 1 {
			src = append(src, near32(d.value[c], 2)...)
			src = append(src, near32(d.midpoint(c), 2)...)
		}
		src = append(src, near32(d.value[d.max+1], 2)...)
	}
	for exponent := -149; exponent < 128; exponent++ {
		src = append(src, near32(math.Ldexp(1, exponent), 2)...)
	}
	src = append(src, near32(math.MaxFloat32, 1)...)
	for _, nan := range []uint32{0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF} { // signalling ones, too
		src = append(src, math.Float32frombits(nan), math.Float32frombits(nan|1<<31))
	}
	require.NoError(t, checkEncode(src, float32Value))
}

func TestEncodeOne(t *testing.T) {
	p := fp8.Policy{Rounding: fp8.Stochastic, Seed: 5}
	for _, d := range definitions {
		for _, x := range []float32{0, 1, -1.0625, 1e-4, 300, 1e9} {
			want, _ := d.encode(float64(x), fp8.Policy{}, 0)
			require.Equal(t, want, fp8.EncodeOne(x, d.format, fp8.Policy{}))
			require.Equal(t, want, fp8.EncodeOne(float64(x), d.format, fp8.Policy{}))
			want, _ = d.encode(float64(x), p, 0)
			require.Equal(t, want, fp8.EncodeOne(x, d.format, p), "stochastic: element 0")
		}
	}
}
