package scaling_test

import (
	"math"
	"strings"
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
		"mx-rceil-torchao", "mx-ceil", "mx-even", "mx-compressed-tensors", "mx-modelopt", "mx-te-pow2", "mx-fouroversix",
		"deepgemm-fp4", "deepgemm-fp4-ue8m0", "nvfp4-te", "nvfp4-te-row",
		"nvfp4-te-4over6-mae448", "nvfp4-te-4over6-mae256", "nvfp4-te-4over6-mse448", "nvfp4-te-4over6-mse256",
		"nvfp4-te-4over6-mae448-fast", "nvfp4-te-4over6-mae256-fast", "nvfp4-te-4over6-mse448-fast", "nvfp4-te-4over6-mse256-fast",
		"nvfp4-torchao", "nvfp4-torchao-global", "nvfp4-compressed-tensors", "nvfp4-modelopt",
		"nvfp4-fouroversix-static6", "nvfp4-fouroversix-static4", "nvfp4-fouroversix-mae", "nvfp4-fouroversix-mse", "nvfp4-fouroversix-absmax",
	}
	require.Equal(t, names, scaling.Profiles())
	for _, p := range names {
		got, err := scaling.ParseProfile(string(p))
		require.NoError(t, err)
		require.Equal(t, p, got)
		require.True(t, p.Valid())
		require.Equal(t, p == "te-delayed", p.Delayed())
		require.Equal(t, strings.HasPrefix(string(p), "mx-") || p == "deepgemm-fp4-ue8m0", p.E8M0())
		require.Equal(t, strings.HasPrefix(string(p), "nvfp4-"), p.ScaleFormat() == tensor.UE4M3Scales)
		require.Equal(t, strings.HasPrefix(string(p), "nvfp4-") && p != "nvfp4-torchao", p.Outer())
		for _, role := range []scaling.Role{scaling.Input, scaling.Weight, scaling.Gradient} {
			require.NoError(t, p.Recipe(role).Check())
			require.True(t, p.For(p.Recipe(role).Format))
		}
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
		{"1x32", "1x32"}:     {"mx-floor", "mx-rceil", "mx-even", "mx-modelopt", "deepgemm-fp4-ue8m0"},
		{"1x128", "1x128"}:   {"deepgemm-fp4"},
		{"1x16", "1x16"}:     {"nvfp4-torchao", "nvfp4-te-row", "nvfp4-modelopt", "nvfp4-compressed-tensors", "nvfp4-fouroversix-mse"},
		{"1x16", "16x16"}:    {"nvfp4-te", "nvfp4-te-4over6-mae448"},
	} {
		for _, p := range want {
			require.Equal(t, names[0], p.Block(scaling.Input).String(), "%s", p)
			require.Equal(t, names[0], p.Block(scaling.Gradient).String(), "%s", p)
			require.Equal(t, names[1], p.Block(scaling.Weight).String(), "%s", p)
			require.Equal(t, p.Block(scaling.Weight), p.Recipe(scaling.Weight).Block)
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
		`scaling: recipe te-block-pow2 Format(99) tensor: unknown format`:                                            {Format: 99},
		`scaling: recipe deepseek: block -1x2 has a negative extent`:                                                 {Profile: "deepseek", Block: tensor.Block{Rows: -1, Cols: 2}},
		`scaling: recipe te-block E5M2 row: epsilon -1: want a finite number that is not negative`:                   {Profile: "te-block", Format: fp8.E5M2, Block: tensor.Block{Rows: 1}, Epsilon: -1},
		`scaling: recipe te-block E4M3 tensor: epsilon NaN: want a finite number that is not negative`:               {Profile: "te-block", Epsilon: nan},
		`scaling: recipe te-block E4M3 tensor: epsilon +Inf: want a finite number that is not negative`:              {Profile: "te-block", Epsilon: float32(math.Inf(1))},
		`scaling: history of -1 steps: want 1 to 1048576, or 0 for 1024`:                                             {Delayed: scaling.Delayed{Length: -1}},
		`scaling: history of 1048577 steps: want 1 to 1048576, or 0 for 1024`:                                        {Delayed: scaling.Delayed{Length: 1<<20 + 1}},
		`scaling: margin 127: want -126 to 126`:                                                                      {Delayed: scaling.Delayed{Margin: 127}},
		`scaling: margin -127: want -126 to 126`:                                                                     {Delayed: scaling.Delayed{Margin: -127}},
		`scaling: unknown amax algorithm 2: want one of max, most-recent`:                                            {Delayed: scaling.Delayed{Algorithm: 2}},
		`scaling: recipe nvfp4-te E4M3 tensor: this arithmetic is for [E2M1]`:                                        {Profile: "nvfp4-te"},
		`scaling: recipe mx-modelopt MXINT8 tensor: this arithmetic is for [E2M1]`:                                   {Profile: "mx-modelopt", Format: fp8.MXINT8},
		`scaling: recipe te-block E4M3 row: outer scales of 1 rows each: this arithmetic has none`:                   {Profile: "te-block", Block: tensor.Block{Rows: 1}, OuterRows: 1},
		`scaling: recipe nvfp4-te E2M1 row: outer scales of -1 rows each: want at least 0`:                           {Profile: "nvfp4-te", Format: fp8.E2M1, Block: tensor.Block{Rows: 1}, OuterRows: -1},
		`scaling: recipe nvfp4-te E2M1 16x16: outer scales of 24 rows each: blocks lie under more than one`:          {Profile: "nvfp4-te", Format: fp8.E2M1, Block: tensor.Block{Rows: 16, Cols: 16}, OuterRows: 24},
		`scaling: recipe te-block E4M3 row: an amax of 2 for one outer scale, and it has another number of them`:     {Profile: "te-block", Block: tensor.Block{Rows: 1}, OuterAmax: 2},
		`scaling: recipe nvfp4-te-row E2M1 row: an amax of 2 for one outer scale, and it has another number of them`: {Profile: "nvfp4-te-row", Format: fp8.E2M1, Block: tensor.Block{Rows: 1}, OuterAmax: 2},
		`scaling: recipe nvfp4-te E2M1 row: an amax of -2 for the outer scale: want a finite number above 0`:         {Profile: "nvfp4-te", Format: fp8.E2M1, Block: tensor.Block{Rows: 1}, OuterAmax: -2},
		`scaling: recipe nvfp4-te E2M1 row: an amax of NaN for the outer scale: want a finite number above 0`:        {Profile: "nvfp4-te", Format: fp8.E2M1, Block: tensor.Block{Rows: 1}, OuterAmax: nan},
		`scaling: recipe nvfp4-te E2M1 row: an amax of +Inf for the outer scale: want a finite number above 0`:       {Profile: "nvfp4-te", Format: fp8.E2M1, Block: tensor.Block{Rows: 1}, OuterAmax: float32(math.Inf(1))},
		`scaling: recipe nvfp4-te-row E2M1 tensor: outer scales of 1 rows each: blocks lie under more than one`:      {Profile: "nvfp4-te-row", Format: fp8.E2M1},
		`scaling: recipe nvfp4-fouroversix-mse E2M1 1x32: this arithmetic is for blocks of 1x16 or 16x16`:            {Profile: "nvfp4-fouroversix-mse", Format: fp8.E2M1, Block: tensor.Block{Rows: 1, Cols: 32}},
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
	for _, p := range []scaling.Profile{"te-delayed", "nvfp4-te", "unknown"} {
		require.PanicsWithValue(t, "scaling: recipe is delayed, has outer scales or is unknown: amax alone gives no scale", func() {
			scaling.Recipe{Profile: p}.Scale(1)
		})
	}
}

func tensorOf(shape ...int) *tensor.Tensor { return &tensor.Tensor{Name: "x", Shape: shape} }
