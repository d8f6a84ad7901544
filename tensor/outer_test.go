package tensor_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/octavo-fp8/octavo/tensor"
)

// withOuter returns a tensor of random codes and scales under outer scales.
func withOuter(r *rand.Rand, f fp8.Format, scales tensor.ScaleFormat, b tensor.Block, outerRows int, divide bool, shape ...int) *tensor.Tensor {
	x := random(r, f, b, shape...)
	x.ScaleFormat = scales
	for i := range x.Scales {
		x.Scales[i] = randomScale(r, scales)
	}
	rows, _ := x.Dims()
	n := 1
	if outerRows > 0 {
		n = (rows + outerRows - 1) / outerRows
	}
	x.Outer = tensor.Outer{Rows: outerRows, Divide: divide, Scales: make([]float32, n)}
	for i := range x.Outer.Scales {
		x.Outer.Scales[i] = randomScale(r, tensor.Float32Scales)
	}
	return x
}

// randomScale is of any magnitude, subnormal ones included, but not 0.
func randomScale(r *rand.Rand, f tensor.ScaleFormat) float32 {
	switch f {
	case tensor.E8M0Scales:
		return fp8.E8M0(r.IntN(255)).Float32()
	case tensor.UE4M3Scales:
		return fp8.E4M3.Float32(byte(1 + r.IntN(0x7E)))
	}
	if r.IntN(2) == 0 {
		return float32(math.Exp(4 * r.NormFloat64()))
	}
	return math.Float32frombits(1 + r.Uint32N(0x7F7FFFFF))
}

// definition is the value of an element in exact arithmetic: decode(code) * scale, times
// or divided by the outer scale of its row. Codes must be finite.
func definition(x *tensor.Tensor, i, j int) *big.Rat {
	exact := func(v float32) *big.Rat { return new(big.Rat).SetFloat64(float64(v)) }
	stride, _ := x.Strides()
	v := new(big.Rat).Mul(exact(x.Format.Float32(x.Codes[i*stride+j])), exact(x.Scale(i, j)))
	if len(x.Outer.Scales) == 0 {
		return v
	}
	k := 0
	if x.Outer.Rows > 0 {
		k = i / x.Outer.Rows
	}
	if outer := exact(x.Outer.Scales[k]); x.Outer.Divide {
		v.Quo(v, outer)
	} else {
		v.Mul(v, outer)
	}
	return v
}

// nearest32 is v rounded to float32 to nearest even; what is too large is infinite.
func nearest32(v *big.Rat) float32 {
	f, _ := v.Float32()
	return f
}

// TestOuterValues compares values under outer scales, of every way of reading them, with
// exact arithmetic rounded once.
func TestOuterValues(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 1))
	cols := 70
	if testing.Short() {
		cols = 23 // a block, and part of one
	}
	for _, f := range fp8.Formats() {
		for _, scales := range []tensor.ScaleFormat{tensor.Float32Scales, tensor.E8M0Scales, tensor.UE4M3Scales} {
			for _, divide := range []bool{false, true} {
				for _, outerRows := range []int{0, 1, 2, 5, 100} {
					x := withOuter(r, f, scales, tensor.Block{Rows: 1, Cols: 16}, outerRows, divide, 2, 5, cols)
					for i, code := range x.Codes {
						if v := f.Float32(code); v-v != 0 {
							x.Codes[i] = byte(i % 8)
						}
					}
					require.NoError(t, x.Check())
					require.NoError(t, x.CheckScales())
					requireValues(t, x)
				}
			}
		}
	}
}

