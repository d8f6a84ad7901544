package verifyattention

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/oracle/flash"
)

// TestSentences has each title of a verdict for an input of which it is true, and not for one
// of which it is not.
func TestSentences(t *testing.T) {
	example := func(scale float32) (*attention.Problem, flash.Kernel, flash.Got) {
		p, err := (&Example{Seed: 1, Scale: 0.125}).draw(t.Context(), drawings[0])
		require.NoError(t, err)
		for i := range p.K.Codes.Scales {
			p.K.Codes.Scales[i] *= scale
		}
		k, err := (&Claim{}).kernel(p, flash.Float32)
		require.NoError(t, err)
		r, err := flash.Inject(t.Context(), p, k, flash.Fault{}, flash.Options{})
		require.NoError(t, err)
		return p, k, flash.Got{Out: r.Out, LSE: r.LSE}
	}
	judged := func(p *attention.Problem, got flash.Got, c Claim, o Options) (outcome, text string) {
		v, err := (&task{problems: []*attention.Problem{p}, got: []flash.Got{got}}).judge(t.Context(), c, o)
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
	long, err := (&Example{Seed: 1, Scale: 0.125}).draw(t.Context(), drawing{heads: 1, kv: 1, queries: 1, keys: 4000, spread: 0.5})
	require.NoError(t, err)
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
		{"right: all 768 elements are within their bounds", "right", "one wrong"},
		{"right: all ", "same", "unbounded"},
		{"right: all ", "right", "empty"},
		{"right: all 256 elements looked at are within their bounds", "some", "right"},
		{"looked at: 2 of 6 queries of each head", "some", "right"},
		{"right: the result has no element", "empty", "right"},
		{"wrong: 1 of 768 elements and 0 log-sum-exps are outside of their bounds, in 1 rows", "one wrong", "right"},
		{"fault rescale-dropped: ", "fault", "one wrong"},
		{"no known fault", "one wrong", "fault"},
		{"wrong: all 768 elements are within their bounds, but not all have the bits of ", "one bit", "same"},
		{"768 of 768 elements and 24 of 24 log-sum-exps have those of the kernel that is claimed", "same", "one bit"},
		{"differ and have no bound, since the errors of scores may change weights by half", "unbounded", "right"},
		{"undecided: 32 of 32 elements are within their bounds, and in rows that are as wrong as zeros would be", "zero", "right"},
		{"undecided: 32 of 32 elements and 0 log-sum-exps are outside of the bounds of sums in float32, and none of those of hopper-wgmma", "zero, sums", "zero"},
		{"with --sums hopper-wgmma nothing is outside of its bound", "zero, sums", "zero"},
		{"right: ", "right", "zero"},
		{"not finite: ", "infinite", "right"},
	} {
		if x.of == "infinite" {
			add("infinite", p, changed(right, 77, float32(math.Inf(1))), Claim{}, Options{})
		}
		require.Contains(t, texts[x.of], x.sentence, x.of)
		require.NotContains(t, texts[x.not], x.sentence, x.not)
	}
}
