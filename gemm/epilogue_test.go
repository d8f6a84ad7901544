package gemm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/geometry"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// toBFloat16 rounds by definition: to the nearer of the two neighbours, at a tie
// to the even one; past the last one there is infinity.
func toBFloat16(x float32) fp8.BFloat16 {
	b := math.Float32bits(canonical(x))
	low := fp8.BFloat16(b >> 16)
	if b&0xFFFF == 0 || x != x {
		return low
	}
	tie := math.Float32frombits(b&^0xFFFF | 0x8000)
	if math.Abs(float64(x)) > math.Abs(float64(tie)) || x == tie && low&1 == 1 {
		return low + 1
	}
	return low
}

// epilogue is step 4 of the contract.
func epilogue(values []float32, n int, bias, old []float32) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		if bias != nil {
			v = float32(v + bias[i%n])
		}
		if old != nil {
			v = float32(v + old[i])
		}
		out[i] = canonical(v)
	}
	return out
}

// extreme returns addends among which are some of every kind.
func extreme(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64() * 1000)
		if r.IntN(4) == 0 {
			v[i] = signed(r, []float64{0, math.Inf(1), math.NaN(), math.MaxFloat32, math.SmallestNonzeroFloat32}[r.IntN(5)])
		}
	}
	return v
}

func TestEpilogue(t *testing.T) {
	forLevels(t, testEpilogues)
}

func testEpilogues(t *testing.T) {
	t.Run("float32", func(t *testing.T) {
		testEpilogue(t, func(x float32) float32 { return x }, func(x float32) float32 { return x }, math.Float32bits)
	})
	t.Run("bfloat16", func(t *testing.T) {
		testEpilogue(t, toBFloat16, fp8.BFloat16.Float32, func(x fp8.BFloat16) uint32 { return uint32(x) })
	})
	t.Run("float16", func(t *testing.T) {
		testEpilogue(t, float16.Fromfloat32, float16.Float16.Float32, func(x float16.Float16) uint32 { return uint32(x) })
	})
}

func testEpilogue[T gemm.Output](t *testing.T, round func(float32) T, wide func(T) float32, bits func(T) uint32) {
	r := rand.New(rand.NewPCG(1, 1))
	for trial := range trials(200) {
		m, n, k := r.IntN(20), r.IntN(40), r.IntN(70)
		a := random(r, "a", anyFormat(r), tensor.Block{Rows: 1, Cols: 32}, anyKind(r), m, k)
		b := random(r, "b", anyFormat(r), tensor.Block{Rows: 3, Cols: 32}, anyKind(r), n, k)
		var o gemm.Options
		var old []float32
		if trial&1 != 0 {
			o.Bias = extreme(r, n)
		}
		o.Accumulate = trial&2 != 0
		c := make([]T, m*n)
		for i, v := range extreme(r, m*n) {
			c[i] = round(v)
			old = append(old, wide(c[i]))
		}
		if !o.Accumulate {
			old = nil
		}
		want := epilogue(reference(a, b), n, o.Bias, old)
		require.NoError(t, gemm.Multiply(t.Context(), c, a, b, o))
		for i := range c {
			if got, want := bits(c[i]), bits(round(want[i])); got != want {
				t.Fatalf("%s, bias %v, accumulate %v, element %d: got %x, want %x", describe(a, b), trial&1, trial&2, i, got, want)
			}
		}
	}
}

// TestCanonicalNaN checks the bits of NaN results: of NaN operands, of opposite
// infinities in the sum, and of those that only the epilogue makes.
func TestCanonicalNaN(t *testing.T) { forLevels(t, testCanonicalNaN) }

