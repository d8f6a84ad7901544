package fp8_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/convert"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/stretchr/testify/require"
)

// forLevels runs a test for every level that has kernels of conversion.
func forLevels(t *testing.T, test func(t *testing.T, l cpu.Level)) {
	kernelstest.Compare(t, "convert.", test)
}

// at calls f at a level.
func at[T any](l cpu.Level, f func() T) T {
	restore, err := cpu.Force(l)
	if err != nil {
		panic(err)
	}
	defer restore()
	return f()
}

// encoded is what an encoding gave; comparable but for the codes.
type encoded struct {
	codes []byte
	stats fp8.Stats
}

func encodeAt(l cpu.Level, src []float32, f fp8.Format, p fp8.Policy, s fp8.Scale, first uint64) encoded {
	return at(l, func() encoded {
		r := encoded{codes: make([]byte, len(src)+1)}
		r.codes[len(src)] = 0xA5
		if s == (fp8.Scale{}) && first == 0 {
			fp8.Encode(r.codes, src, f, p, &r.stats)
		} else {
			fp8.EncodeScaled(r.codes, src, f, p, s, first, &r.stats)
		}
		return r
	})
}

// sameEncoding compares a level with the generic one.
func sameEncoding(l cpu.Level, src []float32, f fp8.Format, p fp8.Policy, s fp8.Scale, first uint64) error {
	want, got := encodeAt(cpu.Generic, src, f, p, s, first), encodeAt(l, src, f, p, s, first)
	for i := range want.codes {
		if want.codes[i] != got.codes[i] {
			return fmt.Errorf("%v, %v, %+v, %+v, first %d: code %d of %d is %02x, want %02x, of %x",
				l, f, p, s, first, i, len(src), got.codes[i], want.codes[i], bitsOf(src[min(i, len(src)-1)]))
		}
	}
	if want.stats != got.stats {
		return fmt.Errorf("%v, %v, %+v, %+v, first %d, %d elements: %+v, want %+v", l, f, p, s, first, len(src), got.stats, want.stats)
	}
	without := at(l, func() []byte {
		codes := bytes.Repeat([]byte{0xA5}, len(src)+1)
		fp8.EncodeScaled(codes, src, f, p, s, first, nil)
		return codes
	})
	if !bytes.Equal(want.codes, without) {
		return fmt.Errorf("%v, %v, %+v, %+v, first %d: other codes without Stats", l, f, p, s, first)
	}
	return nil
}

func bitsOf(x float32) uint32 { return math.Float32bits(x) }

// patterns returns the bits of values, which are alike where those are.
func patterns(values []float32) []uint32 {
	bits := make([]uint32, len(values))
	for i, x := range values {
		bits[i] = bitsOf(x)
	}
	return bits
}

func decodeAt(l cpu.Level, codes []byte, f fp8.Format, scale float32) []uint32 {
	return at(l, func() []uint32 {
		values := make([]float32, len(codes)+1)
		values[len(codes)] = -12345.5
		if scale == 1 {
			fp8.Decode(values, codes, f)
		} else {
			fp8.DecodeScaled(values, codes, f, scale)
		}
		return patterns(values)
	})
}

func sameDecoding(l cpu.Level, codes []byte, f fp8.Format, scale float32) error {
	if want, got := decodeAt(cpu.Generic, codes, f, scale), decodeAt(l, codes, f, scale); !slices.Equal(want, got) {
		return fmt.Errorf("%v, %v, scale %v: %x decoded to %x, want %x", l, f, scale, codes, got, want)
	}
	return nil
}

func sameAmax(l cpu.Level, src []float32) error {
	type result struct {
		bits uint32
		nan  bool
	}
	amax := func() result { a, nan := fp8.Amax(src); return result{bitsOf(a), nan} }
	if want, got := at(cpu.Generic, amax), at(l, amax); want != got {
		return fmt.Errorf("%v: Amax of %x: %+v, want %+v", l, patterns(src), got, want)
	}
	return nil
}

