package kernel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/stretchr/testify/require"
)

// forLevels runs a test for every level with kernels.
func forLevels(t *testing.T, test func(t *testing.T, l cpu.Level)) {
	for _, l := range []cpu.Level{cpu.NEON, cpu.AVX2, cpu.AVX512} {
		t.Run(l.String(), func(t *testing.T) {
			if !slices.Contains(cpu.Levels(), l) {
				t.Skipf("level %v not tested: this build and machine have %v", l, cpu.Levels())
			}
			test(t, l)
		})
	}
}

func TestStep(t *testing.T) {
	require.Zero(t, Step(cpu.Generic))
	for _, l := range []cpu.Level{cpu.NEON, cpu.AVX2, cpu.AVX512} {
		require.Equal(t, 16, Step(l))
	}
}

// checkEncode compares a kernel with the definition. Values must be finite once
// scaled.
func checkEncode(t *testing.T, l cpu.Level, f *format, src []float32, e *Encoding) {
	t.Helper()
	want, wantCounts := f.expect(src, e)
	got := make([]byte, len(src))
	counts := Counts{1, 1, 1, 1, 1, 1, 1, 1}
	Encode(l, &got[0], &src[0], len(src), e, &counts)
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v, %s, %+v, element %d of %d, %v (%08x): %02x, want %02x",
				l, f.name, *e, i, len(src), src[i], math.Float32bits(src[i]), got[i], want[i])
		}
	}
	if counts != wantCounts {
		t.Fatalf("%v, %s, %+v, %d elements: %+v, want %+v", l, f.name, *e, len(src), counts, wantCounts)
	}
}

// batches gives values to check in pieces of 16 to 112, the last filled with
// some of the values before it.
func batches(values []float32, check func(first int, batch []float32)) {
	for first, n := 0, 16; first < len(values); {
		first = min(first, len(values)-n)
		check(first, values[first:first+n])
		first += n
		n = n%112 + 16
	}
}

func TestEncode(t *testing.T) {
	everywhere := exponents()
	forLevels(t, func(t *testing.T, l cpu.Level) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, f := range formats {
			for _, s := range scalings {
				values := slices.Concat(everywhere, f.edges(s))
				values = slices.DeleteFunc(values, func(x float32) bool { return !finite(s.of(x)) })
				for _, m := range modes {
					e := f.encoding(s, m)
					check := func(first int, batch []float32) {
						e.Index = uint32(first)
						checkEncode(t, l, &f, batch, &e)
					}
					// In their order batches are all normal or all not.
					batches(values, check)
					mixed := slices.Clone(values)
					r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
					batches(mixed, check)
				}
			}
		}
	})
}

// TestEncodeStochastic has what is cut off at and beside the random bits, and
// the first and last indices and other keys.
func TestEncodeStochastic(t *testing.T) {
	forLevels(t, func(t *testing.T, l cpu.Level) {
		for _, f := range formats {
			for _, k := range [][2]uint32{{0, 0}, {1, math.MaxUint32}, {0xDEADBEEF, 0x01234567}} {
				const n = 16 << 10
				for _, index := range []uint32{0, 1 << 31, math.MaxUint32 - n + 1} {
					e := f.encoding(scaling{scale: 1}, Stochastic)
					e.K0, e.K1, e.Index = k[0], k[1], index
					checkEncode(t, l, &f, f.thresholds(&e, n), &e)
				}
			}
		}
	})
}

// TestEncodeNotFinite puts one value that is not finite, or not once scaled, in
// every place.
func TestEncodeNotFinite(t *testing.T) {
	values := []struct {
		bits uint32
		scaling
	}{
		{0x7F800000, scaling{1, 0}}, {0x7F800001, scaling{1, 0}}, {0x7FC00000, scaling{1, 1}},
		{0x7FFFFFFF, scaling{0.5, 0}}, {0x7F800000, scaling{0, 0}}, {0x7F800000, scaling{0x1p-140, 0}},
		{0x7F7FFFFF, scaling{1.0000001, 0}}, {0x7F7FFFFF, scaling{0.99999994, 1}},
		{0x3F800000, scaling{0x1p-140, 1}}, {0x7F800000, scaling{math.MaxFloat32, 1}},
		{0, scaling{0, 1}}, {0, scaling{float32(math.Inf(1)), 0}}, {0x3F800000, scaling{0, 1}},
	}
	forLevels(t, func(t *testing.T, l cpu.Level) {
		f := &formats[0]
		for _, v := range values {
			for _, m := range modes {
				e := f.encoding(v.scaling, m)
				for _, sign := range []uint32{0, 1 << 31} {
					for i := range 48 {
						n := i&^15 + 16
						src, dst := make([]float32, n), make([]byte, n)
						src[i] = math.Float32frombits(v.bits | sign)
						var c Counts
						Encode(l, &dst[0], &src[0], n, &e, &c)
						require.GreaterOrEqual(t, c.MaxScaled, uint32(infinity), "%x, %+v, mode %d", v.bits, v.scaling, m)
					}
				}
			}
		}
	})
}

