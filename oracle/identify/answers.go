package identify

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Answers are what a kernel returned for [Probes].
type Answers struct {
	Type safetensors.DType    // to which the kernel rounds C: F32, BF16 or F16
	C    map[string][]float32 // by a product's name: [M, N], dense
}

// formats are those of the types that C may have.
var formats = map[safetensors.DType]number.Format{safetensors.F32: number.FP32, safetensors.BF16: number.BF16, safetensors.F16: number.FP16}

// check reports whether there is an answer for every product.
func (a *Answers) check(p *Probes) error {
	if _, ok := formats[a.Type]; !ok {
		return sentinel.Errorf(ErrFile, "identify: unknown type of C %q: want F32, BF16 or F16", a.Type)
	}
	for i := range p.Products {
		product := &p.Products[i]
		c, there := a.C[product.Name]
		m, n, _ := product.Size()
		switch {
		case !there:
			return sentinel.Errorf(ErrFile, "identify: there is no C of %s", product.Name)
		case len(c) != m*n:
			return sentinel.Errorf(ErrFile, "identify: C of %s has %d elements: want %s", product.Name, len(c), fmt.Sprintf("%dx%d", m, n))
		}
	}
	return nil
}

// silent reports whether all answers are 0.
func (a *Answers) silent() bool {
	for _, c := range a.C {
		if slices.ContainsFunc(c, func(x float32) bool { return x != 0 }) {
			return false
		}
	}
	return true
}