// sprinkle replaces what is not finite, and then puts such values at few random
// places where special.
func sprinkle(random *rand.Rand, src []float32, special bool) {
	bits := []uint32{0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFC00001, 0xFFFFFFFF}
	for i, x := range src {
		if x-x != 0 {
			src[i] = 1
		}
		if special && random.IntN(100) == 0 {
			src[i] = math.Float32frombits(bits[random.IntN(len(bits))])
		}
	}
}

// lengths are all up to some, and those around what kernels are given at a time;
// few of them in short tests.
func lengths() (all []int) {
	step, long := 1, []int{4080, 4095, 4096, 4097, 4111, 4112, 3*4096 + 33}
	if testing.Short() {
		step, long = 29, []int{4097}
	}
	for n := 0; n <= 300; n += step {
		all = append(all, n)
	}
	return append(all, long...)
}

var levelScales = []fp8.Scale{
	{},
	{Stored: 3, Multiplier: 1 / float32(3)},
	{Stored: 0.0123},
	{Stored: -0x1p-130, Multiplier: -0x1p126},
	{Stored: 0, Multiplier: 0x1p100},
	{Stored: float32(math.NaN()), Multiplier: 2},
	{Stored: float32(math.Inf(1))},
}

func TestEncodeLevels(t *testing.T) {
	each := 10
	if testing.Short() {
		each = 13
	}
	forLevels(t, func(t *testing.T, l cpu.Level) {
		random := rand.New(rand.NewPCG(21, 22))
		for _, d := range definitions {
			all := slices.Concat(policies(fp8.NearestEven), policies(fp8.TowardZero), policies(fp8.Stochastic), policies(fp8.NearestTowardZero))
			for _, n := range lengths() {
				for i, p := range all {
					if (i+n/16)%each != 0 { // the others have other lengths
						continue
					}
					p.Seed = uint64(n)
					s := levelScales[(i+n)%len(levelScales)]
					first := []uint64{0, 1<<32 - uint64(n)/2, 1<<40 + 5}[n%3]
					src := edges(d, random, scaled(1, s, false), n)
					for _, special := range []bool{false, true} {
						sprinkle(random, src, special)
						if err := sameEncoding(l, src, d.format, p, s, first); err != nil {
							t.Fatal(err)
						}
						if err := sameEncoding(l, src, d.format, p, fp8.Scale{}, 0); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
	})
}

func TestDecodeLevels(t *testing.T) {
	scales := []float32{1, 3, -0.0123, 0x1p-140, math.MaxFloat32, 0, float32(math.Inf(-1)), float32(math.NaN())}
	forLevels(t, func(t *testing.T, l cpu.Level) {
		random := rand.New(rand.NewPCG(23, 24))
		for _, f := range fp8.Formats() {
			require.NoError(t, sameDecoding(l, allCodes(), f, 1))
			for _, n := range lengths() {
				codes := make([]byte, n)
				for _, special := range []bool{false, true} {
					for i := range codes {
						codes[i] = byte(random.Uint32())
						for !special && (f.IsNaN(codes[i]) || f.IsInf(codes[i], 0)) {
							codes[i] = byte(random.Uint32())
						}
					}
					for _, scale := range scales {
						if err := sameDecoding(l, codes, f, scale); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
	})
}

// TestDecodeStreamed decodes more than caches hold, from everywhere in a cache line to
// everywhere in one.
func TestDecodeStreamed(t *testing.T) {
	n := 1 << 16
	for !convert.Streams(4 * n) {
		n *= 2
	}
	step := 4
	if testing.Short() {
		step = 13
	}
	codes, buffer := make([]byte, n+64), make([]float32, n+64+18)
	random := rand.New(rand.NewPCG(29, 30))
	for i := range codes {
		codes[i] = byte(random.Uint32())
		if i < n/2 && codes[i]&0x7F > 0x7B || codes[i] == 0x80 { // none is special
			codes[i] = 0x33
		}
	}
	forLevels(t, func(t *testing.T, l cpu.Level) {
		for i, f := range fp8.Formats() {
			values := decodeAt(cpu.Generic, allCodes(), f, 0.7)
			for first := i; first <= 16; first += step {
				src := codes[first : n+first*3]
				dst := buffer[first:][:len(src)+2]
				dst[0], dst[len(dst)-1] = 1234.5, 1234.5
				at(l, func() error { fp8.DecodeScaled(dst[1:], src, f, 0.7); return nil })
				require.Equal(t, []float32{1234.5, 1234.5}, []float32{dst[0], dst[len(dst)-1]})
				for j, c := range src {
					if got := bitsOf(dst[j+1]); got != values[c] {
						t.Fatalf("%v, from %d: %d of %d: %02x is %08x, want %08x", f, first, j, len(src), c, got, values[c])
					}
				}
			}
		}
	})
}

// TestDecodeBetweenFloats decodes as much to where no float32 can begin, as Go has it, but
// may in memory that was not made as one: past the caches only whole ones can be written.
func TestDecodeBetweenFloats(t *testing.T) {
	n := 1 << 16
	for !convert.Streams(4 * n) {
		n *= 2
	}
	codes, buffer := make([]byte, n), make([]float32, n+1)
	for i := range codes {
		codes[i] = byte(i)
	}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&buffer[0])), 4*len(buffer))
	dst := unsafe.Slice((*float32)(unsafe.Pointer(&raw[1])), n)
	forLevels(t, func(t *testing.T, l cpu.Level) {
		at(l, func() error { fp8.Decode(dst, codes, fp8.E4M3); return nil })
		for _, i := range []int{0, 1, 200, n - 1} {
			require.Equal(t, bitsOf(fp8.E4M3.Float32(codes[i])), binary.NativeEndian.Uint32(raw[1+4*i:]), "%d", i)
		}
	})
}

func TestAmaxLevels(t *testing.T) {
	forLevels(t, func(t *testing.T, l cpu.Level) {
		random := rand.New(rand.NewPCG(25, 26))
		for _, n := range lengths() {
			src := edges(definitions[0], random, 1, n)
			for _, special := range []bool{false, true} {
				sprinkle(random, src, special)
				if err := sameAmax(l, src); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func FuzzEncodeLevels(f *testing.F) {
	for i := range 24 {
		random := rand.New(rand.NewPCG(27, uint64(i)))
		data := make([]byte, 4*(i*8+3))
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		f.Add(data, byte(i), byte(i*5), uint64(i), 1<<32-7*uint64(i), float32(i)/3, float32(i%3)/2)
	}
	f.Fuzz(func(t *testing.T, data []byte, format, knobs byte, seed, first uint64, stored, multiplier float32) {
		src := make([]float32, len(data)/4)
		for i := range src {
			src[i] = math.Float32frombits(uint32(data[4*i]) | uint32(data[4*i+1])<<8 | uint32(data[4*i+2])<<16 | uint32(data[4*i+3])<<24)
		}
		near := make([]float32, len(src)) // within what formats can hold
		for i, x := range src {
			near[i] = math.Float32frombits(bitsOf(x)&0x807FFFFF | (100+bitsOf(x)>>24&0x3F)<<23)
		}
		id := fp8.Formats()[format%4]
		p := fp8.Policy{
			Overflow: fp8.Overflow(knobs & 1),
			Inf:      fp8.Inf(knobs >> 1 & 1),
			NaN:      fp8.NaN(knobs >> 2 & 1),
			Rounding: fp8.Rounding(knobs >> 3 % 3),
			Seed:     seed,
		}
		for _, l := range cpu.Levels()[1:] {
			for _, src := range [][]float32{src, near} {
				for _, s := range []fp8.Scale{{}, {Stored: stored, Multiplier: multiplier}, {Stored: stored}} {
					if err := sameEncoding(l, src, id, p, s, first); err != nil {
						t.Fatal(err)
					}
				}
				if err := sameAmax(l, src); err != nil {
					t.Fatal(err)
				}
			}
			for _, scale := range []float32{1, stored} {
				if err := sameDecoding(l, data, id, scale); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
