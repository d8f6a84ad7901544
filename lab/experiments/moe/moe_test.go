package moe

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

func TestMoE(t *testing.T) {
	r := labtest.Run(t, Experiment, labtest.Short())
	labtest.Judged(t, r, 0, len(declared().Names()))
	losses := labtest.Table(t, r, "losses")
	require.Len(t, losses.Rows, len(arms()))
	for i, row := range losses.Rows {
		require.Equal(t, i == bf16Arm, row[2] == 0.0, "%v is not BF16", row[0])
		require.Zero(t, row[8])
	}
	s := studyOf(labtest.Short())
	tokens := s.batch * s.seq
	for _, row := range labtest.Table(t, r, "steps").Rows {
		sum := 0
		for _, n := range row[4:] {
			sum += n.(int)
		}
		require.Equal(t, 2*tokens, sum, "of each token two")
	}
	heard := labtest.Table(t, r, "telemetry").Rows
	require.Len(t, heard, 2*s.steps*len(s.places()), "all operands of two arms in each step")
	c := s.config()
	dims := []int{c.Dim, c.Experts.Hidden, c.Experts.Hidden, c.Dim}
	for _, row := range heard {
		for o, of := range operands() {
			if of.what == row[3] {
				require.Zero(t, row[7].(int64)%int64(dims[o]), "%v", row)
				if row[5] == "shared" {
					require.EqualValues(t, tokens*dims[o], row[7], "all tokens come to it")
				}
			}
		}
	}
	for _, row := range labtest.Table(t, r, "experts").Rows {
		for _, amax := range row[3:7] {
			require.Positive(t, amax, "%v", row)
		}
	}
	for _, row := range labtest.Table(t, r, "compared").Rows {
		require.Positive(t, row[3], "%v", row)
	}
}

// TestArms: an arm is what its name says, and shares nothing with another.
func TestArms(t *testing.T) {
	s := studyOf(lab.Options{})
	use := func(a arm) nn.Config {
		c := s.config()
		a.use(&c)
		require.NoError(t, c.Validate(), a.name)
		return c
	}
	bf16 := nn.DefaultRounding(nn.NarrowBF16)
	trained, there := arms(), compared()
	for _, a := range []arm{trained[bf16Arm], trained[unbalancedArm], there[bf16There]} {
		require.Equal(t, &bf16, use(a).Rounding, a.name)
		require.Nil(t, use(a).FP8)
	}
	require.Zero(t, use(trained[unbalancedArm]).Experts.Router.BiasRate)
	recipes := nn.DefaultFP8()
	for _, a := range []arm{trained[fp8Arm], there[fp8There], there[routerE4M3There]} {
		require.Equal(t, &recipes, use(a).FP8, a.name)
	}
	require.Equal(t, nn.ActivationsDeepSeekV3, use(trained[deepSeekArm]).Activations)
	require.Equal(t, scaling.MXRCeil, use(trained[mxfp8Arm]).FP8.Forward.A.Profile)
	require.True(t, use(trained[delayedArm]).FP8.InputGradient.A.Profile.Delayed())
	require.Equal(t, &bf16, use(trained[slowerArm]).Rounding)
	for i, a := range trained {
		require.Equal(t, i == slowerArm, a.rate != 0, a.name)
	}
	require.Equal(t, fp8.E5M2, use(there[e5m2There]).FP8.WeightGradient.B.Format)
	require.Zero(t, use(there[e5m2There]).FP8.Forward.A.Block, "one scale")
	blocks := use(there[blocksThere]).FP8
	square := tensor.Block{Rows: 128, Cols: 128}
	require.Equal(t, square, blocks.InputGradient.A.Block)
	require.Equal(t, square, blocks.WeightGradient.A.Block)
	require.Equal(t, recipes.Forward, blocks.Forward)
	require.Equal(t, recipes.WeightGradient.B, blocks.WeightGradient.B)
	for i, format := range map[int]nn.NarrowFormat{
		routerBF16There: nn.NarrowBF16, routerE4M3There: nn.NarrowE4M3, routerE2M1There: nn.NarrowE2M1,
	} {
		require.Equal(t, format, use(there[i]).Experts.Router.Rounding.Input.Format)
	}
	for _, a := range append(trained, there...) {
		if a.name != there[routerBF16There].name && a.name != there[routerE4M3There].name &&
			a.name != there[routerE2M1There].name {
			require.Nil(t, use(a).Experts.Router.Rounding, a.name)
		}
	}
}

