package attention

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/oracle/flash"
	"github.com/octavo-fp8/octavo/tensor"
)

// made is a problem in E4M3 with a scale for each head, of which none is 1 or that of another.
// The score of its last key is so much above that of the first, in nats, and spread is their
// standard deviation.
func made(t *testing.T, heads, kv, queries, keys int, growth, spread float64) *attention.Problem {
	const dim, valueDim = 64, 32
	r := rand.New(rand.NewPCG(1, 18))
	fill := func(heads, tokens, dim int, value func(h, token, column int) float64) (all []float32) {
		for i := range heads * tokens * dim {
			all = append(all, float32(value(i/dim/tokens, i/dim%tokens, i%dim)))
		}
		return all
	}
	sign := func(column int) float64 { return float64(1 - 2*(column*7/3%2)) }
	q := fill(heads, queries, dim, func(_, _, column int) float64 { return sign(column) + 0.25*r.NormFloat64() })
	k := fill(kv, keys, dim, func(_, token, column int) float64 {
		return sign(column)*growth*float64(token)/float64(keys)/math.Sqrt(dim) + spread*r.NormFloat64()
	})
	v := fill(kv, keys, valueDim, func(h, _, _ int) float64 { return (0.5 + r.NormFloat64()) * float64(1+h) })
	p := &attention.Problem{Scale: 0.125}
	recipe := attention.Recipe{Q: attention.PerHead, K: attention.PerHead, V: attention.PerHead, Profile: "te-block"}
	s := attention.Sizes{Heads: heads, KVHeads: kv, Queries: queries, Keys: keys, Dim: dim, ValueDim: valueDim}
	require.NoError(t, recipe.Quantize(t.Context(), p, q, k, v, s, tensor.Options{}))
	return p
}

// TestSentences has each title of a verdict for an input of which it is true, and not for one
// of which it is not.
func TestSentences(t *testing.T) {
	example := func(scale float32) (*attention.Problem, flash.Kernel, flash.Got) {
		p := made(t, 4, 2, 6, 300, 12, 0.7)
		for i := range p.K.Codes.Scales {
			p.K.Codes.Scales[i] *= scale
		}
		k, err := (&Claim{}).KernelOf(p, flash.Float32)
		require.NoError(t, err)
		r, err := flash.Inject(t.Context(), p, k, flash.Fault{}, flash.Options{})
		require.NoError(t, err)
		return p, k, flash.Got{Out: r.Out, LSE: r.LSE}
	}
	judged := func(p *attention.Problem, got flash.Got, c Claim, o Options) (outcome, text string) {
		v, err := Check(t.Context(), []Result[float32]{{p, got.Out, got.LSE}}, c, o)
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, v.WriteText(&b))
		return v.Outcome, strings.Join(strings.Fields(b.String()), " ")
	}
	p, k, right := example(1)
	changed := func(got flash.Got, at int, to float32) flash.Got {
		return flash.Got{Out: append(append(append([]float32(nil), got.Out[:at]...), to), got.Out[at+1:]...), LSE: got.LSE}
	}
	injected := func(f flash.Kind) flash.Got {
		r, err := flash.Inject(t.Context(), p, k, flash.Fault{Kind: f}, flash.Options{})
		require.NoError(t, err)
		return flash.Got{Out: r.Out, LSE: r.LSE}
	}
	large, _, unbounded := example(0x1p30)
	long := made(t, 1, 1, 1, 4000, 0, 0.5)
	empty := *p
	none := *p.Q.Codes
	none.Codes, none.Scales, none.Shape = nil, nil, []int{none.Shape[0], 0, none.Shape[2]}
	empty.Q.Codes = &none
	texts, outcomes := map[string]string{}, map[string]string{}
	add := func(name string, p *attention.Problem, got flash.Got, c Claim, o Options) {
		outcomes[name], texts[name] = judged(p, got, c, o)
	}
	bits := Claim{Kernel: &k, Bits: true}
	add("right", p, right, Claim{}, Options{})
	add("some", p, right, Claim{}, Options{Queries: 2})
	add("one wrong", p, changed(right, 77, 1e6), Claim{}, Options{})
	add("fault", p, injected("rescale-dropped"), Claim{}, Options{})
	add("same", p, right, bits, Options{})
	add("one bit", p, changed(right, 77, math.Nextafter32(right.Out[77], 0)), bits, Options{})
	add("unbounded", large, unbounded, Claim{}, Options{})
	add("zero", long, flash.Got{Out: make([]float32, 32)}, Claim{Sums: "hopper-wgmma"}, Options{})
	add("zero, sums", long, flash.Got{Out: make([]float32, 32)}, Claim{}, Options{})

	add("empty", &empty, flash.Got{}, Claim{}, Options{})
	for name, want := range map[string]string{"right": "pass", "some": "pass", "one wrong": "fail", "fault": "fail",
		"same": "pass", "one bit": "fail", "unbounded": "undecided", "zero": "undecided",
		"zero, sums": "undecided", "empty": "pass"} {
		require.Equal(t, want, outcomes[name], "%s: %s", name, texts[name])
	}
	for _, x := range []struct{ sentence, of, not string }{
		{"PASS: all 768 elements are within their bounds", "right", "one wrong"},
		{"PASS: all ", "same", "unbounded"},
		{"PASS: all ", "right", "empty"},
		{"PASS: all 256 elements looked at are within their bounds", "some", "right"},
		{"looked at: 2 of 6 queries of each head", "some", "right"},
		{"PASS: the result has no element", "empty", "right"},
		{"FAIL: 1 of 768 elements and 0 log-sum-exps are outside of their bounds, in 1 row", "one wrong", "right"},
		{"fault rescale-dropped: ", "fault", "one wrong"},
		{"no known fault", "one wrong", "fault"},
		{"FAIL: all 768 elements are within their bounds, but not all have the bits of ", "one bit", "same"},
		{"768 of 768 elements and 24 of 24 log-sum-exps have those of the kernel that is claimed", "same", "one bit"},
		{"differ and have no bound, since the errors of scores may change weights by half", "unbounded", "right"},
		{"UNDECIDED: 32 of 32 elements are within their bounds, and in rows that are as wrong as zeros would be", "zero", "right"},
		{"UNDECIDED: 32 of 32 elements and 0 log-sum-exps are outside of the bounds of sums in float32, and none of those of hopper-wgmma", "zero, sums", "zero"},
		{"with --sums hopper-wgmma nothing is outside of its bound", "zero, sums", "zero"},
		{"PASS: ", "right", "zero"},
		{"not finite: ", "infinite", "right"},
	} {
		if x.of == "infinite" {
			add("infinite", p, changed(right, 77, float32(math.Inf(1))), Claim{}, Options{})
		}
		require.Contains(t, texts[x.of], x.sentence, x.of)
		require.NotContains(t, texts[x.not], x.sentence, x.not)
	}
}
