package gemm

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/tensor"
)

// emulated are micro-kernels with dot products of bfloat16 whose instruction is plain Go: so
// machines that lack it test the rest.
var emulated = &microkernel.Kernels{
	MR: 4, NR: microkernel.PanelWidth, FewRows: 8,
	Multiply:    func(t *microkernel.Task) { emulateDots(t, 4, microkernel.PanelWidth) },
	MultiplyFew: func(t *microkernel.Task) { emulateDots(t, 8, microkernel.FewWidth) },
	Dots: &microkernel.Dots{
		PackRows: func(dst *uint16, dstStride int, codes *byte, stride, rows, n int, table *microkernel.BFloat16Table) {
			for i := range rows {
				for k := range n {
					*at(dst, i*dstStride/2+placeInRow(k)) = valueOf(table, *at(codes, i*stride+k))
				}
			}
		},
		PackPanel: func(dst *uint16, codes *byte, n int, table *microkernel.BFloat16Table) {
			for i := range n * microkernel.PanelWidth {
				*at(dst, placeInPanel(i/microkernel.PanelWidth, i%microkernel.PanelWidth)) = valueOf(table, *at(codes, i))
			}
		},
	},
}

// at is what lies so many values behind the one at p.
func at[T any](p *T, i int) *T { return (*T)(unsafe.Add(unsafe.Pointer(p), i*int(unsafe.Sizeof(*p)))) }

// placeInRow is where k is among the bfloat16 of a row: of each four the third and first come
// before the fourth and second.
func placeInRow(k int) int { return k&^3 + [4]int{1, 3, 0, 2}[k&3] }

// placeInPanel is where k of a column is in a panel of 32.
func placeInPanel(k, column int) int { return k&^3*32 + k%2*64 + 2*column + 1 - k&2/2 }

func valueOf(t *microkernel.BFloat16Table, code byte) uint16 {
	if code == 0x80 {
		return uint16(t.SpecialHigh)<<8 | uint16(t.SpecialLow)
	}
	return uint16(t.High[code&0x7F]|code&t.Sign)<<8 | uint16(t.Low[code&0x7F])
}

// dot is one lane of VDPBF16PS.
func dot(sum float32, a, b uint32) float32 {
	for _, half := range []uint32{0, 16} {
		x, y := math.Float32frombits(a<<half&0xFFFF0000), math.Float32frombits(b<<half&0xFFFF0000)
		sum += float32(x * y)
	}
	return sum
}

// emulateDots does a task of register blocks of so many rows and columns.
func emulateDots(t *microkernel.Task, rows, columns int) {
	word := func(p *float32, i int) uint32 { return math.Float32bits(*at(p, i)) }
	for i := range rows * t.RowBlocks {
		for j := range columns {
			c := at(t.C, i*t.StrideC/4+j)
			for block := range t.Blocks {
				sum := float32(0)
				if t.Flags&microkernel.First == 0 {
					sum = *at(t.P, i*t.StrideC/4+j)
				}
				for quad := 0; quad < t.Pairs; quad += 8 {
					var chains [2]float32
					for q := quad; q < min(quad+8, t.Pairs); q++ {
						k := block*t.Pairs + q
						for chain := range chains {
							a := word(t.A, i*t.StrideA/4+2*k+chain)
							chains[chain] = dot(chains[chain], a, word(t.B, 64*k+32*chain+j))
						}
					}
					sum += chains[0] + chains[1]
				}
				if t.Flags&microkernel.Last == 0 {
					*at(t.P, i*t.StrideC/4+j) = sum
					continue
				}
				scaled := sum * *at(t.ScaleA, i*t.StrideScaleA/4+block)
				scale := *at(t.ScaleB, block*microkernel.PanelWidth+j)
				if columns == microkernel.FewWidth { // A and B are exchanged, and A's scales are first
					scaled, scale = sum*scale, *at(t.ScaleA, i*t.StrideScaleA/4+block)
				}
				*c = float32(math.FMA(float64(scaled), float64(scale), float64(*c)))
			}
			if t.Flags&microkernel.Canonical != 0 && *c != *c {
				*c = math.Float32frombits(0x7FC00000)
			}
		}
	}
}

// TestDots compares products whose instruction is emulated with plain Go: every format, blocks
// that are no quads, few rows and many, weights in rows and packed.
func TestDots(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	operand := func(rows, depth, block int, f fp8.Format) *tensor.Tensor {
		x := &tensor.Tensor{Format: f, Shape: []int{rows, depth}, Block: tensor.Block{Rows: 1, Cols: block}}
		for range rows * depth {
			code := byte(r.Uint32())
			for f.Bits() == 8 && r.IntN(50) > 0 && (f.IsNaN(code) || f.IsInf(code, 0)) {
				code = byte(r.Uint32())
			}
			x.Codes = append(x.Codes, code&byte(1<<f.Bits()-1))
		}
		for range rows * ceilDiv(depth, block) {
			x.Scales = append(x.Scales, float32(r.ExpFloat64()))
		}
		return x
	}
	kinds := map[reflect.Type]bool{}
	for i, s := range []struct{ m, n, k, block int }{
		{9, 45, 150, 64}, {5, 33, 131, 33}, {37, 70, 600, 600}, {16, 140, 900, 128}, {31, 130, 1030, 1030}, {4, 40, 66, 2},
		{16, 128, 34, 34}, {64, 64, 257, 16}, {1, 31, 40, 8}, {13, 200, 4200, 4200}, {6, 6, 3, 3},
	} {
		for _, f := range fp8.Formats() {
			if f == fp8.MXINT8 {
				continue
			}
			a, b := operand(s.m, s.k, s.block, fp8.Formats()[(i+int(f))%len(fp8.Formats())]), operand(s.n, s.k, s.block, f)
			if a.Format == fp8.MXINT8 {
				continue
			}
			p, err := newProduct(a, b)
			require.NoError(t, err)
			w, err := Pack(b)
			require.NoError(t, err)
			packed, err := newProduct(a, w)
			require.NoError(t, err)
			want := make([]float32, s.m*s.n)
			computeWith(t, want, p, genericBackend{})
			for _, p := range []product{p, packed} {
				got, backend := make([]float32, s.m*s.n), p.chooseVectors(vectorBackend{emulated})
				kinds[reflect.TypeOf(backend)] = true
				computeWith(t, got, p, backend)
				for j := range want {
					require.Equal(t, math.Float32bits(want[j]), math.Float32bits(got[j]), "%+v, %v with %v, packed %t: element %d: %v, want %v", s, a.Format, f, p.b.packed, j, got[j], want[j])
				}
			}
		}
	}
	require.Len(t, kinds, 2, "few rows and many")
}

// computeWith computes a product with a backend.
func computeWith(t *testing.T, c []float32, p product, b backend) {
	t.Helper()
	r := newRun()
	r.add(p, 0)
	r.parts[0].backend = b
	r.out = newResult(c, Options{})
	require.NoError(t, r.compute(t.Context(), Options{Workers: 2}))
}
