package scaling_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// nvfp4Of returns the recipes with two levels of scales in a block.
func nvfp4Of(b tensor.Block) (all []scaling.Recipe) {
	for _, p := range scaling.Profiles() {
		if r := p.Recipe(scaling.Input); p.Outer() && p != scaling.NVFP4TERow {
			r.Block = b
			all = append(all, r)
		}
	}
	return all
}

// uneven are values whose blocks differ in magnitude, with zeros and a block of them.
func uneven(r *rand.Rand, rows, cols int) []float32 {
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = float32(r.NormFloat64() * math.Exp2(float64(i/16%7)))
		if i%16 == 3 || i/16 == 5 {
			x[i] = 0
		}
	}
	return x
}

// TestOuterByParts quantizes rows of a tensor by themselves, under the outer scale of the
// whole, and with several goroutines: the codes are those of the whole.
func TestOuterByParts(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 30))
	for _, shape := range [][2]int{{48, 64}, {40, 72}, {33, 17}, {1, 5}, {700, 130}} {
		rows, cols := shape[0], shape[1]
		src := uneven(r, rows, cols)
		amax, _ := fp8.Amax(src)
		for _, block := range []tensor.Block{{Rows: 1, Cols: 16}, {Rows: 16, Cols: 16}} {
			for _, recipe := range nvfp4Of(block) {
				whole := tensorOf(rows, cols)
				var st fp8.Stats
				require.NoError(t, scaling.Quantize(t.Context(), whole, src, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &st, Workers: 3}}))
				require.NoError(t, whole.CheckScales())
				require.Equal(t, recipe.OuterScale(amax), whole.Outer.Scales[0])
				require.Equal(t, int64(rows*cols), st.Elements)
				var sum fp8.Stats
				for lo := 0; lo < rows; lo += 16 {
					hi := min(lo+16, rows)
					part := tensorOf(hi-lo, cols)
					require.NoError(t, scaling.Quantize(t.Context(), part, src[lo*cols:hi*cols],
						scaling.Quantizer{Recipe: recipe, OuterAmax: []float32{amax}, Options: tensor.Options{Stats: &sum}}))
					want, err := whole.RowRange(lo, hi)
					require.NoError(t, err)
					require.Equal(t, want.Codes, part.Codes, "%v", recipe)
					require.Equal(t, want.Scales, part.Scales, "%v", recipe)
					require.Equal(t, want.Outer, part.Outer)
				}
				require.Equal(t, st, sum)
			}
		}
	}
}

// TestOuterRows compares outer scales of each row, or of each matrix of a stack, with
// tensors that are such a row or matrix.
func TestOuterRows(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 31))
	const matrices, rows, cols = 5, 32, 50
	src := uneven(r, matrices*rows, cols)
	for i := range src[rows*cols:] {
		src[rows*cols+i] *= 100
	}
	src[7] = float32(math.NaN())
	src[len(src)-1] = float32(math.NaN())
	recipes := nvfp4Of(tensor.Block{Rows: 1, Cols: 16})
	for i := range recipes {
		recipes[i].OuterRows = []int{1, rows, 7}[i%3]
	}
	square := scaling.NVFP4TE.Recipe(scaling.Weight)
	square.OuterRows = rows
	recipes = append(recipes, scaling.NVFP4TERow.Recipe(scaling.Input), square)
	for _, recipe := range recipes {
		stack := tensorOf(matrices, rows, cols)
		require.NoError(t, scaling.Quantize(t.Context(), stack, src, scaling.Quantizer{Recipe: recipe}))
		require.NoError(t, stack.Check())
		height := max(stack.Outer.Rows, 1)
		one := recipe
		if one.OuterRows = 0; one.Profile == scaling.NVFP4TERow {
			one.Profile = scaling.NVFP4TE
		}
		for lo := 0; lo < matrices*rows; lo += height {
			hi := min(lo+height, matrices*rows)
			x := tensorOf(hi-lo, cols)
			require.NoError(t, scaling.Quantize(t.Context(), x, src[lo*cols:hi*cols], scaling.Quantizer{Recipe: one}))
			got, err := stack.RowRange(lo, hi)
			require.NoError(t, err)
			require.Equal(t, x.Codes, got.Codes, "%v rows %d", recipe, lo)
			require.Equal(t, bits(x.Scales), bits(got.Scales), "%v rows %d", recipe, lo)
			require.Equal(t, bits(x.Outer.Scales), bits(got.Outer.Scales), "%v rows %d", recipe, lo)
		}
	}
}

