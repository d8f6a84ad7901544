package oracle

import (
	"bytes"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestExactGolden compares with rational arithmetic rounded by NumPy.
func TestExactGolden(t *testing.T) {
	file, err := safetensors.Open(testutil.Shared(t, "golden", "gemm.safetensors"))
	require.NoError(t, err)
	defer file.Close()
	cases := 0
	for name, text := range file.Metadata() {
		if _, ok := file.Info(name + ".exact"); !ok {
			continue
		}
		cases++
		a, b := goldenOperands(t, file, name, text)
		want, err := file.Float32s(name + ".exact")
		require.NoError(t, err)
		for workers := 1; workers <= 3; workers++ {
			got := make([]float32, len(want))
			require.NoError(t, Exact(t.Context(), got, a, b, Options{Workers: workers}))
			require.NoError(t, differ(got, want), name)
		}
	}
	require.Equal(t, 8, cases)
}

// goldenOperands reads "a E4M3 block 1x128, b E4M3 block 128x128".
func goldenOperands(t *testing.T, file *safetensors.File, name, text string) (a, b *tensor.Tensor) {
	operands := [2]*tensor.Tensor{}
	for i, part := range strings.SplitN(text, ", ", 2) {
		words := strings.Fields(part)
		key := name + "." + words[0]
		format, err := fp8.ParseFormat(words[1])
		require.NoError(t, err)
		block, err := tensor.ParseBlock(words[3])
		require.NoError(t, err)
		info, ok := file.Info(key)
		require.True(t, ok)
		codes, err := file.Bytes(key)
		require.NoError(t, err)
		scales, err := file.Float32s(key + "_scales")
		require.NoError(t, err)
		operands[i] = &tensor.Tensor{Name: key, Format: format, Shape: info.Shape, Block: block, Codes: codes, Scales: scales}
	}
	return operands[0], operands[1]
}

// TestExactAgainstBig compares every kind of operand with math/big.
func TestExactAgainstBig(t *testing.T) {
	r := source(1)
	for round := range rounds(400) {
		m, n, k := 1+r.IntN(5), 1+r.IntN(5), r.IntN(150)
		a, b := pair(r, m, n, k, kinds[round%len(kinds)])
		checkExact[float32](t, a, b)
		checkExact[fp8.BFloat16](t, a, b)
		checkExact[float16.Float16](t, a, b)
	}
}

func checkExact[T gemm.Output](t *testing.T, a, b *tensor.Tensor) {
	m, _ := a.Dims()
	n, _ := b.Dims()
	got := make([]T, m*n)
	require.NoError(t, Exact(t.Context(), got, a, b, Options{}))
	for i := range m {
		for j := range n {
			want := bigRound[T](bigElement(a, b, i, j))
			if bitsOf(got[i*n+j]) != want {
				t.Fatalf("%s, element (%d, %d): got %x, want %x", describe(a, b), i, j, bitsOf(got[i*n+j]), want)
			}
		}
	}
}

// TestExactCancels sums products of very different size that cancel but for one.
func TestExactCancels(t *testing.T) {
	r := source(2)
	for range rounds(300) {
		f, g := anyFormat(r), anyFormat(r)
		block := tensor.Block{Rows: 1, Cols: 8}
		a, b := randomTensor(r, "a", f, block, kind{wide: true}, 2, 64), randomTensor(r, "b", g, block, kind{wide: true}, 3, 64)
		// The second half is the first one, negated, except for one code.
		for _, x := range []*tensor.Tensor{a, b} {
			for i := range x.Shape[0] {
				copy(x.Row(i)[32:], x.Row(i)[:32])
				copy(x.ScaleRow(i)[4:], x.ScaleRow(i)[:4])
			}
		}
		for i := range 2 {
			for k := range 32 {
				if c := &a.Row(i)[32+k]; !f.IsZero(*c) {
					*c = opposite(f, *c)
				}
			}
			a.Row(i)[32+r.IntN(32)] = 1
		}
		checkExact[float32](t, a, b)
	}
}

// TestExactTies makes sums that lie halfway between two values of the result, and
// a hair beside.
func TestExactTies(t *testing.T) {
	for _, test := range []struct {
		name  string
		hair  float32
		want  uint32
		want2 uint16 // bfloat16
	}{
		{"tie", 0, 0x3F800000, 0x3F80},
		{"above", 0x1p-120, 0x3F800001, 0x3F81},
		{"below", -0x1p-120, 0x3F800000, 0x3F80},
	} {
		for _, l := range []layout{layout32, layoutB16} {
			// 1 + half an ulp + a hair.
			a := codes(fp8.E4M3, []float32{1, 1, 1}, []float32{1, float32(math.Ldexp(1, -l.fraction-1)), float32(math.Abs(float64(test.hair)))})
			b := codes(fp8.E5M2, []float32{1, 1, float32(math.Copysign(1, float64(test.hair)))}, []float32{1, 1, 1})
			if l == layout32 {
				got := make([]float32, 1)
				require.NoError(t, Exact(t.Context(), got, a, b, Options{}))
				require.Equal(t, test.want, math.Float32bits(got[0]), test.name)
			} else {
				got := make([]fp8.BFloat16, 1)
				require.NoError(t, Exact(t.Context(), got, a, b, Options{}))
				require.Equal(t, fp8.BFloat16(test.want2), got[0], test.name)
			}
		}
	}
}

// codes is one row of values, each followed by a zero, under scales of 1x2 blocks.
func codes(f fp8.Format, values, scales []float32) *tensor.Tensor {
	x := &tensor.Tensor{Name: f.String(), Format: f, Shape: []int{1, 2 * len(values)}, Block: tensor.Block{Rows: 1, Cols: 2}, Scales: scales}
	for _, v := range values {
		x.Codes = append(x.Codes, fp8.EncodeOne(v, f, fp8.Policy{}), 0)
	}
	return x
}

// TestExactEpilogue adds bias and old C before the only rounding.
func TestExactEpilogue(t *testing.T) {
	r := source(3)
	for range rounds(200) {
		m, n, k := 1+r.IntN(4), 1+r.IntN(4), r.IntN(60)
		a, b := pair(r, m, n, k, kind{})
		bias := make([]float32, n)
		for j := range bias {
			bias[j] = math.Float32frombits(r.Uint32())
		}
		old := make([]fp8.BFloat16, m*n)
		for i := range old {
			old[i] = fp8.BFloat16(r.Uint32())
		}
		got := append([]fp8.BFloat16(nil), old...)
		require.NoError(t, Exact(t.Context(), got, a, b, Options{Bias: bias, Accumulate: true, Workers: 1 + r.IntN(3)}))
		for i := range got {
			sum, _ := bigElement(a, b, i/n, i%n)
			x, y := float64(bias[i%n]), float64(old[i].Float32())
			plain := x + y
			if math.IsNaN(plain) || math.IsInf(plain, 0) {
				sum = nil
			} else {
				sum.Add(sum, new(big.Float).SetFloat64(x))
				sum.Add(sum, new(big.Float).SetFloat64(y))
			}
			if want := bigRound[fp8.BFloat16](sum, plain); uint64(got[i]) != want {
				t.Fatalf("%s with %v and %v: got %x, want %x", describe(a, b), x, y, got[i], want)
			}
		}
	}
}

// TestExactExtremes reaches both ends of the accumulator.
func TestExactExtremes(t *testing.T) {
	least := &tensor.Tensor{Name: "least", Format: fp8.E5M2FNUZ, Shape: []int{1, 1}, Codes: []byte{1}, Scales: []float32{math.SmallestNonzeroFloat32}}
	most := &tensor.Tensor{Name: "most", Format: fp8.E5M2FNUZ, Shape: []int{1, 20000}, Codes: bytes.Repeat([]byte{0x7F}, 20000), Scales: []float32{math.MaxFloat32}}
	mixed := *most
	mixed.Name, mixed.Format = "mixed", fp8.E4M3FNUZ
	for _, x := range [][2]*tensor.Tensor{{least, least}, {most, most}, {&mixed, most}, {most, &mixed}} {
		p, err := newProduct(x[0], x[1])
		require.NoError(t, err)
		var rows integerStrips
		rows.a.decode(p.a, 0, 1, wide(p.a.Format) && wide(p.b.Format))
		rows.b.decode(p.b, 0, 1, false)
		var sum accumulator
		p.sum(&sum, &rows.a, &rows.b, 0, 0, 0, 0)
		want, _ := bigElement(x[0], x[1], 0, 0)
		n := sum.number()
		got := bigFloat().SetMantExp(bigFloat().SetUint64(n.significand), n.exponent)
		require.Equal(t, 0, got.Cmp(want.SetPrec(64)), x[0].Name)
	}
	c := make([]float32, 1)
	require.NoError(t, Exact(t.Context(), c, most, most, Options{}))
	require.True(t, math.IsInf(float64(c[0]), 1))
	require.NoError(t, Exact(t.Context(), c, least, least, Options{}))
	require.Zero(t, math.Float32bits(c[0]))
}

// TestExactSpecials has values that are not finite, by hand.
func TestExactSpecials(t *testing.T) {
	const nan32, inf = 0x7FC00000, 0x7F800000
	one := []float32{1, 1}
	for _, test := range []struct {
		name string
		a    []byte // E5M2, in two blocks
		sa   []float32
		b    []byte
		sb   []float32
		want uint32
	}{
		{"infinity", []byte{0x7C, 0, 0x3C, 0}, one, []byte{0x3C, 0, 0x3C, 0}, one, inf},
		{"its sign", []byte{0x7C, 0, 0x3C, 0}, one, []byte{0xBC, 0, 0x3C, 0}, one, inf | 1<<31},
		{"infinity times a zero code", []byte{0x7C, 0, 0x3C, 0}, one, []byte{0, 0, 0x3C, 0}, one, nan32},
		{"infinity times a code under scale 0", []byte{0x7C, 0, 0x3C, 0}, one, []byte{0x3C, 0, 0x3C, 0}, []float32{0, 1}, nan32},
		{"infinity under scale 0", []byte{0x7C, 0, 0x3C, 0}, []float32{0, 1}, []byte{0x3C, 0, 0x3C, 0}, one, nan32},
		{"NaN under scale 0", []byte{0x7D, 0, 0x3C, 0}, []float32{0, 1}, []byte{0x3C, 0, 0x3C, 0}, one, nan32},
		{"both infinities", []byte{0x7C, 0, 0xFC, 0}, one, []byte{0x3C, 0, 0x3C, 0}, one, nan32},
		{"infinity wins over overflow", []byte{0x7C, 0, 0x7B, 0}, []float32{1, math.MaxFloat32}, []byte{0x3C, 0, 0xFB, 0}, one, inf},
		{"zeros of any sign", []byte{0x80, 0, 0, 0}, one, []byte{0x3C, 0, 0xBC, 0}, one, 0},
	} {
		x := &tensor.Tensor{Name: "a", Format: fp8.E5M2, Shape: []int{1, 4}, Block: tensor.Block{Cols: 2}, Codes: test.a, Scales: test.sa}
		y := &tensor.Tensor{Name: "b", Format: fp8.E5M2, Shape: []int{1, 4}, Block: tensor.Block{Cols: 2}, Codes: test.b, Scales: test.sb}
		c := make([]float32, 1)
		require.NoError(t, Exact(t.Context(), c, x, y, Options{}))
		require.Equal(t, test.want, math.Float32bits(c[0]), test.name)
	}
}

// TestWide has the lengths that sums of pieces in 64 bits rely on.
func TestWide(t *testing.T) {
	for _, f := range fp8.Formats() {
		largest := int64(0)
		for _, v := range integerTables[f] {
			largest = max(largest, v, -v)
		}
		require.Less(t, largest, int64(1)<<33, "%v: codes are too long for integers.go", f)
		require.Equal(t, largest > 1<<18, wide(f), "%v: is it one of wide in integers.go?", f)
	}
}

// TestExactLongBlocks sums blocks that are cut into pieces.
func TestExactLongBlocks(t *testing.T) {
	r := source(4)
	for _, f := range fp8.Formats() {
		a, b := randomTensor(r, "a", f, tensor.Block{}, kind{}, 1, 3*pieceLength+5), randomTensor(r, "b", fp8.E5M2FNUZ, tensor.Block{}, kind{}, 2, 3*pieceLength+5)
		checkExact[float32](t, a, b)
	}
}

func TestExactRefuses(t *testing.T) {
	r := source(5)
	good := randomTensor(r, "good", fp8.E4M3, tensor.Block{}, kind{}, 2, 8)
	c := make([]float32, 4)
	for _, test := range []struct {
		name string
		bad  func() *tensor.Tensor
		want string
	}{
		{"length", func() *tensor.Tensor { x := *good; x.Name, x.Codes = "short", x.Codes[1:]; return &x }, "short"},
		{"scale", func() *tensor.Tensor {
			x := *good
			x.Name, x.Scales = "minus", []float32{-1}
			return &x
		}, "minus"},
		{"k", func() *tensor.Tensor { return randomTensor(r, "other", fp8.E4M3, tensor.Block{}, kind{}, 2, 9) }, "other"},
		{"block", func() *tensor.Tensor {
			return randomTensor(r, "column", fp8.E4M3, tensor.Block{Cols: 1}, kind{}, 2, 8)
		}, "column"},
	} {
		err := Exact(t.Context(), c, good, test.bad(), Options{})
		require.ErrorContains(t, err, test.want, test.name)
		require.ErrorContains(t, err, "oracle: tensor ")
		requireAlike(t, good, test.bad())
		requireAlike(t, test.bad(), good)
	}
	three := randomTensor(r, "a", fp8.E4M3, tensor.Block{Cols: 3}, kind{}, 2, 8)
	two := randomTensor(r, "b", fp8.E4M3, tensor.Block{Cols: 2}, kind{}, 2, 8)
	require.ErrorContains(t, Exact(t.Context(), c, three, two, Options{}), "neither extent")
	requireAlike(t, three, two)
	requireAlike(t, two, randomTensor(r, "column", fp8.E4M3, tensor.Block{Cols: 1}, kind{}, 2, 8))
	require.ErrorIs(t, Exact(t.Context(), c[:3], good, good, Options{}), gemm.ErrOperands)
	require.ErrorIs(t, Exact(t.Context(), c, good, good, Options{Bias: c[:1]}), gemm.ErrOperands)
}

// requireAlike demands gemm's error.
func requireAlike(t *testing.T, a, b *tensor.Tensor) {
	t.Helper()
	c := make([]float32, 4)
	err := gemm.Multiply(t.Context(), c, a, b, gemm.Options{})
	require.Error(t, err)
	require.EqualError(t, Exact(t.Context(), c, a, b, Options{}), "oracle: "+strings.TrimPrefix(err.Error(), "gemm: "))
}

// TestRounding compares both roundings with math/big for all three types.
func TestRounding(t *testing.T) {
	r := source(6)
	for range rounds(200000) {
		n := unrounded{negative: r.IntN(2) == 0, significand: r.Uint64() >> r.IntN(64), exponent: r.IntN(400) - 250}
		if r.IntN(2) == 0 { // close to a tie
			n.significand = r.Uint64()>>r.IntN(63)<<1 | 1
			n.significand <<= r.IntN(64)
		}
		x := bigFloat().SetMantExp(bigFloat().SetUint64(n.significand), n.exponent)
		if n.negative {
			x.Neg(x)
		}
		require32(t, n, layout32.nearest(n), bigRound[float32](x, 0))
		require32(t, n, layoutB16.nearest(n), bigRound[fp8.BFloat16](x, 0))
		require32(t, n, layout16.nearest(n), bigRound[float16.Float16](x, 0))
		// Toward zero: what is cut away is less than a unit, and never added.
		got := math.Float32frombits(uint32(layout32.towardZero(n, 13)))
		low := new(big.Float).SetFloat64(float64(got))
		if math.IsInf(float64(got), 0) || n.significand == 0 {
			continue
		}
		gap := bigFloat().Sub(bigFloat().Abs(x), low.Abs(low))
		top := max(x.MantExp(nil)-1, -126)
		if gap.Sign() < 0 || gap.Cmp(bigFloat().SetMantExp(big.NewFloat(1), top-13)) >= 0 {
			t.Fatalf("%+v toward zero is %v", n, got)
		}
		if math.Float32bits(got)&(1<<10-1) != 0 {
			t.Fatalf("%+v toward zero has more than 13 bits: %x", n, math.Float32bits(got))
		}
	}
}

func require32(t *testing.T, n unrounded, got, want uint64) {
	if got != want {
		t.Fatalf("%+v: got %x, want %x", n, got, want)
	}
}
