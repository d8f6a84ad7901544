package scaling_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

func mergeAmaxes(t testing.TB, all ...scaling.Amaxes) scaling.Amaxes {
	t.Helper()
	merged, err := scaling.MergeAmaxes(all...)
	require.NoError(t, err)
	return merged
}

// asText shows every bit but those of a NaN.
func asText(t testing.TB, a scaling.Amaxes) string {
	t.Helper()
	text, err := json.Marshal(a)
	require.NoError(t, err)
	return string(text)
}

// TestAmaxesEqualMerge runs workers that exchange the current maxima in every step,
// and workers that exchange whole states: their states stay the same, to the bit. Some
// tensors a worker does not use, some maxima are NaN.
func TestAmaxesEqualMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 12))
	names := []string{"a", "b", "c", "d"}
	for _, recipe := range mergeRecipes() {
		recipes := []scaling.Recipe{recipe, recipe, recipe, recipe}
		recipes[1].Format = fp8.E5M2
		recipes[2].Block = tensor.Block{Rows: 1}
		recipes[3].Block = tensor.Block{Rows: 2, Cols: 2}
		light, full := make([]scaling.Histories, 3), make([]scaling.Histories, 3)
		for w := range light {
			for i, name := range names {
				for _, hs := range []*scaling.Histories{&light[w], &full[w]} {
					_, err := hs.Get(name, recipes[i])
					require.NoError(t, err)
				}
			}
		}
		for step := range 30 {
			for w := range light {
				for i, name := range names {
					if r.IntN(3) == 0 {
						continue
					}
					src := make([]float32, 12)
					for k := range src {
						src[k] = anyAmax(r)
					}
					for _, hs := range []*scaling.Histories{&light[w], &full[w]} {
						h, err := hs.Get(name, recipes[i])
						require.NoError(t, err)
						x := &tensor.Tensor{Shape: []int{3, 4}}
						require.NoError(t, scaling.Quantize(t.Context(), x, src, scaling.Quantizer{Recipe: recipes[i], History: h}))
					}
				}
			}
			amaxes, states := make([]scaling.Amaxes, 3), make([]scaling.State, 3)
			for w := range light {
				amaxes[w], states[w] = light[w].Amaxes(), full[w].State()
			}
			maxima, state := mergeAmaxes(t, amaxes...), merge(t, states...)
			if step == 5 { // as a worker in another program may send
				for name, h := range maxima.Histories {
					nan := scaling.Float(math.NaN())
					h.Amax[0], state.Histories[name].Blocks[0].Current = nan, nan
				}
			}
			for w := range light {
				require.NoError(t, light[w].SetAmaxes(maxima))
				require.NoError(t, full[w].Restore(state))
				light[w].Update()
				full[w].Update()
				if a, b := light[w].State(), full[w].State(); step > 5 {
					require.Equal(t, bitwise(b), bitwise(a), "step %d, worker %d", step, w)
				} else { // a grid of zeros only is nothing to tell the others
					for name, h := range b.Histories {
						if blocks := a.Histories[name].Blocks; len(blocks) > 0 {
							require.Equal(t, fmt.Sprint(h), fmt.Sprint(a.Histories[name]), "%s, step %d, worker %d", name, step, w)
						}
					}
				}
			}
		}
	}
}