func testCanonicalNaN(t *testing.T) {
	one := func(code byte) *tensor.Tensor {
		return &tensor.Tensor{Format: fp8.E5M2, Shape: []int{1, 1}, Codes: []byte{code}, Scales: []float32{1}}
	}
	inf := float32(math.Inf(1))
	odd := math.Float32frombits(0xFFC12345)
	const posInf, negInf, zero, nan = 0x7C, 0xFC, 0x00, 0xFF
	for name, c := range map[string]struct {
		a, b byte
		bias []float32
		old  []float32
	}{
		"NaN code":         {a: nan, b: 0x3C},
		"infinity times 0": {a: posInf, b: zero},
		"negative bias":    {a: posInf, b: 0x3C, bias: []float32{-inf}},
		"positive bias":    {a: negInf, b: 0x3C, bias: []float32{inf}},
		"old C":            {a: posInf, b: 0x3C, old: []float32{-inf}},
		"bias and old C":   {a: 0x3C, b: 0x3C, bias: []float32{inf}, old: []float32{-inf}},
		"NaN bias":         {a: 0x3C, b: 0x3C, bias: []float32{odd}},
		"NaN in old C":     {a: 0x3C, b: 0x3C, old: []float32{odd}},
	} {
		o := gemm.Options{Bias: c.bias, Accumulate: c.old != nil}
		f32 := make([]float32, 1)
		copy(f32, c.old)
		bf16 := []fp8.BFloat16{fp8.BFloat16FromFloat32(f32[0])}
		f16 := []float16.Float16{float16.Fromfloat32(f32[0])}
		require.NoError(t, gemm.Multiply(t.Context(), f32, one(c.a), one(c.b), o))
		require.NoError(t, gemm.Multiply(t.Context(), bf16, one(c.a), one(c.b), o))
		require.NoError(t, gemm.Multiply(t.Context(), f16, one(c.a), one(c.b), o))
		require.Equal(t, uint32(0x7FC00000), math.Float32bits(f32[0]), name)
		require.Equal(t, fp8.BFloat16(0x7FC0), bf16[0], name)
		require.Equal(t, float16.Float16(0x7E00), f16[0], name)
	}
}

// TestQuantized checks that C in FP8 is the float32 result quantized.
func TestQuantized(t *testing.T) { forLevels(t, testQuantized) }

func testQuantized(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range trials(100) {
		m, n, k := r.IntN(40), r.IntN(40), r.IntN(70)
		a := random(r, "a", anyFormat(r), tensor.Block{Rows: 1, Cols: 32}, anyKind(r), m, k)
		b := random(r, "b", anyFormat(r), tensor.Block{}, kind{}, n, k)
		var o gemm.Options
		if r.IntN(2) == 0 {
			o.Bias = extreme(r, n)
		}
		recipe := scaling.Recipe{Format: anyFormat(r), Block: tensor.Block{Rows: 2, Cols: 16}}
		var gotStats, wantStats fp8.Stats
		want := &tensor.Tensor{Name: "c", Shape: []int{m, n}}
		require.NoError(t, scaling.Quantize(t.Context(), want, epilogue(reference(a, b), n, o.Bias, nil),
			scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &wantStats}}))
		got := &tensor.Tensor{Name: "c"}
		require.NoError(t, gemm.Quantized(t.Context(), got, a, b, o, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &gotStats}}))
		require.Equal(t, want, got)
		require.Equal(t, wantStats, gotStats)
	}
}

// recipesOfResults are recipes that need a block of one row, of several, and all of C.
func recipesOfResults() []scaling.Recipe {
	list := []scaling.Recipe{
		scaling.TEDelayed.Recipe(scaling.Input),
		{Profile: scaling.TEDelayed, Block: tensor.Block{Rows: 1, Cols: 16}},
		{Profile: scaling.TECurrent}, {Block: tensor.Block{Rows: 12, Cols: 16}}, {Block: tensor.Block{Rows: 5}},
		{Format: fp8.E5M2, Block: tile128, Policy: fp8.Policy{Rounding: fp8.Stochastic, Seed: 5}},
	}
	for _, p := range scaling.Profiles() {
		if !p.Delayed() {
			list = append(list, p.Recipe(scaling.Input))
		}
	}
	return list
}

// TestMultiplyAndQuantize checks that C is the product, and t what quantizing it gives, where
// C is computed as a whole and in bands of rows.
func TestMultiplyAndQuantize(t *testing.T) {
	for _, g := range []geometry.Geometry{{Depth: 256, Rows: 768, Cols: 768}, {Depth: 32, Rows: 12, Cols: 128}} {
		restore := geometry.Force(g)
		forLevels(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(2, 7))
			recipes := recipesOfResults()
			for i := range trials(len(recipes)) {
				recipe := recipes[i%len(recipes)]
				testMultiplyAndQuantize(t, r, recipe, func(x float32) float32 { return x })
				testMultiplyAndQuantize(t, r, recipe, toBFloat16)
				testMultiplyAndQuantize(t, r, recipe, float16.Fromfloat32)
			}
		})
		restore()
	}
}

