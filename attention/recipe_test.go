package attention_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

var recipeSizes = attention.Sizes{Heads: 4, KVHeads: 2, Queries: 6, Keys: 40, Dim: 48, ValueDim: 20}

// floats returns n normal numbers, columns moved by an offset of their own.
func floats(rnd *rand.Rand, n, columns int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rnd.NormFloat64() + math.Sin(float64(i%columns)))
	}
	return x
}

func recipeValues(s attention.Sizes) (q, k, v []float32) {
	rnd := rand.New(rand.NewPCG(3, 3))
	return floats(rnd, s.Heads*s.Queries*s.Dim, s.Dim),
		floats(rnd, s.KVHeads*s.Keys*s.Dim, s.Dim),
		floats(rnd, s.KVHeads*s.Keys*s.ValueDim, s.ValueDim)
}

// rotated multiplies each row by a matrix whose sign of column j is sign(j)·(-1)^popcount(i&j).
func rotated(x []float64, dim, size int, sign func(j int) float64) []float64 {
	y := make([]float64, len(x))
	for lo := 0; lo < len(x); lo += size {
		for i := range size {
			for j := range size {
				h := 1 - 2*float64(bits.OnesCount(uint(i&j))%2)
				y[lo+i] += h * sign((lo+j)%dim) * x[lo+j] / math.Sqrt(float64(size))
			}
		}
	}
	return y
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// TestRecipeGranularity: as many scales as there are blocks, and every value within half a
// step of what it was.
func TestRecipeGranularity(t *testing.T) {
	s := recipeSizes
	q, k, v := recipeValues(s)
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2} {
		for _, c := range []struct {
			q, k, v    attention.Granularity
			nq, nk, nv int
		}{
			{attention.PerTensor, attention.PerTensor, attention.PerTensor, 1, 1, 1},
			{attention.PerHead, attention.PerHead, attention.PerChannel, 4, 2, 2 * 20},
			{attention.PerToken, attention.PerToken, attention.PerToken, 24, 80, 80},
			{attention.PerBlock, attention.PerBlock, attention.PerBlock, 12, 40, 40},
		} {
			r := attention.Recipe{Format: f, Q: c.q, K: c.k, V: c.v, Block: 2,
				Profile: scaling.TECurrent}
			p := &attention.Problem{Mask: attention.Mask{Causal: true}}
			require.NoError(t, r.Quantize(t.Context(), p, q, k, v, s, tensor.Options{}))
			require.NoError(t, p.Check())
			require.Equal(t, s, p.Sizes())
			require.True(t, p.Mask.Causal)
			require.Equal(t, []int{c.nq, c.nk, c.nv},
				[]int{len(p.Q.Codes.Scales), len(p.K.Codes.Scales), len(p.V.Codes.Scales)})
			half := map[fp8.Format]float64{fp8.E4M3: 0x1p-4, fp8.E5M2: 0x1p-3}[f]
			for i, o := range []attention.Operand{p.Q, p.K, p.V} {
				require.Equal(t, f, o.Codes.Format)
				largest := float64(o.Codes.Scales[0])
				for _, x := range o.Codes.Scales {
					largest = max(largest, float64(x))
				}
				want := [][]float32{q, k, v}[i]
				for j, got := range dequantized(o) {
					require.InDelta(t, want[j], got,
						half*math.Abs(float64(want[j]))*1.001+largest*0x1p-10,
						"operand %d, element %d", i, j)
				}
			}
			e := newExact(p)
			e.compare(t, e.out, e.lse, e.m)
		}
	}
}

// TestRecipeSmooth: softmax and output stay, the log-sum-exp moves by scale·q·mean.
func TestRecipeSmooth(t *testing.T) {
	s := recipeSizes
	q, k, v := recipeValues(s)
	means := make([]float32, s.KVHeads*s.Dim)
	attention.KeyMeans(means, k, s)
	for i, m := range means {
		sum := 0.0
		for j := range s.Keys {
			sum += float64(k[(i/s.Dim*s.Keys+j)*s.Dim+i%s.Dim])
		}
		require.InDelta(t, sum/float64(s.Keys), float64(m), 1e-6)
	}
	with, without := &attention.Problem{}, &attention.Problem{}
	r := attention.Recipe{Q: attention.PerToken, K: attention.PerToken, V: attention.PerHead}
	require.NoError(t, r.Quantize(t.Context(), without, q, k, v, s, tensor.Options{}))
	r.SmoothK = true
	before := fmt.Sprint(k)
	require.NoError(t, r.Quantize(t.Context(), with, q, k, v, s, tensor.Options{}))
	require.Equal(t, before, fmt.Sprint(k), "k is only read")
	a, b := forward(t, without, attention.Options{}), forward(t, with, attention.Options{})
	for row := range a.lse {
		shift := 0.0
		for d := range s.Dim {
			mean := float64(means[row/s.Queries/2*s.Dim+d])
			shift += float64(q[row*s.Dim+d]) * mean / math.Sqrt(float64(s.Dim))
		}
		require.InDelta(t, float64(a.lse[row]), float64(b.lse[row])+shift, 0.15, "row %d, shift %v",
			row, shift)
	}
	for i := range a.out {
		require.InDelta(t, a.out[i], b.out[i], 0.2)
	}
	_, smoothed := dequantized(without.K), dequantized(with.K)
	for d := range s.Dim {
		sum := 0.0
		for j := range s.Keys {
			sum += smoothed[j*s.Dim+d]
		}
		require.InDelta(t, 0, sum/float64(s.Keys), 0.03)
	}
}

