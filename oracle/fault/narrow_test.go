package fault

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// narrowOperand has random codes, under encoded scales and, unless there are none, outer
// ones.
func narrowOperand(name string, rows, k int, f fp8.Format, scales tensor.ScaleFormat, width int, outer tensor.Outer, seed uint64) *tensor.Tensor {
	r := rand.New(rand.NewPCG(seed, 4))
	t := &tensor.Tensor{Name: name, Format: f, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: width}, ScaleFormat: scales, Outer: outer}
	for range rows * k {
		t.Codes = append(t.Codes, fp8.EncodeOne(float32(r.NormFloat64()*float64(f.Max())/4), f, fp8.Policy{}))
	}
	down, across := t.Grid()
	for range down * across {
		if scales == tensor.UE4M3Scales {
			t.Scales = append(t.Scales, fp8.E4M3.Float32(byte(0x30+r.IntN(0x30))))
		} else {
			t.Scales = append(t.Scales, fp8.E8M0(128+r.IntN(6)).Float32()) // not 1, whose code is NaN in E4M3
		}
	}
	return t
}

const narrowRows, narrowCols = 140, 136 // more than the rows of a tile of scales

// narrowKinds are the names of narrowProducts, in the order of the table.
var narrowKinds = []string{"NVFP4", "NVFP4, outer by row, divisor", "MXFP4", "MXFP6", "FP8 by FP4"}

// narrowProducts are products in the narrow formats.
func narrowProducts() map[string]Product {
	const m, n, k = narrowRows, narrowCols, 160
	one := func(g float32) tensor.Outer { return tensor.Outer{Scales: []float32{g}} }
	rows := tensor.Outer{Rows: 1}
	for i := range m {
		rows.Scales = append(rows.Scales, 0.01*float32(i+1))
	}
	divisor := one(93)
	divisor.Divide = true
	return map[string]Product{
		"NVFP4": {A: narrowOperand("a", m, k, fp8.E2M1, tensor.UE4M3Scales, 16, one(0.0117), 1),
			B: narrowOperand("b", n, k, fp8.E2M1, tensor.UE4M3Scales, 16, one(0.0031), 2)},
		"NVFP4, outer by row, divisor": {A: narrowOperand("a", m, k, fp8.E2M1, tensor.UE4M3Scales, 16, rows, 3),
			B: narrowOperand("b", n, k, fp8.E2M1, tensor.UE4M3Scales, 16, divisor, 4)},
		"MXFP4": {A: narrowOperand("a", m, k, fp8.E2M1, tensor.E8M0Scales, 32, tensor.Outer{}, 5),
			B: narrowOperand("b", n, k, fp8.E2M1, tensor.E8M0Scales, 32, tensor.Outer{}, 6)},
		"MXFP6": {A: narrowOperand("a", m, k, fp8.E2M3, tensor.E8M0Scales, 32, tensor.Outer{}, 7),
			B: narrowOperand("b", n, k, fp8.E3M2, tensor.E8M0Scales, 32, tensor.Outer{}, 8)},
		"FP8 by FP4": {A: narrowOperand("a", m, k, fp8.E4M3, tensor.E8M0Scales, 32, tensor.Outer{}, 9),
			B: narrowOperand("b", n, k, fp8.E2M1, tensor.E8M0Scales, 32, tensor.Outer{}, 10)},
	}
}

// narrowFaults are what goes wrong with narrow operands more than with others.
func narrowFaults() []Fault {
	return []Fault{
		{Kind: "nibbles-swapped", Of: B},
		{Kind: "outer-ignored", Of: A}, {Kind: "outer-ignored", Of: B}, {Kind: "outer-ignored", Of: Both},
		{Kind: "outer-squared", Of: A}, {Kind: "outer-squared", Of: Both},
		{Kind: "outer-reciprocal", Of: A}, {Kind: "outer-reciprocal", Of: B}, {Kind: "outer-reciprocal", Of: Both},
		{Kind: "scales-exponent-off", Of: A, By: 1}, {Kind: "scales-exponent-off", Of: Both, By: 1}, {Kind: "scales-exponent-off", Of: Both, By: -1},
		{Kind: "scales-as-e8m0", Of: A}, {Kind: "scales-as-e8m0", Of: Both},
		{Kind: "scales-as-e4m3", Of: A}, {Kind: "scales-as-e4m3", Of: Both},
		{Kind: "scales-as-ue4m3", Of: A}, {Kind: "scales-as-ue4m3", Of: Both},
		{Kind: "scales-nan-number", Of: A}, {Kind: "scales-nan-number", Of: B}, {Kind: "scales-nan-number", Of: Both},
		{Kind: "scales-layout", Of: A, Written: RowMajor, Read: Tiles128x4}, {Kind: "scales-layout", Of: A, Written: Tiles128x4, Read: RowMajor},
		{Kind: "scales-layout", Of: B, Written: RowMajor, Read: Tiles128x4}, {Kind: "scales-layout", Of: Both, Written: RowMajor, Read: Tiles128x4},
		{Kind: "scales-layout", Of: Both, Written: columnMajor, Read: RowMajor},
		{Kind: "scales-transposed", Of: A}, {Kind: "scales-transposed", Of: Both},
		{Kind: "scales-columns-off", Of: Both, By: 1}, {Kind: "scales-first-column", Of: Both}, {Kind: "scales-first-row", Of: Both},
		{Kind: "scales-squared", Of: Both}, {Kind: "scales-reciprocal", Of: Both}, {Kind: "scales-ignored", Of: Both},
		{Kind: "scales-block", Of: A, By: 16}, {Kind: "scales-block", Of: A, By: 32}, {Kind: "scales-block", Of: Both, By: 16}, {Kind: "scales-block", Of: Both, By: 32},
		{Kind: "scales-grid", Of: A, By: 16}, {Kind: "scales-grid", Of: A, By: 32}, {Kind: "scales-grid", Of: Both, By: 16}, {Kind: "scales-grid", Of: Both, By: 32},
	}
}

