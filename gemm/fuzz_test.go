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

// FuzzMultiply compares products of small operands with the reference at every
// level, and
// errors with the contract. Codes and the bits of scales come from data, over
// and over.
func FuzzMultiply(f *testing.F) {
	f.Add(uint8(3), uint8(4), uint8(40), uint8(1), uint8(32), uint8(2), uint8(16), uint8(1), []byte{1, 2, 3, 0x38, 0x40})
	f.Add(uint8(1), uint8(1), uint8(2), uint8(0), uint8(1), uint8(0), uint8(0), uint8(0), []byte{0x3F})
	f.Add(uint8(20), uint8(17), uint8(70), uint8(5), uint8(33), uint8(3), uint8(99), uint8(14), []byte("scaled"))
	f.Add(uint8(2), uint8(2), uint8(64), uint8(0), uint8(0), uint8(0), uint8(16), uint8(5), []byte{0x7C, 0, 0xFC, 0x3C, 0x80, 0x7F, 0})
	f.Fuzz(func(t *testing.T, m, n, k, rowsA, colsA, rowsB, colsB, formats uint8, data []byte) {
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
		a := operand("a", fp8.Format(formats&3), m, rowsA, colsA)
		b := operand("b", fp8.Format(formats>>2&3), n, rowsB, colsB)
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
			err := gemm.Multiply(got, a, b, gemm.Options{Workers: int(formats >> 4)})
			if (err != nil) != wrong {
				t.Fatalf("%v, %s: %v", l, describe(a, b), err)
			}
			if err := differ(got, want); err != nil {
				t.Fatalf("%v, %s: %v", l, describe(a, b), err)
			}
			restore()
		}
	})
}
