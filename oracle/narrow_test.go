package oracle

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// narrowCase is a product of golden/narrow.
type narrowCase struct {
	name             string
	a, b             *tensor.Tensor
	canonical, exact []float32
}

// narrowCases reads them: operands are "E2M1 UE4M3 1x16".
func narrowCases(t *testing.T) (all []narrowCase) {
	t.Helper()
	file, err := safetensors.Open(testutil.Shared(t, "golden", "narrow", "gemm.safetensors"))
	require.NoError(t, err)
	defer file.Close()
	var cases map[string]struct{ A, B string }
	require.NoError(t, json.Unmarshal([]byte(file.Metadata()["cases"]), &cases))
	floats := func(name string) []float32 {
		x, err := file.Float32s(name)
		require.NoError(t, err)
		return x
	}
	for name, about := range cases {
		c := narrowCase{name: name, canonical: floats(name + ".canonical"), exact: floats(name + ".exact")}
		for side, text := range map[string]string{"a": about.A, "b": about.B} {
			var format, scales, block string
			_, err := fmt.Sscan(text, &format, &scales, &block)
			require.NoError(t, err)
			key := name + "." + side
			x := &tensor.Tensor{Name: key}
			x.Format, err = fp8.ParseFormat(format)
			require.NoError(t, err)
			x.Block, err = tensor.ParseBlock(block)
			require.NoError(t, err)
			info, ok := file.Info(key)
			require.True(t, ok)
			x.Shape = info.Shape
			x.Codes, err = file.Bytes(key)
			require.NoError(t, err)
			if scales == "F32" {
				x.Scales = floats(key + "_scales")
			} else {
				x.ScaleFormat, err = tensor.ParseScaleFormat(scales)
				require.NoError(t, err)
				bytes, err := file.Bytes(key + "_scales")
				require.NoError(t, err)
				for _, s := range bytes {
					if x.ScaleFormat == tensor.E8M0Scales {
						x.Scales = append(x.Scales, fp8.E8M0(s).Float32())
					} else {
						x.Scales = append(x.Scales, fp8.E4M3.Float32(s))
					}
				}
			}
			if _, ok := file.Info(key + "_global"); ok {
				x.Outer.Scales = floats(key + "_global")
			}
			if side == "a" {
				c.a = x
			} else {
				c.b = x
			}
		}
		all = append(all, c)
	}
	require.Len(t, all, 23)
	return all
}

// TestExactNarrow compares with rational arithmetic rounded by NumPy.
func TestExactNarrow(t *testing.T) {
	for _, c := range narrowCases(t) {
		got := make([]float32, len(c.exact))
		require.NoError(t, Exact(t.Context(), got, c.a, c.b, Options{}), c.name)
		require.NoError(t, differ(got, c.exact), c.name)
	}
}

// TestBoundNarrow demands that the canonical results are within their bounds, and these
// are no wider than some hundred roundings.
func TestBoundNarrow(t *testing.T) {
	for _, c := range narrowCases(t) {
		for _, acc := range []Accumulation{{}, {Scales: AThenB}, {Dequantized: true}} {
			bound := make([]float64, len(c.exact))
			require.NoError(t, Bound[float32](t.Context(), bound, nil, c.a, c.b, acc, Options{}))
			infinite := 0
			for i := range bound {
				require.False(t, outside(float64(c.canonical[i]), float64(c.exact[i]), bound[i]) && !acc.Dequantized,
					"%s, element %d: canonical %v, exact %v, bound %v", c.name, i, c.canonical[i], c.exact[i], bound[i])
				require.False(t, bound[i] != bound[i], c.name)
				if math.IsInf(bound[i], 1) {
					infinite++
				}
			}
			t.Logf("%-22s %+v: %d of %d bounds are infinite", c.name, acc.Scales, infinite, len(bound))
		}
	}
}

// TestNarrowBlocks demands what a report says of an element with a NaN scale and of one
// with outer scales.
func TestNarrowBlocks(t *testing.T) {
	scale := float32(math.NaN())
	a := &tensor.Tensor{Name: "a", Format: fp8.E2M1, Shape: []int{1, 64}, Block: tensor.Block{Rows: 1, Cols: 32}, ScaleFormat: tensor.E8M0Scales,
		Codes: make([]byte, 64), Scales: []float32{2, scale}, Outer: tensor.Outer{Scales: []float32{0.5}}}
	b := &tensor.Tensor{Name: "b", Format: fp8.E2M1, Shape: []int{1, 64}, Block: tensor.Block{Rows: 1, Cols: 32}, ScaleFormat: tensor.E8M0Scales,
		Codes: make([]byte, 64), Scales: []float32{1, 1}, Outer: tensor.Outer{Scales: []float32{8}, Divide: true}}
	a.Codes[0], b.Codes[0] = 7, 2
	r, err := Compare(t.Context(), []float32{1}, []float32{float32(math.NaN())}, nil, CompareOptions{Rows: 1, Cols: 1, A: a, B: b})
	require.NoError(t, err)
	require.Equal(t, Number(1./16), r.First.Alpha)
	require.Equal(t, Number(12), r.First.Blocks[0].Running)
	require.True(t, math.IsNaN(float64(r.First.Blocks[1].Sum)))
	require.True(t, math.IsNaN(float64(r.First.Blocks[1].Running)))
	want := []float32{0}
	require.NoError(t, Exact(t.Context(), want, a, b, Options{}))
	require.Equal(t, uint32(0x7FC00000), math.Float32bits(want[0]))
	a.Scales[1] = 1
	require.NoError(t, Exact(t.Context(), want, a, b, Options{}))
	require.Equal(t, float32(0.75), want[0])
}

var _ = gemm.Multiply[float32, *tensor.Tensor]
