package attention

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle/flash"
)

// computed is what package attention makes of a problem.
func computed(t *testing.T, p *attention.Problem) Result[float32] {
	s := p.Sizes()
	r := Result[float32]{Problem: p, Out: make([]float32, s.Heads*s.Queries*s.ValueDim), LSE: make([]float32, s.Heads*s.Queries)}
	require.NoError(t, attention.Forward(t.Context(), r.Out, p, attention.Options{P: attention.PE4M3, LSE: r.LSE}))
	return r
}

// TestBatch names the sequence, the head and the query of a wrong element, whatever the number
// of goroutines and of queries that are looked at, in the text, in JSON and on the page.
func TestBatch(t *testing.T) {
	results := []Result[float32]{computed(t, made(t, 4, 2, 6, 60, 3, 0.7)), computed(t, made(t, 4, 2, 9, 30, 3, 0.7))}
	results[1].Out[(2*9+4)*32+7] += 9
	var texts []string
	for _, o := range []Options{{}, {Workers: 1}, {Workers: 3}, {Queries: 4}} {
		v, err := Check(t.Context(), results, Claim{}, o)
		require.NoError(t, err)
		require.Equal(t, "fail", v.Outcome)
		w := v.Sequences[1].Comparison.Worst
		require.Equal(t, [3]int{2, 4, 7}, [3]int{w.Head, w.Query, w.Column})
		require.Equal(t, []int{4}, v.Sequences[1].Comparison.Heads[2].Rows)
		var text, page strings.Builder
		require.NoError(t, v.WriteText(&text))
		require.Contains(t, text.String(), "sequence 1, head 2, row 4, column 7: got ")
		texts = append(texts, text.String())
		require.NoError(t, v.WritePage(&page, "octavo verify", "a machine"))
		require.Contains(t, page.String(), "Largest error of each row, sequence 1: queries")
		require.Equal(t, o.Queries > 0, strings.Contains(page.String(), "not looked at</b>"))
		data, err := json.Marshal(v)
		require.NoError(t, err)
		var back Verdict
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, v.Sequences[1].Looked, back.Sequences[1].Looked)
	}
	require.Equal(t, texts[0], texts[1])
	require.Equal(t, texts[0], texts[2])
	require.NotEqual(t, texts[0], texts[3])
}

// TestTypes has results of every type judged by a bound that is that of the type: a step of it
// further is outside where P is exact.
func TestTypes(t *testing.T) {
	p := made(t, 2, 1, 3, 40, 1, 0.7)
	exact := flash.Float32
	claim := Claim{P: &exact, Sums: "exact"}
	k, err := claim.KernelOf(p, flash.Float32)
	require.NoError(t, err)
	testType(t, p, claim, k, flash.Float32, 0x1p-14, func(x float32) float32 { return x })
	testType(t, p, claim, k, flash.BFloat16, 0x1p-6, fp8.BFloat16FromFloat32)
	testType(t, p, claim, k, flash.Float16, 0x1p-9, float16.Fromfloat32)
}

func testType[T gemm.Output](t *testing.T, p *attention.Problem, c Claim, k flash.Kernel, out flash.Cast, step float32, round func(float32) T) {
	got, err := flash.Predict(t.Context(), p, k, flash.Options{})
	require.NoError(t, err)
	r := Result[T]{Problem: p}
	for _, x := range got.Out {
		r.Out = append(r.Out, round(x))
	}
	v, err := Check(t.Context(), []Result[T]{r}, c, Options{})
	require.NoError(t, err)
	require.True(t, v.Pass, v.Title())
	require.Equal(t, out, v.Type)
	r.Out[17] = round(got.Out[17] * (1 + step))
	v, err = Check(t.Context(), []Result[T]{r}, c, Options{})
	require.NoError(t, err)
	require.Contains(t, v.Title(), "FAIL: 1 of 192 elements")
}

// TestNoVerdict has errors for what cannot be judged.
func TestNoVerdict(t *testing.T) {
	p := made(t, 2, 1, 3, 40, 1, 0.7)
	r := computed(t, p)
	check := func(r Result[float32], c Claim, o Options) error {
		_, err := Check(t.Context(), []Result[float32]{r}, c, o)
		return err
	}
	require.NoError(t, check(r, Claim{}, Options{}))
	_, err := Check[float32](t.Context(), nil, Claim{}, Options{})
	require.ErrorContains(t, err, "no result")
	require.ErrorIs(t, check(Result[float32]{p, r.Out[1:], r.LSE}, Claim{}, Options{}), attention.ErrShape)
	require.ErrorIs(t, check(Result[float32]{p, r.Out, r.LSE[1:]}, Claim{}, Options{}), attention.ErrShape)
	require.ErrorContains(t, check(r, Claim{Bits: true}, Options{}), "names no kernel")
	require.ErrorContains(t, check(r, Claim{}, Options{Queries: -1}), "-1 queries")
	tile := 1 << 17
	require.ErrorIs(t, check(r, Claim{Tile: &tile}, Options{}), flash.ErrKernel)
	require.ErrorIs(t, check(r, Claim{Promote: 32}, Options{}), flash.ErrKernel)
	bad := *p
	bad.Scale = float32(math.NaN())
	require.ErrorIs(t, check(Result[float32]{&bad, r.Out, r.LSE}, Claim{}, Options{}), attention.ErrScales)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = Check(ctx, []Result[float32]{r}, Claim{}, Options{})
	require.ErrorIs(t, err, context.Canceled)
}
