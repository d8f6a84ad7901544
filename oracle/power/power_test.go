package power

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/tensor"
)

// operand fills a tensor with what draw gives, under scales of its own for each block:
// the largest magnitude over the format's.
func operand(name string, f fp8.Format, b tensor.Block, rows, cols int, draw func() float64) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Format: f, Shape: []int{rows, cols}, Block: b, Codes: make([]byte, rows*cols)}
	gridRows, gridCols := t.Grid()
	t.Scales = make([]float32, gridRows*gridCols)
	height, width := b.Extents(rows, cols)
	values := make([]float64, rows*cols)
	for i := range values {
		values[i] = draw()
		s := &t.Scales[i/cols/height*gridCols+i%cols/width]
		*s = max(*s, float32(math.Abs(values[i])/float64(f.Max())))
	}
	for i, x := range values {
		if s := float64(t.Scale(i/cols, i%cols)); s > 0 {
			t.Codes[i] = fp8.EncodeOne(x/s, f, fp8.Policy{})
		}
	}
	return t
}

func normalPair(m, n, k int, block tensor.Block, seedA, seedB uint64) (a, b *tensor.Tensor) {
	r, s := rand.New(rand.NewPCG(seedA, 0)), rand.New(rand.NewPCG(seedB, 0))
	return operand("a", fp8.E4M3, block, m, k, r.NormFloat64), operand("b", fp8.E4M3, block, n, k, s.NormFloat64)
}

func octavo[T gemm.Output](t *testing.T, a, b *tensor.Tensor) []T {
	m, _ := a.Dims()
	n, _ := b.Dims()
	c := make([]T, m*n)
	require.NoError(t, gemm.Multiply(t.Context(), c, a, b, gemm.Options{}))
	return c
}

func changed(t *tensor.Tensor, change func(codes []byte)) *tensor.Tensor {
	u := *t
	u.Codes = append([]byte(nil), t.Codes...)
	change(u.Codes)
	return &u
}

func flushed(t *tensor.Tensor) *tensor.Tensor {
	return changed(t, func(codes []byte) {
		for i, c := range codes {
			if math.Abs(float64(t.Format.Float32(c))) < float64(t.Format.MinNormal()) {
				codes[i] = 0
			}
		}
	})
}

// wrongWay rounds every other element to the other neighbour of the exact number.
func wrongWay(c []float32) []fp8.BFloat16 {
	d := make([]fp8.BFloat16, len(c))
	for i, x := range c {
		d[i] = fp8.BFloat16FromFloat32(x)
		if i%2 == 0 && number.Float64(d[i]) != float64(x) {
			d[i] = next(d[i], int(math.Copysign(1, float64(x)-number.Float64(d[i]))))
		}
	}
	return d
}

func log(t *testing.T, name string, r *Result) {
	t.Logf("%s: alarm %v, p %.2g, spread %.3g, left %d of %d", name, r.Alarm, float64(r.P), float64(r.Spread), r.Left, r.Elements)
	for _, x := range r.Tests {
		t.Logf("    %-12s %s", x.Name, x.String())
	}
	for _, x := range r.Sights {
		t.Logf("    %-40s %s", x.Fault, x.String())
	}
}