// TestRecipeHadamard compares with the matrix's definition, and tells that the signs are
// those of a seed and the same for Q and K.
func TestRecipeHadamard(t *testing.T) {
	for _, dim := range []int{48, 64, 7} {
		s := recipeSizes
		s.Dim = dim
		size := dim & -dim
		q, k, v := recipeValues(s)
		r := attention.Recipe{Q: attention.PerToken, K: attention.PerToken, Hadamard: true, Seed: 5}
		p := &attention.Problem{}
		require.NoError(t, r.Quantize(t.Context(), p, q, k, v, s, tensor.Options{}))

		// A unit in one column shows the sign of that column.
		units := make([]float32, dim*dim)
		for i := range dim {
			units[i*dim+i] = 1
		}
		one := attention.Sizes{Heads: 1, KVHeads: 1, Queries: dim, Keys: 1, Dim: dim, ValueDim: 1}
		probe := &attention.Problem{}
		require.NoError(t,
			r.Quantize(t.Context(), probe, units, make([]float32, dim), []float32{1}, one,
				tensor.Options{}))
		values := dequantized(probe.Q)
		negative := 0
		sign := func(j int) float64 { return math.Copysign(1, values[j*dim+j/size*size]) }
		for j := range dim {
			if sign(j) < 0 {
				negative++
			}
		}
		require.NotZero(t, negative)
		require.Less(t, negative, dim)
		for i, o := range []attention.Operand{p.Q, p.K} {
			want := rotated(widen([][]float32{q, k}[i]), dim, size, sign)
			for j, got := range dequantized(o) {
				require.InDelta(t, want[j], got, 0x1p-4*math.Abs(want[j])+0.01)
			}
		}
		r.Seed = 6
		other := &attention.Problem{}
		require.NoError(t, r.Quantize(t.Context(), other, q, k, v, s, tensor.Options{}))
		require.NotEqual(t, p.Q.Codes.Codes, other.Q.Codes.Codes)
	}
}

func TestRecipeMisuse(t *testing.T) {
	s := recipeSizes
	q, k, v := recipeValues(s)
	for _, c := range []struct {
		r     attention.Recipe
		sinks []float32
		is    error
		text  string
	}{
		{attention.Recipe{Q: 9}, nil, nil, "unknown granularity 9"},
		{attention.Recipe{K: attention.PerChannel}, nil, attention.ErrScales, "by channel"},
		{attention.Recipe{K: attention.PerBlock}, nil, attention.ErrScales, "Recipe.Block is 0"},
		{attention.Recipe{Q: attention.PerBlock, Block: 4}, nil, attention.ErrShape,
			"blocks of 4 tokens do not divide the 6 of a head of Q"},
		{attention.Recipe{SmoothK: true}, make([]float32, 4), attention.ErrMask,
			"sinks would stay"},
		{attention.Recipe{Profile: scaling.TEDelayed}, nil, attention.ErrScales, "te-delayed"},
		{attention.Recipe{Format: 200}, nil, fp8.ErrFormat, "Format(200)"},
	} {
		p := &attention.Problem{Sinks: c.sinks}
		err := c.r.Quantize(t.Context(), p, q, k, v, s, tensor.Options{})
		require.ErrorContains(t, err, c.text)
		if c.is != nil {
			require.ErrorIs(t, err, c.is)
		}
		require.Equal(t, &attention.Problem{Sinks: c.sinks}, p)
	}
	err := attention.Recipe{SmoothK: true}.Quantize(t.Context(), &attention.Problem{Cap: 50}, q, k, v, s, tensor.Options{})
	require.ErrorIs(t, err, attention.ErrScales)
	require.ErrorContains(t, err, "a cap bends them")
	for _, f := range []func() error{
		func() error {
			return attention.Recipe{}.Quantize(t.Context(), &attention.Problem{}, q[1:], k, v, s,
				tensor.Options{})
		},
		func() error {
			return attention.Recipe{}.Quantize(t.Context(), &attention.Problem{}, q, k[1:], v, s,
				tensor.Options{})
		},
		func() error {
			return attention.Recipe{}.Quantize(t.Context(), &attention.Problem{}, q, k, v[1:], s,
				tensor.Options{})
		},
	} {
		err := f()
		require.ErrorIs(t, err, attention.ErrShape)
		require.Regexp(t, "^attention: [qkv] has [0-9]+ elements: it must have [0-9]+$", err)
	}
	require.Panics(t, func() { attention.KeyMeans(nil, k, s) })
	require.Panics(t, func() { attention.KeyMeans(make([]float32, 96), k[1:], s) })
	for _, g := range []attention.Granularity{attention.PerTensor, attention.PerHead,
		attention.PerToken, attention.PerBlock, attention.PerChannel} {
		text, err := g.MarshalText()
		require.NoError(t, err)
		var back attention.Granularity
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, g, back)
	}
}
