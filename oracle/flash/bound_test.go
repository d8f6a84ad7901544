package flash

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// inside returns the largest error in units of its bound, the norm of the errors in units
// of that of the bounds, and relative to what is wanted.
func inside(got []float32, want, bound []float64) (worst, norm, relative float64) {
	var errs, bounds, wants float64
	for i, x := range got {
		if float64(x) == want[i] {
			continue
		}
		off := math.Abs(float64(x) - want[i])
		worst = max(worst, off/bound[i])
		errs += off * off
		bounds += bound[i] * bound[i]
		wants += want[i] * want[i]
	}
	if errs == 0 {
		return worst, 1, 0
	}
	return worst, math.Sqrt(errs / bounds), math.Sqrt(errs / wants)
}

// requireInside fails if an error is beyond its bound, or where casts of P, all but exact
// elsewhere, make errors that the bounds are far too wide for.
func requireInside(t *testing.T, got, lse []float32, out, sums []float64, l *Limits, saturates bool, what string) {
	t.Helper()
	worst, norm, relative := inside(got, out, l.Out)
	require.LessOrEqual(t, worst, 1.0, what)
	if relative > 2e-3 && !saturates { // the most that may be lost is far from what is
		require.Greater(t, norm, 0.02, "%s: %v of all", what, relative)
	}
	worst, norm, _ = inside(lse, sums, l.LSE)
	require.LessOrEqual(t, worst, 1.0, "%s: log-sum-exps", what)
	require.Greater(t, norm, 0.002, "%s: log-sum-exps", what)
}

func TestBoundHoldsForVectors(t *testing.T) {
	file, cases, variants := golden(t)
	for _, c := range cases {
		p := c.problem(t, file)
		out := elements[float64](t, file, c.name+".exact.out")
		lse := elements[float64](t, file, c.name+".exact.lse")
		for _, v := range c.Variants {
			k := variants[string(v)].kernel(c.P)
			l, err := Bound(context.Background(), p, k.Claim(), Options{})
			require.NoError(t, err)
			name := c.flash() + "." + string(v)
			requireInside(t, elements[float32](t, file, name+".out"), elements[float32](t, file, name+".lse"), out, lse, l,
				k.Offset+k.Threshold > 8.8, name)
		}
	}
}

// smallProblem is one of few keys, in E4M3, with a mask and sinks or without.
func smallProblem(r *rand.Rand) *attention.Problem {
	kv := 1 + r.IntN(2)
	heads, queries, keys := kv*(1+r.IntN(2)), 1+r.IntN(3), 1+r.IntN(150)
	dim, valueDim := 32*(1+r.IntN(3)), 16*(1+r.IntN(3))
	p := &attention.Problem{
		Q: smallOperand(r, heads, queries, dim, 1), K: smallOperand(r, kv, keys, dim, 1+r.IntN(3)),
		V: smallOperand(r, kv, keys, valueDim, 1), Scale: float32(math.Exp2(4*r.Float64()-5) / math.Sqrt(float64(dim))),
	}
	p.Mask.Causal = r.IntN(2) == 0
	if r.IntN(3) == 0 {
		p.Mask.Window = &attention.Window{Left: r.IntN(keys), Right: r.IntN(8) - 1}
	}
	if r.IntN(2) == 0 {
		for range heads {
			p.Sinks = append(p.Sinks, float32(r.NormFloat64()))
		}
	}
	return p
}

// smallOperand has one scale for each head, and grows by a factor from head to tail.
func smallOperand(r *rand.Rand, heads, tokens, dim, growth int) attention.Operand {
	x := &tensor.Tensor{Format: fp8.E4M3, Shape: []int{heads, tokens, dim}, Block: tensor.Block{Rows: tokens}}
	for h := range heads {
		x.Scales = append(x.Scales, float32(0.25+r.Float64()))
		for i := range tokens {
			size := 1 + float64(growth-1)*float64(i)/float64(tokens)
			for range dim {
				code := fp8.EncodeOne(float32(size*r.NormFloat64())/x.Scales[h], fp8.E4M3, fp8.Policy{})
				x.Codes = append(x.Codes, code)
			}
		}
	}
	return attention.Operand{Codes: x}
}

// honest are kernels that are correct.
var honest = map[string]Kernel{
	"exact":      {Tile: 64, Offset: 8, P: E4M3},
	"scaled P":   {Tile: 32, Descending: true, PScale: 448, P: E4M3, Splits: 3},
	"lazy":       {Tile: 16, Offset: 4, Threshold: 4, P: E4M3},
	"E5M2":       {Tile: 48, Offset: 15, P: E5M2, Scores: Scores{Frame: Fused}, Ending: Quotient},
	"FP16":       {Tile: 64, P: Float16, Scores: Scores{Frame: Lifted}, Sum: SumPairs},
	"canonical":  {Tile: 64, P: E4M3, Offset: 8, Exp2: Exponential{Method: Elementary}, Scores: Scores{Product: Product{Order: Contract}, Scaling: InProduct}, Sum: SumLanes, Values: Product{Order: Contract}},
	"not cast":   {Tile: 16, Splits: 2, Exp2: Exponential{Method: Flushed}, Values: Product{Order: Contract}, Sum: SumQuads},
	"polynomial": {Tile: 128, Offset: 8, P: E4M3, Exp2: Exponential{Degree: 3}, Scores: Scores{Frame: Raw}},
	"hopper": {Tile: 64, Offset: 8, P: E4M3, Scores: Scores{Product: wgmma, Frame: Raw},
		Values: Product{Order: Instruction, Model: oracle.HopperWGMMA(), Carry: true}, Ending: ScaleLast},
	"promoted": {Tile: 64, Offset: 8, P: E4M3, Scores: Scores{Product: wgmma},
		Values: Product{Order: Instruction, Model: oracle.HopperWGMMA(), Promote: 32}, Sum: SumQuads},
	"blackwell": {Tile: 128, Offset: 8, Threshold: 0.75, P: E4M3, Scores: Scores{Product: Product{Order: Instruction, Model: oracle.BlackwellTCGen05()}},
		Values: Product{Order: Instruction, Model: oracle.BlackwellTCGen05()}, Exp2: Exponential{Degree: 5}, Sum: SumPairs},
}

var wgmma = Product{Order: Instruction, Model: oracle.HopperWGMMA()}

func TestBoundHoldsForModels(t *testing.T) {
	n := 40
	if testing.Short() {
		n = 8
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		p := smallProblem(r)
		want, err := Exact[float64](context.Background(), p, Options{})
		require.NoError(t, err)
		for name, k := range honest {
			got, err := Predict(context.Background(), p, k, Options{})
			require.NoError(t, err, name)
			l, err := Bound(context.Background(), p, k.Claim(), Options{})
			require.NoError(t, err)
			worst, _, _ := inside(got.Out, want.Out, l.Out)
			require.LessOrEqual(t, worst, 1.0, name)
			worst, _, _ = inside(got.LSE, want.LSE, l.LSE)
			require.LessOrEqual(t, worst, 1.0, name)
		}
	}
}
