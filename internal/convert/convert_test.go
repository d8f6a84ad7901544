package convert

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "convert.")) }

// TestComplete checks what Available relies on: that a level which serves one of the
// operations serves all of them.
func TestComplete(t *testing.T) {
	for l := cpu.Generic; l < cpu.NumLevels; l++ {
		for name, found := range map[string]bool{
			decode.Name(): has(decode, l), maxBits.Name(): has(maxBits, l), maxBlocks.Name(): has(maxBlocks, l),
			maxElements.Name(): has(maxElements, l), widenBF16.Name(): has(widenBF16, l), widenF16.Name(): has(widenF16, l),
			truncateBF16.Name(): has(truncateBF16, l),
		} {
			require.Equal(t, Available(l), found, "%s at level %v", name, l)
		}
	}
	require.False(t, Available(cpu.Generic))
}

func has[F any](o *kernels.Operation[F], l cpu.Level) bool {
	_, ok := o.For(l)
	return ok
}

// checkEncode compares a kernel with the definition. Scaled values must be below
// Limit.
func checkEncode(t *testing.T, l cpu.Level, f *format, src []float32, e *Encoding, scales []float32, layout Layout) {
	t.Helper()
	want, wantCounts := f.expect(src, e, scales, layout)
	got := make([]byte, len(src))
	counts := Counts{1, 1, 1, 1, 1, 1, 1, 1}
	Encode(l, &got[0], &src[0], len(src), e, &scales[0], layout, &counts)
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v, %s, %+v, element %d of %d, %v (%08x), scale %v of layout %d: %02x, want %02x",
				l, f.name, *e, i, len(src), src[i], math.Float32bits(src[i]), scales[layout.scaleOf(i)], layout, got[i], want[i])
		}
	}
	if counts != wantCounts {
		t.Fatalf("%v, %s, %+v, %d elements, layout %d: %+v, want %+v", l, f.name, *e, len(src), layout, counts, wantCounts)
	}
}

// batches gives values to check in pieces of 1 to 7 times step, the last filled
// with some of the values before it.
func batches(values []float32, step int, check func(first int, batch []float32)) {
	for first, n := 0, step; first < len(values); {
		first = min(first, len(values)-n)
		check(first, values[first:first+n])
		first += n
		n = n%(7*step) + step
	}
}

// shuffled returns values in an order that is always the same.
func shuffled(values []float32) []float32 {
	values = slices.Clone(values)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	return values
}

func TestEncode(t *testing.T) {
	everywhere := exponents()
	kernelstest.Compare(t, encode.Name(), func(t *testing.T, l cpu.Level) {
		all, each := 4, 3 // formats with every scaling; the others have a third
		if testing.Short() {
			all, each = 1, 7
		}
		for i, f := range formats {
			for j, s := range scalings {
				if i >= all && (i+j)%each != 0 {
					continue
				}
				values := slices.Concat(everywhere, f.edges(s))
				values = slices.DeleteFunc(values, func(x float32) bool { return !encodable(s.of(x)) })
				mixed := shuffled(values)
				for _, m := range modes(l) {
					e := f.encoding(s.divide, m)
					scales := []float32{s.scale}
					check := func(first int, batch []float32) {
						e.Index = uint32(first)
						e.Zeros = Zeros(first/16) % 4
						checkEncode(t, l, &f, batch, &e, scales, One)
					}
					// In their order batches are all normal or all not.
					batches(values, 16, check)
					batches(mixed, 16, check)
					if m == NearestEven { // some kernels take 64 at once
						batches(values, 64, check)
						batches(mixed, 64, check)
					}
				}
			}
		}
	})
}

// TestEncodeStochastic has what is cut off at and beside the random bits, and
// the first and last indices and other keys.
func TestEncodeStochastic(t *testing.T) {
	kernelstest.Compare(t, encode.Name(), func(t *testing.T, l cpu.Level) {
		for _, f := range formats {
			for _, k := range [][2]uint32{{0, 0}, {1, math.MaxUint32}, {0xDEADBEEF, 0x01234567}} {
				const n = 16 << 10
				for _, index := range []uint32{0, 1 << 31, math.MaxUint32 - n + 1} {
					e := f.encoding(0, Stochastic)
					e.K0, e.K1, e.Index = k[0], k[1], index
					checkEncode(t, l, &f, f.thresholds(&e, n), &e, []float32{1}, One)
				}
			}
		}
	})
}

// lengths calls f with the numbers of elements of interest.
func lengths(f func(n int)) {
	for n := 16; n <= 272; n += 16 {
		if n <= 80 || n >= 240 || !testing.Short() {
			f(n)
		}
	}
}

// TestEncodeLayouts has all layouts, with source, destination and scales
// everywhere in a cache line and guards around the destination.
func TestEncodeLayouts(t *testing.T) {
	scales := make([]float32, 272)
	for i := range scales {
		scales[i] = []float32{3, 1, 0.25, 0.7, 1.3, 40, 0x1p-5}[i%7]
	}
	kernelstest.Compare(t, encode.Name(), func(t *testing.T, l cpu.Level) {
		for _, f := range formats {
			values := shuffled(f.edges(scaling{scale: 1}))
			for len(values) < 4*272 { // of which there are few in narrow formats
				values = append(values, values...)
			}
			for _, layout := range layouts {
				for _, m := range modes(l) {
					for divide := range uint32(2) {
						e := f.encoding(divide, m)
						lengths(func(n int) {
							e.Index += 0x1000_0001
							e.Zeros = Zeros(n/16) % 4
							first := n * 3
							codes, counts := f.expect(values[first:first+n], &e, scales, layout)
							for at := range 64 {
								src := aligned[float32](n + 16)[at%16:]
								copy(src, values[first:first+n])
								some := aligned[float32](n + 16)[at/4:]
								copy(some, scales[:layout.scales(n)])
								dst := aligned[byte](n + 192)
								want := bytes.Repeat([]byte{guard}, len(dst))
								copy(dst, want)
								copy(want[64+at:], codes)
								var c Counts
								Encode(l, &dst[64+at], &src[0], n, &e, &some[0], layout, &c)
								if !bytes.Equal(dst, want) || c != counts {
									t.Fatalf("%s, layout %d, mode %d, divide %d, n %d, at %d: %x %+v, want %x %+v",
										f.name, layout, m, divide, n, at, dst, c, want, counts)
								}
							}
						})
					}
				}
			}
		}
	})
}

