// Package dotstest has the micro-kernels of level avx512bf16 with the instruction in plain Go: with
// them machines that lack it test the rest.
package dotstest

import (
	"math"
	"slices"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// Kernels are micro-kernels with dot products of bfloat16 whose instruction is plain Go.
var Kernels = microkernel.Kernels{
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
		QuadRows: func(values *float32, n int) { quads(values, n, placeInRow) },
		QuadPanel: func(values *float32, n int) {
			quads(values, n, func(i int) int { return placeInPanel(i/microkernel.PanelWidth, i%microkernel.PanelWidth) })
		},
	},
}

// quads puts the upper halves of n values to the places of halves.
func quads(values *float32, n int, place func(i int) int) {
	all := slices.Clone(unsafe.Slice(values, n))
	halves := unsafe.Slice((*uint16)(unsafe.Pointer(values)), n)
	for i, x := range all {
		halves[place(i)] = uint16(math.Float32bits(x) >> 16)
	}
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

// dot is one lane of VDPBF16PS: two fused multiply-adds, the upper halves first. A product of
// bfloat16s is exact in float64, and its sum with a float32 is not near the middle of two.
func dot(sum float32, a, b uint32) float32 {
	for _, half := range []uint32{0, 16} {
		x, y := math.Float32frombits(a<<half&0xFFFF0000), math.Float32frombits(b<<half&0xFFFF0000)
		sum = flush(float32(float64(flush(x))*float64(flush(y)) + float64(sum)))
	}
	return sum
}

// flush makes a zero of a denormal.
func flush(x float32) float32 {
	if math.Abs(float64(x)) < 0x1p-126 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
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
				before := *c
				if block == 0 && t.Flags&microkernel.Zero != 0 {
					before = 0
				}
				*c = canonical.FMA(scaled, scale, before)
			}
			if t.Flags&microkernel.Canonical != 0 && *c != *c {
				*c = math.Float32frombits(0x7FC00000)
			}
		}
	}
}
