package scaling_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestQuantize compares Quantize with tensor.Quantize under the recipe's scale,
// for every profile, format and source type.
func TestQuantize(t *testing.T) {
	t.Run("float32", testQuantize[float32])
	t.Run("float64", testQuantize[float64])
	t.Run("float16", testQuantize[float16.Float16])
	t.Run("bfloat16", testQuantize[fp8.BFloat16])
}

func testQuantize[T fp8.Float](t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const rows, cols = 5, 300
	wide := make([]float64, rows*cols)
	for i := range wide {
		wide[i] = math.Ldexp(r.NormFloat64(), r.IntN(16)-8)
	}
	wide[7], wide[100], wide[1000], wide[1200] = math.NaN(), math.Inf(1), math.Inf(-1), 0
	src := make([]T, len(wide))
	narrow(src, wide)
	for _, p := range justInTime() {
		for _, f := range fp8.Formats() {
			if !p.For(f) {
				continue
			}
			policy := p.Policy(f) // but for what the recipe says
			policy.Rounding, policy.Seed, policy.Overflow = fp8.Stochastic, 3, fp8.OverflowNonFinite
			recipe := scaling.Recipe{Profile: p, Format: f, Block: tensor.Block{Rows: 2, Cols: 90},
				Policy: fp8.Policy{Rounding: fp8.Stochastic, Seed: 3, Overflow: fp8.OverflowNonFinite}}
			var got, want, parallel fp8.Stats
			x, y, z := tensorOf(rows, cols), tensorOf(rows, cols), tensorOf(rows, cols)
			require.NoError(t, scaling.Quantize(t.Context(), x, src, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &got}}))
			require.NoError(t, scaling.Quantize(t.Context(), z, src, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &parallel, Workers: 2}}))

			y.Format, y.Block = f, recipe.Block
			require.NoError(t, tensor.Quantize(t.Context(), y, src, tensor.Quantizer{Policy: policy,
				Scale: func(_ int, amax float32, nan bool) fp8.Scale {
					s := recipe.Scale(amax)
					if n := recipe.Scale(float32(math.NaN())); nan && (n.Stored != n.Stored || p == scaling.DeepGEMMUE8M0 || p == scaling.DeepGEMMFP4UE8M0) {
						s = n // NaN is not left out
					}
					return s
				},
				Options: tensor.Options{Stats: &want},
			}))
			require.Equal(t, bits(y.Scales), bits(x.Scales), "%v", recipe)
			require.Equal(t, y.Codes, x.Codes, "%v", recipe)
			require.Equal(t, []any{y.Format, y.Block}, []any{x.Format, x.Block})
			require.Equal(t, want, got)
			require.Equal(t, bits(x.Scales), bits(z.Scales))
			require.Equal(t, x.Codes, z.Codes)
			require.Equal(t, want, parallel)
		}
	}
}

func narrow[T fp8.Float](dst []T, src []float64) {
	for i, v := range src {
		switch d := any(dst).(type) {
		case []float32:
			d[i] = float32(v)
		case []float64:
			d[i] = v
		case []float16.Float16:
			d[i] = float16.Fromfloat32(float32(v))
		case []fp8.BFloat16:
			d[i] = fp8.BFloat16FromFloat32(float32(v))
		}
	}
}

// TestQuantizeUnchanged checks that a refused call leaves the tensor
// and the history as they were.
func TestQuantizeUnchanged(t *testing.T) {
	h, err := scaling.NewHistory(delayed(3))
	require.NoError(t, err)
	for _, q := range []scaling.Quantizer{
		{Recipe: scaling.Default(scaling.Weight)},
		{Recipe: delayed(3), History: h},
	} {
		x := &tensor.Tensor{Name: "x", Format: fp8.E5M2, Shape: []int{2, 2}, Block: tensor.Block{Rows: 1},
			Codes: []byte{1, 2, 3, 4}, Scales: []float32{5, 6}}
		before := *x
		require.EqualError(t, scaling.Quantize(t.Context(), x, make([]float32, 5), q), `tensor "x": the source has 5 elements: it must have 4`)
		require.Equal(t, before, *x)
		x.Shape = []int{2, -2}
		before = *x
		require.EqualError(t, scaling.Quantize(t.Context(), x, []float32{9, 9, 9, 9}, q), `tensor "x": dimension 1 of shape [2 -2] is negative`)
		require.Equal(t, before, *x)
		require.Equal(t, []byte{1, 2, 3, 4}, x.Codes)
	}
	h.Update()
	require.Equal(t, float32(1), h.Scale(0).Multiplier)
}

// reporter counts the calls of each kind.
type reporter struct {
	ops             map[string]int
	blocks, special int
}

func (r *reporter) Block(op, _ string, _, _ int, _ float32, _ *fp8.Stats) {
	r.blocks++
	r.ops[op]++
}

