package flash

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

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
func requireInside(t *testing.T, got, lse []float32, out, sums []float64, l *Limits,
	saturates bool, what string) {
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
			l, err := Bound(context.Background(), p, k.Numerics(), Options{})
			require.NoError(t, err)
			name := c.flash() + "." + string(v)
			requireInside(t, elements[float32](t, file, name+".out"),
				elements[float32](t, file, name+".lse"), out, lse, l,
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
		V: smallOperand(r, kv, keys, valueDim,
			1), Scale: float32(math.Exp2(4*r.Float64()-5) / math.Sqrt(float64(dim))),
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
	x := &tensor.Tensor{Format: fp8.E4M3, Shape: []int{heads, tokens, dim},
		Block: tensor.Block{Rows: tokens}}
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
	"exact":    {Tile: 64, Offset: 8, P: E4M3},
	"scaled P": {Tile: 32, Descending: true, PScale: 448, P: E4M3, Splits: 3},
	"lazy":     {Tile: 16, Offset: 4, Threshold: 4, P: E4M3},
	"E5M2":     {Tile: 48, Offset: 15, P: E5M2, Scores: Scores{Frame: Fused}, Ending: Quotient},
	"FP16":     {Tile: 64, P: Float16, Scores: Scores{Frame: Lifted}, Sum: SumPairs},
	"canonical": {Tile: 64, P: E4M3, Offset: 8, Exp2: Exponential{Method: Elementary},
		Scores: Scores{Product: Product{Order: Contract},
			Scaling: InProduct}, Sum: SumLanes, Values: Product{Order: Contract}},
	"not cast": {Tile: 16, Splits: 2, Exp2: Exponential{Method: Flushed},
		Values: Product{Order: Contract}, Sum: SumQuads},
	"polynomial": {Tile: 128, Offset: 8, P: E4M3, Exp2: Exponential{Degree: 3},
		Scores: Scores{Frame: Raw}},
	"hopper": {Tile: 64, Offset: 8, P: E4M3, Scores: Scores{Product: wgmma, Frame: Raw},
		Values: Product{Order: Instruction, Model: oracle.HopperWGMMA(), Carry: true}, Ending: ScaleLast},
	"promoted": {Tile: 64, Offset: 8, P: E4M3, Scores: Scores{Product: wgmma},
		Values: Product{Order: Instruction, Model: oracle.HopperWGMMA(), Promote: 32}, Sum: SumQuads},
	"blackwell": {Tile: 128, Offset: 8, Threshold: 0.75, P: E4M3,
		Scores: Scores{Product: Product{Order: Instruction, Model: oracle.BlackwellTCGen05()}},
		Values: Product{Order: Instruction,
			Model: oracle.BlackwellTCGen05()}, Exp2: Exponential{Degree: 5}, Sum: SumPairs},
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
			l, err := Bound(context.Background(), p, k.Numerics(), Options{})
			require.NoError(t, err)
			worst, _, _ := inside(got.Out, want.Out, l.Out)
			require.LessOrEqual(t, worst, 1.0, name)
			worst, _, _ = inside(got.LSE, want.LSE, l.LSE)
			require.LessOrEqual(t, worst, 1.0, name)
		}
	}
}

