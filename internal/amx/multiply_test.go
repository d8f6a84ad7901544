//go:build linux && amd64 && !purego

package amx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/amxemu"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// guarded returns a copy of s behind which there is no memory.
func guarded[T any](t *testing.T, s []T) []T {
	t.Helper()
	page := unix.Getpagesize()
	size := len(s) * int(unsafe.Sizeof(s[0]))
	length := (size+page-1)/page*page + page
	memory, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(memory)) })
	require.NoError(t, unix.Mprotect(memory[length-page:], unix.PROT_NONE))
	copied := unsafe.Slice((*T)(unsafe.Pointer(&memory[length-page-size])), len(s))
	copy(copied, s)
	return copied
}

// problem is the arguments of Multiply.
type problem struct {
	a, b      operand
	c, sa, sb []float32
	stride    int
	chunks    int
	fresh     bool
}

// clear makes those elements of c zero that are results.
func (q *problem) clear(c []float32) {
	for i := 0; i < len(c); i += q.stride {
		clear(c[i : i+32])
	}
}

// specials are of bfloat16: zeros, infinities and NaNs of both signs.
var specials = []uint16{0x0000, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0xFFC0}

// random returns a problem of values as FP8 has them, one in a number of them
// special, with scales of which some carry results beyond float32.
func random(r *rand.Rand, strips, blocks, chunks, stride int, special float64) *problem {
	q := &problem{stride: stride, chunks: chunks, fresh: r.IntN(2) == 0, c: make([]float32, (32*strips-1)*stride+32)}
	rows := map[*operand]int{&q.a: 32 * strips, &q.b: 32}
	for _, o := range []*operand{&q.a, &q.b} {
		o.k = 32 * chunks * blocks
		for range rows[o] * o.k {
			v := uint16(r.Uint32())&0x80F0 | uint16(111+r.IntN(24))<<7 // 2^-16 to 2^7
			if r.IntN(16) == 0 {
				v &= 0x8000
			}
			if r.Float64() < special {
				v = specials[r.IntN(len(specials))]
			}
			o.values = append(o.values, v)
		}
	}
	q.sa, q.sb = make([]float32, 32*strips*blocks), make([]float32, 32*blocks)
	for _, scales := range [][]float32{q.sa, q.sb} {
		for i := range scales {
			exponent := r.IntN(16) - 8
			if r.IntN(20) == 0 {
				exponent = r.IntN(240) - 140
			}
			scales[i] = float32(math.Ldexp(1+r.Float64(), exponent))
		}
	}
	for i := range q.c {
		q.c[i] = float32(r.NormFloat64())
		switch r.IntN(16) {
		case 0:
			q.c[i] = 0
		case 1:
			q.c[i] = float32(math.Copysign(0, -1))
		case 2:
			q.c[i] = math.Float32frombits(r.Uint32() & 0x807FFFFF)
		case 3:
			if special > 0 {
				q.c[i] = float32(math.Inf(1))
			}
		}
	}
	return q
}

// differs solves the problem and compares all of c with the definition; behind the
// operands there is no memory.
func (q *problem) differs(t *testing.T, s *Scratch) error {
	want, got := slices.Clone(q.c), guarded(t, q.c)
	if q.fresh {
		q.clear(want)
	}
	definition(want, q.stride, q.a, q.b, q.sa, q.sb, q.chunks)
	Multiply(got, q.stride, guarded(t, q.a.packA()), guarded(t, q.b.packB()), guarded(t, q.sa), guarded(t, q.sb), q.chunks, s, q.fresh)
	for i, w := range want {
		if g := got[i]; math.Float32bits(g) != math.Float32bits(w) && !(g != g && w != w) {
			return fmt.Errorf("%d rows, %d blocks of %d chunks, stride %d: row %d, column %d: %v, want %v",
				len(q.a.values)/q.a.k, len(q.sb)/32, q.chunks, q.stride, i/q.stride, i%q.stride, g, w)
		}
	}
	return nil
}

