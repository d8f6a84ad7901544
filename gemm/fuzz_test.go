package gemm_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/tensor"
)

// seed is m, n, k, the blocks of a and b, formats and workers, and kinds of scales, and
// what codes and the bits of scales are, over and over.
type seed struct {
	numbers [9]uint8
	data    []byte
}

var seeds = []seed{
	{[9]uint8{3, 4, 40, 1, 32, 2, 16, 1}, []byte{1, 2, 3, 0x38, 0x40}},
	{[9]uint8{1, 1, 2, 0, 1, 0, 0, 0}, []byte{0x3F}},
	{[9]uint8{20, 17, 70, 5, 33, 3, 99, 134}, []byte("scaled")},
	{[9]uint8{2, 2, 64, 0, 0, 0, 16, 12}, []byte{0x7C, 0, 0xFC, 0x3C, 0x80, 0x7F, 0}},
	{[9]uint8{33, 40, 150, 1, 48, 2, 96, 35}, []byte{0x3D, 0x7E, 0x01, 0x02, 0x30, 0x09, 0x77}},
	{[9]uint8{9, 33, 77, 1, 32, 1, 32, 4 + 11*4, 1 + 3*1}, []byte("mxfp4, with scales of two")},
	{[9]uint8{1, 40, 144, 1, 16, 1, 16, 4 + 11*4, 2 + 3*2 + 9*3}, []byte("nvfp4: scales of 8 bits, outer ones")},
	{[9]uint8{17, 31, 64, 1, 32, 1, 16, 10 + 11*5, 1 + 3*2 + 9*1}, []byte{0x80, 0x7F, 0xFF, 0x3C, 0x01, 0x81, 0x40}},
}

// FuzzMultiply compares products of small operands with the reference at every
// level, and errors with the contract.
func FuzzMultiply(f *testing.F) {
	for _, s := range seeds {
		n := s.numbers
		f.Add(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], s.data)
	}
	f.Fuzz(func(t *testing.T, m, n, k, rowsA, colsA, rowsB, colsB, formats, scales uint8, data []byte) {
		testSeed(t, seed{[9]uint8{m, n, k, rowsA, colsA, rowsB, colsB, formats, scales}, data})
	})
}

func testSeeds(t *testing.T) {
	for _, s := range seeds {
		testSeed(t, s)
	}
}

func testSeed(t *testing.T, s seed) {
	m, n, k, formats, scales, data := s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[7], s.numbers[8], s.data
	if m > 40 || n > 40 || k > 150 || len(data) == 0 {
		return
	}
	next := 0
	draw := func() byte {
		next++
		return data[next%len(data)]
	}
	operand := func(name string, f, scaleFormat uint8, outer bool, rows, blockRows, blockCols uint8) *tensor.Tensor {
		x := &tensor.Tensor{Name: name, Format: fp8.Formats()[int(f)%len(fp8.Formats())], Shape: []int{int(rows), int(k)},
			Block: tensor.Block{Rows: int(blockRows), Cols: int(blockCols)}, ScaleFormat: tensor.ScaleFormat(scaleFormat % 3)}
		if outer {
			x.Outer = tensor.Outer{Scales: []float32{float32(draw()) + 0.25}, Divide: draw()&1 == 0}
		}
		for range x.Len() {
			x.Codes = append(x.Codes, draw())
		}
		gridRows, gridCols := x.Grid()
		for range gridRows * gridCols {
			b := []byte{draw(), draw(), draw(), draw()}
			switch x.ScaleFormat {
			case tensor.Float32Scales:
				x.Scales = append(x.Scales, math.Float32frombits(binary.LittleEndian.Uint32(b)))
			case tensor.E8M0Scales:
				x.Scales = append(x.Scales, fp8.E8M0(b[0]).Float32())
			case tensor.UE4M3Scales:
				x.Scales = append(x.Scales, fp8.E4M3.Float32(b[0]&0x7F))
			}
		}
		return x
	}
	a := operand("a", formats, scales, scales/9&1 != 0, m, s.numbers[3], s.numbers[4])
	b := operand("b", formats/11, scales/3, scales/9&2 != 0, n, s.numbers[5], s.numbers[6])
	wrong := !allowed(a.Block, b.Block, int(k))
	for _, x := range []*tensor.Tensor{a, b} {
		for _, s := range x.Scales {
			wrong = wrong || x.ScaleFormat == tensor.Float32Scales && (s != s || s > math.MaxFloat32 || math.Signbit(float64(s)))
		}
	}
	want := make([]float32, int(m)*int(n))
	if !wrong {
		want = reference(a, b)
	}
	for _, l := range cpu.Levels() {
		restore := force(t, l)
		got := make([]float32, len(want))
		err := gemm.Multiply(t.Context(), got, a, b, gemm.Options{Workers: int(formats / 121)})
		if (err != nil) != wrong {
			t.Fatalf("%v, %s: %v", l, describe(a, b), err)
		}
		if err := differ(got, want); err != nil {
			t.Fatalf("%v, %s: %v", l, describe(a, b), err)
		}
		if !wrong {
			w, err := gemm.Pack(b)
			if err == nil {
				clear(got)
				err = gemm.Multiply(t.Context(), got, a, w, gemm.Options{})
			}
			if err == nil {
				err = differ(got, want)
			}
			if err != nil {
				t.Fatalf("%v, packed: %s: %v", l, describe(a, b), err)
			}
		}
		restore()
	}
}
