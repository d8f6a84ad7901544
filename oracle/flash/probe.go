package flash

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// Probe is a problem whose answer is known without a reference: from V alone, or from the
// answer to another problem. Both hold beyond rounding and what P loses by its format.
type Probe struct {
	Name    string
	Problem *attention.Problem

	// Base, unless nil, is a problem with the same outputs, and with log-sum-exps that are
	// less by LSE.
	Base *attention.Problem
	LSE  float64
	// Out, where Base is nil, is each output, [heads, queries, DV].
	Out []float64
}

// Probes returns problems like p, with its shapes, scales and sinks:
//
//   - "ones": V is 1 times its scales, of which each head's first token has those of all:
//     the output is that.
//   - "equal-keys": all keys are the head's first: the output is the mean of V.
//   - "no-scores": Q is 0 and V as in "ones": with n keys the sink's share is e^s/(n+e^s).
//   - "permuted-keys": keys and values in another order, without a mask.
//   - "doubled-keys": every key twice, without a mask or sinks: log-sum-exp grows by ln 2.
//
// The first two have no sinks, the first three p's mask. An error is that of p.Check.
func Probes(p *attention.Problem, seed uint64) ([]Probe, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	s := p.Sizes()
	b := *p
	b.Keys, b.Q = 0, changed(p.Q, s.Queries, unmoved, nil)
	b.K, b.V = changed(p.K, s.Keys, unmoved, nil), changed(p.V, s.Keys, unmoved, nil)
	one := func(float32) float32 { return 1 }
	zero := func(float32) float32 { return 0 }
	first := func(int) int { return 0 }

	ones := b
	ones.Sinks, ones.V = nil, changed(p.V, s.Keys, first, one)
	equal := b
	equal.Sinks, equal.K = nil, changed(p.K, s.Keys, first, nil)
	none := b
	none.Q, none.V = changed(p.Q, s.Queries, unmoved, zero), ones.V

	whole := b
	whole.Mask = attention.Mask{}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(s.Keys)
	permuted := whole
	at := func(j int) int { return order[j] }
	permuted.K, permuted.V = changed(p.K, s.Keys, at, nil), changed(p.V, s.Keys, at, nil)
	lone := whole
	lone.Sinks = nil
	doubled := lone
	half := func(j int) int { return j / 2 }
	doubled.K, doubled.V = changed(p.K, 2*s.Keys, half, nil), changed(p.V, 2*s.Keys, half, nil)
	return []Probe{
		{Name: "ones", Problem: &ones, Out: means(&ones)},
		{Name: "equal-keys", Problem: &equal, Out: means(&equal)},
		{Name: "no-scores", Problem: &none, Out: means(&none)},
		{Name: "permuted-keys", Problem: &permuted, Base: &whole},
		{Name: "doubled-keys", Problem: &doubled, Base: &lone, LSE: math.Ln2},
	}, nil
}

func unmoved(token int) int { return token }

// changed returns an operand of so many tokens, each the one of o that from says, with its
// scales; f, unless nil, changes codes.
func changed(o attention.Operand, tokens int, from func(token int) int, f func(float32) float32) attention.Operand {
	old := newOperand(o)
	if o.Codes == nil {
		n := attention.Operand{Shape: [3]int{old.heads, tokens, old.dim}}
		for r := range old.heads * tokens {
			at := old.row(r/max(tokens, 1), from(r%max(tokens, 1)))
			for _, v := range o.BFloat16[at*old.dim:][:old.dim] {
				if f != nil {
					v = fp8.BFloat16FromFloat32(f(v.Float32()))
				}
				n.BFloat16 = append(n.BFloat16, v)
			}
		}
		return n
	}
	c := *o.Codes
	c.Shape, c.Stride, c.ScaleStride = []int{old.heads, tokens, old.dim}, 0, 0
	c.Codes, c.Scales, c.Outer.Scales = nil, nil, nil
	byToken := old.byToken()
	if c.Block = (tensor.Block{Rows: tokens, Cols: o.Codes.Block.Cols}); byToken {
		c.Block.Rows = 1
	}
	for r := range old.heads * tokens {
		at := old.row(r/tokens, from(r%tokens))
		codes := slices.Clone(o.Codes.Row(at))
		for i, code := range codes {
			if f != nil {
				codes[i] = fp8.EncodeOne(f(c.Format.Float32(code)), c.Format, fp8.Policy{})
			}
		}
		c.Codes = append(c.Codes, codes...)
		if byToken || r%tokens == 0 {
			for d := 0; d < old.dim; d += old.extent() {
				c.Scales = append(c.Scales, old.scale(at, d))
			}
		}
		if old.outer() {
			c.Outer.Scales = append(c.Outer.Scales, o.Codes.Outer.At(at))
			c.Outer.Rows = 1
		}
	}
	return attention.Operand{Codes: &c}
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
