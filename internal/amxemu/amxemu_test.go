//go:build linux && amd64 && !purego

package amxemu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/amxemu/probe"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// shapes makes the operand of LDTILECFG for tiles 0 and on.
func shapes(tiles ...shape) *[64]byte {
	c := [64]byte{1}
	for i, s := range tiles {
		binary.LittleEndian.PutUint16(c[16+2*i:], uint16(s.colsb))
		c[48+i] = byte(s.rows)
	}
	return &c
}

var full = shapes(slices.Repeat([]shape{{16, 64}}, 8)...)

// TestMultiply compares products of all shapes with the definition, loaded and
// stored with strides.
func TestMultiply(t *testing.T) {
	Test(t, func(t *testing.T) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		r := rand.New(rand.NewPCG(1, 2))
		for round := range 64 {
			m, n, k := 1+r.IntN(16), 1+r.IntN(16), 1+r.IntN(16)
			if round < 4 {
				m, n, k = 16, 16, 16
			}
			a, b := bfloats(r, 2*m*k, round%4), bfloats(r, 2*k*n, round%4)
			c := bfloats(r, 2*m*n, round/4%2)
			want := slices.Clone(c)
			definition(want, a, b, m, n, k)
			if round == 3 {
				require.NotEqual(t, c, want)
			}

			stride := 64 + 4*r.IntN(20)
			spread := func(rows []byte, count int) []byte {
				memory := bytes.Repeat([]byte{0xA5}, 16*stride)
				for i, w := 0, len(rows)/count; i < count; i++ {
					copy(memory[i*stride:], rows[i*w:(i+1)*w])
				}
				return memory
			}
			out := spread(want, m)
			for i := range m {
				clear(out[i*stride:][:4*n])
			}
			if round%2 == 0 {
				probe.Configure(shapes(shape{m, 4 * n}, shape{m, 4 * k}, shape{k, 4 * n}))
				probe.Load0(&spread(c, m)[0], stride)
				probe.Load1(&spread(a, m)[0], stride)
				probe.Load2(&spread(b, k)[0], stride)
				probe.Multiply012()
				probe.Store0(&out[0], stride)
			} else {
				probe.Configure(shapes(shape{}, shape{k, 4 * n}, shape{m, 4 * k}, shape{}, shape{}, shape{}, shape{}, shape{m, 4 * n}))
				probe.Load7(&spread(c, m)[0], stride&^1)
				probe.Load1(&spread(b, k)[0], stride)
				probe.Load2(&spread(a, m)[0], stride)
				probe.Multiply721()
				probe.Store7(&out[0], stride)
			}
			for i := range m {
				row := out[i*stride:][:4*n]
				require.Truef(t, same(want[i*4*n:][:4*n], row), "round %d, row %d: % x, want % x", round, i, row, want[i*4*n:][:4*n])
				copy(row, want[i*4*n:])
			}
			require.Equal(t, spread(want, m), out) // and nothing else was written
		}
		probe.Release()
	}, "ldtilecfg", "tileloadd", "tileloaddt1", "tilestored", "tdpbf16ps", "tilerelease")
}

// TestStrides has rows upside down, one for all, and a tile cleared.
func TestStrides(t *testing.T) {
	Test(t, func(t *testing.T) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		src, dst := make([]byte, 1024), make([]byte, 1024)
		for i := range src {
			src[i] = byte(i * 7 / 3)
		}
		probe.Configure(full)
		probe.Load0(&src[15*64], -64)
		probe.Store0(&dst[0], 64)
		for i := range 16 {
			require.Equal(t, src[(15-i)*64:][:64], dst[i*64:][:64])
		}
		probe.Load0(&src[64], 0)
		probe.Store0(&dst[0], 64)
		require.Equal(t, bytes.Repeat(src[64:128], 16), dst)
		probe.Zero0()
		probe.Store0(&dst[0], 64)
		require.Equal(t, make([]byte, 1024), dst)
		probe.Load0(&src[0], 64)
		probe.Configure(full) // clears too
		probe.Store0(&dst[0], 64)
		require.Equal(t, make([]byte, 1024), dst)
		probe.Release()
	}, "tilezero")
}

// fault returns the address of the fault in f.
func fault(t *testing.T, f func()) (address uintptr) {
	t.Helper()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		t.Helper()
		err, ok := recover().(interface{ Addr() uintptr })
		require.True(t, ok, "no fault")
		address = err.Addr()
	}()
	f()
	return 0
}

