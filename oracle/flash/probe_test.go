package flash

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
)

// reread returns an operand whose tokens are those of o that from says, with their scales;
// value, unless nil, takes the place of all numbers before scales.
func reread(o attention.Operand, tokens int, from func(token int) int,
	value *float32) attention.Operand {
	heads, had, _ := o.Dims()
	read := func(h, t int) (int, int) { return h*had + from(t), h*had + from(t) }
	r := rebuilt(o, heads, tokens, read, nil)
	if value == nil {
		return r
	}
	for i := range r.BFloat16 {
		r.BFloat16[i] = fp8.BFloat16FromFloat32(*value)
	}
	if r.Codes != nil {
		code := fp8.EncodeOne(*value, r.Codes.Format, fp8.Policy{})
		r.Codes.Codes = slices.Repeat([]byte{code}, len(r.Codes.Codes))
	}
	return r
}

// means is the output where all scores of a row are equal: the mean of the kept values and,
// of value 0, the sink, whose score is then beside one of 0.
func means(p *attention.Problem) []float64 {
	s, v := p.Sizes(), newOperand(p.V)
	out := make([]float64, s.Heads*s.Queries*s.ValueDim)
	row := make([]float32, s.ValueDim)
	for h := range s.Heads {
		for i := range s.Queries {
			lo, hi := p.Mask.Range(i, s.Queries, s.Keys)
			weight := float64(hi - lo)
			if p.Sinks != nil {
				weight += math.Exp(float64(p.Sinks[h]))
			}
			to := out[(h*s.Queries+i)*s.ValueDim:][:s.ValueDim]
			for j := lo; j < hi; j++ {
				at := v.row(s.KVHead(h), j)
				v.decode(row, at)
				for d, x := range row {
					to[d] += float64(x) * float64(v.scale(at, d)) * v.outerFactor(at).hi / weight
				}
			}
		}
	}
	return out
}

// TestExactOfKnownAnswers asks for what is known without a reference: V of ones gives its
// scale, equal keys and scores of 0 the mean of V; other places of the keys change nothing,
// and every key twice adds ln 2 to log-sum-exps.
func TestExactOfKnownAnswers(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	exact := func(p *attention.Problem) *Result[float64] {
		got, err := Exact[float64](t.Context(), p, Options{})
		require.NoError(t, err)
		return got
	}
	first := func(int) int { return 0 }
	same := func(j int) int { return j }
	half := func(j int) int { return j / 2 }
	one, zero := float32(1), float32(0)
	for range 12 {
		p := randomProblem(r)
		s := p.Sizes()
		ones, equal, none, whole := *p, *p, *p, *p
		ones.Sinks, ones.V = nil, reread(p.V, s.Keys, first, &one)
		equal.Sinks, equal.K = nil, reread(p.K, s.Keys, first, nil)
		none.Q, none.V = reread(p.Q, s.Queries, same, &zero), ones.V
		for _, q := range []*attention.Problem{&ones, &equal, &none} {
			want, got := means(q), exact(q).Out
			scale := slices.Max(append(want, 1)) - slices.Min(append(want, 0))
			for i := range want {
				require.InDelta(t, want[i], got[i], 1e-12*scale)
			}
		}
		whole.Mask, whole.Sinks = attention.Mask{}, nil
		permuted, doubled := whole, whole
		order := r.Perm(s.Keys)
		at := func(j int) int { return order[j] }
		permuted.K, permuted.V = reread(p.K, s.Keys, at, nil), reread(p.V, s.Keys, at, nil)
		doubled.K, doubled.V = reread(p.K, 2*s.Keys, half, nil), reread(p.V, 2*s.Keys, half, nil)
		want := exact(&whole)
		for more, got := range map[float64]*Result[float64]{0: exact(&permuted),
			math.Ln2: exact(&doubled)} {
			for i, lse := range want.LSE {
				require.InDelta(t, lse+more, got.LSE[i], 1e-12*max(1, math.Abs(lse)))
			}
			for i, x := range want.Out {
				require.InDelta(t, x, got.Out[i], 1e-12*max(1, math.Abs(x)))
			}
		}
	}
}
