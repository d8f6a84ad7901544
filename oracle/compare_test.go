package oracle

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// comparison is a product, its right answer and bounds.
type comparison struct {
	a, b  *tensor.Tensor
	want  []float32
	bound []float64
	m, n  int
}

func newComparison(t *testing.T, m, n, k int) comparison {
	a := bell(60, "a", tensor.Block{Rows: 1, Cols: 128}, m, k)
	b := bell(61, "b", tensor.Block{Rows: 128, Cols: 128}, n, k)
	c := comparison{a: a, b: b, want: make([]float32, m*n), bound: make([]float64, m*n), m: m, n: n}
	require.NoError(t, Exact(t.Context(), c.want, a, b, Options{}))
	require.NoError(t, Bound[float32](t.Context(), c.bound, nil, a, b, Accumulation{}, Options{}))
	return c
}

func (c *comparison) compare(t *testing.T, got []float32) Comparison {
	r, err := Compare(t.Context(), got, c.want, c.bound, CompareOptions{Rows: c.m, Cols: c.n, A: c.a, B: c.b})
	require.NoError(t, err)
	again, err := Compare(t.Context(), got, c.want, c.bound, CompareOptions{Rows: c.m, Cols: c.n, A: c.a, B: c.b})
	require.NoError(t, err)
	require.Equal(t, r, again)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var back Comparison
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, r, back)
	return r
}

func TestCompareEqual(t *testing.T) {
	c := newComparison(t, 20, 18, 300)
	r := c.compare(t, c.want)
	require.Equal(t, Comparison{Rows: 20, Cols: 18, Equal: true}, r)
	require.Less(t, testing.AllocsPerRun(10, func() {
		_, _ = Compare(t.Context(), c.want, c.want, c.bound, CompareOptions{Rows: 20, Cols: 18})
	}), 4.0)
}

// TestCompareInside differs, but by no more than the bound.
func TestCompareInside(t *testing.T) {
	c := newComparison(t, 20, 18, 300)
	got := append([]float32(nil), c.want...)
	got[5*18+7] = math.Nextafter32(got[5*18+7], 1e9)
	got[6*18+1] = math.Nextafter32(math.Nextafter32(got[6*18+1], 1e9), 1e9)
	r := c.compare(t, got)
	require.False(t, r.Equal)
	require.Equal(t, 2, r.Different)
	require.Zero(t, r.Outside)
	require.Equal(t, 6, r.MaxULP.Row)
	require.Equal(t, Number(2), r.MaxULP.Error)
	require.Less(t, float64(r.MaxBound.Error), 1.0)
	require.Equal(t, 5, r.First.Row)
	require.Equal(t, 7, r.First.Col)
	require.Empty(t, r.Clusters)
	require.Equal(t, -1, r.First.Suspect)
	require.Len(t, r.First.CodesA, 600)
}

// TestCompareFirst says what went into the first element that diverges: its codes, and
// sums by block of K that lead to the wanted element.
func TestCompareFirst(t *testing.T) {
	c := newComparison(t, 40, 36, 450)
	got := append([]float32(nil), c.want...)
	got[7*36+5] += 100
	got[8*36] += 1000
	r := c.compare(t, got)
	require.Equal(t, [2]int{7, 5}, [2]int{r.First.Row, r.First.Col})
	require.Equal(t, -1, r.First.Suspect)
	require.Equal(t, hex.EncodeToString(c.a.Row(7)), r.First.CodesA)
	require.Equal(t, hex.EncodeToString(c.b.Row(5)), r.First.CodesB)
	require.Len(t, r.First.Blocks, 4)
	for q, s := range r.First.Blocks {
		require.Equal(t, [2]int{128 * q, min(450, 128*q+128)}, [2]int{s.From, s.To})
		require.Equal(t, Number(c.a.Scale(7, s.From)), s.ScaleA)
		require.Equal(t, Number(c.b.Scale(5, s.From)), s.ScaleB)
		require.InEpsilon(t, float64(s.Sum*s.ScaleA*s.ScaleB), float64(s.Scaled), 1e-14)
	}
	require.Equal(t, float32(r.First.Want), float32(r.First.Blocks[3].Running))

	x := ones(256, 64, 1)
	r, err := Compare(t.Context(), []float32{192}, []float32{256}, nil, CompareOptions{Rows: 1, Cols: 1, A: x, B: x})
	require.NoError(t, err)
	require.Equal(t, Number(128), r.First.Blocks[1].Running)
}

func TestCompareClusters(t *testing.T) {
	c := newComparison(t, 150, 140, 64)
	got := append([]float32(nil), c.want...)
	for i := 64; i < 128; i++ {
		for j := 16; j < 32; j++ {
			got[i*140+j] += 100
		}
	}
	got[149*140+139] += 100
	r := c.compare(t, got)
	require.Equal(t, 64*16+1, r.Outside)
	require.Equal(t, []Cluster{
		{Height: 1, Width: 140, Hit: 65, Regions: 150, Row: 64, Col: 0, Outside: 16, Elements: 140},
		{Height: 150, Width: 1, Hit: 17, Regions: 140, Row: 0, Col: 16, Outside: 64, Elements: 150},
		{Height: 16, Width: 16, Hit: 5, Regions: 90, Row: 64, Col: 16, Outside: 256, Elements: 256},
		{Height: 64, Width: 64, Hit: 2, Regions: 9, Row: 64, Col: 0, Outside: 1024, Elements: 4096},
		{Height: 128, Width: 128, Hit: 2, Regions: 4, Row: 0, Col: 0, Outside: 1024, Elements: 16384},
	}, r.Clusters)
	// A region at the edge has fewer elements.
	copy(got, c.want)
	got[149*140+139] += 100
	r = c.compare(t, got)
	require.Equal(t, 12, r.Clusters[3].Elements/22)
	require.Equal(t, Cluster{Height: 16, Width: 16, Hit: 1, Regions: 90, Row: 144, Col: 128, Outside: 1, Elements: 6 * 12}, r.Clusters[2])
}