// TestSharedOuter: rows under the amax of all of them become what they are in the whole tensor.
func TestSharedOuter(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 32))
	const rows, cols = 10, 48
	src := uneven(r, rows, cols)
	src[len(src)-1] = 1000
	for _, recipe := range nvfp4Of(tensor.Block{Rows: 1, Cols: 16}) {
		whole, part := tensorOf(rows, cols), tensorOf(4, cols)
		require.NoError(t, scaling.Quantize(t.Context(), whole, src, scaling.Quantizer{Recipe: recipe}))
		recipe.OuterAmax = 1000
		require.NoError(t, scaling.Quantize(t.Context(), part, src[:4*cols], scaling.Quantizer{Recipe: recipe}))
		want, err := whole.RowRange(0, 4)
		require.NoError(t, err)
		require.Equal(t, want.Codes, part.Codes, "%v", recipe)
		require.Equal(t, bits(want.Scales), bits(part.Scales), "%v", recipe)
		require.Equal(t, want.Outer, part.Outer, "%v", recipe)
	}
}

// TestOuterRowsBeyond: an outer scale may be said to be of more rows than there are, or
// than can be counted.
func TestOuterRowsBeyond(t *testing.T) {
	recipe := scaling.NVFP4TE.Recipe(scaling.Input)
	want := tensorOf(2, 16)
	src := make([]float32, 32)
	src[17] = 3
	require.NoError(t, scaling.Quantize(t.Context(), want, src, scaling.Quantizer{Recipe: recipe}))
	for _, rows := range []int{3, math.MaxInt, math.MaxInt/8 + 2} {
		recipe.OuterRows = rows
		x := tensorOf(2, 16)
		require.NoError(t, scaling.Quantize(t.Context(), x, src, scaling.Quantizer{Recipe: recipe}))
		require.NoError(t, x.CheckScales())
		require.Equal(t, want.Scales, x.Scales)
		require.Equal(t, want.Outer.Scales, x.Outer.Scales)
	}
}

