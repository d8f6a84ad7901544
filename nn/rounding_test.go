package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/rounding"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// plainNarrow rounds a matrix block by block.
func plainNarrow(n Narrowing, values []float32, cols int, random func(i int) func(float64, bool) bool) []float32 {
	if n.Format == "" {
		return values
	}
	numbers := numbersOf(n.Format)
	rows := len(values) / cols
	block := n.Block
	if block.Rows == 0 {
		block.Rows = rows
	}
	if block.Cols == 0 {
		block.Cols = cols
	}
	out := make([]float32, len(values))
	for i := 0; i < rows; i += block.Rows {
		for j := 0; j < cols; j += block.Cols {
			var inside []int
			for r := i; r < min(i+block.Rows, rows); r++ {
				for c := j; c < min(j+block.Cols, cols); c++ {
					inside = append(inside, r*cols+c)
				}
			}
			m := plainMultiplier(numbers[len(numbers)-1], values, inside, n.ExactScale)
			for _, k := range inside {
				v := plainRound(numbers, float64(values[k]*m), random(k))
				out[k] = float32(v) * (1 / m)
			}
		}
	}
	return out
}

// plainMultiplier returns the largest number over the amax, or 1.
func plainMultiplier(largest float64, values []float32, inside []int, exact bool) float32 {
	amax := 0.0
	for _, k := range inside {
		if v := math.Abs(float64(values[k])); v > amax {
			amax = v
		}
	}
	if amax == 0 || math.IsInf(amax, 0) {
		return 1
	}
	m := float32(min(max(largest/amax, 0x1p-126), math.MaxFloat32))
	if exact {
		return m
	}
	_, exponent := math.Frexp(float64(m))
	return float32(math.Ldexp(1, exponent-1))
}

func nearestEverywhere(int) func(float64, bool) bool { return toNearest }

// threeNarrowings differ in every role, so that one used in the wrong place shows.
func threeNarrowings() Rounding {
	return Rounding{
		Input:    Narrowing{Format: NarrowE2M3, Block: tensor.Block{Rows: 1, Cols: 4}},
		Weight:   Narrowing{Format: NarrowE4M3, Block: tensor.Block{Rows: 2, Cols: 3}, ExactScale: true},
		Gradient: Narrowing{Format: NarrowE3M2, Block: tensor.Block{Rows: 3, Cols: 0}},
	}
}

// TestRoundedProducts compares the products of a layer with those of operands that
// the test rounds itself, in several passes.
func TestRoundedProducts(t *testing.T) {
	const rows, out, in, seed = 7, 6, 9, 8
	x, w, dy := randoms(2, rows*in), randoms(1, out*in), randoms(3, rows*out)
	for _, stochastic := range []bool{false, true} {
		for _, bf16 := range []bool{false, true} {
			var shared Shared
			r := threeNarrowings()
			r.Stochastic, r.Seed, r.BF16Results = stochastic, seed, bf16
			l, err := NewLinear("layer.weight", out, in, Options{Rounding: &r, Shared: &shared})
			require.NoError(t, err)
			copy(l.Weight.Value, w)
			y, dx := make([]float32, rows*out), make([]float32, rows*in)
			for _, pass := range []uint64{0, 1, 1 << 50} {
				if pass > 1 {
					shared.Scaling().SetPass(pass)
				}
				shared.Scaling().BeginBackward()
				random := func(op string) func(i int) func(float64, bool) bool {
					if !stochastic {
						return nearestEverywhere
					}
					key := plainMix(plainSeed(seed, pass, "layer "+op))
					return func(i int) func(float64, bool) bool { return atRandom(plainMix(key+uint64(i)) >> 32) }
				}
				product := func(a, b []float32, m, n, k int) []float32 {
					c := make([]float32, m*n)
					canonical.MultiplyDense(c, a, b, m, n, k, 1)
					for i := range c {
						if bf16 {
							c[i] = fp8.BFloat16FromFloat32(c[i]).Float32()
						}
					}
					return c
				}
				clear(l.Weight.Grad)
				require.NoError(t, l.Forward(t.Context(), y, x, rows))
				require.NoError(t, l.Backward(t.Context(), dx, dy))
				require.Equal(t, product(
					plainNarrow(r.Input, x, in, nearestEverywhere),
					plainNarrow(r.Weight, w, in, nearestEverywhere), rows, out, in), y)
				require.Equal(t, product(
					plainNarrow(r.Gradient, dy, out, random("input-gradient")),
					plainNarrow(r.Weight, flip(w, out), out, nearestEverywhere), rows, in, out), dx)
				require.Equal(t, product(
					plainNarrow(r.Gradient, flip(dy, rows), rows, random("weight-gradient")),
					plainNarrow(r.Input, flip(x, rows), rows, nearestEverywhere), out, in, rows), l.Weight.Grad)
			}
		}
	}
}