// TestBoundChecksTheClaim has everything that is out of range refused, and nothing panic.
func TestBoundChecksTheClaim(t *testing.T) {
	p := smallProblem(rand.New(rand.NewPCG(1, 1)))
	nan, inf := math.NaN(), math.Inf(1)
	for want, c := range map[string]Numerics{
		"tile -1":                      {Tile: -1},
		"tile 9223372036854775807":     {Tile: math.MaxInt},
		"splits -1":                    {Splits: -1},
		"splits 70000":                 {Splits: 70000},
		"threshold NaN":                {Threshold: nan},
		"threshold -1":                 {Threshold: -1},
		"offset NaN":                   {Offset: nan},
		"offset 129":                   {Offset: 129},
		"pScale -1":                    {PScale: -1},
		"pScale +Inf":                  {PScale: inf},
		"error NaN of an exponential":  {Exp2: nan},
		"error 1 of an exponential":    {Exp2: 1},
		"error -0.5 of an exponential": {Exp2: -0.5},
		"output is in E4M3":            {Out: E4M3},
		"unknown format of P 9":        {P: 9},
		"unknown format of P 8":        {Out: 8},
		"unknown order of additions 7": {Scores: Product{Order: 7}},
		"unknown order of additions 6": {Values: Product{Order: 6}},
		"only P·V can be carried on": {Scores: Product{Order: Instruction, Model: oracle.AdaMMA(),
			Carry: true}},
		"are of instructions only": {Values: Product{Promote: 4}},
		"promotion after -1": {Values: Product{Order: Instruction, Model: oracle.AdaMMA(),
			Promote: -1}},
		"has scales inside": {Values: Product{Order: Instruction,
			Model: oracle.BlackwellMXFP8()}},
		`model "" of unit fused`: {Values: Product{Order: Instruction}},
	} {
		_, err := Bound(t.Context(), p, c, Options{})
		require.ErrorIs(t, err, ErrKernel, want)
		require.ErrorContains(t, err, want)
	}
	for _, degree := range []int{-1, 1, 2, 6, math.MaxInt} {
		k := Kernel{Exp2: Exponential{Degree: degree}}
		require.ErrorIs(t, k.Check(), ErrKernel)
		require.ErrorContains(t, k.Check(), "polynomial")
		require.ErrorIs(t, k.Numerics().Check(), ErrKernel)
	}
	for _, k := range append(Kernels(), Kernel{}) {
		require.NoError(t, k.Numerics().Check(), k.Name)
	}
}

// TestBoundOfAnyTile is no smaller than that of every tile.
func TestBoundOfAnyTile(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	for range 5 {
		p := smallProblem(r)
		for _, values := range []Product{{}, {Order: Contract},
			{Order: Instruction, Model: oracle.HopperWGMMA(), Carry: true}} {
			c := Numerics{Values: values, P: E4M3, Splits: 1 + r.IntN(3)}
			any, err := Bound(t.Context(), p, c, Options{})
			require.NoError(t, err)
			for c.Tile = 16; c.Tile < 200; c.Tile += 1 + r.IntN(30) {
				l, err := Bound(t.Context(), p, c, Options{})
				require.NoError(t, err)
				for i, x := range l.Out {
					require.LessOrEqual(t, x, any.Out[i], "tile %d", c.Tile)
				}
				for i, x := range l.LSE {
					require.LessOrEqual(t, x, any.LSE[i], "tile %d", c.Tile)
				}
			}
		}
	}
}

// TestRoundingOfOutputs rounds all numbers that are halfway between two of an output's
// format, where errors are the largest: within the bound, which half of it is not, as the
// unit roundoff of 8 significant bits is 2^-8 and not 2^-9.
func TestRoundingOfOutputs(t *testing.T) {
	for cast, unit := range map[Cast]float64{BFloat16: 0x1p-8, Float16: 0x1p-11} {
		c, worst := newCaster(cast), 0.0
		number := func(code uint32) float64 {
			if cast == BFloat16 {
				return float64(fp8.BFloat16(code).Float32())
			}
			return float64(float16.Frombits(uint16(code)).Float32())
		}
		for code := uint32(0); !math.IsInf(number(code+1), 0); code++ {
			middle := (number(code) + number(code+1)) / 2
			for _, x := range []float32{float32(middle), -float32(middle)} {
				y, _ := c.of(x)
				off := math.Abs(float64(y) - float64(x))
				require.LessOrEqual(t, off, cast.rounding(math.Abs(float64(x))), "%v", x)
				if number(code) >= 0x1p-14 { // normal
					worst = max(worst, off/math.Abs(float64(x)))
				}
			}
		}
		require.InEpsilon(t, unit/(1+unit), worst, 1e-12, "%v", cast)
	}
}
