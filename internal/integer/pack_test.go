package integer

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// forLevels runs a test in plain Go and at the levels that an operation has kernels for.
func forLevels(t *testing.T, name string, test func(t *testing.T)) {
	kernelstest.At(t, cpu.Generic, test)
	kernelstest.Compare(t, "integer."+name, func(t *testing.T, _ cpu.Level) { test(t) })
}

func TestLookup(t *testing.T) {
	functions := map[string]func(byte) byte{
		"nibbles": func(c byte) byte { return 7*(c&15) + 3 },
		"narrow":  func(c byte) byte { return 5*(c&63) ^ 0xA7 },
		"linear":  func(c byte) byte { return c ^ 0x80 },
		"other":   func(c byte) byte { return c * c },
	}
	forLevels(t, "Lookup", func(t *testing.T) {
		for name, f := range functions {
			table := NewTable(f)
			for n := range 200 {
				codes, dst := guarded[byte](t, n), guarded[byte](t, n)
				for i := range codes {
					codes[i] = byte(i*83 + n)
				}
				table.Lookup(dst, codes)
				for i, c := range codes {
					require.Equal(t, f(c), dst[i], "%s: %d of %d", name, i, n)
				}
				before := append([]byte{}, dst...)
				table.Lookup(codes, codes)
				require.Equal(t, before, append([]byte{}, codes...))
			}
		}
		for c := range byte(16) {
			require.Equal(t, functions["nibbles"](c), NewTable(functions["nibbles"]).Nibbles()[c])
		}
	})
}

func TestPackQuads(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 16))
	forLevels(t, "PackQuads", func(t *testing.T) {
		for _, n := range []int{1, 3, 4, 5, 31, 32, 33, 63, 64, 65, 100, 128, 130} {
			for _, rows := range []int{1, 2, 7, 8, 9, 16, 17, 24, 31, 32} {
				stride := n + r.IntN(3)
				src := guarded[byte](t, (rows-1)*stride+n)
				dst := guarded[byte](t, (n+Quad-1)/Quad*Quad*PanelWidth)
				for i := range src {
					src[i] = byte(1 + r.IntN(255))
				}
				PackQuads(dst, src, stride, rows, n)
				for i, got := range dst {
					k, j := i/(Quad*PanelWidth)*Quad+i%Quad, i/Quad%PanelWidth
					want := byte(0)
					if k < n && j < rows {
						want = src[j*stride+k]
					}
					if got != want {
						t.Fatalf("%d rows of %d, k %d, column %d: %02x, want %02x", rows, n, k, j, got, want)
					}
				}
			}
		}
	})
}

func TestNibbles(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 16))
	forLevels(t, "SplitNibbles", func(t *testing.T) {
		for octets := range 9 {
			codes := make([]byte, octets*Octet*PanelWidth)
			for i := range codes {
				codes[i] = byte(r.IntN(16))
			}
			nibbles, back := guarded[byte](t, len(codes)/2), guarded[byte](t, len(codes))
			PackNibbles(nibbles, codes)
			for i, c := range codes {
				k, j := i/(Quad*PanelWidth)*Quad+i%Quad, i/Quad%PanelWidth
				got := nibbles[k/Octet*Quad*PanelWidth+Quad*j+k%Quad] >> (k % Octet / Quad * 4) & 15
				require.Equal(t, c, got, "k %d, column %d", k, j)
			}
			SplitNibbles(back, nibbles)
			require.Equal(t, codes, append([]byte{}, back...))
		}
	})
}

func TestSum(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 16))
	for n := range 100 {
		values, want := make([]int8, n), 0
		for i := range values {
			values[i] = int8(r.IntN(256) - 128)
			want += int(values[i])
		}
		require.Equal(t, want, Sum(values))
	}
}