func requireValues(t *testing.T, x *tensor.Tensor) {
	t.Helper()
	rows, cols := x.Dims()
	dense32, dense64 := make([]float32, rows*cols), make([]float64, rows*cols)
	half, brain := make([]float16.Float16, rows*cols), make([]fp8.BFloat16, rows*cols)
	tensor.Dequantize(dense32, x)
	tensor.Dequantize(dense64, x)
	tensor.Dequantize(half, x)
	tensor.Dequantize(brain, x)
	m := x.Matrix()
	for i := range rows {
		for j := range cols {
			exact := definition(x, i, j)
			want := nearest32(exact)
			want64, _ := exact.Float64()
			at := i*cols + j
			if x.At(i, j) != want || dense32[at] != want || dense64[at] != want64 || m.At(i, j) != want64 {
				t.Fatalf("%v, scale %v, outer %v at (%d, %d): %v, %v, %v, %v: want %v and %v",
					x.Format, x.Scale(i, j), x.Outer, i, j, x.At(i, j), dense32[at], dense64[at], m.At(i, j), want, want64)
			}
			require.Equal(t, float16.Fromfloat32(dense32[at]), half[at])
			require.Equal(t, fp8.BFloat16FromFloat32(dense32[at]), brain[at])
		}
	}
}

// TestOuterNotFinite: a NaN keeps the sign of its code, and one that arises is positive.
func TestOuterNotFinite(t *testing.T) {
	const canonical, negative = 0x7FC00000, 0xFFC00000
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	for _, c := range []struct {
		format       fp8.Format
		code         byte
		scale, outer float32
		divide       bool
		want         uint32
	}{
		{fp8.E4M3, 0x7F, 1, 2, false, canonical},
		{fp8.E4M3, 0xFF, 1, 2, false, negative},
		{fp8.E4M3, 0xFF, 1, 2, true, negative},
		{fp8.E4M3, 0xB8, nan, 2, false, canonical},
		{fp8.E4M3, 0x38, nan, 2, true, canonical},
		{fp8.E5M2, 0x7C, 1, 2, false, 0x7F800000},
		{fp8.E5M2, 0xFC, 1, 2, true, 0xFF800000},
		{fp8.E5M2, 0x7C, 1, 0, false, canonical},
		{fp8.E5M2, 0xFC, 1, inf, true, canonical},
		{fp8.E4M3, 0x80, 1, inf, false, canonical},
		{fp8.E4M3, 0x80, 1, 0, true, canonical},
		{fp8.E4M3, 0xB8, 1, 0, true, 0xFF800000},
		{fp8.E4M3, 0x80, 1, 3, false, 0x80000000},
		{fp8.E4M3, 0x38, 1, nan, false, canonical},
	} {
		x := &tensor.Tensor{Format: c.format, Shape: []int{1, 1}, Codes: []byte{c.code}, Scales: []float32{c.scale},
			Outer: tensor.Outer{Scales: []float32{c.outer}, Divide: c.divide}}
		var to32 [1]float32
		var to64 [1]float64
		tensor.Dequantize(to32[:], x)
		tensor.Dequantize(to64[:], x)
		require.Equal(t, c.want, math.Float32bits(x.At(0, 0)), "%+v", c)
		require.Equal(t, c.want, math.Float32bits(to32[0]), "%+v", c)
		require.Equal(t, c.want>>31 != 0, math.Signbit(to64[0]), "%+v", c)
		require.Equal(t, math.IsNaN(float64(to32[0])), math.IsNaN(to64[0]), "%+v", c)
	}
}

// TestOuterViews cuts tensors and compares each part with that part of the whole.
func TestOuterViews(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 2))
	for range 300 {
		outerRows := []int{0, 1, 2, 3, 4, 20}[r.IntN(6)]
		base := withOuter(r, fp8.E4M3, tensor.UE4M3Scales, tensor.Block{Rows: 1, Cols: 4}, outerRows, r.IntN(2) == 0, 1+r.IntN(12), 1+r.IntN(12))
		rows, cols := base.Dims()
		lo, hi := between(r, rows)
		v, err := base.RowRange(lo, hi)
		if outerRows > 0 && lo%outerRows != 0 && lo < hi && lo/outerRows != (hi-1)/outerRows {
			require.ErrorIs(t, err, tensor.ErrBlock)
			continue
		}
		require.NoError(t, err)
		left, right := between(r, cols)
		left = left / 4 * 4
		v, err = v.ColRange(left, right)
		require.NoError(t, err)
		require.NoError(t, v.CheckScales())
		require.Equal(t, tensor.UE4M3Scales, v.ScaleFormat)
		for i := range hi - lo {
			for j := range right - left {
				require.Equal(t, math.Float32bits(base.At(lo+i, left+j)), math.Float32bits(v.At(i, j)))
			}
		}
	}
}

