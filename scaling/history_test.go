package scaling_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// simulation is kernel_bulk of TransformerEngine's delayed_scaling.cu for one
// tensor.
type simulation struct {
	history    []float32 // slot 0 is the current step
	scale      float32
	scaledMax  float32
	mostRecent bool
}

func newSimulation(r scaling.Recipe) *simulation {
	return &simulation{
		history:    make([]float32, r.Delayed.Length),
		scale:      1,
		scaledMax:  float32(float64(r.Format.Max()) * math.Pow(2, -float64(r.Delayed.Margin))),
		mostRecent: r.Delayed.Algorithm == scaling.AmaxMostRecent,
	}
}

func cFmaxf(a, b float32) float32 {
	if a != a {
		return b
	}
	if b != b {
		return a
	}
	return max(a, b)
}

func (s *simulation) observe(amax float32) { s.history[0] = cFmaxf(s.history[0], amax) }

func (s *simulation) update() {
	var amax float32
	length, last := len(s.history), s.history[0]
	if last != 0 {
		rolled := make([]float32, length)
		for i := range rolled {
			a := last
			if i < length-1 {
				a = s.history[i+1]
			}
			amax = cFmaxf(amax, a)
			if i > 0 {
				rolled[i] = a
			}
		}
		s.history = rolled
	}
	if s.mostRecent {
		amax = last
	}
	if amax > 0 && !math.IsInf(float64(amax), 0) {
		s.scale = s.scaledMax / amax
	}
	if math.IsInf(float64(s.scale), 0) {
		s.scale = math.MaxFloat32
	}
}

// compare checks a saved history and its scale against the simulation.
func (s *simulation) compare(h *scaling.History, saved scaling.BlockState) error {
	if got, want := h.Scale(0), (fp8.Scale{Stored: 1 / s.scale, Multiplier: s.scale}); got != want {
		return fmt.Errorf("scale is %+v, want %+v", got, want)
	}
	if float32(saved.Scale) != s.scale || float32(saved.Current) != s.history[0] || len(saved.Past) != len(s.history)-1 {
		return fmt.Errorf("saved scale %v, current %v, %d steps", saved.Scale, saved.Current, len(saved.Past))
	}
	for i, a := range saved.Past {
		if want := s.history[len(s.history)-1-i]; float32(a) != want {
			return fmt.Errorf("amax of %d steps ago is %v, want %v", i+1, a, want)
		}
	}
	return nil
}

// anyAmax returns amax of all kinds.
func anyAmax(r *rand.Rand) float32 {
	switch r.IntN(12) {
	case 0:
		return 0
	case 1:
		return float32(math.NaN())
	case 2:
		return float32(math.Inf(1))
	case 3:
		return math.SmallestNonzeroFloat32 * float32(1+r.IntN(3))
	case 4:
		return edgeAmax(r)
	}
	return r.Float32() * 10
}

// TestHistory compares histories with the simulation, step by step.
func TestHistory(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, length := range []int{1, 2, 3, 31, 1024} {
		for _, margin := range []int{0, 2, -1} {
			for _, algorithm := range []scaling.AmaxAlgorithm{scaling.AmaxMax, scaling.AmaxMostRecent} {
				for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E4M3FNUZ} {
					recipe := scaling.Recipe{Profile: scaling.TEDelayed, Format: f,
						Delayed: scaling.Delayed{Length: length, Margin: margin, Algorithm: algorithm}}
					if err := simulate(r, recipe); err != nil {
						t.Fatalf("%+v: %v", recipe, err)
					}
				}
			}
		}
	}
}

