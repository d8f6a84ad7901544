package convert

import (
	"fmt"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestBounds has all that a kernel reads and writes begin, and end, where memory
// does.
func TestBounds(t *testing.T) {
	source, destination, factors := kernelstest.Pages[byte](t, 1), kernelstest.Pages[byte](t, 1), kernelstest.Pages[byte](t, 1)
	floats := func(b []byte) *float32 { return (*float32)(unsafe.Pointer(&b[0])) }
	halves := func(b []byte) *uint16 { return (*uint16)(unsafe.Pointer(&b[0])) }
	kernelstest.AtLevels(t, "convert.", func(t *testing.T, l cpu.Level) {
		f := &formats[0]
		d := f.decoding(1)
		for n := 16; n <= 272; n += 16 {
			for name, at := range map[string]func(page []byte, size int) []byte{
				"begin": func(page []byte, size int) []byte { return page[:size] },
				"end":   func(page []byte, size int) []byte { return page[len(page)-size:] },
			} {
				note := fmt.Sprintf("%d elements at the %s of memory", n, name)
				for _, m := range modes(l) {
					for _, layout := range layouts {
						for divide := range uint32(2) {
							e := f.encoding(divide, m)
							var c Counts
							inBounds(t, fmt.Sprintf("%s, mode %d, layout %d, divide %d", note, m, layout, divide), func() {
								Encode(l, &at(destination, n)[0], floats(at(source, 4*n)), n, &e,
									floats(at(factors, 4*layout.scales(n))), layout, &c)
							})
							if !HalvesAvailable(l) {
								continue
							}
							for e.Source = BFloat16; e.Source <= Float16; e.Source++ {
								inBounds(t, fmt.Sprintf("%s, mode %d, layout %d, divide %d, source %d", note, m, layout, divide, e.Source), func() {
									EncodeHalves(l, &at(destination, n)[0], halves(at(source, 2*n)), n, &e,
										floats(at(factors, 4*layout.scales(n))), layout, &c)
								})
							}
						}
					}
				}
				for d.Stream = range 2 {
					inBounds(t, note, func() { Decode(l, floats(at(destination, 4*n)), &at(source, n)[0], n, &d) })
				}
				inBounds(t, note, func() { MaxBits(l, floats(at(source, 4*n)), n) })
				inBounds(t, note, func() { MaxBlocks(l, floats(at(destination, 4)), floats(at(source, 4*n)), 1, n) })
				inBounds(t, note, func() { MaxBlocks(l, floats(at(destination, n/4)), floats(at(source, 4*n)), n/16, 16) })
				for of := BFloat16; of <= Float16; of++ {
					inBounds(t, note, func() { MaxBlocksHalves(l, floats(at(destination, 4)), halves(at(source, 2*n)), 1, n, of) })
					inBounds(t, note, func() { MaxBlocksHalves(l, floats(at(destination, n/4)), halves(at(source, 2*n)), n/16, 16, of) })
				}
				for each := 1; 4*n*each <= len(destination) && each <= 5; each++ {
					inBounds(t, note, func() {
						Spread(l, floats(at(destination, 4*n*each)), floats(at(source, 4*n)), floats(at(factors, 4*n)), n, each)
					})
				}
				inBounds(t, note, func() { MaxElements(l, floats(at(destination, 4*n)), floats(at(source, 4*n)), n) })
				inBounds(t, note, func() { WidenBF16(l, floats(at(destination, 4*n)), halves(at(source, 2*n)), n) })
				inBounds(t, note, func() { WidenF16(l, floats(at(destination, 4*n)), halves(at(source, 2*n)), n) })
				inBounds(t, note, func() { TruncateBF16(l, halves(at(destination, 2*n)), floats(at(source, 4*n)), n) })
			}
		}
	})
}

// inBounds calls f, in which a fault ends the test and not the process.
func inBounds(t *testing.T, note string, f func()) {
	t.Helper()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if err := recover(); err != nil {
			t.Fatalf("%s: %v", note, err)
		}
	}()
	f()
}
