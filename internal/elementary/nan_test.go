package elementary

import (
	"math"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// specials are bits of both zeros, both infinities, NaNs of both signs with several
// payloads, signaling ones among them, and of numbers whose products overflow,
// underflow or do neither.
var specials = []uint32{
	0x00000000, 0x80000000, 0x7F800000, 0xFF800000,
	0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFD12345,
	0x3F800000, 0xC1A00000, 0x7F7FFFFF, 0x00000001, 0x00800000, 0x43E00000,
}

// combinations returns every combination of n specials, operand by operand.
func combinations(n int) [][]float32 {
	operands := make([][]float32, n)
	total := 1
	for range n {
		total *= len(specials)
	}
	for i := range total {
		for j, rest := 0, i; j < n; j++ {
			operands[j] = append(operands[j], math.Float32frombits(specials[rest%len(specials)]))
			rest /= len(specials)
		}
	}
	return operands
}

// TestCanonicalNaN has every combination of special operands: results that are NaN
// are 7FC00000, and all others have the bits of the definition. Processors differ in
// the sign and the payload of a NaN that a product makes.
func TestCanonicalNaN(t *testing.T) {
	canonical := func(x float32) float32 {
		if x != x {
			return math.Float32frombits(0x7FC00000)
		}
		return x
	}
	compare := func(t *testing.T, name string, operands [][]float32, got []float32, want func(i int) float32) {
		t.Helper()
		for i, x := range got {
			if w := canonical(want(i)); math.Float32bits(x) != math.Float32bits(w) {
				var of []uint32
				for _, o := range operands {
					of = append(of, math.Float32bits(o[i]))
				}
				t.Fatalf("%s of %08x: %08x, want %08x", name, of, math.Float32bits(x), math.Float32bits(w))
			}
		}
	}
	kernelstest.AtLevels(t, "elementary.", func(t *testing.T, _ cpu.Level) {
		x := combinations(4)
		u, g, dz, s := x[0], x[1], x[2], x[3]
		z, dg := make([]float32, len(u)), make([]float32, len(u))
		SwiGLU(z, u, g, s)
		compare(t, "SwiGLU, z", x, z, func(i int) float32 { return float32(s[i]*u[i]) * SiLU(g[i]) })
		SwiGLUGrad(z, dg, dz, u, g, s)
		compare(t, "SwiGLUGrad, du", x, z, func(i int) float32 { return float32(s[i]*dz[i]) * SiLU(g[i]) })
		compare(t, "SwiGLUGrad, dg", x, dg, func(i int) float32 { return float32(float32(s[i]*u[i])*SiLUGrad(g[i])) * dz[i] })
		src, parameters := combinations(1), combinations(3)
		for i := range parameters[0] {
			minus, times, factor := parameters[0][i], parameters[1][i], parameters[2][i]
			ExpTo(z[:len(specials)], src[0], minus, times, factor)
			compare(t, "ExpTo", src, z[:len(specials)], func(i int) float32 { return Exp(float32((src[0][i]-minus)*times)) * factor })
			Exp2To(z[:len(specials)], src[0], minus, times)
			compare(t, "Exp2To", src, z[:len(specials)], func(i int) float32 { return Exp2(src[0][i] - minus + times) })
		}
	})
	for _, bits := range specials {
		y := math.Float32frombits(bits)
		for name, f := range map[string]func(float32) float32{"Exp": Exp, "Exp2": Exp2, "Log": Log, "Log2": Log2, "Sigmoid": Sigmoid, "SiLU": SiLU, "SiLUGrad": SiLUGrad} {
			if v := f(y); v != v && math.Float32bits(v) != 0x7FC00000 {
				t.Errorf("%s(%08x) is %08x", name, bits, math.Float32bits(v))
			}
		}
	}
}
