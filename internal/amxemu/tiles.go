//go:build linux && amd64

package amxemu

import (
	"encoding/binary"
	"math"
)

// Palette 1.
const (
	names       = 8
	maxRows     = 16
	bytesPerRow = 64
)

// tiles is the AMX state of a thread. The zero value is the initial state.
type tiles struct {
	shapes [names]shape
	data   [names][maxRows][bytesPerRow]byte
}

// shape is the size of a tile; both are 0 if it is not configured.
type shape struct{ rows, colsb int }

// config is the operand of LDTILECFG.
type config struct {
	Palette, StartRow uint8
	_                 [14]uint8
	ColsB             [16]uint16
	Rows              [16]uint8
}

// configure is LDTILECFG. It reports false, and changes nothing, where that
// faults.
func (s *tiles) configure(operand *[64]byte) bool {
	var c config
	if _, err := binary.Decode(operand[:], binary.LittleEndian, &c); err != nil {
		return false
	}
	var fresh tiles
	if c.Palette == 0 {
		*s = fresh
		return true
	}
	ok := c.Palette == 1
	for _, b := range operand[2:16] {
		ok = ok && b == 0
	}
	for i := range c.Rows {
		rows, colsb := int(c.Rows[i]), int(c.ColsB[i])
		ok = ok && rows <= maxRows && colsb <= bytesPerRow && (rows == 0) == (colsb == 0)
		if i >= names {
			ok = ok && rows == 0
		} else if c.StartRow == 0 {
			fresh.shapes[i] = shape{rows, colsb}
		}
	}
	if ok {
		*s = fresh
	}
	return ok
}

func (s *tiles) configured(tile int) bool { return s.shapes[tile].rows > 0 }

func (s *tiles) zero(tile int) { s.data[tile] = [maxRows][bytesPerRow]byte{} }

// load fills a tile with rows that lie one behind the other; what its shape leaves
// out becomes zero.
func (s *tiles) load(tile int, rows []byte) {
	s.zero(tile)
	for i := range s.shapes[tile].rows {
		rows = rows[copy(s.data[tile][i][:s.shapes[tile].colsb], rows):]
	}
}

// store is the reverse of load.
func (s *tiles) store(tile int) (rows []byte) {
	for i := range s.shapes[tile].rows {
		rows = append(rows, s.data[tile][i][:s.shapes[tile].colsb]...)
	}
	return rows
}

// multiplies reports whether products take tiles of these shapes.
func (s *tiles) multiplies(c, a, b int) bool {
	sc, sa, sb := s.shapes[c], s.shapes[a], s.shapes[b]
	return s.configured(c) && sc.colsb%4 == 0 && sa.colsb%4 == 0 &&
		sa.rows == sc.rows && sb.colsb == sc.colsb && sb.rows == sa.colsb/4
}

// multiply is TDPBF16PS: to each float32 of c it adds the products of a row of a
// with a column of b, which are pairs of bfloat16. The sums of the first and of
// the second of each pair are added in order, each product with one rounding; the
// two are added to each other, and the result to c.
func (s *tiles) multiply(c, a, b int) {
	pairs, columns := s.shapes[a].colsb/4, s.shapes[c].colsb/4
	var wide [maxRows][bytesPerRow / 2]float64
	for k := range pairs {
		widen(&wide[k], &s.data[b][k])
	}
	for m := range maxRows {
		row := &s.data[c][m]
		if m >= s.shapes[c].rows {
			*row = [bytesPerRow]byte{}
			continue
		}
		var x [bytesPerRow / 2]float64
		widen(&x, &s.data[a][m])
		var even, odd [bytesPerRow / 4]float32
		for k := range pairs {
			for n := range columns {
				even[n] = round(x[2*k]*wide[k][2*n] + float64(even[n]))
				odd[n] = round(x[2*k+1]*wide[k][2*n+1] + float64(odd[n]))
			}
		}
		for n := range columns {
			old := math.Float32frombits(binary.LittleEndian.Uint32(row[4*n:]))
			sum := round(normal(old) + float64(round(float64(even[n])+float64(odd[n]))))
			binary.LittleEndian.PutUint32(row[4*n:], math.Float32bits(sum))
		}
		clear(row[4*columns:])
	}
}

// bytesSigned is whether products of bytes take those of a, and of b, for signed.
var bytesSigned = map[string][2]bool{
	"tdpbssd": {true, true}, "tdpbsud": {true, false}, "tdpbusd": {false, true}, "tdpbuud": {false, false},
}

// multiplyBytes is TDPBSSD and its siblings: to each integer of 32 bits of c it adds the
// products of a row of a with a column of b, which are groups of four bytes. Sums wrap
// around.
func (s *tiles) multiplyBytes(c, a, b int, signed [2]bool) {
	groups, columns := s.shapes[a].colsb/4, s.shapes[c].colsb/4
	wide := func(x byte, signed bool) uint32 {
		if signed {
			return uint32(int8(x))
		}
		return uint32(x)
	}
	for m := range maxRows {
		row := &s.data[c][m]
		if m >= s.shapes[c].rows {
			*row = [bytesPerRow]byte{}
			continue
		}
		for n := range columns {
			sum := binary.LittleEndian.Uint32(row[4*n:])
			for k := range 4 * groups {
				sum += wide(s.data[a][m][k], signed[0]) * wide(s.data[b][k/4][4*n+k%4], signed[1])
			}
			binary.LittleEndian.PutUint32(row[4*n:], sum)
		}
		clear(row[4*columns:])
	}
}

// widen reads bfloat16.
func widen(dst *[bytesPerRow / 2]float64, src *[bytesPerRow]byte) {
	for i := range dst {
		dst[i] = normal(math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16))
	}
}

const smallest = 0x1p-126 // of the normal values of float32

// normal returns x, or the zero of its sign if it is subnormal.
func normal(x float32) float64 {
	if w := float64(x); math.Abs(w) >= smallest || x != x {
		return w
	}
	return math.Copysign(0, float64(x))
}

// round rounds once to float32: x is a sum of which at most one term was a product
// of two bfloat16, so what float64 drops of it is too small to matter.
func round(x float64) float32 {
	if math.Abs(x) <= smallest {
		return roundSmall(x)
	}
	return float32(x)
}

// roundSmall makes zero what would be subnormal with an unlimited exponent.
func roundSmall(x float64) float32 {
	if math.Abs(float64(float32(x*0x1p64))) < smallest*0x1p64 {
		return float32(math.Copysign(0, x))
	}
	return float32(x)
}