func TestStarts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 17))
	forLevels(t, "Starts", func(t *testing.T) {
		for _, rows := range []int{1, 6, 7, 8, 9, 12, 16, 18, 24} {
			for _, shape := range []struct{ blocks, n int }{{1, 8}, {1, 512}, {2, 16}, {7, 24}, {3, 32}, {16, 8}, {3, 0}, {2, 5}, {4, 12}} {
				start, bias := int32(r.Uint32()), int32(r.IntN(256))
				used := shape.blocks * shape.n
				stride := used + r.IntN(9)
				values, dst := guarded[int8](t, (rows-1)*stride+used), guarded[int32](t, shape.blocks*rows)
				for i := range values {
					values[i] = int8(r.IntN(256) - 128)
				}
				Starts(dst, values, stride, rows, shape.blocks, shape.n, start, bias)
				for at, got := range dst {
					b, i, want := at/rows, at%rows, int64(start)
					for k := range shape.n {
						want -= int64(bias) * int64(values[i*stride+b*shape.n+k])
					}
					require.Equal(t, int32(want), got, "%d rows, %v, block %d of row %d", rows, shape, b, i)
				}
			}
		}
		require.Panics(t, func() { Starts(make([]int32, 15), make([]int8, 128), 16, 8, 2, 8, 0, 0) })
		require.Panics(t, func() { Starts(make([]int32, 16), make([]int8, 127), 16, 8, 2, 8, 0, 0) })
	})
}

func TestColumns(t *testing.T) {
	forLevels(t, "Columns", func(t *testing.T) {
		for quads := range 9 {
			panel, dst := guarded[byte](t, quads*Quad*PanelWidth), guarded[byte](t, quads*Quad*PanelWidth)
			for i := range panel {
				panel[i] = byte(i*151 + i>>8)
			}
			Columns(dst, panel)
			for i, got := range dst {
				k, j := i/PanelWidth, i%PanelWidth
				require.Equal(t, panel[k/Quad*Quad*PanelWidth+Quad*j+k%Quad], got, "k %d, column %d", k, j)
			}
		}
	})
}

func TestPowers(t *testing.T) {
	forLevels(t, "Powers", func(t *testing.T) {
		for _, n := range []int{0, 1, 7, 8, 9, 250, 256} {
			codes, dst := guarded[byte](t, n), guarded[float32](t, n)
			for i := range codes {
				codes[i] = byte(i + 256 - n)
			}
			Powers(dst, codes)
			for i, c := range codes {
				want := math.Float32bits(float32(math.Ldexp(1, int(c)-127)))
				if c == 0xFF {
					want = 0x7FC00000
				}
				require.Equal(t, want, math.Float32bits(dst[i]), "%02x", c)
			}
		}
	})
}

func TestMultiplyOuter(t *testing.T) {
	special := []float32{0, 1, float32(math.Inf(1)), float32(math.NaN()), math.MaxFloat32, math.SmallestNonzeroFloat32, -3}
	forLevels(t, "MultiplyOuter", func(t *testing.T) {
		r := rand.New(rand.NewPCG(6, 16))
		draw := func() float32 {
			if r.IntN(6) == 0 {
				return special[r.IntN(len(special))]
			}
			return float32(math.Ldexp(1+r.Float64(), r.IntN(60)-30))
		}
		for n := range 6 {
			stride := PanelWidth + r.IntN(4)
			rows, columns := guarded[float32](t, n), (*[PanelWidth]float32)(guarded[float32](t, PanelWidth))
			c := guarded[float32](t, max(0, (n-1)*stride+PanelWidth))
			for _, s := range [][]float32{rows, columns[:], c} {
				for i := range s {
					s[i] = draw()
				}
			}
			want := append([]float32{}, c...)
			for i := range n {
				for j := range PanelWidth {
					alpha := float32(float64(rows[i]) * float64(columns[j]))
					x := float32(float64(want[i*stride+j]) * float64(alpha))
					if want[i*stride+j] = x; x != x {
						want[i*stride+j] = math.Float32frombits(0x7FC00000)
					}
				}
			}
			if n == 0 {
				c = nil
			}
			MultiplyOuter(c, stride, rows, columns)
			compare(t, "outer", c, want[:len(c)], false)
			for i := range c {
				if j := i % stride; j < PanelWidth && c[i] != c[i] {
					require.Equal(t, uint32(0x7FC00000), math.Float32bits(c[i]))
				}
			}
		}
	})
	require.Panics(t, func() {
		MultiplyOuter(make([]float32, PanelWidth), PanelWidth, make([]float32, 2), new([PanelWidth]float32))
	})
}