// TestOuterAmaxRefused: amaxes that are not those of the outer scales.
func TestOuterAmaxRefused(t *testing.T) {
	nvfp4 := scaling.NVFP4TE.Recipe(scaling.Input)
	for want, q := range map[string]scaling.Quantizer{
		`tensor "x": scaling: shape [2 16] needs the amaxes of 1 outer scales, 2 are given`:                      {Recipe: nvfp4, OuterAmax: []float32{1, 2}},
		`tensor "x": scaling: shape [2 16] needs the amaxes of 2 outer scales, 0 are given`:                      {Recipe: scaling.NVFP4TERow.Recipe(scaling.Input), OuterAmax: []float32{}},
		`tensor "x": scaling: amax -1 of outer scale 0 is negative`:                                              {Recipe: nvfp4, OuterAmax: []float32{-1}},
		`tensor "x": scaling: amax -0 of outer scale 0 is negative`:                                              {Recipe: nvfp4, OuterAmax: []float32{float32(math.Copysign(0, -1))}},
		`tensor "x": scaling: amax -Inf of outer scale 0 is negative`:                                            {Recipe: scaling.NVFP4ModelOpt.Recipe(scaling.Input), OuterAmax: []float32{float32(math.Inf(-1))}},
		`tensor "x": scaling: amax of outer scale 1 is NaN: this arithmetic leaves NaN out`:                      {Recipe: scaling.NVFP4TERow.Recipe(scaling.Input), OuterAmax: []float32{1, float32(math.NaN())}},
		`tensor "x": scaling: recipe te-block-pow2 E4M3 tensor has no outer scales, 1 amaxes are given for them`: {OuterAmax: []float32{1}},
	} {
		x := tensorOf(2, 16)
		require.EqualError(t, scaling.Quantize(t.Context(), x, make([]float32, 32), q), want)
		require.ErrorIs(t, scaling.Quantize(t.Context(), x, make([]float32, 32), q), scaling.ErrRecipe)
		require.Equal(t, *tensorOf(2, 16), *x)
	}
	require.PanicsWithValue(t, "scaling: recipe has no outer scales", func() { scaling.Default(scaling.Input).OuterScale(1) })
	require.Panics(t, func() { scaling.NVFP4FourOverSixMSE.Recipe(scaling.Input).ScaleUnder(1, 1) })
	err := scaling.Quantize(t.Context(), tensorOf(2, 16), make([]float32, 31), scaling.Quantizer{Recipe: nvfp4})
	require.ErrorIs(t, err, tensor.ErrShape)
	require.EqualError(t, err, `tensor "x": the source has 31 elements: it must have 32`)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, scaling.Quantize(ctx, tensorOf(2, 16), make([]float32, 32), scaling.Quantizer{Recipe: nvfp4}), context.Canceled)

	for _, shape := range [][]int{{0, 16}, {3, 0}, {0}, {0, 2, 16}} { // nothing to scale
		for _, recipe := range append(nvfp4Of(tensor.Block{Rows: 1, Cols: 16}), scaling.NVFP4TERow.Recipe(scaling.Input)) {
			x := tensorOf(shape...)
			require.NoError(t, scaling.Quantize(t.Context(), x, []float32{}, scaling.Quantizer{Recipe: recipe}))
			require.NoError(t, x.Check(), "%v %v", recipe, shape)
		}
	}
}

// TestOuterAmaxOutOfTheOrdinary: an amax that is given does what the same amax of values
// does.
func TestOuterAmaxOutOfTheOrdinary(t *testing.T) {
	nan := 0
	for _, recipe := range nvfp4Of(tensor.Block{Rows: 1, Cols: 16}) {
		for _, amax := range outerAmaxes {
			if amax != amax && recipe.OuterScale(amax) == recipe.OuterScale(amax) {
				nan++
				continue // refused: TestOuterAmaxRefused
			}
			want, got := tensorOf(1, 32), tensorOf(1, 32)
			src := make([]float32, 32)
			src[20] = -amax
			q := scaling.Quantizer{Recipe: recipe}
			require.NoError(t, scaling.Quantize(t.Context(), want, src, q))
			q.OuterAmax = []float32{amax}
			require.NoError(t, scaling.Quantize(t.Context(), got, src, q))
			require.Equal(t, want.Codes, got.Codes)
			require.Equal(t, scaleBits(want.Scales), scaleBits(got.Scales))
			require.Equal(t, scaleBits(want.Outer.Scales), scaleBits(got.Outer.Scales), "%v %v", recipe, amax)
			require.Equal(t, scaleBits([]float32{recipe.OuterScale(amax)}), scaleBits(got.Outer.Scales))
		}
	}
	require.Equal(t, 9, nan) // TransformerEngine's
}

// scaleBits tells scales apart by their bits.
func scaleBits(scales []float32) (bits []uint32) {
	for _, s := range scales {
		bits = append(bits, math.Float32bits(s))
	}
	return bits
}

