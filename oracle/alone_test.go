package oracle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// mixed has codes of normal numbers, but any in a few rows.
func mixed(seed uint64, f fp8.Format, rows, k int) *tensor.Tensor {
	r := source(seed)
	t := randomTensor(r, "mixed", f, tensor.Block{Rows: 1, Cols: 32}, kind{narrow: true}, rows, k)
	for i := range rows {
		for j := range t.Row(i) {
			if i%7 != 3 {
				t.Row(i)[j] = fp8.EncodeOne(float32(r.NormFloat64()), f, fp8.Policy{})
			}
		}
	}
	return t
}

// rowOf is row i of a tensor in blocks of a row.
func rowOf(t *tensor.Tensor, i int) *tensor.Tensor {
	_, k := t.Dims()
	return &tensor.Tensor{Name: t.Name, Format: t.Format, Shape: []int{1, k}, Block: t.Block, Codes: t.Row(i), Scales: t.ScaleRow(i)}
}

// TestAlone computes some elements of a product of several tiles alone: neighbours, whose
// operands differ by more or fewer powers of two, must not change a bit.
func TestAlone(t *testing.T) {
	const rows, columns, k = 70, 37, 300
	var kernels []Kernel
	for _, m := range Models() {
		if m.Float == NoFloat && m.Unit != Grouped {
			kernels = append(kernels, Kernel{Model: m}, Kernel{Model: m, Promote: 96, Scales: BThenA})
		}
	}
	for _, f := range []fp8.Format{fp8.E5M2, fp8.E4M3, fp8.E5M2FNUZ} {
		a, b := mixed(41, f, rows, k), mixed(42, f, columns, k)
		compute := func(a, b *tensor.Tensor) (results [][]float64) {
			n := a.Shape[0] * b.Shape[0]
			c, bound := make([]float32, n), make([]float64, n)
			keep := func(err error) {
				require.NoError(t, err)
				wide := make([]float64, n)
				for i, x := range c {
					wide[i] = float64(x)
				}
				results = append(results, wide, append([]float64(nil), bound...))
			}
			keep(Exact(t.Context(), c, a, b, Options{Workers: 1}))
			keep(Bound[float32](t.Context(), bound, nil, a, b, Accumulation{}, Options{Workers: 1}))
			for _, k := range kernels {
				if k.Model.Takes(f) {
					keep(Bound[float32](t.Context(), bound, nil, a, b, Accumulation{Kernel: k}, Options{Workers: 1}))
					keep(Predict(t.Context(), c, bound, a, b, k, Options{Workers: 1}))
				}
			}
			return results
		}
		together := compute(a, b)
		for i := 0; i < rows; i += 3 {
			for j := i % 2; j < columns; j += 2 {
				for q, alone := range compute(rowOf(a, i), rowOf(b, j)) {
					require.Equal(t, alone[0], together[q][i*columns+j], "%v, element (%d, %d), result %d", f, i, j, q)
				}
			}
		}
	}
}

// TestExactMixed cancels all but the least product, in few rows and columns.
func TestExactMixed(t *testing.T) {
	const rows, columns = 40, 20
	narrow, wide, negative := []byte{0x3C, 0x3C, 0x3C}, []byte{0x7B, 0x01, 0x7B}, []byte{0x7B, 0x01, 0xFB}
	fill := func(rows int, special []byte) *tensor.Tensor {
		x := &tensor.Tensor{Name: "mixed", Format: fp8.E5M2, Shape: []int{rows, 3}, Scales: []float32{1}}
		for i := range rows {
			if i%7 == 3 {
				x.Codes = append(x.Codes, special...)
			} else {
				x.Codes = append(x.Codes, narrow...)
			}
		}
		return x
	}
	checkExact[float32](t, fill(rows, negative), fill(columns, wide))
}

// TestExactLength has products of 52 bits, of which so many do not fit a float64.
func TestExactLength(t *testing.T) {
	fill := func(large, last byte) *tensor.Tensor {
		x := &tensor.Tensor{Name: "long", Format: fp8.E5M2, Shape: []int{1, 17}, Scales: []float32{1}}
		for range 8 {
			x.Codes = append(x.Codes, large)
		}
		x.Codes = append(x.Codes, 1)
		for range 8 {
			x.Codes = append(x.Codes, last)
		}
		return x
	}
	checkExact[float32](t, fill(0x60, 0xE0), fill(0x64, 0x64))
}

// TestPredictFloatsNothing has sums of nothing after others.
func TestPredictFloatsNothing(t *testing.T) {
	matrix := func(rows, k int) *Floats {
		m := &Floats{Format: BF16, Rows: rows, K: k, Values: make([]float32, rows*k)}
		for i := range m.Values {
			m.Values[i] = 1
		}
		return m
	}
	for _, k := range []int{40, 0} {
		c := make([]float32, 6)
		require.NoError(t, PredictFloats(t.Context(), c, nil, matrix(2, k), matrix(3, k), Kernel{Model: Hopper(BF16)}, Options{Workers: 1}))
		for _, x := range c {
			require.Equal(t, float32(k), x)
		}
	}
}

// TestPredictLargeSums has the largest products, whose sums fit 32 bits or not.
func TestPredictLargeSums(t *testing.T) {
	const columns, k = 16, 32
	a := &tensor.Tensor{Name: "large", Format: fp8.E4M3, Shape: []int{1, k}, Scales: []float32{1}, Codes: make([]byte, k)}
	b := &tensor.Tensor{Name: "large", Format: fp8.E4M3, Shape: []int{columns, k}, Scales: []float32{1}, Codes: make([]byte, columns*k)}
	for i := range a.Codes {
		a.Codes[i] = 0x7E
	}
	for i := range b.Codes {
		b.Codes[i] = 0x7E | byte(i/k%2)<<7
	}
	for f := 4; f < 40; f++ { // a product has 4
		m := Model{Name: "large", K: k, L: k, F: f, Keep: 23}
		c := make([]float32, columns)
		require.NoError(t, Predict(t.Context(), c, nil, a, b, Kernel{Model: m}, Options{}))
		for j, x := range c {
			require.Equal(t, float32(32*448*448*(1-2*(j%2))), x, "F=%d", f)
		}
	}
}

// TestAddSingle compares with the way for all layouts.
func TestAddSingle(t *testing.T) {
	r := source(43)
	m := BlackwellMMA()
	for range rounds(5000) {
		d, c := result{uint64(r.Uint32()), r.Float64()}, result{uint64(r.Uint32()), r.Float64()}
		got, want := d, m.addResults(d, c, layout32)
		if got.addSingle(c) {
			require.Equal(t, want, got)
		} else {
			require.NotEqual(t, finite, classOf(math.Float32frombits(uint32(want.bits))))
		}
	}
}
