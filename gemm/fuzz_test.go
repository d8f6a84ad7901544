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

// seed is m, n, k, the blocks of a and b, and formats and workers, and what codes and
// the bits of scales are, over and over.
type seed struct {
	numbers [8]uint8
	data    []byte
}

var seeds = []seed{
	{[8]uint8{3, 4, 40, 1, 32, 2, 16, 1}, []byte{1, 2, 3, 0x38, 0x40}},
	{[8]uint8{1, 1, 2, 0, 1, 0, 0, 0}, []byte{0x3F}},
	{[8]uint8{20, 17, 70, 5, 33, 3, 99, 14}, []byte("scaled")},
	{[8]uint8{2, 2, 64, 0, 0, 0, 16, 5}, []byte{0x7C, 0, 0xFC, 0x3C, 0x80, 0x7F, 0}},
	{[8]uint8{33, 40, 150, 1, 48, 2, 96, 47}, []byte{0x3D, 0x7E, 0x01, 0x02, 0x30, 0x09, 0x77}},
}

// FuzzMultiply compares products of small operands with the reference at every
// level, and errors with the contract.
func FuzzMultiply(f *testing.F) {
	for _, s := range seeds {
		n := s.numbers
		f.Add(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], s.data)
	}
	f.Fuzz(func(t *testing.T, m, n, k, rowsA, colsA, rowsB, colsB, formats uint8, data []byte) {
		testSeed(t, seed{[8]uint8{m, n, k, rowsA, colsA, rowsB, colsB, formats}, data})
	})
}

func testSeeds(t *testing.T) {
	for _, s := range seeds {
		testSeed(t, s)
	}
}

func testSeed(t *testing.T, s seed) {
	m, n, k, formats, data := s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[7], s.data
	if m > 40 || n > 40 || k > 150 || len(data) == 0 {
		return
	}
	next := 0
	draw := func() byte {
		next++
		return data[next%len(data)]
	}
	operand := func(name string, f fp8.Format, rows, blockRows, blockCols uint8) *tensor.Tensor {
		x := &tensor.Tensor{Name: name, Format: f, Shape: []int{int(rows), int(k)},
			Block: tensor.Block{Rows: int(blockRows), Cols: int(blockCols)}}
		for range x.Len() {
			x.Codes = append(x.Codes, draw())
		}
		gridRows, gridCols := x.Grid()
		for range gridRows * gridCols {
			b := []byte{draw(), draw(), draw(), draw()}
			x.Scales = append(x.Scales, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		return x
	}
	a := operand("a", fp8.Format(formats&3), m, s.numbers[3], s.numbers[4])
	b := operand("b", fp8.Format(formats>>2&3), n, s.numbers[5], s.numbers[6])
	wrong := !allowed(a.Block, b.Block, int(k))
	for _, s := range append(append([]float32{}, a.Scales...), b.Scales...) {
		wrong = wrong || s != s || s > math.MaxFloat32 || math.Signbit(float64(s))
	}
	want := make([]float32, int(m)*int(n))
	if !wrong {
		want = reference(a, b)
	}
	for _, l := range cpu.Levels() {
		restore := force(t, l)
		got := make([]float32, len(want))
		err := gemm.Multiply(t.Context(), got, a, b, gemm.Options{Workers: int(formats >> 4)})
		if (err != nil) != wrong {
			t.Fatalf("%v, %s: %v", l, describe(a, b), err)
		}
		if err := differ(got, want); err != nil {
			t.Fatalf("%v, %s: %v", l, describe(a, b), err)
		}
		restore()
	}
}
