package scaling_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// refused calls f, which must return an error or panic with a constant of this
// project.
func refused(t *testing.T, name string, f func() error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			text, ok := p.(string)
			require.True(t, ok && (strings.HasPrefix(text, "scaling: ") || strings.HasPrefix(text, "tensor: ") || strings.HasPrefix(text, "fp8: ")), "%s: panics with %v", name, p)
		}
	}()
	require.Error(t, f(), name)
}

// badRecipes are those that Check must refuse.
var badRecipes = map[string]scaling.Recipe{
	"profile":        {Profile: "none"},
	"format":         {Format: 99},
	"negative block": {Block: tensor.Block{Rows: -1}},
	"negative width": {Block: tensor.Block{Cols: math.MinInt}},
	"rounding":       {Policy: fp8.Policy{Rounding: 9}},
	"overflow":       {Policy: fp8.Policy{Overflow: 9}},
	"epsilon":        {Epsilon: -1},
	"NaN epsilon":    {Epsilon: float32(math.NaN())},
	"no epsilon":     {Profile: scaling.DeepGEMM, Epsilon: 1},
	"length":         {Profile: scaling.TEDelayed, Delayed: scaling.Delayed{Length: -1}},
	"huge length":    {Profile: scaling.TEDelayed, Delayed: scaling.Delayed{Length: math.MaxInt}},
	"margin":         {Profile: scaling.TEDelayed, Delayed: scaling.Delayed{Margin: 127}},
	"least margin":   {Profile: scaling.TEDelayed, Delayed: scaling.Delayed{Margin: math.MinInt}},
	"algorithm":      {Profile: scaling.TEDelayed, Delayed: scaling.Delayed{Algorithm: 2}},
}

// TestMisuse throws what is wrong at every function that can be given it.
func TestMisuse(t *testing.T) {
	ctx := t.Context()
	x := tensorOf(2, 2)
	src := make([]float32, 4)
	var hs scaling.Histories
	for name, r := range badRecipes {
		err := r.Check()
		require.True(t, errors.Is(err, scaling.ErrRecipe) || errors.Is(err, fp8.ErrFormat) || errors.Is(err, fp8.ErrPolicy), "%s: %v", name, err)
		_ = r.String()
		q := scaling.Quantizer{Recipe: r}
		refused(t, name, q.Check)
		refused(t, "Quantize "+name, func() error { return scaling.Quantize(ctx, x, src, q) })
		refused(t, "Scale "+name, func() error { _, err := scaling.Scale[float64](r, 1, false); return err })
		refused(t, "NewHistory "+name, func() error { _, err := scaling.NewHistory(r); return err })
		refused(t, "Get "+name, func() error { _, err := hs.Get("x", r); return err })
	}
	require.Equal(t, *tensorOf(2, 2), *x)

	good := scaling.Quantizer{Recipe: scaling.Default(scaling.Input)}
	refused(t, "nil tensor", func() error { return scaling.Quantize(ctx, nil, src, good) })
	workers := good
	workers.Workers = -1
	refused(t, "workers", func() error { return scaling.Quantize(ctx, x, src, workers) })
	for _, r := range []scaling.Recipe{good.Recipe, delayed(3), scaling.NVFP4ModelOpt.Recipe(scaling.Input)} {
		h := new(scaling.History)
		if r.Profile.Delayed() {
			var err error
			h, err = scaling.NewHistory(r)
			require.NoError(t, err)
		}
		for _, n := range []int{0, 3, 5} {
			err := scaling.Quantize(ctx, x, make([]float32, n), scaling.Quantizer{Recipe: r, History: h})
			require.ErrorIs(t, err, tensor.ErrShape)
			require.EqualError(t, err, fmt.Sprintf("tensor %q: the source has %d elements: it must have 4", x.Name, n))
		}
	}
	require.Equal(t, *tensorOf(2, 2), *x)
	for _, shape := range [][]int{{-2, -2}, {math.MaxInt, math.MaxInt}} {
		for _, r := range []scaling.Recipe{good.Recipe, {Profile: scaling.TEDelayed, Block: tensor.Block{Rows: 1}}} {
			refused(t, "shape", func() error {
				return scaling.Quantize(ctx, tensorOf(shape...), src, scaling.Quantizer{Recipe: r, History: new(scaling.History)})
			})
		}
	}
	refused(t, "no history", func() error { return scaling.Quantize(ctx, x, src, scaling.Quantizer{Recipe: delayed(3)}) })
	refused(t, "zero history", func() error {
		return scaling.Quantize(ctx, x, src, scaling.Quantizer{Recipe: delayed(3), History: new(scaling.History)})
	})
	for name, r := range map[string]scaling.Recipe{"delayed": delayed(1), "unknown profile": {Profile: "none"}, "unknown format": {Format: 99}} {
		refused(t, name, func() error { r.Scale(1); return nil })
	}
	for _, role := range []scaling.Role{3, 255} {
		refused(t, "Default", func() error { scaling.Default(role); return nil })
		refused(t, "Profile.Recipe", func() error { scaling.MTFP8.Recipe(role); return nil })
		refused(t, "Profile.Block", func() error { scaling.Profile("none").Block(role); return nil })
	}
	refused(t, "ParseProfile", func() error { _, err := scaling.ParseProfile(""); return err })

	h, err := scaling.NewHistory(delayed(3))
	require.NoError(t, err)
	for _, block := range []int{1, -1, math.MinInt, math.MaxInt} {
		for _, h := range []*scaling.History{h, new(scaling.History)} {
			refused(t, "History.Scale", func() error { h.Scale(block); return nil })
			refused(t, "History.Observe", func() error { h.Observe(block, 1); return nil })
		}
	}
	new(scaling.History).Update()
	refused(t, "State", scaling.State{}.Check)
	refused(t, "Restore", func() error { return hs.Restore(scaling.State{}) })
	refused(t, "Merge", func() error { _, err := scaling.Merge(scaling.State{}); return err })
	refused(t, "SetAmaxes", func() error { return hs.SetAmaxes(scaling.Amaxes{}) })
	refused(t, "MergeAmaxes", func() error { _, err := scaling.MergeAmaxes(scaling.Amaxes{}); return err })
	refused(t, "Amaxes.MarshalBinary", func() error { _, err := scaling.Amaxes{}.MarshalBinary(); return err })
	refused(t, "UnmarshalBinary", func() error { return new(scaling.Amaxes).UnmarshalBinary(nil) })
	require.Empty(t, hs.State().Histories)

	for _, v := range []interface {
		MarshalText() ([]byte, error)
		String() string
	}{scaling.Role(3), scaling.AmaxAlgorithm(2)} {
		_, err := v.MarshalText()
		require.ErrorIs(t, err, scaling.ErrRecipe)
		require.Contains(t, v.String(), "(")
	}
	text, err := json.Marshal([]any{scaling.Input, scaling.Weight, scaling.Gradient, scaling.AmaxMax, scaling.AmaxMostRecent})
	require.NoError(t, err)
	require.JSONEq(t, `["input","weight","gradient","max","most-recent"]`, string(text))
	role, algorithm := scaling.Gradient, scaling.AmaxMostRecent
	require.ErrorIs(t, role.UnmarshalText([]byte("bias")), scaling.ErrRecipe)
	require.ErrorIs(t, algorithm.UnmarshalText([]byte("least")), scaling.ErrRecipe)
	require.NoError(t, role.UnmarshalText([]byte("weight")))
	require.NoError(t, algorithm.UnmarshalText([]byte("max")))
	require.Equal(t, scaling.Weight, role)
	require.Equal(t, scaling.AmaxMax, algorithm)
}
