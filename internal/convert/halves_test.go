package convert

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestEncodeHalves has every 16-bit value that is finite, in pieces of all lengths,
// everywhere in a cache line, between guards.
func TestEncodeHalves(t *testing.T) {
	scales := make([]float32, 272)
	for i := range scales {
		scales[i] = []float32{1, 3, 0.25, 0.7, 1.3, 0x1p-5}[i%6]
	}
	sources := []struct {
		source Source
		bits   func(h uint16) uint32
	}{
		{BFloat16, func(h uint16) uint32 { return uint32(h) << 16 }},
		{Float16, float16},
	}
	kernelstest.Compare(t, encodeHalves.Name(), func(t *testing.T, l cpu.Level) {
		for _, s := range sources {
			var halves []uint16
			for h := range 1 << 16 {
				if magnitude := s.bits(uint16(h)) &^ (1 << 31); magnitude < Limit-4<<23 {
					halves = append(halves, uint16(h))
				}
			}
			mixed := append([]uint16(nil), halves...)
			rand.New(rand.NewPCG(1, 2)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			for i, f := range widths {
				for _, m := range modes(l) {
					for divide := range uint32(2) {
						// In their order pieces are all normal or all not.
						at := i + int(m) + int(divide)
						for order, all := range [][]uint16{halves, mixed} {
							if testing.Short() && order != at%2 {
								continue
							}
							layout := layouts[at%len(layouts)]
							e := f.encoding(divide, m)
							e.Source, e.Zeros = s.source, Zeros(i+int(m))%4
							for first, n := 0, 16; first+n <= len(all); n = n%272 + 16 {
								e.Index = uint32(first)
								checkHalves(t, l, &f, all[first:first+n], s.bits, &e, scales, layout)
								first += n
							}
						}
					}
				}
			}
		}
	})
}

func checkHalves(t *testing.T, l cpu.Level, f *format, halves []uint16, bits func(uint16) uint32, e *Encoding, scales []float32, layout Layout) {
	t.Helper()
	n, at := len(halves), int(e.Index/16%32)
	src := aligned[uint16](n + 64)[at:]
	copy(src, halves)
	values := make([]float32, n)
	for i, h := range halves {
		values[i] = math.Float32frombits(bits(h))
	}
	codes, counts := f.expect(values, e, scales, layout)
	dst := bytes.Repeat([]byte{guard}, n+128)
	want := bytes.Clone(dst)
	copy(want[at+1:], codes)
	var c Counts
	EncodeHalves(l, &dst[at+1], &src[0], n, e, &scales[0], layout, &c)
	if !bytes.Equal(dst, want) || c != counts {
		t.Fatalf("%v, %s, %+v, layout %d, n %d, at %d: %x %+v, want %x %+v", l, f.name, *e, layout, n, at, dst, c, want, counts)
	}
}
