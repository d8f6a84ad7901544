//go:build linux && amd64 && !purego

package amxemu

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/octavo-fp8/octavo/internal/amxemu/probe"
	"github.com/stretchr/testify/require"
)

// bytesDefinition is TDPBSSD and its siblings on the bytes of tiles of the given shape: c of
// m rows of n integers, a of m rows of k groups of four bytes, b of k rows of n groups.
func bytesDefinition(c, a, b []byte, m, n, k int, value [2]func(byte) int) {
	for i := range m {
		for j := range n {
			at := c[4*(i*n+j):]
			sum := int(int32(binary.LittleEndian.Uint32(at)))
			for p := range k {
				for h := range 4 {
					sum += value[0](a[(i*k+p)*4+h]) * value[1](b[(p*n+j)*4+h])
				}
			}
			binary.LittleEndian.PutUint32(at, uint32(sum))
		}
	}
}

// TestMultiplyBytes compares products of all kinds of bytes and of many shapes with the
// definition: those of all bytes, and of the largest ones, whose sums wrap around.
func TestMultiplyBytes(t *testing.T) {
	Test(t, func(t *testing.T) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		signed, unsigned := func(x byte) int { return int(int8(x)) }, func(x byte) int { return int(x) }
		r := rand.New(rand.NewPCG(3, 4))
		for name, kind := range map[string]struct {
			multiply func()
			value    [2]func(byte) int
		}{
			"tdpbssd": {probe.MultiplySigned012, [2]func(byte) int{signed, signed}},
			"tdpbsud": {probe.MultiplySignedUnsigned012, [2]func(byte) int{signed, unsigned}},
			"tdpbusd": {probe.MultiplyUnsignedSigned012, [2]func(byte) int{unsigned, signed}},
			"tdpbuud": {probe.MultiplyUnsigned012, [2]func(byte) int{unsigned, unsigned}},
		} {
			for round := range 24 {
				m, n, k := 1+r.IntN(16), 1+r.IntN(16), 1+r.IntN(16)
				if round < 4 {
					m, n, k = 16, 16, 16
				}
				fill := func(count int) []byte {
					x := make([]byte, count)
					for i := range x {
						x[i] = byte(r.Uint32())
						if round%3 == 1 {
							x[i] = [...]byte{0x80, 0x7F, 0xFF, 0}[r.IntN(4)]
						}
					}
					return x
				}
				a, b, c := fill(4*m*k), fill(4*k*n), fill(4*m*n)
				want := slices.Clone(c)
				bytesDefinition(want, a, b, m, n, k, kind.value)
				probe.Configure(shapes(shape{m, 4 * n}, shape{m, 4 * k}, shape{k, 4 * n}))
				probe.Load0(&c[0], 4*n)
				probe.Load1(&a[0], 4*k)
				probe.Load2(&b[0], 4*n)
				kind.multiply()
				got := make([]byte, len(c))
				probe.Store0(&got[0], 4*n)
				require.Equal(t, want, got, "%s, round %d: %d x %d x %d", name, round, m, n, k)
			}
		}
		probe.Release()
	}, "tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud")
}