func testMultiplyAndQuantize[T gemm.Output](t *testing.T, r *rand.Rand, recipe scaling.Recipe, round func(float32) T) {
	m, n, k := r.IntN(50), r.IntN(200), 1+r.IntN(40)
	a := random(r, "a", anyFormat(r), tensor.Block{Rows: 1, Cols: 32}, anyKind(r), m, k)
	b := random(r, "b", anyFormat(r), tensor.Block{}, kind{}, n, k)
	o := gemm.Options{Workers: 1 + r.IntN(3), Accumulate: r.IntN(2) == 0, Bias: make([]float32, n)}
	c := make([]T, m*n)
	var old []float32
	if o.Accumulate {
		old = make([]float32, m*n) // of zeros: what they add is in TestEpilogue
	}
	if r.IntN(4) == 0 {
		o.Bias = extreme(r, n)
	}
	wantC := make([]T, m*n)
	for i, v := range epilogue(reference(a, b), n, o.Bias, old) {
		wantC[i] = round(v)
	}
	quantizer := func(heard *heardBlocks) scaling.Quantizer {
		q := scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Workers: 2, Reporter: heard, Stats: &heard.stats}}
		if recipe.Profile.Delayed() {
			h, err := scaling.NewHistory(recipe)
			require.NoError(t, err)
			q.History = h
		}
		return q
	}
	want, got := &tensor.Tensor{Name: "c", Shape: []int{m, n}}, &tensor.Tensor{Name: "c"}
	var wantHeard, heard heardBlocks
	wantQ, q := quantizer(&wantHeard), quantizer(&heard)
	q.Workers = 1 + r.IntN(2)
	if outer := recipe.Profile.Outer() && recipe.Profile != scaling.NVFP4TERow && r.IntN(2) == 0; outer {
		wantQ.OuterAmax = []float32{1e3}
		q.OuterAmax = wantQ.OuterAmax
	}
	require.NoError(t, scaling.Quantize(t.Context(), want, wantC, wantQ))
	require.NoError(t, gemm.MultiplyAndQuantize(t.Context(), c, got, a, b, o, q))
	require.Equal(t, asBits(wantC), asBits(c), "%v", recipe)
	require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), "%v", recipe) // NaN equals NaN
	require.Equal(t, fmt.Sprint(wantHeard.sorted()), fmt.Sprint(heard.sorted()), "%v", recipe)
	require.Equal(t, wantHeard.stats, heard.stats, "%v", recipe)
	if q.History != nil {
		q.History.Update()
		wantQ.History.Update()
		require.Equal(t, wantQ.History.Scale(0), q.History.Scale(0))
	}
}

// asBits are values as integers, so that NaN equals NaN.
func asBits[T gemm.Output](c []T) []uint32 {
	all := make([]uint32, len(c))
	for i, x := range c {
		switch x := any(x).(type) {
		case float32:
			all[i] = math.Float32bits(x)
		case fp8.BFloat16:
			all[i] = uint32(x)
		case float16.Float16:
			all[i] = uint32(x)
		}
	}
	return all
}

// heardBlocks is a Reporter that keeps what it hears of blocks.
type heardBlocks struct {
	mu     sync.Mutex
	heard  []string
	blocks [][2]int
	stats  fp8.Stats
}

func (b *heardBlocks) Block(op, name string, row, col int, scale float32, st *fp8.Stats) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blocks = append(b.blocks, [2]int{row, col})
	b.heard = append(b.heard, fmt.Sprint(op, name, row, col, scale, *st))
}

func (b *heardBlocks) NonFinite(op, name string, index int, value float64) {
	b.Block(op, name, index, -1, float32(value), new(fp8.Stats))
}

func (b *heardBlocks) sorted() []string { slices.Sort(b.heard); return b.heard }

// TestQuantizedMeanwhile checks that rows are quantized before all are computed, and by whom.
func TestQuantizedMeanwhile(t *testing.T) {
	defer geometry.Force(geometry.Geometry{Depth: 32, Rows: 12, Cols: 128})()
	forLevels(t, func(t *testing.T) {
		if cpu.Current() == cpu.Generic {
			return // its areas have hundreds of rows
		}
		r := rand.New(rand.NewPCG(2, 8))
		a := random(r, "a", fp8.E4M3, tile128, kind{}, 48, 64)
		b := random(r, "b", fp8.E4M3, square128, kind{}, 200, 64)
		for _, workers := range []int{0, 1} {
			var heard heardBlocks
			early, c := 0, make([]float32, 48*200)
			o := gemm.Options{Workers: 1, Progress: progress.Func(func(_ string, done, total int64) {
				heard.mu.Lock()
				defer heard.mu.Unlock()
				if done < total {
					early = len(heard.heard)
				}
			})}
			q := scaling.Quantizer{Recipe: scaling.Default(scaling.Input), Options: tensor.Options{Workers: workers, Reporter: &heard}}
			require.NoError(t, gemm.MultiplyAndQuantize(t.Context(), c, &tensor.Tensor{}, a, b, o, q))
			require.Equal(t, 3*12*2, early) // all but the last rows
			if workers == 1 {               // then workers of a product do not quantize
				o.Workers, heard.heard, heard.blocks, early = 2, nil, nil, 0
				require.NoError(t, gemm.MultiplyAndQuantize(t.Context(), c, &tensor.Tensor{}, a, b, o, q))
				require.Zero(t, early)
				require.True(t, slices.IsSortedFunc(heard.blocks, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }))
			}
		}
	})
}

func TestQuantizedRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	a := random(r, "a", fp8.E4M3, tensor.Block{}, kind{}, 3, 4)
	b := random(r, "b", fp8.E4M3, tensor.Block{}, kind{}, 2, 5)
	q := scaling.Quantizer{Recipe: scaling.Default(scaling.Input)}
	c := &tensor.Tensor{Name: "c", Format: fp8.E5M2, Shape: []int{1}, Codes: []byte{7}, Scales: []float32{8}}
	before := *c
	require.ErrorContains(t, gemm.MultiplyAndQuantize(t.Context(), make([]float32, 8), c, a, a, gemm.Options{}, q), "gemm: C has 8 elements")
	require.ErrorContains(t, gemm.MultiplyAndQuantize(t.Context(), make([]float32, 9), nil, a, a, gemm.Options{}, q), "is nil")
	bad := q
	bad.OuterAmax = []float32{1}
	old := make([]float32, 9)
	require.ErrorContains(t, gemm.MultiplyAndQuantize(t.Context(), old, c, a, a, gemm.Options{}, bad), "has no outer scales")
	require.Equal(t, make([]float32, 9), old)
	require.EqualError(t, gemm.Quantized(t.Context(), c, a, a, gemm.Options{Accumulate: true}, q),
		"gemm: cannot accumulate into FP8: accumulate into float32 and quantize the sum")
	require.ErrorContains(t, gemm.Quantized(t.Context(), c, a, b, gemm.Options{}, q), "differ")
	require.EqualError(t, gemm.Quantized(t.Context(), c, a, a, gemm.Options{}, scaling.Quantizer{Recipe: scaling.TEDelayed.Recipe(scaling.Input)}),
		`gemm: tensor "c": scaling: recipe te-delayed E4M3 tensor needs a history`)
	require.ErrorContains(t, gemm.Quantized(t.Context(), c, a, a, gemm.Options{Bias: make([]float32, 2)}, q),
		"gemm: the bias has 2 elements: it must have N = 3")
	require.Equal(t, before, *c)
	require.Equal(t, []byte{7}, c.Codes)
}

// nonFinite is a Reporter that keeps what it hears of products.
type nonFinite struct {
	t     *testing.T
	calls []nonFiniteCall
}

type nonFiniteCall struct {
	op, name string
	index    int
	value    float64
}

func (r *nonFinite) Block(string, string, int, int, float32, *fp8.Stats) {
	r.t.Error("a block is reported")
}

func (r *nonFinite) NonFinite(op, name string, index int, value float64) {
	r.calls = append(r.calls, nonFiniteCall{op, name, index, value})
}

// TestReporter checks that the first NaN or infinity of C is reported, once.
func TestReporter(t *testing.T) {
	a := &tensor.Tensor{Format: fp8.E5M2, Shape: []int{3, 1}, Codes: []byte{0x3C, 0xFC, 0x7F}, Scales: []float32{1}}
	b := &tensor.Tensor{Format: fp8.E5M2, Shape: []int{2, 1}, Codes: []byte{0x3C, 0x3D}, Scales: []float32{1}}
	r := &nonFinite{t: t}
	o := gemm.Options{Reporter: r, Name: "layer"}
	require.NoError(t, gemm.Multiply(t.Context(), make([]float32, 6), a, b, o))
	require.NoError(t, gemm.Multiply(t.Context(), make([]fp8.BFloat16, 4), b, b, o))
	o.Bias = []float32{0, float32(math.Inf(1))}
	require.NoError(t, gemm.Multiply(t.Context(), make([]float16.Float16, 4), b, b, o))
	require.NoError(t, gemm.Quantized(t.Context(), &tensor.Tensor{}, b, b, o, scaling.Quantizer{}))
	require.Equal(t, []nonFiniteCall{
		{"gemm", "layer", 2, math.Inf(-1)},
		{"gemm", "layer", 1, math.Inf(1)},
		{"gemm", "layer", 1, math.Inf(1)},
	}, r.calls)

	// The result overflows float16 only.
	r.calls = nil
	large := &tensor.Tensor{Shape: []int{1, 1}, Codes: []byte{0x7E}, Scales: []float32{1}}
	o.Bias = nil
	require.NoError(t, gemm.Multiply(t.Context(), make([]float32, 1), large, large, o))
	require.Empty(t, r.calls)
	require.NoError(t, gemm.Multiply(t.Context(), make([]float16.Float16, 1), large, large, o))
	require.Equal(t, []nonFiniteCall{{"gemm", "layer", 0, math.Inf(1)}}, r.calls)
}