func TestOuterIndexAndReshape(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 3))
	stack := withOuter(r, fp8.E4M3, tensor.E8M0Scales, tensor.Block{Rows: 1, Cols: 32}, 6, false, 3, 6, 40)
	for i := range 3 {
		one, err := stack.Index(i)
		require.NoError(t, err)
		require.Equal(t, tensor.Outer{Scales: stack.Outer.Scales[i : i+1]}, one.Outer)
		require.Equal(t, stack.At(6*i+5, 39), one.At(5, 39))
		require.Equal(t, one.At(5, 39), one.Transpose().At(39, 5))
		require.Equal(t, tensor.E8M0Scales, one.Transpose().ScaleFormat)
		one.Transpose().Outer.Scales[0] = 77 // is a copy
		require.NotEqual(t, float32(77), stack.Outer.Scales[i])
	}
	require.PanicsWithValue(t, "tensor: outer scales of rows cannot be transposed: requantize with one for the tensor", func() { stack.Transpose() })

	flat, err := stack.Reshape(18, 40)
	require.NoError(t, err)
	require.Equal(t, stack.Outer, flat.Outer)
	require.Equal(t, stack.At(17, 3), flat.At(17, 3))

	whole := withOuter(r, fp8.E4M3, tensor.Float32Scales, tensor.Block{}, 6, false, 3, 6, 40)
	_, err = whole.Reshape(720)
	require.EqualError(t, err, `tensor "x": cannot reshape [3 6 40] to [720]: outer scales of rows go with the last dimension`)
	whole.Outer = tensor.Outer{Scales: []float32{3}, Rows: 18}
	line, err := whole.Reshape(720)
	require.NoError(t, err)
	require.Equal(t, whole.At(17, 39), line.At(0, 719))

	empty := &tensor.Tensor{Name: "x", Shape: []int{5, 0}, Outer: tensor.Outer{Scales: []float32{1, 1, 1, 1, 1}, Rows: 1}}
	require.NoError(t, empty.Check())
	_, err = empty.Reshape(3, 0)
	require.ErrorIs(t, err, tensor.ErrShape)
}