// TestFourOverSixOutcomes is TestNVFP4Outcomes of the profiles that choose.
func TestFourOverSixOutcomes(t *testing.T) {
	tested := 0
	for _, p := range scaling.Profiles() {
		if !chooses(p) {
			continue
		}
		tested++
		te := strings.HasPrefix(string(p), "nvfp4-te")
		recipe := p.Recipe(scaling.Input)
		for _, amax := range outerAmaxes {
			x := quantizeBlock(t, recipe, 0, -amax, 0)
			a, zero := amax, float32(0)
			if te && amax != amax {
				a = 0 // it is left out
			}
			want, _ := bestOf(p, [][]float32{{0, amax, 0}}, a, a)
			require.Equal(t, scaleBits([]float32{want}), scaleBits(x.Scales), "%s %v", p, amax)
			switch { // as documented
			case a == 0:
				require.Equal(t, zero, x.Scales[0])
			case math.IsInf(float64(a), 0) && te:
				require.Equal(t, float32(1), x.Outer.Scales[0])
			case math.IsInf(float64(a), 0):
				require.Equal(t, a, x.Outer.Scales[0])
			case a != a || a < 0x1p-120 && !te:
				require.True(t, x.Scales[0] != x.Scales[0], "%s %v", p, amax)
			}
		}
	}
	require.Equal(t, 11, tested)
}

// TestEvenIntegers: under mx-even the largest magnitude of a block in MXINT8, rounded to
// steps of 1/64, is at least 1 and less than 2; under mx-floor it may saturate.
func TestEvenIntegers(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 47))
	saturated := map[scaling.Profile]int64{}
	for range 3000 {
		amax := float32(math.Ldexp(1+r.Float64(), r.IntN(60)-30))
		if r.IntN(2) == 0 { // beside the last tie of a binade
			amax = math.Float32frombits(uint32(100+r.IntN(60))<<23 + 0x7F0000 + uint32(r.IntN(5)) - 2)
		}
		for _, p := range []scaling.Profile{scaling.MXEven, scaling.MXFloor} {
			var st fp8.Stats
			x := tensorOf(1, 2)
			q := scaling.Quantizer{Recipe: scaling.Recipe{Profile: p, Format: fp8.MXINT8, Block: tensor.Block{Rows: 1, Cols: 32}}, Options: tensor.Options{Stats: &st}}
			require.NoError(t, scaling.Quantize(t.Context(), x, []float32{0, amax}, q))
			require.GreaterOrEqual(t, x.Codes[1], byte(64), "%v", amax)
			require.Less(t, x.Codes[1], byte(128))
			saturated[p] += st.Saturated()
		}
	}
	require.Zero(t, saturated[scaling.MXEven])
	require.Positive(t, saturated[scaling.MXFloor])
}

// TestSquareBlocksTransposed: a weight in square blocks has the same codes as its
// transpose, which is what they are for.
func TestSquareBlocksTransposed(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 32))
	const rows, cols = 48, 80
	src := uneven(r, rows, cols)
	turned := make([]float32, len(src))
	for i := range rows {
		for j := range cols {
			turned[j*rows+i] = src[i*cols+j]
		}
	}
	for _, recipe := range nvfp4Of(tensor.Block{Rows: 16, Cols: 16}) {
		if chooses(recipe.Profile) {
			continue // errors are added in another order
		}
		x, y := tensorOf(rows, cols), tensorOf(cols, rows)
		require.NoError(t, scaling.Quantize(t.Context(), x, src, scaling.Quantizer{Recipe: recipe}))
		require.NoError(t, scaling.Quantize(t.Context(), y, turned, scaling.Quantizer{Recipe: recipe}))
		require.Equal(t, y.Codes, x.Transpose().Codes)
		require.Equal(t, y.Scales, x.Transpose().Scales)
	}
}

