package power

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/oracle"
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
		if i%2 == 0 && value(d[i]) != float64(x) {
			d[i] = next(d[i], int(math.Copysign(1, float64(x)-value(d[i]))))
		}
	}
	return d
}

func log(t *testing.T, name string, r *Report) {
	t.Logf("%s: alarm %v, p %.2g, spread %.3g, left %d of %d", name, r.Alarm, float64(r.P), float64(r.Spread), r.Left, r.Elements)
	for _, x := range r.Tests {
		t.Logf("    %-12s %s", x.Name, x.String())
	}
	for _, x := range r.Sights {
		t.Logf("    %-40s %s", x.Fault, x.String())
	}
}

// table injects the faults of the package's documentation.
func table(t *testing.T, size, k int, block tensor.Block) map[string]*Report {
	a, b := normalPair(size, size, k, block, 101, 102)
	honest := octavo[float32](t, a, b)
	reports := map[string]*Report{}
	judge := func(name string, c []float32) {
		r, err := Measure(t.Context(), c, nil, a, b, Options{})
		require.NoError(t, err)
		log(t, name, r)
		reports[name] = r
	}
	judge("honest", honest)
	last := func(codes []byte) {
		for i := k - 1; i < len(codes); i += k {
			codes[i] = 0
		}
	}
	judge("last k dropped", octavo[float32](t, changed(a, last), b))
	judge("a bit in one row", octavo[float32](t, changed(a, func(codes []byte) { codes[size/2*k+k/3] ^= 1 }), b))
	judge("subnormals flushed", octavo[float32](t, flushed(a), flushed(b)))
	hopper := make([]float32, size*size)
	require.NoError(t, oracle.Predict(t.Context(), hopper, nil, a, b, oracle.Kernel{Model: oracle.HopperWGMMA()}, oracle.Options{}))
	judge("hopper", hopper)
	require.NoError(t, oracle.Predict(t.Context(), hopper, nil, a, b, oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128}, oracle.Options{}))
	judge("hopper promoted", hopper)
	for name, c := range map[string][]fp8.BFloat16{"bfloat16 honest": octavo[fp8.BFloat16](t, a, b), "bfloat16 wrong way": wrongWay(honest)} {
		r, err := Measure(t.Context(), c, nil, a, b, Options{})
		require.NoError(t, err)
		log(t, name, r)
		reports[name] = r
	}
	return reports
}

// TestTable fills the table of the faults that the worst case does not see.
func TestTable(t *testing.T) {
	size, k := 64, 4096
	if testutil.Full() {
		size, k = 256, 16384
	}
	reports := table(t, size, k, tensor.Block{})
	for name, r := range reports {
		honest := name == "honest" || name == "bfloat16 honest"
		require.Equal(t, !honest, r.Alarm, name)
	}
}