// TestMergeAmaxesLaws checks that MergeAmaxes is commutative, associative and
// idempotent, leaves its arguments alone, and keeps a NaN.
func TestMergeAmaxesLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 13))
	random := func() scaling.Amaxes {
		a := scaling.Amaxes{Version: 1, Step: 7, Histories: map[string]scaling.HistoryAmaxes{}}
		for _, name := range []string{"a", "b", "c"} {
			if r.IntN(4) > 0 {
				h := scaling.HistoryAmaxes{Block: tensor.Block{Rows: 1}, Grid: [2]int{3, 1}}
				for range 3 {
					h.Amax = append(h.Amax, scaling.Float(anyAmax(r)))
				}
				a.Histories[name] = h
			}
		}
		return a
	}
	for range 300 {
		a, b, c := random(), random(), random()
		texts := []string{asText(t, a), asText(t, b), asText(t, c)}
		all := asText(t, mergeAmaxes(t, a, b, c))
		for _, same := range []scaling.Amaxes{
			mergeAmaxes(t, c, a, b), mergeAmaxes(t, mergeAmaxes(t, a, b), c), mergeAmaxes(t, a, mergeAmaxes(t, c, b)), mergeAmaxes(t, a, b, c, b, a),
		} {
			require.Equal(t, all, asText(t, same))
		}
		require.Equal(t, texts, []string{asText(t, a), asText(t, b), asText(t, c)})
		require.Equal(t, texts[0], asText(t, mergeAmaxes(t, a)))

		data, err := a.MarshalBinary()
		require.NoError(t, err)
		var back scaling.Amaxes
		require.NoError(t, back.UnmarshalBinary(data))
		require.Equal(t, texts[0], asText(t, back))
		var fromText scaling.Amaxes
		require.NoError(t, json.Unmarshal([]byte(texts[0]), &fromText))
		require.Equal(t, texts[0], asText(t, fromText))
	}
	nan := scaling.Float(math.NaN())
	one := func(x scaling.Float) scaling.Amaxes {
		return scaling.Amaxes{Version: 1, Histories: map[string]scaling.HistoryAmaxes{"x": {Grid: [2]int{1, 1}, Amax: []scaling.Float{x}}}}
	}
	for _, merged := range []scaling.Amaxes{mergeAmaxes(t, one(3), one(nan)), mergeAmaxes(t, one(nan), one(scaling.Float(math.Inf(1))))} {
		require.True(t, merged.Histories["x"].Amax[0] != merged.Histories["x"].Amax[0])
	}
	require.Equal(t, `{"version":1,"step":0,"histories":{}}`, asText(t, mergeAmaxes(t)))
}

// TestAmaxesRefused checks that what cannot go together is refused and changes nothing.
func TestAmaxesRefused(t *testing.T) {
	recipe := scaling.Recipe{Profile: scaling.TEDelayed, Block: tensor.Block{Rows: 1}, Delayed: scaling.Delayed{Length: 2}}
	var hs scaling.Histories
	h, err := hs.Get("w", recipe)
	require.NoError(t, err)
	x := &tensor.Tensor{Shape: []int{2, 1}}
	require.NoError(t, scaling.Quantize(t.Context(), x, []float32{1, 2}, scaling.Quantizer{Recipe: recipe, History: h}))
	before := hs.State()
	for want, change := range map[string]func(a *scaling.Amaxes, w *scaling.HistoryAmaxes) error{
		"scaling: amaxes of version 3: this package reads version 1":     func(a *scaling.Amaxes, _ *scaling.HistoryAmaxes) error { a.Version = 3; return scaling.ErrVersion },
		"scaling: amaxes of step -1":                                     func(a *scaling.Amaxes, _ *scaling.HistoryAmaxes) error { a.Step = -1; return scaling.ErrState },
		`scaling: amaxes of "w": -2 of block 1: want no negative number`: func(_ *scaling.Amaxes, w *scaling.HistoryAmaxes) error { w.Amax[1] = -2; return scaling.ErrState },
		`scaling: history of "w": a grid of 2x1 has 1 blocks`:            func(_ *scaling.Amaxes, w *scaling.HistoryAmaxes) error { w.Amax = w.Amax[:1]; return scaling.ErrState },
		`scaling: amaxes of step 4 cannot go into histories of step 0`:   func(a *scaling.Amaxes, _ *scaling.HistoryAmaxes) error { a.Step = 4; return scaling.ErrHistory },
		`scaling: history of "w" is of E5M2 in 2x1 blocks of row, the other is of E4M3 in 2x1 blocks of row`: func(_ *scaling.Amaxes, w *scaling.HistoryAmaxes) error {
			w.Format = fp8.E5M2
			return scaling.ErrHistory
		},
		`scaling: history of "w" is of E4M3 in 1x2 blocks of row, the other is of E4M3 in 2x1 blocks of row`: func(_ *scaling.Amaxes, w *scaling.HistoryAmaxes) error {
			w.Grid = [2]int{1, 2}
			return scaling.ErrHistory
		},
	} {
		a := hs.Amaxes()
		w := a.Histories["w"]
		kind := change(&a, &w)
		a.Histories["w"] = w
		err := hs.SetAmaxes(a)
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, kind)
		require.Equal(t, before, hs.State())
		_, err = scaling.MergeAmaxes(hs.Amaxes(), a)
		require.ErrorIs(t, err, kind)
	}
}