func TestMultiply(t *testing.T) {
	amxemu.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		var s Scratch
		for i := range s.memory {
			s.memory[i] = float32(math.NaN())
		}
		for chunks := 1; chunks <= 8; chunks++ {
			for blocks := 1; blocks <= 5; blocks++ {
				special := []float64{0, 0.0005}[(chunks+blocks)%2]
				q := random(r, 1+(chunks+2*blocks)%3, blocks, chunks, 32+(chunks*blocks)%3*7, special)
				require.NoError(t, q.differs(t, &s))
			}
		}
	}, "ldtilecfg", "tilezero", "tileloadd", "tileloaddt1", "tdpbf16ps", "tilestored", "tilerelease")
	kernelstest.Tested(t, multiply.Name(), cpu.AMX)
}

// TestLong has more strips or blocks than one call of the kernel takes, and blocks
// that take several.
func TestLong(t *testing.T) {
	amxemu.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		var s Scratch
		sizes := [][3]int{{1, 3, longest / 2}, {2, 2, longest + 1}, {3, 2, longest / 4}, {longest/8 + 1, 2, 4}}
		if !testing.Short() {
			sizes = append(sizes, [][3]int{{1, 1, longest}, {1, 2, longest/2 + 1}, {1, 1, 2*longest + 1}, {2, longest + 1, 1}}...)
		}
		for _, size := range sizes {
			require.NoError(t, random(r, size[0], size[1], size[2], 32, 0).differs(t, &s))
		}
	})
}

// TestPart has blocks in parts, of which only the last touches c.
func TestPart(t *testing.T) {
	amxemu.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		for n, parts := range [][]int{{1}, {1, 1}, {3, 1, 2}, {1, longest + 1}, {longest/2 - 1, 2, longest / 2}} {
			chunks, strips := 0, 1+n%3
			for _, n := range parts {
				chunks += n
			}
			long := random(r, strips, 1, chunks, 37, 0.0005)
			want, got := slices.Clone(long.c), guarded(t, long.c)
			if long.fresh {
				long.clear(want)
			}
			definition(want, long.stride, long.a, long.b, long.sa, long.sb, long.chunks)
			a, b, p := long.a.packA(), long.b.packB(), make([]Sums, strips)
			for i := range p {
				for j := range p[i] {
					p[i][j] = float32(math.NaN())
				}
			}
			from := 0
			for i, n := range parts {
				require.True(t, slices.EqualFunc(long.c, got, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }), "c is written to before the end")
				var part []uint16
				for strip := range strips {
					at := (strip*chunks + from) * Pack
					part = append(part, a[at:at+n*Pack]...)
				}
				x, y := guarded(t, part), guarded(t, b[from*Pack:(from+n)*Pack])
				MultiplyPart(got, long.stride, x, y, guarded(t, long.sa), guarded(t, long.sb), p, i == 0, i == len(parts)-1, long.fresh)
				from += n
			}
			for i, w := range want {
				if g := got[i]; math.Float32bits(g) != math.Float32bits(w) && !(g != g && w != w) {
					t.Fatalf("%d strips, parts %v: row %d, column %d: %v, want %v", strips, parts, i/37, i%37, g, w)
				}
			}
		}
	}, "tdpbf16ps")
}

// TestThreads has several products at once while the collector runs.
func TestThreads(t *testing.T) {
	amxemu.Test(t, func(t *testing.T) {
		var workers sync.WaitGroup
		errs := make([]error, 4)
		for w := range errs {
			workers.Go(func() {
				r := rand.New(rand.NewPCG(5, uint64(w)))
				for range 4 {
					if err := random(r, 2, 3, 4, 32, 0).differs(t, new(Scratch)); err != nil {
						errs[w] = err
					}
					runtime.GC()
				}
			})
		}
		workers.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
	})
}