// TestScalesByDefinition: blocks of every kind, of values of every kind and size.
func TestScalesByDefinition(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, shape := range [][2]int{{1, 1}, {3, 5}, {40, 300}, {300, 7}} {
		rows, cols := shape[0], shape[1]
		for _, b := range []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 2}, {Rows: 2, Cols: 3}, {Rows: 128, Cols: 128}, {Rows: 4, Cols: 0}, {Cols: 1}} {
			for _, f := range []NarrowFormat{NarrowE4M3, NarrowE2M1, NarrowFP16, "E1M1"} {
				for size, unit := range []float32{1, 0x1p-140, 0x1p127, 0} {
					for _, exact := range []bool{false, true} {
						n := Narrowing{Format: f, Block: b, ExactScale: exact}
						values := randoms(uint64(rows), rows*cols)
						for i := range values {
							values[i] *= unit * math.Float32frombits(uint32(127-i%20)<<23) / 8
						}
						want := plainNarrow(n, values, cols, nearestEverywhere)
						for _, workers := range []int{1, 2, 5} {
							r := newRounder(n, workers)
							got := r.round(values, rows, cols, fp8.Policy{})
							require.Equal(t, want, got, "%v %+v %d", shape, n, size)
							require.Equal(t, want, r.round(values, rows, cols, fp8.Policy{}), "again")
						}
					}
				}
			}
		}
	}
	// A scale is never so small that its reciprocal overflows.
	r := newRounder(Narrowing{Format: "E1M1"}, 1)
	require.Equal(t, []float32{3 * 0x1p126, 0x1p127}, r.round([]float32{math.MaxFloat32, 0x1p127}, 1, 2, fp8.Policy{}))

	// A NaN is left out, an infinity makes the scale 1: 0.3 is then no tie.
	n := Narrowing{Format: NarrowE2M1, Block: tensor.Block{Rows: 1, Cols: 3}}
	r = newRounder(n, 1)
	got := r.round([]float32{nan, 0.3, 600, inf, 0.3, 600, -600, 0.3, 1e-30, 0, 0, 0}, 4, 3, fp8.Policy{})
	require.True(t, math.IsNaN(float64(got[0])))
	require.Equal(t, []float32{0, 512}, got[1:3])
	require.Equal(t, []float32{inf, 0.5, 6}, got[3:6])
	require.Equal(t, []float32{-512, 0, 0}, got[6:9])
	require.Equal(t, []float32{0, 0, 0}, got[9:])
}

