//go:build linux && amd64 && !purego

package amxemu

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRound has sums of a product of two bfloat16 and a float32 about where they
// round, become subnormal or overflow.
func TestRound(t *testing.T) {
	check := func(x, y, z float32) {
		t.Helper()
		want, got := fused(x, y, z), round(normal(x)*normal(y)+normal(z))
		if math.Float32bits(got) != math.Float32bits(want) && !(want != want && got != got) {
			t.Fatalf("%x * %x + %x: %x, want %x", x, y, z, got, want)
		}
	}
	negative := float32(math.Copysign(0, -1))
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, v := range [][3]float32{
		{0, negative, 0}, {0, negative, negative}, {negative, negative, negative}, {1, negative, negative},
		{inf, 1, -inf}, {inf, 0, 1}, {nan, 0, 0}, {inf, -1, 1}, {inf, 0x1p-130, 1}, // what is subnormal counts as zero
		{0x1p-130, 0x1p100, 1}, {1, 1, 0x1p-130}, {1, -0x1p-130, negative}, {-1, 1, 1},
		{0x1p64, 0x1p64, 0}, {0x1.FEp63, 0x1p64, 0x1p103}, {0x1.FEp127, 1, 0x1p119}, {0x1.FEp127, 1, 0x1.FFFFFEp118},
		{0x1p-63, 0x1p-63, 0}, {-0x1p-64, 0x1p-63, 0}, {0x1p-63, 0x1p-63, -0x1p-126},
		{0x1.01p-64, 0x1.01p-64, 0x1p-126}, {-0x1p-75, 0x1p-76, 0x1p-126}, {-0x1p-75, 0x1p-75, 0x1p-126}, {-0x1.02p-76, 0x1p-75, 0x1p-126},
		{-0x1p-76, 0x1p-76, 0x1p-126}, {0x1p-75, 0x1p-76, -0x1p-126}, {0x1p-75, 0x1p-75, -0x1p-126},
	} {
		check(v[0], v[1], v[2])
	}
	require.Equal(t, float32(0x1p-126), round(0x1p-126*(1-0x1p-25)))
	require.Equal(t, float32(0), round(0x1p-126*(1-0x1p-24)))
	r := rand.New(rand.NewPCG(5, 6))
	n := 200000
	if testing.Short() {
		n /= 10
	}
	for i := range n {
		v := bfloats(r, 2, i%4)
		x := math.Float32frombits(uint32(binary.LittleEndian.Uint16(v)) << 16)
		y := math.Float32frombits(uint32(binary.LittleEndian.Uint16(v[2:])) << 16)
		_, exponent := math.Frexp(float64(x) * float64(y))
		check(x, y, float32(math.Ldexp(1-2*r.Float64(), exponent+r.IntN(60)-30)))
		check(x, y, -float32(float64(x)*float64(y))*(1+float32(r.IntN(3)-1)*0x1p-23))
	}
}

// TestRest has what a shape leaves out of a tile: no instruction shows it.
func TestRest(t *testing.T) {
	var s tiles
	dirty := func() {
		for i := range s.data {
			for j := range s.data[i] {
				for k := range s.data[i][j] {
					s.data[i][j][k] = 1
				}
			}
		}
	}
	zeroOutside := func(tile int) {
		t.Helper()
		for i, row := range s.data[tile] {
			for j, b := range row {
				require.True(t, b == 0 || i < s.shapes[tile].rows && j < s.shapes[tile].colsb, "row %d, byte %d", i, j)
			}
		}
	}
	require.True(t, s.configure(shapes(shape{3, 8}, shape{3, 12}, shape{3, 8})))
	dirty()
	s.load(0, make([]byte, 24))
	zeroOutside(0)
	dirty()
	s.multiply(0, 1, 2)
	zeroOutside(0)
	dirty()
	late := *full
	late[1] = 1 // the start row
	require.True(t, s.configure(&late))
	require.Equal(t, tiles{}, s)
}
