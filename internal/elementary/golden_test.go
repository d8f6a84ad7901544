package elementary

import (
	"hash/fnv"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGoldenBits pins results that were computed on amd64: every other machine
// must have the same.
func TestGoldenBits(t *testing.T) {
	for _, test := range []struct {
		name string
		f    func(float32) float32
		x    float32
		want uint32
	}{
		{"Exp", Exp, 1, 0x402DF854},
		{"Exp", Exp, -0.1, 0x3F67A36D},
		{"Exp", Exp, 88.5, 0x7F4CDCC4},
		{"Exp", Exp, -95.3, 0x00000B67},
		{"Exp2", Exp2, 0.5, 0x3FB504F3},
		{"Exp2", Exp2, -1.3, 0x3ECFEFC6},
		{"Exp2", Exp2, -140.7, 0x0000013B},
		{"Log2", Log2, 10, 0x40549A78},
		{"Log2", Log2, 0.99, 0xBC6D8F8B},
		{"Log", Log, 2, 0x3F317218},
		{"Log", Log, 0.99, 0xBC24AA20},
		{"Log", Log, 1e-41, 0xC2BCCFE2},
		{"Sigmoid", Sigmoid, -3.7, 0x3CC5A607},
		{"SiLU", SiLU, -1.3, 0xBE8E8C59},
		{"SiLU", SiLU, 7.1, 0x40E3033F},
		{"SiLUGrad", SiLUGrad, -1.25, 0x3BCF10EA},
		{"SiLUGrad", SiLUGrad, 0.4, 0x3F31DDE3},
	} {
		require.Equalf(t, test.want, math.Float32bits(test.f(test.x)), "%s(%v)", test.name, test.x)
	}
	sin, cos := SinCos(123456.75)
	require.Equal(t, uint64(0xBFEFFF56FEED772B), math.Float64bits(sin))
	require.Equal(t, uint64(0x3F89FFF2C9C4E6E3), math.Float64bits(cos))
	require.Equal(t, uint64(0x3FA030DC4EA03A73), math.Float64bits(Pow(1e4, -0.375)))
}

// TestGoldenSweeps hashes the results for a hundred thousand arguments each.
func TestGoldenSweeps(t *testing.T) {
	for _, test := range []struct {
		name string
		f    func(float32) float32
		want uint64
	}{
		{"Exp", Exp, 0x74C28C8576B8BEE1},
		{"Exp2", Exp2, 0xFE25787F0AF333CA},
		{"Log", Log, 0x5F3A74DAA4FEC9E},
		{"Log2", Log2, 0xB4293AE4A64F94C1},
		{"Sigmoid", Sigmoid, 0x229E7348418B3303},
		{"SiLU", SiLU, 0x3F2CCAB92BF5CB16},
		{"SiLUGrad", SiLUGrad, 0xCAEFEAC5EC9485AC},
	} {
		hash := fnv.New64a()
		for bits := uint64(0); bits < 1<<32; bits += 42949 {
			y := math.Float32bits(test.f(math.Float32frombits(uint32(bits))))
			hash.Write([]byte{byte(y), byte(y >> 8), byte(y >> 16), byte(y >> 24)})
		}
		require.Equalf(t, test.want, hash.Sum64(), "%s: %#x", test.name, hash.Sum64())
	}
}

// TestGoldenSinCos hashes both results for ten thousand arguments.
func TestGoldenSinCos(t *testing.T) {
	hash := fnv.New64a()
	for x := 0.0; x < SinCosLimit; x += 100.0 / 3 {
		sin, cos := SinCos(x)
		for _, y := range []uint64{math.Float64bits(sin), math.Float64bits(cos)} {
			hash.Write([]byte{byte(y), byte(y >> 8), byte(y >> 16), byte(y >> 24), byte(y >> 32), byte(y >> 40), byte(y >> 48), byte(y >> 56)})
		}
	}
	require.Equalf(t, uint64(0x3840BF99C1F9EE18), hash.Sum64(), "%#x", hash.Sum64())
}