// TestRoundingIsFP8: rounded to E4M3 and multiplied in FP32, operands give what FP8
// products give, but for the rounding of sums.
func TestRoundingIsFP8(t *testing.T) {
	const rows, out, in = 140, 150, 270
	eight, rounding := DefaultFP8(), DefaultRounding(NarrowE4M3)
	hybrid := DefaultFP8()
	hybrid.InputGradient.A.Format, hybrid.WeightGradient.A.Format = fp8.E5M2, fp8.E5M2
	hybridRounding := rounding
	hybridRounding.Gradient.Format = NarrowE5M2
	x, w, dy := randoms(2, rows*in), randoms(1, out*in), randoms(3, rows*out)
	for i := range dy {
		dy[i] *= 1e-5 * math.Float32frombits(uint32(127-i%12)<<23)
	}
	results := func(o Options) [3][]float32 {
		l, err := NewLinear("layer.weight", out, in, o)
		require.NoError(t, err)
		copy(l.Weight.Value, w)
		y, dx := make([]float32, rows*out), make([]float32, rows*in)
		require.NoError(t, l.Forward(t.Context(), y, x, rows))
		require.NoError(t, l.Backward(t.Context(), dx, dy))
		return [3][]float32{y, dx, l.Weight.Grad}
	}
	exact := results(Options{})
	sums := [3]struct {
		a, b    []float32
		m, n, k int
	}{{x, w, rows, out, in}, {dy, flip(w, out), rows, in, out}, {flip(dy, rows), flip(x, rows), out, in, rows}}
	for _, pair := range []struct {
		FP8      FP8
		Rounding Rounding
	}{{eight, rounding}, {hybrid, hybridRounding}} {
		want, got := results(Options{FP8: &pair.FP8}), results(Options{Rounding: &pair.Rounding})
		for p, s := range sums {
			far := 0
			for i := range want[p] {
				var sum float64 // of magnitudes, which rounding raises by an eighth each at most
				for j := range s.k {
					sum += math.Abs(float64(s.a[i/s.n*s.k+j]) * float64(s.b[i%s.n*s.k+j]))
				}
				bound := 1.3 * sum * float64(s.k) * 0x1p-23 / 4
				require.InDelta(t, want[p][i], got[p][i], bound, "product %d, element %d", p, i)
				if math.Abs(float64(exact[p][i])-float64(got[p][i])) > 10*bound {
					far++
				}
			}
			require.Greater(t, far, len(want[p])/2, "FP32 itself must be farther away")
		}
	}
}

func TestDefaultRounding(t *testing.T) {
	require.Equal(t, Rounding{
		Input:       Narrowing{Format: "E8M7"},
		Weight:      Narrowing{Format: "E8M7"},
		Gradient:    Narrowing{Format: "E8M7"},
		BF16Results: true,
	}, DefaultRounding(NarrowBF16))
	require.Equal(t, Rounding{
		Input:    Narrowing{Format: "E2M1", Block: tensor.Block{Rows: 1, Cols: 128}},
		Weight:   Narrowing{Format: "E2M1", Block: tensor.Block{Rows: 128, Cols: 128}},
		Gradient: Narrowing{Format: "E2M1", Block: tensor.Block{Rows: 1, Cols: 128}},
	}, DefaultRounding(NarrowE2M1))
}

func TestRoundingRefused(t *testing.T) {
	r := DefaultRounding(NarrowE4M3)
	_, err := NewLlama(withRounding(withFP8(small(), DefaultFP8()), r), 1)
	require.ErrorContains(t, err, "nn: Config.FP8 and Config.Rounding are both set")
	eight := DefaultFP8()
	_, err = NewLinear("w", 2, 2, Options{FP8: &eight, Rounding: &r})
	require.ErrorContains(t, err, "nn: Options.FP8 and Options.Rounding are both set")
	for want, change := range map[string]func(){
		`Rounding.Input: format "E9M9"`:                              func() { r.Input.Format = "E9M9" },
		`Rounding.Weight: format "fp4"`:                              func() { r.Weight.Format = "fp4" },
		"Rounding.Gradient: block -1x0 has a negative extent":        func() { r.Gradient.Block = tensor.Block{Rows: -1} },
		"Rounding.Gradient: block 0x-2 has a negative extent":        func() { r.Gradient = Narrowing{Block: tensor.Block{Cols: -2}} },
		`want one from E1M1 to E5M10, such as "E2M1", or "E8M7", wh`: func() { r.Input.Format = "BF16" },
	} {
		r = DefaultRounding(NarrowE4M3)
		change()
		_, err := NewLlama(withRounding(small(), r), 1)
		require.ErrorContains(t, err, want)
		_, err = NewLinear("w", 2, 2, Options{Rounding: &r})
		require.ErrorContains(t, err, want)
	}
}