func TestCompareNonFinite(t *testing.T) {
	inf, nan32 := float32(math.Inf(1)), float32(math.NaN())
	other := math.Float32frombits(0xFFC00001)
	got := []float32{nan32, 1, nan32, inf, inf, 1, -inf, other}
	want := []float32{nan32, nan32, 1, inf, -inf, inf, 1, nan32}
	bound := make([]float64, 8)
	r, err := Compare(t.Context(), got, want, bound, CompareOptions{Rows: 2, Cols: 4})
	require.NoError(t, err)
	require.Equal(t, NonFinite{GotNaN: 3, WantNaN: 3, GotInf: 3, WantInf: 3, Swallowed: 2, Appeared: 2}, r.NonFinite)
	require.Equal(t, 5, r.Different)
	require.Equal(t, 5, r.Outside)
	require.Equal(t, 0, r.First.Row)
	require.Equal(t, 1, r.First.Col)
	require.True(t, math.IsInf(float64(r.MaxULP.Error), 1))
	require.Equal(t, 1, r.MaxBound.Col)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(text), `"error":"+Inf"`)
	// A bound of +Inf allows anything.
	for i := range bound {
		bound[i] = math.Inf(1)
	}
	r, err = Compare(t.Context(), got, want, bound, CompareOptions{Rows: 2, Cols: 4})
	require.NoError(t, err)
	require.Zero(t, r.Outside)
	require.Equal(t, 5, r.Different)
	var n Number
	for _, text := range []string{`"NaN"`, `"+Inf"`, `"-Inf"`, `1.5`} {
		require.NoError(t, json.Unmarshal([]byte(text), &n))
		back, err := json.Marshal(n)
		require.NoError(t, err)
		require.Equal(t, text, string(back))
	}
	require.Error(t, json.Unmarshal([]byte(`"x"`), &n))
}

func TestCompareZeros(t *testing.T) {
	minus := float32(math.Copysign(0, -1))
	r, err := Compare(t.Context(), []float32{minus}, []float32{0}, nil, CompareOptions{Rows: 1, Cols: 1})
	require.NoError(t, err)
	require.Equal(t, 1, r.Outside, "bits are demanded")
	require.Nil(t, r.MaxULP)
	r, err = Compare(t.Context(), []float32{minus}, []float32{0}, []float64{1e-40}, CompareOptions{Rows: 1, Cols: 1})
	require.NoError(t, err)
	require.Equal(t, 1, r.Different)
	require.Zero(t, r.Outside)
	require.Equal(t, 0x1p-133, layoutB16.ulp(0))
	require.Equal(t, 0x1p-23, layout32.ulp(-1.5))
	require.Equal(t, 0x1p-149, layout32.ulp(1e-45))
}

func TestCompareRefuses(t *testing.T) {
	c := newComparison(t, 2, 3, 10)
	compare := func(o CompareOptions) error { _, err := Compare(t.Context(), c.want, c.want, c.bound, o); return err }
	require.ErrorContains(t, compare(CompareOptions{Rows: 3, Cols: 2, A: c.a, B: c.b}), `tensor "a" of 2 rows`)
	short := *c.b
	short.Scales = nil
	require.ErrorContains(t, compare(CompareOptions{Rows: 2, Cols: 3, A: c.a, B: &short}), `oracle: tensor "b"`)
	require.ErrorIs(t, compare(CompareOptions{Rows: 2, Cols: 2}), gemm.ErrOperands)
	require.ErrorIs(t, second(Compare(t.Context(), c.want, c.want, c.bound[1:], CompareOptions{Rows: 2, Cols: 3})), gemm.ErrOperands)
}

// TestCompareSpecialBlocks has a NaN in one block of the first divergence.
func TestCompareSpecialBlocks(t *testing.T) {
	c := newComparison(t, 2, 3, 300)
	c.a.Row(0)[140] = fp8.E4M3.NaNCode()
	require.NoError(t, Exact(t.Context(), c.want, c.a, c.b, Options{}))
	got := append([]float32(nil), c.want...)
	got[1] = 5
	r, err := Compare(t.Context(), got, c.want, nil, CompareOptions{Rows: 2, Cols: 3, A: c.a, B: c.b})
	require.NoError(t, err)
	require.Equal(t, 1, r.NonFinite.Swallowed)
	blocks := r.First.Blocks
	require.False(t, math.IsNaN(float64(blocks[0].Running)))
	require.True(t, math.IsNaN(float64(blocks[1].Sum)))
	require.False(t, math.IsNaN(float64(blocks[2].Sum)))
	require.True(t, math.IsNaN(float64(blocks[2].Running)))
}