// TestAmaxesSize states what a worker sends in a step for 2,000 tensors with histories
// of 1,024 steps, and for one of 32x32 blocks.
func TestAmaxesSize(t *testing.T) {
	var hs scaling.Histories
	for i := range 2000 {
		h, err := hs.Get(fmt.Sprintf("model.layers.%d.mlp.down_proj.input weight-gradient", i), scaling.TEDelayed.Recipe(scaling.Input))
		require.NoError(t, err)
		h.Observe(0, 1+float32(i)/7)
	}
	data, err := hs.Amaxes().MarshalBinary()
	require.NoError(t, err)
	require.Less(t, len(data), 140_000)
	text, err := json.Marshal(hs.Amaxes())
	require.NoError(t, err)
	require.Less(t, len(text), 300_000)
	t.Logf("%d bytes in binary, %d as JSON", len(data), len(text))

	var weight scaling.Histories
	recipe := scaling.TEDelayed.Recipe(scaling.Weight)
	recipe.Block = tensor.Block{Rows: 4, Cols: 4}
	h, err := weight.Get("w", recipe)
	require.NoError(t, err)
	x := &tensor.Tensor{Shape: []int{128, 128}}
	src := make([]float32, 128*128)
	for i := range src {
		src[i] = float32(i + 1)
	}
	require.NoError(t, scaling.Quantize(t.Context(), x, src, scaling.Quantizer{Recipe: recipe, History: h}))
	data, err = weight.Amaxes().MarshalBinary()
	require.NoError(t, err)
	require.Less(t, len(data), 4*1024+30)
}

// TestAmaxesDamaged cuts and changes the binary form: it is read or refused.
func TestAmaxesDamaged(t *testing.T) {
	var hs scaling.Histories
	for _, name := range []string{"a", "b"} {
		history(t, &hs, name, 2).Observe(0, 3)
	}
	data, err := hs.Amaxes().MarshalBinary()
	require.NoError(t, err)
	for n := range data {
		a := scaling.Amaxes{Step: 99}
		require.Error(t, a.UnmarshalBinary(data[:n]))
		require.Equal(t, scaling.Amaxes{Step: 99}, a)
		for _, bit := range []byte{1, 16, 128} {
			bad := append([]byte{}, data...)
			bad[n] ^= bit
			if a.UnmarshalBinary(bad) == nil {
				require.NoError(t, a.Check())
			}
		}
	}
	var a scaling.Amaxes
	require.ErrorIs(t, a.UnmarshalBinary(append(data, 0)), scaling.ErrState)
	require.ErrorIs(t, a.UnmarshalBinary([]byte{2}), scaling.ErrVersion)
	require.ErrorIs(t, a.UnmarshalBinary(nil), scaling.ErrState)
}

// TestDropStep checks that a step which is dropped leaves no trace.
func TestDropStep(t *testing.T) {
	hs := filled(t, rand.New(rand.NewPCG(14, 14)), 5, 3, "a", "b")
	hs.Update()
	before := bitwise(hs.State())
	history(t, hs, "a", 3).Observe(0, 1e30)
	hs.DropStep()
	require.Equal(t, before, bitwise(hs.State()))
	var restored scaling.Histories
	history(t, hs, "a", 3).Observe(0, 1e30)
	require.NoError(t, restored.Restore(hs.State()))
	restored.DropStep()
	require.Equal(t, before, bitwise(restored.State()))
}