// TestNaNAmongBlocks: a NaN in a row sends its blocks another way, which comes to the same
// for those without a NaN; profiles that leave NaN out keep all scales.
func TestNaNAmongBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 33))
	const rows, cols = 4, 100
	src := uneven(r, rows, cols)
	amax, _ := fp8.Amax(src)
	with := append([]float32{}, src...)
	with[2*cols+20] = float32(math.NaN())
	for _, recipe := range nvfp4Of(tensor.Block{Rows: 1, Cols: 16}) {
		x, y := tensorOf(rows, cols), tensorOf(rows, cols)
		q := scaling.Quantizer{Recipe: recipe, OuterAmax: []float32{amax}}
		require.NoError(t, scaling.Quantize(t.Context(), x, src, q))
		require.NoError(t, scaling.Quantize(t.Context(), y, with, q))
		for i := range x.Codes {
			if i/cols != 2 || i%cols/16 != 1 {
				require.Equal(t, x.Codes[i], y.Codes[i])
			}
		}
		nan := 0
		for i := range y.Scales {
			if y.Scales[i] != y.Scales[i] {
				nan++
				require.Equal(t, 2*7+1, i)
			} else if i != 2*7+1 {
				require.Equal(t, x.Scales[i], y.Scales[i])
			}
		}
		require.Equal(t, strings.HasPrefix(string(recipe.Profile), "nvfp4-te"), nan == 0, "%v", recipe)
	}
}

// bestOf is four-over-six by its definition: each value is encoded by itself under both
// scales and decoded again, in float32.
func bestOf(p scaling.Profile, x [][]float32, a, amax float32) (stored float32, four bool) {
	te, fast := false, false
	emax, rule := float32(256), "mse"
	if _, err := fmt.Sscanf(string(p), "nvfp4-te-4over6-%3s%3f", &rule, &emax); err == nil {
		te, fast = true, p[len(p)-1] == 't'
	} else {
		rule = string(p[len("nvfp4-fouroversix-"):])
	}
	encode := exactly('/', 6*emax, a)
	if te {
		encode = min(encode, math.MaxFloat32)
	}
	if te && encode == 0 {
		encode = 1
	}
	decode := exactly('/', 1, encode)
	scaleOf := func(expand float32) (s, m float32) {
		v := exactly('*', exactly('*', exactly('/', amax, 6), encode), expand)
		if te {
			s = nearestUE4M3(min(v, 448))
			return s, min(exactly('/', 1, exactly('*', s, decode)), math.MaxFloat32)
		}
		s = nearestUE4M3(v)
		if s == 0 || a == 0 {
			return 0, 0
		}
		return s, exactly('/', 1, exactly('*', decode, s))
	}
	loss := func(s, m float32) float32 {
		rows := make([]float32, 16)
		for i, row := range x {
			for _, v := range row {
				q := fp8.E2M1.Float32(fp8.EncodeOne(exactly('*', v, m), fp8.E2M1, fp8.Policy{}))
				var d float32
				if fast {
					d = float16.Fromfloat32(q*s).Float32() - exactly('*', v, encode)
				} else {
					d = exactly('/', exactly('*', exactly('*', q, s), a), 6*emax) - v
				}
				switch rule {
				case "mse":
					rows[i] = rows[i] + exactly('*', d, d)
				case "mae":
					rows[i] = rows[i] + float32(math.Abs(float64(d)))
				default:
					rows[i] = max(rows[i], float32(math.Abs(float64(d))))
				}
			}
		}
		if rule == "absmax" {
			for _, v := range rows {
				rows[0] = max(rows[0], v)
			}
			return rows[0]
		}
		for n := 8; n > 0; n /= 2 {
			for i := range n {
				rows[i] += rows[i+n]
			}
		}
		return rows[0]
	}
	s6, m6 := scaleOf(1)
	s4, m4 := scaleOf(1.5)
	if loss(s4, m4) < loss(s6, m6) {
		return s4, true
	}
	return s6, false
}

