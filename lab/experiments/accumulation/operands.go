package accumulation

import (
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/oracle"
)

// operandKind is a distribution of operands.
type operandKind struct {
	name   string
	values func(rows, cols int, seed uint64) []float32
}

var (
	bell    = operandKind{"normal", bellValues}
	uniform = operandKind{"uniform [0, 1)", uniformValues}
)

func bellValues(rows, cols int, seed uint64) []float32 {
	return oracle.Generator{Pattern: oracle.Bell, Rows: rows, Cols: cols, Seed: seed}.Values()
}

func uniformValues(rows, cols int, seed uint64) []float32 {
	random := rand.New(rand.NewPCG(seed, 0))
	values := make([]float32, rows*cols)
	for i := range values {
		values[i] = random.Float32()
	}
	return values
}