// TestConfig: a token has as much of experts as of a dense MLP, and blocks of 128 are whole.
func TestConfig(t *testing.T) {
	for _, length := range []lab.Length{lab.Full, lab.Short} {
		c := studyOf(lab.Options{Length: length}).config()
		x := c.Experts
		require.Equal(t, c.Hidden, x.Hidden*(x.Shared+x.Router.TopK))
		require.NoError(t, c.Validate())
	}
	require.Zero(t, studyOf(lab.Options{}).config().Experts.Hidden%128)
}

func TestLoads(t *testing.T) {
	for _, test := range []struct {
		load              []int
		variation, excess float64
	}{
		{[]int{5, 5, 5}, 0, 0},
		{[]int{0, 10}, 1, 1},
		{[]int{2, 4, 6}, math.Sqrt(8.0/3) / 4, 0.5},
		{[]int{0, 0, 0, 8}, math.Sqrt(3), 3},
	} {
		require.InDelta(t, test.variation, variation(test.load), 1e-12)
		require.InDelta(t, test.excess, excess(test.load), 1e-12)
	}
}

func TestChanged(t *testing.T) {
	want := []int32{0, 3, 1, 2, 5, 7}
	require.Zero(t, changed(want, want, 2))
	require.Equal(t, 1, changed([]int32{0, 4, 1, 2, 5, 7}, want, 2))
	require.Equal(t, 2, changed([]int32{1, 2, 1, 2, 5, 7}, want, 2), "another token's do not count")
	require.Equal(t, 1, changed([]int32{3, 6, 1, 2, 5, 7}, want, 2), "the order does not count")
}

func TestGradientError(t *testing.T) {
	e := gradientError{}
	e.add([]float32{3, 4}, []float32{3, 0})
	e.add([]float32{0, 1}, []float32{0, 4})
	require.InDelta(t, 1, e.relative(), 1e-12, "errors of 4 and 3 of gradients of 3 and 4")
	require.True(t, math.IsNaN((gradientError{}).relative()), "of an expert without tokens")
}

// TestParts: each weight of a linear layer of a block is in one part, and no other parameter.
func TestParts(t *testing.T) {
	c := studyOf(labtest.Short()).config()
	in := map[string]int{}
	for shape := range c.Shapes() {
		in[partOf(shape.Name)]++
		require.Equal(t, shape.Rows == 1 || shape.Rows == c.Vocab, partOf(shape.Name) == "", shape.Name)
	}
	experts := c.Experts.Router.Experts
	delete(in, "")
	require.Equal(t, map[string]int{
		"attention": 2 * 5, "dense MLP": 3, "shared expert": 3, "experts": 3 * experts, "router": 1,
	}, in)
}

// TestRoundExperts: under one scale the expert of small values loses those that are below half
// the least subnormal of the others' scale, and under its own it does not.
func TestRoundExperts(t *testing.T) {
	large, small := []float32{448, -448, 0, 1}, []float32{448.0 / 4096, 0.75 / 512, 0.25 / 512, 0}
	r, err := roundExperts(t.Context(), [][]float32{large, small}, 4)
	require.NoError(t, err)
	require.Equal(t, 6, r.all[oneScale].nonzero)
	require.Equal(t, 1, r.all[oneScale].flushed, "a quarter of 2^-9 becomes 0")
	require.Equal(t, 1, r.least[oneScale].flushed)
	require.Zero(t, r.all[scaleEach].flushed)
	require.Zero(t, r.all[scaleTile].flushed)
	require.Equal(t, 3, r.least[scaleEach].nonzero)
	require.Less(t, r.least[scaleEach].off, r.least[oneScale].off)
	require.InDelta(t, math.Pow(448.0/4096, 2), r.least[scaleEach].squares, 1e-5)
}
