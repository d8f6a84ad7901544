package identify

import (
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
)

// floats is the rows as numbers, which the format has, with zeros up to a multiple of 16
// rows.
func (r *rows) floats(s Setup, name string) *oracle.Floats {
	n := (len(r.values)/r.k + 15) / 16 * 16
	m := &oracle.Floats{Name: name, Format: s.Float, Rows: n, K: r.k, Values: make([]float32, n*r.k)}
	copy(m.Values, r.values)
	return m
}

// randomFloats is [randomProduct] for BF16, FP16 and TF32.
func randomFloats(s Setup) Product {
	random := rand.New(rand.NewPCG(15, 7))
	operand := func(name string, negate float32) *oracle.Floats {
		m := &oracle.Floats{Name: name, Format: s.Float, Rows: 32, K: s.K, Values: make([]float32, 32*s.K)}
		for i := range m.Rows {
			row := m.Values[i*s.K : (i+1)*s.K]
			for k := range row {
				row[k] = randomFloat(s.Float, i%4, random)
			}
			if i%4 == 3 {
				for k := range s.K / 2 {
					row[s.K/2+k] = negate * row[k]
				}
			}
		}
		return m
	}
	return Product{Name: "products", Purpose: randomPurpose, AFloats: operand("a", -1), BFloats: operand("b", 1)}
}

// randomFloat is a number of a row of the given kind, with all fraction bits.
func randomFloat(f oracle.Float, kind int, random *rand.Rand) float32 {
	if kind == 2 && random.IntN(16) != 0 {
		return 0
	}
	x := random.NormFloat64()
	if kind == 0 {
		x = math.Ldexp(x, random.IntN(16)-10)
	}
	fraction := 10
	if f == oracle.BF16 {
		fraction = 7
	}
	_, e := math.Frexp(x)
	unit := math.Ldexp(1, max(e-1, -14)-fraction)
	return float32(math.RoundToEven(x/unit) * unit)
}

// floatTypes are those of numbers in a file.
var floatTypes = map[oracle.Float]safetensors.DType{oracle.BF16: safetensors.BF16, oracle.FP16: safetensors.F16, oracle.TF32: safetensors.F32}

// floatBytes are values of a format as they are in a file.
func floatBytes(f oracle.Float, values []float32) []byte {
	return bytesOf(floatTypes[f], values)
}