func TestOuterCheck(t *testing.T) {
	whole := func() *tensor.Tensor {
		return &tensor.Tensor{Name: "w", Shape: []int{2, 3, 5}, Codes: make([]byte, 30), Scales: []float32{1},
			Outer: tensor.Outer{Scales: []float32{1, 0}, Rows: 3}}
	}
	require.NoError(t, whole().CheckScales())
	for want, change := range map[string]func(x *tensor.Tensor){
		`tensor "w": outer scales of -1 rows each: want at least 0`:                                   func(x *tensor.Tensor) { x.Outer.Rows = -1 },
		`tensor "w": shape [2 3 5] needs 1 outer scales of all rows each, there are 2`:                func(x *tensor.Tensor) { x.Outer.Rows = 0 },
		`tensor "w": shape [2 3 5] needs 6 outer scales of 1 rows each, there are 2`:                  func(x *tensor.Tensor) { x.Outer.Rows = 1 },
		`tensor "w": unknown format of scales ScaleFormat(3)`:                                         func(x *tensor.Tensor) { x.ScaleFormat = 3 },
		`tensor "w": outer scale 1 is -1: want a finite number that is not negative`:                  func(x *tensor.Tensor) { x.Outer.Scales[1] = -1 },
		`tensor "w": outer scale 0 is NaN: want a finite number that is not negative`:                 func(x *tensor.Tensor) { x.Outer.Scales[0] = float32(math.NaN()) },
		`tensor "w": outer scale 0 is +Inf: want a finite number that is not negative`:                func(x *tensor.Tensor) { x.Outer.Scales[0] = float32(math.Inf(1)) },
		`tensor "w": outer scale 1 is 0 and a divisor`:                                                func(x *tensor.Tensor) { x.Outer.Divide = true },
		`tensor "w": scale of block (0, 0) is 3: want a power of two from 2^-127 to 2^127, or NaN`:    func(x *tensor.Tensor) { x.Scales[0], x.ScaleFormat = 3, tensor.E8M0Scales },
		`tensor "w": scale of block (0, 0) is 0: want a power of two from 2^-127 to 2^127, or NaN`:    func(x *tensor.Tensor) { x.Scales[0], x.ScaleFormat = 0, tensor.E8M0Scales },
		`tensor "w": scale of block (0, 0) is 17: want a value of E4M3 that is not negative, or NaN`:  func(x *tensor.Tensor) { x.Scales[0], x.ScaleFormat = 17, tensor.UE4M3Scales },
		`tensor "w": scale of block (0, 0) is 480: want a value of E4M3 that is not negative, or NaN`: func(x *tensor.Tensor) { x.Scales[0], x.ScaleFormat = 480, tensor.UE4M3Scales },
		`tensor "w": scale of block (0, 0) is -0: want a value of E4M3 that is not negative, or NaN`: func(x *tensor.Tensor) {
			x.Scales[0], x.ScaleFormat = float32(math.Copysign(0, -1)), tensor.UE4M3Scales
		},
	} {
		x := whole()
		change(x)
		require.EqualError(t, x.CheckScales(), want)
	}
}

func TestOuterAt(t *testing.T) {
	o := tensor.Outer{Scales: []float32{2, 3}, Rows: 4, Divide: true}
	require.Equal(t, float32(2), o.At(3))
	require.Equal(t, float32(3), o.At(4))
	require.Equal(t, float32(1)/3, o.Factor(7))
	require.Panics(t, func() { o.At(8) })
	require.Panics(t, func() { o.At(-1) })
	o.Divide = false
	require.Equal(t, float32(3), o.Factor(7))
	require.Equal(t, float32(1), tensor.Outer{Divide: true}.Factor(99))
	require.Equal(t, float32(5), tensor.Outer{Scales: []float32{5}}.At(99))
}