// TestEncodeRefused puts one value in every place, or one scale, that makes a
// scaled value of Limit or more; and of just less, which is encoded.
func TestEncodeRefused(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	cases := []struct {
		bits, divide uint32
		scale        float32
		refused      bool
	}{
		{0x7F800000, 0, 1, true}, {0x7F800001, 0, 1, true}, {0x7FC00000, 1, 1, true},
		{0x7FFFFFFF, 0, 0.5, true}, {0x7F800000, 0, 0, true}, {0x7F800000, 0, 0x1p-140, true},
		{0x7F7FFFFF, 0, 1.0000001, true}, {0x7F7FFFFF, 1, 0.99999994, true}, {0x7F7FFFFF, 0, 1, true},
		{0x3F800000, 1, 0x1p-140, true}, {0x7F800000, 1, math.MaxFloat32, true}, {0x3F800000, 0, 0x1p100, true},
		{0, 1, 0, true}, {0, 0, inf, true}, {0x3F800000, 1, 0, true}, {0x3F800000, 0, nan, true}, {0, 1, nan, true},
		{Limit, 0, 1, true}, {Limit, 1, 1, true}, {Limit - 1, 0, 2, true}, {Limit, 1, 0.5, true},
		{Limit - 1, 0, 1, false}, {Limit - 1, 1, 1, false}, {Limit, 0, 0.5, false}, {Limit + 1<<24 - 1, 1, 4, false},
	}
	kernelstest.AtLevels(t, encode.Name(), func(t *testing.T, l cpu.Level) {
		for _, f := range formats {
			for _, v := range cases {
				for _, m := range modes(l) {
					e := f.encoding(v.divide, m)
					for _, layout := range layouts {
						for i := range 80 {
							n := i&^15 + 16
							src, dst, scales := make([]float32, n), make([]byte, n), make([]float32, layout.scales(n))
							for j := range scales {
								scales[j] = 1
							}
							scales[layout.scaleOf(i)] = v.scale
							src[i] = math.Float32frombits(v.bits | uint32(i)<<31)
							if !v.refused {
								checkEncode(t, l, &f, src, &e, scales, layout)
								continue
							}
							var c Counts
							Encode(l, &dst[0], &src[0], n, &e, &scales[0], layout, &c)
							if c.MaxScaled < Limit {
								t.Fatalf("%s, %+v, mode %d, layout %d, element %d: %+v", f.name, v, m, layout, i, c)
							}
						}
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

// checkDecode decodes src to memory between guards, at an element of it: in both ways
// where a cache line begins there.
func checkDecode(t *testing.T, l cpu.Level, f *format, scale float32, src []byte, to int) {
	t.Helper()
	d := f.decoding(scale)
	checkDecoding(t, l, f, &d, src, to)
	if to%16 == 0 {
		d.Stream = 1
		checkDecoding(t, l, f, &d, src, to)
	}
}

func checkDecoding(t *testing.T, l cpu.Level, f *format, d *Decoding, src []byte, to int) {
	t.Helper()
	const canary = float32(-12345.5)
	dst := aligned[float32](len(src) + 48)
	for i := range dst {
		dst[i] = canary
	}
	first := 16 + to
	got := Decode(l, &dst[first], &src[0], len(src), d)
	special := false
	for i, x := range dst {
		want := canary
		if i >= first && i < first+len(src) {
			code := uint32(src[i-first])
			if f.special(code) {
				special = true
				continue
			}
			v := f.value(f.magnitude(code))
			if f.negative(code) {
				v = math.Copysign(v, -1)
			}
			want = scaling{scale: d.Scale}.of(float32(v))
		}
		if math.Float32bits(x) != math.Float32bits(want) {
			t.Fatalf("%v, %s, %+v, element %d of %x: %v, want %v", l, f.name, *d, i-first, src, x, want)
		}
	}
	if got != special {
		t.Fatalf("%v, %s, %x: special %v, want %v", l, f.name, src, got, special)
	}
}

func TestDecode(t *testing.T) {
	kernelstest.Compare(t, decode.Name(), func(t *testing.T, l cpu.Level) {
		for _, f := range formats {
			for _, scale := range []float32{1, 3, -0.0123, 0x1p-126, 0x1p-140, 0x1p-149, 0x1p100, math.MaxFloat32, 0} {
				var usual []byte
				for code := range 256 {
					c := byte(code)
					if !f.special(uint32(c)) {
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
	kernelstest.AtLevels(t, decode.Name(), func(t *testing.T, l cpu.Level) {
		for _, f := range formats {
			for n := 16; n <= 112; n += 16 {
				for from := range 64 {
					src := aligned[byte](n + 64)[from : from+n]
					for i := range src {
						src[i] = byte(i*37 + n)
						if f.special(uint32(src[i])) {
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
