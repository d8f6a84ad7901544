package nn

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/rounding"
)

// keptE5M6 is a matrix in E5M6, as [ActivationsDeepSeekV3] says, in tiles of 1x128. Each row
// begins with a byte of its own.
type keptE5M6 struct {
	codes   []byte    // two codes in three bytes
	scales  []float32 // by which codes are multiplied
	rows    int
	cols    int
	workers int
}

const e5m6Tile = 128

var e5m6Lattice = number.Format{Exponent: 5, Mantissa: 6}.Lattice()

// keep keeps values, [rows, cols].
func (k *keptE5M6) keep(values []float32, rows, cols int) {
	k.rows, k.cols = rows, cols
	sized(&k.scales, rows*k.tiles())
	if n := rows * k.rowBytes(); cap(k.codes) < n {
		k.codes = make([]byte, n)
	} else {
		k.codes = k.codes[:n]
	}
	k.eachRow(func(row int) { k.keepRow(row, values[row*cols:][:cols]) })
}

func (k *keptE5M6) tiles() int    { return (k.cols + e5m6Tile - 1) / e5m6Tile }
func (k *keptE5M6) rowBytes() int { return (3*k.cols + 1) / 2 }

func (k *keptE5M6) eachRow(do func(row int)) {
	parallel.For(k.rows, max(elementGrain/max(k.cols, 1), 1), k.workers, func(lo, hi int) {
		for row := lo; row < hi; row++ {
			do(row)
		}
	})
}

func (k *keptE5M6) keepRow(row int, values []float32) {
	var rounded [e5m6Tile]float32
	codes, scales := k.codes[row*k.rowBytes():][:k.rowBytes()], k.scales[row*k.tiles():]
	clear(codes)
	for tile := range k.tiles() {
		first := tile * e5m6Tile
		x := values[first:min(first+e5m6Tile, len(values))]
		amax, _ := fp8.Amax(x)
		s := blockScale(e5m6Lattice.Max, amax, false)
		scales[tile] = s.Stored
		up := fp8.Scale{Stored: 1, Multiplier: s.Multiplier}
		rounding.Nearest(rounded[:len(x)], x, &e5m6Lattice, up)
		for i, v := range rounded[:len(x)] {
			putTwelveBits(codes, first+i, e5m6Code(v))
		}
	}
}

// restore writes the values that were kept to dst.
func (k *keptE5M6) restore(dst []float32) {
	k.eachRow(func(row int) {
		codes, scales := k.codes[row*k.rowBytes():][:k.rowBytes()], k.scales[row*k.tiles():]
		for i := range k.cols {
			dst[row*k.cols+i] = e5m6Value(twelveBits(codes, i)) * scales[i/e5m6Tile]
		}
	})
}

// putTwelveBits sets code i, which must be zero. Codes with even indices are the lower 12 of
// 24 bits.
func putTwelveBits(codes []byte, i int, code uint16) {
	at, shift := i/2*3+i%2, 4*(i%2)
	codes[at] |= byte(code << shift)
	codes[at+1] |= byte(code << shift >> 8)
}

func twelveBits(codes []byte, i int) uint16 {
	at, shift := i/2*3+i%2, 4*(i%2)
	return (uint16(codes[at]) | uint16(codes[at+1])<<8) >> shift & 0xFFF
}

// Where E5M6 lies in a float32: its exponent has another bias, and its mantissa is the upper
// part.
const (
	e5m6Sign     = 1 << 11
	e5m6Infinity = 31 << 6
	e5m6Quiet    = 1 << 5
	e5m6Drop     = 23 - 6
	e5m6Rebias   = (127 - 15) << 6
	e5m6Least    = 0x1p-20 // the smallest number above 0
)

// e5m6Code returns the code of v, which must be a number of the format, Inf or NaN.
func e5m6Code(v float32) uint16 {
	bits := math.Float32bits(v)
	code := uint16(bits >> 31 * e5m6Sign)
	magnitude := math.Float32frombits(bits &^ (1 << 31))
	switch {
	case math.IsNaN(float64(v)):
		return code | e5m6Infinity | e5m6Quiet
	case magnitude > e5m6Lattice.Max:
		return code | e5m6Infinity
	case magnitude < 0x1p-14:
		return code | uint16(magnitude/e5m6Least)
	}
	return code | uint16(bits&^(1<<31)>>e5m6Drop-e5m6Rebias)
}

// e5m6Value returns the number that a code stands for.
func e5m6Value(code uint16) float32 {
	magnitude := uint32(code) &^ e5m6Sign
	value := math.Float32frombits((magnitude + e5m6Rebias) << e5m6Drop)
	switch {
	case magnitude < 1<<6:
		value = float32(magnitude) * e5m6Least
	case magnitude > e5m6Infinity:
		value = float32(math.NaN())
	case magnitude == e5m6Infinity:
		value = float32(math.Inf(1))
	}
	if code&e5m6Sign != 0 {
		value = -value
	}
	return value
}