// TestQuantizeUnderOuter: the tensor takes ScaleFormat and Outer from the Quantizer, in
// memory of its own, and a Detail compares with values under the outer scale.
func TestQuantizeUnderOuter(t *testing.T) {
	src := []float32{1, 2, 3, 4, 10, 20, 30, 41, float32(math.Inf(1)), 0}
	x := &tensor.Tensor{Name: "x", Shape: []int{2, 5}, Block: tensor.Block{Rows: 1}}
	q := tensor.Quantizer{
		Scale:       func(int, float32, bool) fp8.Scale { return fp8.Scale{Stored: 0.5, Multiplier: 1} },
		ScaleFormat: tensor.UE4M3Scales, Outer: tensor.Outer{Scales: []float32{2, 4}, Rows: 1},
	}
	st := fp8.Stats{Detail: new(fp8.Detail)}
	q.Stats = &st
	require.NoError(t, tensor.Quantize(t.Context(), x, src, q))
	require.Equal(t, tensor.UE4M3Scales, x.ScaleFormat)
	require.Equal(t, q.Outer, x.Outer)
	require.NoError(t, x.CheckScales())
	q.Outer.Scales[0] = 99
	require.Equal(t, float32(2), x.Outer.Scales[0])
	require.Equal(t, int64(10), st.Elements)
	var want float64
	rows, cols := x.Dims()
	for i := range rows {
		for j := range cols {
			if v := float64(src[i*cols+j]); v < math.MaxFloat32 {
				want += (v - float64(x.At(i, j))) * (v - float64(x.At(i, j)))
			}
		}
	}
	require.Equal(t, want, st.Detail.SquaredError)
	require.Positive(t, want)

	// What a tensor was before leaves nothing behind.
	require.NoError(t, tensor.Quantize(t.Context(), x, src, tensor.Quantizer{Scale: q.Scale}))
	require.True(t, x.Outer.None())
	require.Equal(t, tensor.Float32Scales, x.ScaleFormat)

	before := *x
	for _, wrong := range []tensor.Outer{{Scales: []float32{1, 2}}, {Scales: []float32{1}, Rows: 1}, {Rows: -1}} {
		err := tensor.Quantize(t.Context(), x, src, tensor.Quantizer{Scale: q.Scale, Outer: wrong})
		require.ErrorIs(t, err, tensor.ErrShape)
	}
	require.ErrorIs(t, tensor.Quantize(t.Context(), x, src, tensor.Quantizer{Scale: q.Scale, ScaleFormat: 3}), tensor.ErrScale)
	require.Equal(t, before, *x)

	// A view's outer scales are not its own.
	stack := &tensor.Tensor{Shape: []int{2, 2, 5}, Block: tensor.Block{Rows: 1}}
	q.Outer = tensor.Outer{Scales: []float32{2, 4}, Rows: 2}
	require.NoError(t, tensor.Quantize(t.Context(), stack, append(src, src...), q))
	part, err := stack.Index(1)
	require.NoError(t, err)
	q.Outer = tensor.Outer{Scales: []float32{7}}
	require.NoError(t, tensor.Quantize(t.Context(), part, src, q))
	require.Equal(t, []float32{2, 4}, stack.Outer.Scales)
}

// TestDequantizeUnderOuter compares long rows, at every level, with the exact value of each
// element, rounded once.
func TestDequantizeUnderOuter(t *testing.T) {
	for _, l := range cpu.Levels() {
		kernelstest.At(t, l, func(t *testing.T) {
			r := rand.New(rand.NewPCG(17, 5))
			for i := range 40 {
				x := tensor.Tensor{
					Name: "x", Format: []fp8.Format{fp8.E2M1, fp8.E4M3}[i%2], Shape: []int{3, 1 + r.IntN(100)},
					Block: tensor.Block{Rows: 1, Cols: 16}, ScaleFormat: tensor.UE4M3Scales,
				}
				outer := float32(math.Ldexp(1+r.Float64(), r.IntN(270)-140)) // some results are subnormal, or too large
				x.Outer = tensor.Outer{Scales: []float32{outer}, Divide: i%4 < 2}
				for range x.Len() {
					x.Codes = append(x.Codes, byte(r.Uint32())&byte(1<<x.Format.Bits()-1))
				}
				rows, cols := x.Grid()
				for range rows * cols {
					x.Scales = append(x.Scales, fp8.UE4M3(r.IntN(0x7F)).Float32())
				}
				got := make([]float32, x.Len())
				tensor.Dequantize(got, &x)
				_, width := x.Dims()
				for k, v := range got {
					code := x.Format.Float32(x.Codes[k])
					if code != code {
						require.True(t, v != v && math.Signbit(float64(v)) == math.Signbit(float64(code)))
						continue
					}
					s := x.Scales[k/width*cols+k%width/16]
					exact := new(big.Rat).Mul(new(big.Rat).SetFloat64(float64(code)), new(big.Rat).SetFloat64(float64(s)))
					if g := new(big.Rat).SetFloat64(float64(outer)); x.Outer.Divide {
						exact.Quo(exact, g)
					} else {
						exact.Mul(exact, g)
					}
					want, _ := exact.Float32()
					require.Equal(t, want, v, "%v*%v, %v", code, s, x.Outer)
				}
			}
		})
	}
}