func simulate(r *rand.Rand, recipe scaling.Recipe) error {
	var hs scaling.Histories
	h, err := hs.Get("x", recipe)
	if err != nil {
		return err
	}
	want := newSimulation(recipe)
	steps := 3*recipe.Delayed.Length + 100
	if testing.Short() {
		steps = recipe.Delayed.Length + 100
	}
	for step := range steps {
		for range r.IntN(3) {
			amax := anyAmax(r)
			h.Observe(0, amax)
			want.observe(amax)
		}
		hs.Update()
		want.update()
		if recipe.Delayed.Length > 100 && step%37 != 0 {
			continue
		}
		if err := want.compare(h, hs.State().Histories["x"].Blocks[0]); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
	if hs.Step() != int64(steps) {
		return fmt.Errorf("step is %d, want %d", hs.Step(), steps)
	}
	return nil
}

// TestUnusedStep checks that a step without observations changes neither the
// scale nor the history, not even when the largest amax has just left it.
func TestUnusedStep(t *testing.T) {
	for _, algorithm := range []scaling.AmaxAlgorithm{scaling.AmaxMax, scaling.AmaxMostRecent} {
		var hs scaling.Histories
		h, err := hs.Get("x", scaling.Recipe{Profile: scaling.TEDelayed, Delayed: scaling.Delayed{Length: 2, Algorithm: algorithm}})
		require.NoError(t, err)
		for _, amax := range []float32{64, 7} {
			h.Observe(0, amax)
			hs.Update()
		}
		want := map[scaling.AmaxAlgorithm]float32{scaling.AmaxMax: 7, scaling.AmaxMostRecent: 64}[algorithm]
		require.Equal(t, want, h.Scale(0).Multiplier)
		before := hs.State()
		for _, amax := range []float32{0, float32(math.NaN())} {
			hs.Update()
			h.Observe(0, amax)
			hs.Update()
		}
		require.Equal(t, before.Histories, hs.State().Histories)
		require.Equal(t, before.Step+4, hs.Step())
	}
}

// TestRestoredNaN checks what becomes of NaN, which only a merged or restored
// state has: the maximum leaves it out, alone it keeps the scale.
func TestRestoredNaN(t *testing.T) {
	nan := scaling.Float(math.NaN())
	for algorithm, want := range map[scaling.AmaxAlgorithm]float32{scaling.AmaxMax: 448 / 8, scaling.AmaxMostRecent: 3} {
		for _, past := range [][]scaling.Float{{8, nan, 2}, {nan, 8, nan}} {
			var hs scaling.Histories
			require.NoError(t, hs.Restore(state(0, map[string]oneBlock{"x": {Scale: 3, Current: nan, Past: past}})))
			h, err := hs.Get("x", scaling.Recipe{Profile: scaling.TEDelayed, Delayed: scaling.Delayed{Length: 4, Algorithm: algorithm}})
			require.NoError(t, err)
			hs.Update()
			require.Equal(t, want, h.Scale(0).Multiplier)
			got := hs.State().Histories["x"].Blocks[0]
			require.Equal(t, scaling.Float(0), got.Current)
			require.True(t, got.Past[0] != got.Past[0])
		}
	}
	// Any number takes its place.
	var hs scaling.Histories
	require.NoError(t, hs.Restore(state(0, map[string]oneBlock{"x": {Scale: 3, Current: nan}})))
	h := history(t, &hs, "x", 1)
	h.Observe(0, 4)
	hs.Update()
	require.Equal(t, float32(448/4), h.Scale(0).Multiplier)
}

// TestExtremeScale checks both ends of the range of a scale: it stays one that
// can be saved.
func TestExtremeScale(t *testing.T) {
	for _, c := range []struct {
		margin     int
		amax, want float32
	}{
		{-126, 1e-38, math.MaxFloat32},
		{0, math.SmallestNonzeroFloat32, math.MaxFloat32},
		{126, 1e30, math.SmallestNonzeroFloat32},
		{-126, 448, math.MaxFloat32}, // max*2^-margin is infinite already
		{126, 448, 0x1p-126},
	} {
		var hs scaling.Histories
		h, err := hs.Get("x", scaling.Recipe{Profile: scaling.TEDelayed, Delayed: scaling.Delayed{Margin: c.margin}})
		require.NoError(t, err)
		h.Observe(0, c.amax)
		hs.Update()
		require.Equal(t, c.want, h.Scale(0).Multiplier)
		require.NoError(t, hs.State().Check())
	}
}

func TestNewHistory(t *testing.T) {
	h, err := scaling.NewHistory(scaling.TEDelayed.Recipe(scaling.Weight))
	require.NoError(t, err)
	require.Equal(t, fp8.Scale{Stored: 1, Multiplier: 1}, h.Scale(0))
	_, err = scaling.NewHistory(scaling.Default(scaling.Input))
	require.EqualError(t, err, "scaling: recipe te-block-pow2 E4M3 1x128 is not delayed and has no history")
	var hs scaling.Histories
	for want, r := range map[string]scaling.Recipe{
		`tensor "w": scaling: recipe te-current E4M3 tensor is not delayed and has no history`: {Profile: scaling.TECurrent},
		`tensor "w": scaling: margin 200: want -126 to 126`:                                    {Profile: scaling.TEDelayed, Delayed: scaling.Delayed{Margin: 200}},
	} {
		_, err = hs.Get("w", r)
		require.EqualError(t, err, want)
	}
	require.Empty(t, hs.State().Histories)
	first, err := hs.Get("w", scaling.Recipe{Profile: scaling.TEDelayed})
	require.NoError(t, err)
	again, err := hs.Get("w", scaling.Recipe{Profile: scaling.TEDelayed})
	require.NoError(t, err)
	require.Same(t, first, again)
	require.Len(t, hs.State().Histories["w"].Blocks[0].Past, 1023)
}

// TestDelayedQuantize runs the steps of a tensor: each is encoded with the scale
// of those before it.
func TestDelayedQuantize(t *testing.T) {
	recipe := scaling.Recipe{Profile: scaling.TEDelayed, Format: fp8.E5M2, Delayed: scaling.Delayed{Length: 2}}
	x := tensorOf(3)
	err := scaling.Quantize(t.Context(), x, []float32{1, 2, 3}, scaling.Quantizer{Recipe: recipe})
	require.EqualError(t, err, `tensor "x": scaling: recipe te-delayed E5M2 tensor needs a history`)
	require.Equal(t, *tensorOf(3), *x)

	h, err := scaling.NewHistory(recipe)
	require.NoError(t, err)
	var st fp8.Stats
	q := scaling.Quantizer{Recipe: recipe, History: h, Options: tensor.Options{Stats: &st, Workers: 3}}
	multiplier := []float32{1, 57344. / 4, 57344. / 32, 57344. / 32, 57344. / 2}
	for step, src := range [][]float32{{1, float32(math.NaN()), -4}, {32, 0, 0}, {1, 2, 1}, {0.5, -2, 0}, {1, 1, 1}} {
		require.NoError(t, scaling.Quantize(t.Context(), x, src, q))
		require.Equal(t, fp8.E5M2, x.Format)
		require.Equal(t, tensor.Block{}, x.Block)
		require.Equal(t, []float32{1 / multiplier[step]}, x.Scales, "step %d", step)
		want := make([]byte, 3)
		fp8.EncodeScaled(want, src, fp8.E5M2, fp8.Policy{}, fp8.Scale{Multiplier: multiplier[step]}, 0, nil)
		require.Equal(t, want, x.Codes)
		h.Update()
	}
	require.Equal(t, int64(1), st.Saturated()) // the 32 came unforeseen
	require.Equal(t, int64(1), st.NaN)
	require.Equal(t, int64(15), st.Elements)

	// An empty tensor has no amax.
	require.NoError(t, scaling.Quantize(t.Context(), tensorOf(0, 4), []float32{}, q))
	before := h.Scale(0)
	h.Update()
	require.Equal(t, before, h.Scale(0))
}