func withRounding(cfg Config, r Rounding) Config {
	cfg.Rounding = &r
	return cfg
}

// TestExactProducts: what it calls exact is, up to the limits of float32.
func TestExactProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	exact := 0
	for range 20000 {
		mantissa := [2]int{7 + r.IntN(6), 7 + r.IntN(6)}
		var x [2][]float32
		for i := range x {
			for range 1 + r.IntN(3) {
				v := math.Ldexp(float64(1<<mantissa[i]+r.IntN(1<<mantissa[i])), r.IntN(8)-mantissa[i]+[]int{-130, -70, -60, 0, 60, 66, 120}[r.IntN(7)])
				x[i] = append(x[i], float32(v)*float32(1-2*r.IntN(2)))
			}
		}
		x[1] = append(x[1], 0)
		operand := func(i int) roundedOperand { return operandOf(mantissa[i], x[i]...) }
		if !exactProducts(operand(0), operand(1)) {
			continue
		}
		exact++
		for _, a := range x[0] {
			for _, b := range x[1] {
				require.Equal(t, float64(a)*float64(b), float64(a*b), "%v times %v", a, b)
			}
		}
	}
	require.Greater(t, exact, 2000)
	ones := func(mantissa int, v ...float32) roundedOperand { return operandOf(mantissa, append(v, 1)...) }
	require.True(t, exactProducts(ones(11), ones(11)))
	require.False(t, exactProducts(ones(11), ones(12)), "25 bits")
	require.True(t, exactProducts(ones(7, 0x1p-60), ones(7, 0x1p-75)))
	require.False(t, exactProducts(ones(7, 0x1p-60), ones(7, 0x1p-76)), "below what float32 has")
	require.False(t, exactProducts(ones(7), ones(7, float32(math.Inf(1)))))
	require.False(t, exactProducts(ones(7, float32(math.NaN())), ones(7)))
	require.False(t, exactProducts(operandOf(7, float32(math.NaN())), ones(7)), "nothing else")
	require.False(t, exactProducts(operandOf(7, 0), ones(7)), "nothing but zeros")
}

// operandOf returns values that were looked at one by one.
func operandOf(mantissa int, values ...float32) roundedOperand {
	var found sharedMagnitudes
	for i := range values {
		found.add(values[i : i+1])
	}
	return roundedOperand{canonical.Dense(values, 1), mantissa, found.magnitudes}
}

// TestMagnitudesOfOperands: those of all rounded values, wherever the extremes lie, but at
// level generic, where nobody asks.
func TestMagnitudesOfOperands(t *testing.T) {
	const rows, cols = 50, 300 // some parts
	for _, f := range []NarrowFormat{NarrowBF16, NarrowE4M3, NarrowE2M1} {
		for _, policy := range []fp8.Policy{{}, {Rounding: fp8.Stochastic, Seed: 1}} {
			for _, at := range []int{0, 7000, rows*cols - 1} {
				values := randoms(3, rows*cols)
				values[at], values[rows*cols/2-1] = 1e-30, -1e30
				for _, workers := range []int{1, 3} {
					r := newRounder(Narrowing{Format: f, Block: tensor.Block{Rows: 1, Cols: 1}}, workers)
					for range 2 { // the second time finds the same
						o, err := r.operand(t.Context(), values, rows, cols, policy)
						require.NoError(t, err)
						var want magnitudes
						if canonical.ExactIsFaster() {
							want.least, want.greatest = rounding.Magnitudes(o.Data)
							require.Less(t, want.least, float32(2e-30))
						}
						require.Equal(t, want, o.magnitudes, "%s, %+v, %d, %d workers", f, policy, at, workers)
						clear(values)
						o, err = r.operand(t.Context(), values, rows, cols, policy)
						require.NoError(t, err)
						require.Zero(t, o.magnitudes)
						values[at], values[rows*cols/2-1] = 1e-30, -1e30
					}
				}
			}
		}
	}
	r := newRounder(Narrowing{Format: NarrowE4M3, ExactScale: true}, 1)
	o, err := r.operand(t.Context(), []float32{1}, 1, 1, fp8.Policy{})
	require.NoError(t, err)
	require.Zero(t, o.magnitudes, "of 24 bits")
}

