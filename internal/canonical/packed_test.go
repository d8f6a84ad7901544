package canonical

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestMultiplyPacked compares products with the definition, of values whose lower halves were
// cut off before.
func TestMultiplyPacked(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	kernelstest.AtLevels(t, multiply.Name(), func(t *testing.T, _ cpu.Level) {
		for _, size := range []struct{ m, n, k int }{
			{1, 1, 1}, {1, 31, 33}, {1, 32, 256}, {2, 33, 257}, {5, 256, 300}, {16, 257, 64}, {3, 545, 511}, {1, 3, 0},
		} {
			name := fmt.Sprint(size)
			a, b := random(r, size.m*size.k, true), random(r, size.n*size.k, true)
			for i, x := range b {
				b[i] = math.Float32frombits(math.Float32bits(x) &^ 0xFFFF)
			}
			w := Pack(b, size.n, size.k, r.IntN(4))
			c := make([]float32, size.m*size.n)
			require.NoError(t, MultiplyPacked(t.Context(), Dense(c, size.n), Dense(a, size.k), w, size.m, 1+r.IntN(3)))
			for i := range size.m {
				for j := range size.n {
					want := definition(a[i*size.k:][:size.k], b[j*size.k:][:size.k])
					if got := c[i*size.n+j]; !same(got, want) {
						t.Fatalf("%s: [%d, %d] is %v, want %v", name, i, j, got, want)
					}
				}
			}
		}
	})
}

// TestPackRounds: to nearest even, unless all are bfloat16s.
func TestPackRounds(t *testing.T) {
	const n, k = 300, 270
	for _, c := range []struct {
		bits, want uint32
		exact      bool
	}{
		{0x3F800000, 0x3F800000, true}, {0x3F808000, 0x3F800000, false}, {0x3F818000, 0x3F820000, false},
		{0x3F808001, 0x3F810000, false}, {0x80000001, 0x80000000, false}, {0xFF800000, 0xFF800000, true},
	} {
		for _, at := range []int{0, 255*k + 7, 256*k + 269, n*k - 1} {
			b := make([]float32, n*k)
			b[at] = math.Float32frombits(c.bits)
			require.Equal(t, c.exact, AllBFloat16(b))
			w := Pack(b, n, k, 0)
			rows := make([]float32, n*k)
			w.unpack(rows, 0, w.n)
			b[at] = math.Float32frombits(c.want)
			require.Equal(t, b, rows)
			require.Equal(t, math.Float32bits(b[at]), math.Float32bits(rows[at]))
		}
	}
}