// TestConfigurations has all that LDTILECFG refuses, and that it then changes
// nothing.
func TestConfigurations(t *testing.T) {
	Test(t, func(t *testing.T) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		src, dst := bytes.Repeat([]byte{0x5A}, 1024), make([]byte, 1024)
		probe.Configure(full)
		probe.Load0(&src[0], 64)
		bad := map[int]byte{0: 2, 16: 65, 17: 1, 32: 1, 47: 1, 48: 17, 49: 0, 55: 255, 56: 1, 63: 1, 30: 0}
		for i := 2; i < 16; i++ {
			bad[i] = 1
		}
		for i, b := range bad {
			wrong := *full
			wrong[i] = b
			fault(t, func() { probe.Configure(&wrong) })
		}
		clear(dst)
		probe.Store0(&dst[0], 64)
		require.Equal(t, src, dst)
		probe.Configure(&[64]byte{2: 1, 16: 200}) // palette 0: the rest does not matter
	})
}

// TestPages has tiles where there is no memory.
func TestPages(t *testing.T) {
	Test(t, func(t *testing.T) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		const size = 4096
		memory, err := unix.Mmap(-1, 0, 3*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		require.NoError(t, err)
		defer func() { require.NoError(t, unix.Munmap(memory)) }()
		for i := range memory {
			memory[i] = 0xA5
		}
		require.NoError(t, unix.Mprotect(memory[size:2*size], unix.PROT_READ))
		require.NoError(t, unix.Mprotect(memory[2*size:], unix.PROT_NONE))
		at := func(i int) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(memory))) + uintptr(i) }
		last := make([]byte, 1024)

		probe.Configure(full)
		probe.Load0(&memory[2*size-1024], 64)
		probe.Store0(&last[0], 64)
		require.Equal(t, memory[:1024], last)
		// A processor notes the row of a fault, where the next load or store of a tile
		// goes on: a new configuration makes it the first one again.
		faulting := func(f func()) uintptr {
			probe.Configure(full)
			return fault(t, f)
		}
		require.Equal(t, at(2*size), faulting(func() { probe.Load0(&memory[2*size-960], 64) }))
		require.Equal(t, at(2*size), faulting(func() { probe.Load0(&memory[0], size) })&^63)
		require.Equal(t, at(size), faulting(func() { probe.Store0(&memory[size-512], 64) }))
		require.Equal(t, at(size), faulting(func() { probe.Store0(&memory[size], 64) }))
		probe.Configure(full)
		probe.Store0(&memory[size-1024], 64)
		// Behind an instruction that does not fault.
		require.Equal(t, at(2*size), fault(t, func() { probe.Rounds(&last[0], &memory[0], &memory[2*size], full, 1) }))
		probe.Release()
	})
}

// TestThreads has goroutines on threads of their own keep their tiles while the
// others change theirs, the collector runs and Go preempts.
func TestThreads(t *testing.T) {
	Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		var collector, workers sync.WaitGroup
		collector.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					runtime.GC()
					time.Sleep(time.Millisecond)
				}
			}
		})
		errs := make([]error, 6)
		for w := range errs {
			workers.Go(func() {
				runtime.LockOSThread() // and the thread ends with the goroutine
				rows := 2 * (w + 1)
				mine := bytes.Repeat([]byte{byte(0x11 * (w + 1))}, rows*64)
				probe.Configure(shapes(shape{rows, 64}))
				probe.Load0(&mine[0], 64)
				for range 60 {
					var garbage [][]byte
					for begin := time.Now(); time.Since(begin) < 100*time.Microsecond; {
						garbage = append(garbage, make([]byte, 100))
					}
					runtime.Gosched()
					dst := make([]byte, rows*64+64)
					probe.Store0(&dst[0], 64)
					if !bytes.Equal(append(mine, make([]byte, 64)...), dst) {
						errs[w] = fmt.Errorf("worker %d lost its tile: % x", w, dst)
					}
					runtime.KeepAlive(garbage)
				}
				probe.Release()
			})
		}
		workers.Wait()
		close(stop)
		collector.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
	})
}

// TestRate executes many.
func TestRate(t *testing.T) {
	const n = 1000
	Test(t, func(t *testing.T) {
		one := bytes.Repeat([]byte{0x80, 0x3F}, 512)
		c := make([]byte, 1024)
		begin := time.Now()
		probe.Rounds(&c[0], &one[0], &one[0], full, n)
		t.Logf("%d instructions in %v", 5*n+4, time.Since(begin))
		require.Equal(t, float32(32*n), *(*float32)(unsafe.Pointer(&c[1020])))
	}, "tdpbf16ps")
}