// withNaNScales returns p with a scale of each operand that is NaN.
func withNaNScales(p Product) Product {
	for _, t := range []**tensor.Tensor{&p.A, &p.B} {
		x := **t
		x.Scales = slices.Clone(x.Scales)
		x.ScaleRow(3)[1] = float32(math.NaN())
		*t = &x
	}
	return p
}

// narrowCell says whether a fault is named.
func narrowCell(t *testing.T, p Product, f Fault) string {
	t.Helper()
	if f.Kind == "scales-nan-number" {
		p = withNaNScales(p)
	}
	got := make([]float32, narrowRows*narrowCols)
	if _, err := newChangeOf(p, f); err != nil {
		require.ErrorIs(t, err, ErrNotHere)
		return "cannot be"
	}
	require.NoError(t, Inject(t.Context(), got, f, p, Options{}), f)
	var o Options
	if f.Kind == "scales-nan-number" { // of which a row and a column are too few to be met
		o.Wrong = wrongOf(t, got, p)
	}
	e, err := Explain(t.Context(), got, p, o)
	require.NoError(t, err)
	switch {
	case !e.has(f):
		return "no"
	case len(e.Findings[0].Same) > 0:
		return fmt.Sprintf("1 of %d", 1+len(e.Findings[0].Same))
	}
	require.Equal(t, e.Findings[0].Explained, e.Findings[0].Of, "%v", f)
	require.Equal(t, Region{}, e.Findings[0].Fault.Where, "%v: %v", f, e)
	return "yes"
}

func newChangeOf(p Product, f Fault) (*change, error) {
	q, err := newProblem(p, narrowRows*narrowCols)
	if err != nil {
		return nil, err
	}
	return newChange(q, f)
}

const narrowHead = `
## Narrow formats

Products of %dx%d elements with K = 160, of random codes under encoded scales and, in
NVFP4, outer scales, that are wrong because of what is said; whether Explain names it.
"1 of 2" are faults that are one: twice the scales of A, or of B. Where NaN scales are
read as numbers a scale of each operand is NaN.

UE4M3 read as E4M3 with a sign is none: codes of UE4M3 have no sign, and the others are
the same numbers. Nor is rounding of E2M1 ties toward zero, which is done before codes
are there: compare codes.

`

