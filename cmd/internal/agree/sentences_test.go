package agree

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	judge "github.com/octavo-fp8/octavo/oracle/judge/agree"
)

// TestSentences has reports of which each sentence must be printed, or not.
func TestSentences(t *testing.T) {
	side := func(outcome string, alike ...judge.Explanation) *Judged {
		return &Judged{Verdict: &judge.Verdict{Outcome: outcome, Why: "it is not known", Alike: alike}}
	}
	report := func(modules ...Module) *Report {
		r := &Report{Modules: modules}
		for _, m := range modules {
			for i, d := range m.Sides {
				if d != nil {
					r.Sides[i].Modules++
				}
			}
		}
		r.decide()
		return r
	}
	text := func(r *Report) string {
		var b bytes.Buffer
		require.NoError(t, r.WriteText(&b))
		return strings.Join(strings.Fields(b.String()), " ")
	}
	right := Module{Name: "a", Input: "same", Output: "same", Sides: [2]*Judged{side("pass"), side("pass")}}
	open := Module{Name: "b", Sides: [2]*Judged{side("undecided"), nil}}
	wrong := Module{Name: "c", Input: "same", Output: "differ", Sides: [2]*Judged{side("pass"), side("fail")}}

	require.Equal(t, "PASS: what was looked at of 2 layers is within the bounds of what is claimed", report(right).Title())
	require.Equal(t, "UNDECIDED: of 3 layers none is wrong, and 1 could not be judged", report(right, open).Title())
	require.Equal(t, "FAIL: 0 layers of A and 1 of B are not what is claimed, of 3 and 2", report(right, open, wrong).Title())
	require.Equal(t, "UNDECIDED: no dump has a linear layer of the model", report().Title())

	const all = "inputs and outputs of all 1 layer are the same, bit for bit"
	require.Contains(t, text(report(right)), all)
	require.NotContains(t, text(report(right, wrong)), all)
	require.Contains(t, text(report(right, wrong)), "of 2 layers in both dumps 2 have inputs of the same bits, and 1 of these outputs of the same bits")
	require.Contains(t, text(report(open)), "no layer is in both dumps")

	const fits = "1 of the right ones fit another recipe as well"
	other := right
	other.Sides[0] = side("pass", judge.Explanation{Kind: "recipe"})
	require.Contains(t, text(report(other)), fits)
	other.Sides[0] = side("pass", judge.Explanation{Kind: "recipe", Same: true})
	require.NotContains(t, text(report(other)), fits)

	r := report(right)
	r.Next = &Next{Whole: &Cause{}, Assumed: []string{"c"}}
	require.Contains(t, text(r), "run as they are claimed, since nothing explains them that is run: c")
	require.Contains(t, text(r), "no layer that is run does in B what it does not in A, but for sums")
	require.NotContains(t, text(r), "log-probabilities of B less those of A")
	r.Next.Measured, r.Next.MeasuredSize = &Figure{}, &Figure{}
	r.Next.Layers = []Cause{{Name: "a"}}
	require.NotContains(t, text(r), "but for sums")
	require.Contains(t, text(r), "log-probabilities of B less those of A")
}
