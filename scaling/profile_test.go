package scaling_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

func TestProfiles(t *testing.T) {
	names := []scaling.Profile{
		"te-delayed", "te-current", "te-current-pow2", "te-block", "te-block-pow2",
		"torchao-tensorwise", "torchao-tensorwise-pow2", "torchao-rowwise", "torchao-rowwise-pow2",
		"deepgemm", "deepgemm-ue8m0", "deepseek", "deepseek-ue8m0", "mtfp8", "mx-floor", "mx-rceil",
	}
	require.Equal(t, names, scaling.Profiles())
	for _, p := range names {
		got, err := scaling.ParseProfile(string(p))
		require.NoError(t, err)
		require.Equal(t, p, got)
		require.True(t, p.Valid())
		require.Equal(t, p == "te-delayed", p.Delayed())
		require.Equal(t, p == "mx-floor" || p == "mx-rceil", p.E8M0())
		require.NoError(t, p.Recipe(scaling.Input).Check())
	}
	scaling.Profiles()[0] = "changed"
	require.Equal(t, names, scaling.Profiles())
}

func TestParseProfile(t *testing.T) {
	for _, name := range []string{"", "te", "TE-block", "te-block ", "mx", "te-delayed-pow2", "mtfp8-ue8m0"} {
		p, err := scaling.ParseProfile(name)
		require.Empty(t, p)
		require.ErrorContains(t, err, `scaling: unknown profile "`+name+`": want one of te-delayed, te-current, `)
		for _, known := range scaling.Profiles() {
			require.ErrorContains(t, err, string(known))
		}
		if name != "" {
			unknown := scaling.Profile(name)
			require.False(t, unknown.Valid() || unknown.Delayed() || unknown.E8M0())
			require.Equal(t, tensor.Block{}, unknown.Block(scaling.Weight))
			require.Equal(t, err, scaling.Recipe{Profile: unknown}.Check())
		}
	}
}

func TestProfileBlocks(t *testing.T) {
	for names, want := range map[[2]string][]scaling.Profile{ // of inputs and gradients, of weights
		{"tensor", "tensor"}: {"te-delayed", "te-current", "te-current-pow2", "torchao-tensorwise", "torchao-tensorwise-pow2"},
		{"row", "row"}:       {"torchao-rowwise", "torchao-rowwise-pow2"},
		{"1x128", "128x128"}: {"", "te-block", "te-block-pow2", "deepgemm", "deepgemm-ue8m0", "deepseek", "deepseek-ue8m0", "mtfp8"},
		{"1x32", "1x32"}:     {"mx-floor", "mx-rceil"},
	} {
		for _, p := range want {
			require.Equal(t, names[0], p.Block(scaling.Input).String(), "%s", p)
			require.Equal(t, names[0], p.Block(scaling.Gradient).String(), "%s", p)
			require.Equal(t, names[1], p.Block(scaling.Weight).String(), "%s", p)
			require.Equal(t, scaling.Recipe{Profile: p, Block: p.Block(scaling.Weight)}, p.Recipe(scaling.Weight))
		}
	}
}

func TestDefault(t *testing.T) {
	require.Equal(t, "te-block-pow2 E4M3 1x128", scaling.Default(scaling.Input).String())
	require.Equal(t, "te-block-pow2 E4M3 128x128", scaling.Default(scaling.Weight).String())
	require.Equal(t, "te-block-pow2 E4M3 1x128", scaling.Default(scaling.Gradient).String())
	// The zero Recipe has the same arithmetic and one scale.
	var zero scaling.Recipe
	require.NoError(t, zero.Check())
	require.Equal(t, "te-block-pow2 E4M3 tensor", zero.String())
	require.Equal(t, scaling.Recipe{Profile: scaling.TEBlockPow2}.Scale(3), zero.Scale(3))
	require.Equal(t, fp8.Scale{Stored: 0x1p-7, Multiplier: 0x1p7}, zero.Scale(3))
}

func TestRecipeCheck(t *testing.T) {
	nan := float32(math.NaN())
	for want, r := range map[string]scaling.Recipe{
		`scaling: recipe te-block-pow2 Format(99) tensor: unknown format`:                               {Format: 99},
		`scaling: recipe deepseek: block -1x2 has a negative extent`:                                    {Profile: "deepseek", Block: tensor.Block{Rows: -1, Cols: 2}},
		`scaling: recipe te-block E5M2 row: epsilon -1: want a finite number that is not negative`:      {Profile: "te-block", Format: fp8.E5M2, Block: tensor.Block{Rows: 1}, Epsilon: -1},
		`scaling: recipe te-block E4M3 tensor: epsilon NaN: want a finite number that is not negative`:  {Profile: "te-block", Epsilon: nan},
		`scaling: recipe te-block E4M3 tensor: epsilon +Inf: want a finite number that is not negative`: {Profile: "te-block", Epsilon: float32(math.Inf(1))},
		`scaling: history of -1 steps: want 1 to 1048576, or 0 for 1024`:                                {Delayed: scaling.Delayed{Length: -1}},
		`scaling: history of 1048577 steps: want 1 to 1048576, or 0 for 1024`:                           {Delayed: scaling.Delayed{Length: 1<<20 + 1}},
		`scaling: margin 127: want -126 to 126`:                                                         {Delayed: scaling.Delayed{Margin: 127}},
		`scaling: margin -127: want -126 to 126`:                                                        {Delayed: scaling.Delayed{Margin: -127}},
		`scaling: unknown amax algorithm 2: want one of max, most-recent`:                               {Delayed: scaling.Delayed{Algorithm: 2}},
	} {
		require.EqualError(t, r.Check(), want)
		x := tensorOf(2)
		x.Block, x.Format = tensor.Block{Cols: 7}, fp8.E5M2
		before := *x
		require.EqualError(t, scaling.Quantize(t.Context(), x, []float32{1, 2}, scaling.Quantizer{Recipe: r}), `tensor "x": `+want)
		require.Equal(t, before, *x)
	}
}

func TestScalePanics(t *testing.T) {
	for _, p := range []scaling.Profile{"te-delayed", "unknown"} {
		require.PanicsWithValue(t, "scaling: recipe is delayed or unknown: amax alone gives no scale", func() {
			scaling.Recipe{Profile: p}.Scale(1)
		})
	}
}

func tensorOf(shape ...int) *tensor.Tensor { return &tensor.Tensor{Name: "x", Shape: shape} }