// narrowTable is the table of narrowFaults, of the given products.
func narrowTable(t *testing.T, kinds []string) string {
	t.Helper()
	var b strings.Builder
	products := narrowProducts()
	b.WriteString("| the kernel's fault | " + strings.Join(kinds, " | ") + " |\n|---" + strings.Repeat("|---", len(kinds)) + "|\n")
	for _, f := range narrowFaults() {
		b.WriteString("| " + f.String() + " |")
		for _, name := range kinds {
			b.WriteString(" " + narrowCell(t, products[name], f) + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestNarrowFaults compares the second table of FAULTS.md with what is found, and wants
// honest kernels not accused.
func TestNarrowFaults(t *testing.T) {
	for name, p := range narrowProducts() {
		got := make([]float32, narrowRows*narrowCols)
		for _, m := range knownModels {
			p.Kernel = oracle.Kernel{Model: m}
			if err := oracle.Predict(t.Context(), got, nil, p.A, p.B, p.Kernel, oracle.Options{}); err != nil {
				require.ErrorIs(t, err, oracle.ErrModel)
				continue
			}
			for _, p.Bits = range []bool{false, true} {
				e, err := Explain(t.Context(), got, p, Options{})
				require.NoError(t, err)
				require.Zero(t, e.Wrong, "%s: %s", name, m.Name)
			}
		}
		require.NoError(t, Inject(t.Context(), got, Fault{}, Product{A: p.A, B: p.B}, Options{}))
		e, err := Explain(t.Context(), got, Product{A: p.A, B: p.B}, Options{})
		require.NoError(t, err)
		require.Zero(t, e.Wrong, name)
	}
	if testing.Short() {
		for _, f := range []Fault{{Kind: "nibbles-swapped", Of: B}, {Kind: "outer-reciprocal", Of: A}, {Kind: "scales-as-e8m0", Of: Both}, {Kind: "scales-nan-number", Of: A}} {
			require.NotContains(t, []string{"no", "cannot be"}, narrowCell(t, narrowProducts()["NVFP4"], f), "%v", f)
		}
		return
	}
	if *update {
		return // TestFaultTable writes it
	}
	file, err := os.ReadFile("FAULTS.md")
	require.NoError(t, err)
	require.Contains(t, string(file), narrowTable(t, narrowKinds), "run TestFaultTable with -update")
}

// TestOtherScaleOfBoth names a block of K whose scales are those of the next, in both.
func TestOtherScaleOfBoth(t *testing.T) {
	for _, name := range []string{"NVFP4", "MXFP4", "FP8 by FP4"} {
		p := narrowProducts()[name]
		width := p.A.Block.Cols
		require.Equal(t, "yes", narrowCell(t, p, Fault{Kind: "k-other-scale", Of: Both, From: 64, To: 64 + width, By: 1}), name)
	}
}

// TestNarrowInjected computes some faults a second time, from what is read.
func TestNarrowInjected(t *testing.T) {
	products := narrowProducts()
	at := func(name string, f Fault) (got, right float32) {
		c := make([]float32, narrowRows*narrowCols)
		require.NoError(t, Inject(t.Context(), c, Fault{}, products[name], Options{}))
		right = c[0]
		require.NoError(t, Inject(t.Context(), c, f, products[name], Options{}))
		return c[0], right
	}
	g := products["NVFP4"].A.Outer.Scales[0]
	for kind, factor := range map[Kind]float32{"outer-ignored": 1 / g, "outer-squared": g, "outer-reciprocal": 1 / (g * g)} {
		got, right := at("NVFP4", Fault{Kind: kind, Of: A})
		require.InEpsilon(t, right*factor, got, 1e-5, "%v", kind)
	}
	// A NaN scale of row 3 that is a number.
	nan := withNaNScales(products["NVFP4"])
	c := make([]float32, narrowRows*narrowCols)
	require.NoError(t, Inject(t.Context(), c, Fault{}, nan, Options{}))
	require.True(t, math.IsNaN(float64(c[3*narrowCols])))
	before := slices.Clone(c)
	require.NoError(t, Inject(t.Context(), c, Fault{Kind: "scales-nan-number", Of: A}, nan, Options{}))
	var sum float64
	for k, x := range nan.A.Row(3) {
		s := float64(nan.A.Scale(3, k))
		if s != s {
			s = 480
		}
		sum += float64(fp8.E2M1.Float32(x)) * s * float64(g) * float64(nan.B.At(0, k))
	}
	require.InEpsilon(t, sum, c[3*narrowCols], 1e-5)
	for i := range 3 * narrowCols { // rows without NaN
		require.Equal(t, math.Float32bits(before[i]), math.Float32bits(c[i]), "%d", i)
	}
	nan = withNaNScales(products["MXFP4"])
	require.NoError(t, Inject(t.Context(), c, Fault{Kind: "scales-nan-number", Of: A}, nan, Options{}))
	for j := range narrowCols {
		var part float64
		for k := 32; k < 64; k++ {
			part += float64(fp8.E2M1.Float32(nan.A.Row(3)[k])) * float64(nan.B.At(j, k))
		}
		want := math.Inf(1) * part // NaN where nothing is under the infinite scale, or that of B is NaN
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(c[3*narrowCols+j]), "%d", j)
	}

	p := products["MXFP4"]
	var signed float64
	for k, x := range p.A.Row(0) {
		code, _ := fp8.E8M0FromFloat32(p.A.Scale(0, k))
		signed += float64(p.A.Format.Float32(x)) * float64(fp8.E4M3.Float32(byte(code))) * float64(p.B.At(0, k))
	}
	got, _ := at("MXFP4", Fault{Kind: "scales-as-e4m3", Of: A})
	require.InEpsilon(t, signed, got, 1e-5)
}