// aligned returns memory of n T that starts a cache line.
func aligned[T any](n int) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	buffer := make([]T, n+64/size)
	skip := -int(uintptr(unsafe.Pointer(&buffer[0]))) & 63 / size
	return buffer[skip : skip+n]
}

const guard = 0xA5

// TestEncodeAlignment has source and destination everywhere in a cache line.
func TestEncodeAlignment(t *testing.T) {
	forLevels(t, func(t *testing.T, l cpu.Level) {
		s := scaling{scale: 3, divide: 1}
		for i, f := range formats {
			mixed := f.edges(s)
			rand.New(rand.NewPCG(3, uint64(i))).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			for _, m := range modes {
				e := f.encoding(s, m)
				for n := 16; n <= 112; n += 16 {
					codes, counts := f.expect(mixed[:n], &e)
					for from := range 16 {
						src := aligned[float32](n + 16)[from:]
						copy(src, mixed[:n])
						for to := range 64 {
							dst := aligned[byte](n + 192)
							want := bytes.Repeat([]byte{guard}, len(dst))
							copy(dst, want)
							copy(want[64+to:], codes)
							var c Counts
							Encode(l, &dst[64+to], &src[0], n, &e, &c)
							if !bytes.Equal(dst, want) || c != counts {
								t.Fatalf("%s, mode %d, n %d, source at %d, destination at %d: %x %+v, want %x %+v",
									f.name, m, n, 4*from, to, dst, c, want, counts)
							}
						}
					}
				}
			}
		}
	})
}

// checkDecode decodes src to memory between guards, at an element of it.
func checkDecode(t *testing.T, l cpu.Level, f *format, scale float32, src []byte, to int) {
	t.Helper()
	d := f.decoding(scale)
	const canary = float32(-12345.5)
	dst := aligned[float32](len(src) + 48)
	for i := range dst {
		dst[i] = canary
	}
	first := 16 + to
	got := Decode(l, &dst[first], &src[0], len(src), &d)
	special := false
	for i, x := range dst {
		want := canary
		if i >= first && i < first+len(src) {
			code := uint32(src[i-first])
			if code&0x7F > f.max || code == f.lone {
				special = true
				continue
			}
			want = scaling{scale: scale}.of(float32(math.Copysign(f.value(code&0x7F), float64(int8(code)))))
		}
		if math.Float32bits(x) != math.Float32bits(want) {
			t.Fatalf("%v, %s, scale %v, element %d of %x: %v, want %v", l, f.name, scale, i-first, src, x, want)
		}
	}
	if got != special {
		t.Fatalf("%v, %s, %x: special %v, want %v", l, f.name, src, got, special)
	}
}

func TestDecode(t *testing.T) {
	forLevels(t, func(t *testing.T, l cpu.Level) {
		for _, f := range formats {
			for _, scale := range []float32{1, 3, -0.0123, 0x1p-126, 0x1p-140, 0x1p-149, 0x1p100, math.MaxFloat32, 0} {
				var usual []byte
				for code := range 256 {
					c := byte(code)
					if c&0x7F <= byte(f.max) && uint32(c) != f.lone {
						usual = append(usual, c)
					}
				}
				for len(usual)%16 != 0 {
					usual = append(usual, 0x11)
				}
				checkDecode(t, l, &f, scale, usual, 0)
			}
			for code := range 256 { // each code in every place of a vector, and of the two after it
				for place := range 48 {
					src := bytes.Repeat([]byte{0x11}, 48)
					src[place] = byte(code)
					checkDecode(t, l, &f, 3, src[:place&^15+16], 0)
				}
			}
		}
	})
}

func TestDecodeAlignment(t *testing.T) {
	forLevels(t, func(t *testing.T, l cpu.Level) {
		for _, f := range formats {
			for n := 16; n <= 112; n += 16 {
				for from := range 64 {
					src := aligned[byte](n + 64)[from : from+n]
					for i := range src {
						src[i] = byte(i*37 + n)
						if uint32(src[i]&0x7F) > f.max || uint32(src[i]) == f.lone {
							src[i] = 0x33
						}
					}
					for to := range 16 {
						checkDecode(t, l, &f, 0.75, src, to)
					}
				}
			}
		}
	})
}

// TestMaxBits puts the largest value in every place at every alignment.
func TestMaxBits(t *testing.T) {
	forLevels(t, func(t *testing.T, l cpu.Level) {
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