func (r *reporter) NonFinite(op, _ string, index int, _ float64) {
	r.special += index
	r.ops[op]++
}

func TestQuantizerReports(t *testing.T) {
	r := &reporter{ops: map[string]int{}}
	src := make([]float32, 300)
	src[77] = float32(math.Inf(1))
	q := scaling.Quantizer{Recipe: scaling.Default(scaling.Input), Options: tensor.Options{Reporter: r}}
	require.NoError(t, scaling.Quantize(t.Context(), tensorOf(300), src, q))
	q.Op = "dispatch"
	require.NoError(t, scaling.Quantize(t.Context(), tensorOf(300), src, q))
	require.Equal(t, reporter{ops: map[string]int{"quantize": 4, "dispatch": 4}, blocks: 6, special: 2 * 77}, *r)
}

// TestQuantizerShared uses one Quantizer from many goroutines.
func TestQuantizerShared(t *testing.T) {
	q := scaling.Quantizer{Recipe: scaling.Default(scaling.Input), Options: tensor.Options{Workers: 2}}
	src := make([]float32, 4*300)
	for i := range src {
		src[i] = float32(i)
	}
	want := tensorOf(4, 300)
	require.NoError(t, scaling.Quantize(t.Context(), want, src, q))
	got := make([]*tensor.Tensor, 8)
	var wait sync.WaitGroup
	for i := range got {
		got[i] = tensorOf(4, 300)
		wait.Go(func() {
			if err := scaling.Quantize(t.Context(), got[i], src, q); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, x := range got {
		require.Equal(t, want, x)
	}
}

// TestScale encodes a block in parts under the scale of the whole.
func TestScale(t *testing.T) {
	src := []fp8.BFloat16{0x3F80, 0xC120, 0x0001, 0x7FC0, 0x4000}
	for _, p := range scaling.Profiles() {
		recipe := p.Recipe(scaling.Input)
		recipe.Block = tensor.Block{}
		if p == scaling.NVFP4TERow || chooses(p) {
			recipe = p.Recipe(scaling.Input)
		}
		for n := range src {
			values := src[:n+1]
			amax, nan := fp8.Amax(values)
			s, err := scaling.Scale[fp8.BFloat16](recipe, amax, nan)
			if p.Delayed() {
				require.ErrorContains(t, err, "needs a history")
				continue
			}
			if p.Outer() {
				require.ErrorContains(t, err, "depends on an outer one")
				continue
			}
			require.NoError(t, err)
			want := tensorOf(n + 1)
			require.NoError(t, scaling.Quantize(t.Context(), want, values, scaling.Quantizer{Recipe: recipe}))
			require.Equal(t, math.Float32bits(want.Scales[0]), math.Float32bits(s.Stored))
			for i, v := range values {
				var code [1]byte
				fp8.EncodeScaled(code[:], []fp8.BFloat16{v}, recipe.Format, p.Policy(recipe.Format), s, 0, nil)
				require.Equal(t, want.Codes[i], code[0])
			}
		}
	}
	_, err := scaling.Scale[float32](scaling.Recipe{Profile: "none"}, 1, false)
	require.ErrorContains(t, err, "unknown profile")
}

// TestRecipesByWorkers shares a tensor among workers, who take parts of a block where it is
// of many rows, and compares it with what one alone makes of it, with and without a NaN.
func TestRecipesByWorkers(t *testing.T) {
	const rows, cols = 640, 1024 // for two workers
	r := rand.New(rand.NewPCG(35, 4))
	src := make([]float32, rows*cols)
	for i := range src {
		src[i] = float32(r.NormFloat64() * math.Exp2(float64(i/cols%7)))
	}
	for _, p := range scaling.Profiles() {
		if p.Delayed() || testing.Short() && strings.Contains(string(p), "4over6") {
			continue
		}
		blocks := []tensor.Block{p.Block(scaling.Input), {}, {Cols: 96}, {Rows: 500}}
		for i, block := range blocks {
			recipe := p.Recipe(scaling.Input)
			if recipe.Block = block; recipe.Check() != nil {
				continue // of outer scales of rows, or chosen by values
			}
			src[7*cols+77] = 1
			if i%2 == 1 {
				src[7*cols+77] = float32(math.NaN())
			}
			quantize := func(workers int) (*tensor.Tensor, fp8.Stats) {
				var st fp8.Stats
				x := &tensor.Tensor{Shape: []int{rows, cols}}
				require.NoError(t, scaling.Quantize(t.Context(), x, src, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Workers: workers, Stats: &st}}))
				return x, st
			}
			want, wantStats := quantize(1)
			got, gotStats := quantize(2)
			require.True(t, bytes.Equal(want.Codes, got.Codes), "%v", recipe)
			require.Equal(t, fmt.Sprint(want.Scales, want.Outer), fmt.Sprint(got.Scales, got.Outer), "%v", recipe)
			require.Equal(t, wantStats, gotStats)
		}
	}
}