// TestFourOverSix compares the choice of every profile that has one with its definition, in
// rows and in squares with ragged edges, and counts that both scales are chosen. Squares of
// errors of values that are tiny are 0, but for profiles that compare under the outer scale.
func TestFourOverSix(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 34))
	rows, cols := 34, 70
	if testing.Short() {
		rows = 17
	}
	for _, p := range scaling.Profiles() {
		if !chooses(p) {
			continue
		}
		fours, all := 0, 0
		for i, block := range []tensor.Block{{Rows: 1, Cols: 16}, {Rows: 16, Cols: 16}, {Rows: 1, Cols: 16}} {
			src := uneven(r, rows, cols)
			if tiny := i == 2; tiny {
				for at := range src {
					src[at] *= 0x1p-90
				}
			}
			a, _ := fp8.Amax(src)
			x := tensorOf(rows, cols)
			require.NoError(t, scaling.Quantize(t.Context(), x, src, scaling.Quantizer{Recipe: scaling.Recipe{Profile: p, Format: fp8.E2M1, Block: block}}))
			_, gridCols := x.Grid()
			all += len(x.Scales)
			for i, got := range x.Scales {
				i0, j0 := i/gridCols*block.Rows, i%gridCols*block.Cols
				var values [][]float32
				var amax float32
				for row := i0; row < min(i0+block.Rows, rows); row++ {
					part := src[row*cols+j0 : row*cols+min(j0+block.Cols, cols)]
					m, _ := fp8.Amax(part)
					values, amax = append(values, part), max(amax, m)
				}
				want, four := bestOf(p, values, a, amax)
				require.Equal(t, want, got, "%s, block %d of %v", p, i, block)
				if four {
					fours++
				}
			}
		}
		require.Positive(t, fours, "%s", p)
		require.Less(t, fours, all)
	}
}

// TestFourOverSixTypes: of narrower types the choice is that of their values in float32.
func TestFourOverSixTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 35))
	const rows, cols = 600, 38
	src := uneven(r, rows, cols)
	half, brain, double := make([]float16.Float16, len(src)), make([]fp8.BFloat16, len(src)), make([]float64, len(src))
	for i, v := range src {
		brain[i] = fp8.BFloat16FromFloat32(v)
		src[i] = brain[i].Float32()
		half[i], double[i] = float16.Fromfloat32(src[i]), float64(src[i])
	}
	for _, role := range []scaling.Role{scaling.Input, scaling.Weight} {
		recipe := scaling.NVFP4TE4Over6MSE256.Recipe(role)
		want := quantized(t, recipe, src, rows, cols)
		for _, x := range []*tensor.Tensor{quantized(t, recipe, half, rows, cols), quantized(t, recipe, brain, rows, cols), quantized(t, recipe, double, rows, cols)} {
			require.Equal(t, want.Scales, x.Scales)
		}
		require.Equal(t, want.Codes, quantized(t, recipe, brain, rows, cols).Codes)
	}
}

func quantized[T fp8.Float](t *testing.T, r scaling.Recipe, src []T, shape ...int) *tensor.Tensor {
	x := tensorOf(shape...)
	require.NoError(t, scaling.Quantize(t.Context(), x, src, scaling.Quantizer{Recipe: r}))
	return x
}

// TestOuterOfRowsAlone: a tensor under an outer scale for each row is its rows, each quantized
// alone, also where there are NaN, and rows enough that not all are looked at in one go.
func TestOuterOfRowsAlone(t *testing.T) {
	const rows, cols = 150, 400
	r := rand.New(rand.NewPCG(11, 12))
	src := make([]float32, rows*cols)
	for i := range src {
		src[i] = float32(math.Ldexp(r.NormFloat64(), i/cols%20-10))
		if r.IntN(500) == 0 {
			src[i] = float32(math.NaN())
		}
	}
	q := scaling.Quantizer{Recipe: scaling.NVFP4TERow.Recipe(scaling.Input)}
	x := &tensor.Tensor{Shape: []int{rows, cols}}
	require.NoError(t, scaling.Quantize(t.Context(), x, src, q))
	for i := range rows {
		row := &tensor.Tensor{Shape: []int{1, cols}}
		require.NoError(t, scaling.Quantize(t.Context(), row, src[i*cols:(i+1)*cols], q))
		require.Equal(t, row.Codes, x.Codes[i*cols:(i+1)*cols], "row %d", i)
		require.Equal(t, row.Scales, x.Scales[i*len(row.Scales):(i+1)*len(row.Scales)], "row %d", i)
		require.Equal(t, row.Outer.Scales[0], x.Outer.Scales[i], "row %d", i)
	}
}