// TestRecipeRounding compares a layer whose operands are rounded under recipes with the FP32
// layer of what the codes of those recipes stand for, and with the one that multiplies in FP8.
func TestRecipeRounding(t *testing.T) {
	const rows, out, in = 37, 48, 160
	x, w, dy := randoms(2, rows*in), randoms(1, out*in), randoms(3, rows*out)
	four, err := ParseRecipe("nvfp4")
	require.NoError(t, err)
	mx, err := ParseRecipe("mxfp4")
	require.NoError(t, err)
	for _, f := range []FP8{DefaultFP8(), ProfileFP8(scaling.TECurrent, fp8.E4M3), four.FP8, mx.FP8} {
		input, weight := f.Forward.A, f.Forward.B
		value := func(r scaling.Recipe, v []float32, cols int) []float32 {
			q := tensor.Tensor{Shape: []int{len(v) / cols, cols}}
			require.NoError(t, scaling.Quantize(t.Context(), &q, v, scaling.Quantizer{Recipe: r}))
			values := make([]float32, len(v))
			tensor.Dequantize(values, &q)
			return values
		}
		product := func(a, b []float32, m, n, k int) []float32 {
			c := make([]float32, m*n)
			canonical.MultiplyDense(c, a, b, m, n, k, 1)
			return c
		}
		results := func(o Options) (y, dx []float32, l *Linear) {
			l, err := NewLinear("layer.weight", out, in, o)
			require.NoError(t, err)
			copy(l.Weight.Value, w)
			y, dx = make([]float32, rows*out), make([]float32, rows*in)
			require.NoError(t, l.Forward(t.Context(), y, x, rows))
			require.NoError(t, l.Backward(t.Context(), dx, dy))
			return y, dx, l
		}
		both := Rounding{Input: Narrowing{Recipe: &input}, Weight: Narrowing{Recipe: &weight}}
		for _, workers := range []int{1, 3} {
			y, dx, l := results(Options{Rounding: &both, Workers: workers})
			require.Equal(t, product(value(input, x, in), value(weight, w, in), rows, out, in), y)
			require.Equal(t, product(dy, value(weight, flip(w, out), out), rows, in, out), dx)
			require.Equal(t, product(flip(dy, rows), value(input, flip(x, rows), rows), out, in, rows), l.Weight.Grad)
		}
		y, _, _ := results(Options{Rounding: &Rounding{Weight: Narrowing{Recipe: &weight}}})
		require.Equal(t, product(x, value(weight, w, in), rows, out, in), y)

		y, _, _ = results(Options{Rounding: &both})
		eight, _, _ := results(Options{FP8: &FP8{Operands{input, weight}, Operands{input, weight}, Operands{input, input}, false, 0, false, 0, false}})
		for i := range y {
			sum := 0.0
			for k := range in {
				sum += math.Abs(float64(x[i/out*in+k]) * float64(w[i%out*in+k]))
			}
			require.InDelta(t, eight[i], y[i], sum*in*0x1p-24, "%v, element %d", input, i)
		}
	}
	delayed := scaling.Recipe{Profile: scaling.TEDelayed}
	for want, n := range map[string]Narrowing{
		"Recipe is te-delayed: delayed scales need FP8": {Recipe: &delayed},
		"Recipe says what Format":                       {Recipe: new(scaling.Recipe), Format: NarrowE2M1},
	} {
		_, err := NewLinear("w", 2, 2, Options{Rounding: &Rounding{Weight: n}})
		require.ErrorContains(t, err, "Rounding.Weight: "+want)
	}
}
