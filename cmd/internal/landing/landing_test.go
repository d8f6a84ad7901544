package landing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// model returns a small model with a recipe and a recorder that hears it.
func model(t *testing.T, f nn.FP8, wanted Recorder) (*nn.Llama, *Recorder) {
	cfg := nn.Config{Vocab: 16, Dim: 16, Layers: 2, Heads: 2, Hidden: 24, Context: 8, FP8: &f}
	m, err := nn.NewLlama(cfg, 3)
	require.NoError(t, err)
	m.Shared().Tap, m.Shared().ProductTap = wanted.Tap, wanted.Product
	return m, &wanted
}

// step computes the gradients of a step.
func step(t *testing.T, m *nn.Llama) {
	tokens := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	_, err := m.Loss(t.Context(), tokens, tokens, 2, 5)
	require.NoError(t, err)
	require.NoError(t, m.Backward(t.Context()))
	m.EndStep()
}

// written writes a bundle and reads it.
func written(t *testing.T, r *Recorder) (dir string, b *Bundle) {
	dir = t.TempDir()
	m := Manifest{Version: Version, Step: 7, Cause: "why"}
	m.SetFirst(r.First)
	arrays, err := m.SetOperator(r.Operator)
	require.NoError(t, err)
	text, err := json.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, OperatorFile), arrays, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ManifestFile), text, 0o644))
	b, err = Read(dir)
	require.NoError(t, err)
	return dir, b
}

// requireSame computes the operator of a bundle again.
func requireSame(t *testing.T, b *Bundle) *Result {
	v, err := b.Replay(t.Context(), 0)
	require.NoError(t, err)
	require.True(t, v.Same, "%+v", v.Checks)
	require.Empty(t, v.Failure())
	return v
}

// TestPoisonedWeight: the product that the weight is first in is kept, with the element.
func TestPoisonedWeight(t *testing.T) {
	const poisoned = "model.layers.1.mlp.up_proj.weight"
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		m, r := model(t, nn.DefaultFP8(), Recorder{})
		m.Param(poisoned).Value[2*16+5] = float32(bad)
		step(t, m)
		require.Equal(t, poisoned, r.First.Tensor)
		require.Equal(t, []int{37, 2, 5}, []int{r.First.Index, r.First.Row, r.First.Col})
		_, b := written(t, r)
		require.Equal(t, "model.layers.1.mlp.up_proj.output", b.Operator.Name)
		require.Equal(t, "forward", b.Operator.Op)
		f := b.Operator.Explain()
		require.Equal(t, "operand", f.Of)
		require.Equal(t, fmt.Sprint(bad), fmt.Sprint(f.Value.Value))
		require.Equal(t, Value{poisoned, 37, 2, 5, 0}, Value{f.Tensor, f.Index, f.Row, f.Col, 0})
		require.Contains(t, f.Why, "came in with the operand")
		require.Len(t, requireSame(t, b).Checks, 5)
	}
}

// TestReplays: an operator of every product, under recipes that scale and round in their own
// ways, is kept, read, and computed again to the bit; one bit of another operand is told.
func TestReplays(t *testing.T) {
	delayed := nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	delayed.Stochastic, delayed.Seed = true, 5
	four, err := nn.ParseRecipe("nvfp4")
	require.NoError(t, err)
	for _, f := range []nn.FP8{nn.DefaultFP8(), delayed, four.FP8} {
		for _, op := range []struct{ tensor, op string }{
			{"self_attn.k_proj.input", "forward"}, {"mlp.down_proj.gradient", "input-gradient"},
			{"mlp.down_proj.gradient", "weight-gradient"},
		} {
			wanted := Recorder{Tensor: "model.layers.0." + op.tensor, Op: op.op}
			m, r := model(t, f, wanted)
			step(t, m)
			step(t, m)
			require.Nil(t, r.First)
			_, b := written(t, r)
			require.Equal(t, op.op, b.Operator.Op)
			require.Equal(t, wanted.Tensor, b.Operator.A.Tensor.Name)
			requireSame(t, b)
			b.Operator.A.Tensor.Codes[3] ^= 1
			v, err := b.Replay(t.Context(), 0)
			require.NoError(t, err)
			require.False(t, v.Same)
			require.Contains(t, v.Failure(), "codes of "+wanted.Tensor+": 1 of ")
			require.Contains(t, v.headline(), "NOT REPRODUCED: computed again, codes of "+wanted.Tensor+": 1 of ")
			require.Equal(t, 3, v.Checks[0].First)
		}
	}
}

// TestFates: what the encoder counts as saturated and flushed is found, of a delayed scale that
// is too large or too small for most values.
func TestFates(t *testing.T) {
	for _, amax := range []float32{0.01, 1e7} {
		m, r := model(t, nn.ProfileFP8(scaling.TEDelayed, fp8.E4M3), Recorder{})
		state := m.Shared().Scaling().State()
		for name, h := range state.Histories.Histories {
			h.Blocks[0].Scale = scaling.Float(448 / amax)
			state.Histories.Histories[name] = h
		}
		require.NoError(t, m.Shared().Scaling().Restore(state))
		counted := map[string]fp8.Stats{}
		m.Shared().ProductTap = func(p nn.Product) {
			r.Product(p)
			for _, o := range []nn.ProductOperand{p.A, p.B} {
				s, all := fp8.Stats{}, make([]byte, len(o.Values))
				multiplier := fp8.Scale{Stored: o.Tensor.Scales[0], Multiplier: o.Multipliers[0]}
				fp8.EncodeScaled(all, o.Values, o.Tensor.Format, o.Recipe.EncodePolicy(), multiplier, 0, &s)
				counted[o.Tensor.Name+p.Op] = s
				got := lossOf(o.Tensor, o.Values)
				require.Equal(t, [2]int64{s.Saturated(), s.Flushed}, [2]int64{got.Saturated(), got.Flushed}, p.Name)
			}
		}
		step(t, m)
		f := r.Operator.Explain()
		require.Equal(t, "operand", f.Of)
		require.Contains(t, f.Why, map[bool]string{true: "it saturated: it became ", false: "underflow: it became 0"}[amax < 1])
		require.NotEmpty(t, counted)
	}
}

// TestOverflow: finite operands whose product is beyond FP32 are told from others.
func TestOverflow(t *testing.T) {
	m, r := model(t, nn.ProfileFP8(scaling.TECurrent, fp8.E4M3), Recorder{})
	w := m.Param("model.layers.0.self_attn.q_proj.weight")
	for i := range w.Value {
		w.Value[i] = 3e38
	}
	step(t, m)
	_, b := written(t, r)
	require.Equal(t, "model.layers.0.self_attn.q_proj.output", b.Operator.Name)
	require.Equal(t, "model.layers.0.self_attn.q_proj.output", r.First.Tensor)
	require.Equal(t, "result: ", b.Operator.Explain().String()[:8])
	require.Contains(t, b.Operator.Explain().Why, "beyond FP32")
	requireSame(t, b)
}

// TestCodesAlone: of an operand of which no values were kept, nothing is said of what was lost.
func TestCodesAlone(t *testing.T) {
	operand := func(name string) Operand {
		values := []float32{1, 2, -4, 8}
		o := Operand{Recipe: scaling.Recipe{Profile: scaling.TECurrent, Format: fp8.E4M3}, Values: values}
		o.Tensor = &tensor.Tensor{Name: name, Shape: []int{1, 4}}
		require.NoError(t, scaling.Quantize(t.Context(), o.Tensor, values, scaling.Quantizer{Recipe: o.Recipe}))
		return o
	}
	o := &Operator{Name: "y", Op: "forward", A: operand("x.input"), B: operand("x.weight"), Result: make([]float32, 1)}
	require.NoError(t, gemm.Multiply(t.Context(), o.Result, o.A.Tensor, o.B.Tensor, gemm.Options{}))
	text := func() string {
		_, b := written(t, &Recorder{Operator: o})
		var out bytes.Buffer
		require.NoError(t, requireSame(t, b).WriteText(&out))
		return strings.Join(strings.Fields(out.String()), " ")
	}
	require.Contains(t, text(), "In it: every value is finite, none saturated, and none became zero.")
	require.NotContains(t, text(), "not judged")
	o.A.Values = nil
	require.NotContains(t, text(), "every value is finite")
	require.NotContains(t, text(), "codes of x.input")
	require.Contains(t, text(), "In it: nothing that was kept is wrong; what was lost of x.input is not judged, since codes alone were kept.")
	require.Contains(t, text(), "not judged, since codes alone were kept: how x.input was quantized")
	o.A.Tensor.Codes[2] = fp8.E4M3.NaNCode()
	o.Result[0] = float32(math.NaN())
	require.Contains(t, text(), "is NaN once it is quantized")
}

// TestPageOfFiniteStep: that nothing was found is said of what was looked at, and not where
// something was.
func TestPageOfFiniteStep(t *testing.T) {
	page := func(first *Value) string {
		m := Manifest{Version: Version, Step: 7, Cause: "why"}
		m.SetFirst(first)
		var out bytes.Buffer
		require.NoError(t, m.WritePage(&out, nil, nil))
		return out.String()
	}
	require.Contains(t, page(nil), "no value that was looked at was NaN or infinite")
	require.NotContains(t, page(nil), "All values")
	require.NotContains(t, page(&Value{"x", 1, 0, 1, math.NaN()}), "looked at")
}

// TestTimelineIsGrouped: moments that differ in numbers alone are one, where the first was;
// other rules and other tensors are others.
func TestTimelineIsGrouped(t *testing.T) {
	var moments []Moment
	for step := 3; step < 60; step++ {
		moments = append(moments,
			Moment{step, fmt.Sprintf("Rule 1: loss is %.3g, the median before is 2.3: noted.", 2.5+float64(step)/10)},
			Moment{step, "FP8: the step was not taken, as a gradient is not finite: NaN in model.layers.1.mlp."})
	}
	moments = append(moments, Moment{60, "Rule 2: loss is 8.5, the median before is 2.3: noted."},
		Moment{61, "FP8: the step was not taken, as a gradient is not finite: NaN in model.layers.2.mlp."})
	all := grouped(moments)
	require.Len(t, all, 4)
	require.Equal(t, []int{57, 57, 1, 1}, []int{all[0].times, all[1].times, all[2].times, all[3].times})
	require.Equal(t, 59, all[0].last.Step)
	m := Manifest{Version: Version, Lines: moments, Cause: "why"}
	var out bytes.Buffer
	require.NoError(t, m.WritePage(&out, nil, nil))
	require.Contains(t, out.String(), "<td>3–59</td><td>57 times, at first: Rule 1: loss is 2.8, the median before is 2.3: noted. At last: Rule 1: loss is 8.4, the median before is 2.3: noted.</td>")
	require.Contains(t, out.String(), "<td>57 times, at first: FP8: the step was not taken, as a gradient is not finite: NaN in model.layers.1.mlp.</td>")
	require.Contains(t, out.String(), "<td>60</td><td>Rule 2: loss is 8.5")
}

// TestBadBundles: each gets one line that names the file.
func TestBadBundles(t *testing.T) {
	m, r := model(t, nn.DefaultFP8(), Recorder{})
	step(t, m)
	dir, _ := written(t, r)
	manifest, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	require.NoError(t, err)
	for _, c := range []struct {
		file   string
		change func(data []byte) []byte
		says   string
	}{
		{OperatorFile, func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, "copy the bundle again"},
		{OperatorFile, func([]byte) []byte { return nil }, "copy the bundle again"},
		{ManifestFile, func([]byte) []byte { return []byte("{") }, "not what octavo train --landing writes"},
		{ManifestFile, func([]byte) []byte { return []byte(`{"version": 9}`) }, "version is 9: this octavo reads version 1"},
		{ManifestFile, func([]byte) []byte { return []byte(`{"version": 1, "x": 2}`) }, "unknown field"},
		{ManifestFile, changed(manifest, func(m *Manifest) { m.Operator.A.Rows++ }), "tensor a.codes: want U8 "},
		{ManifestFile, changed(manifest, func(m *Manifest) { m.Operator.A.Rows = -1 }), "tensor a.codes: want U8 "},
		{ManifestFile, changed(manifest, func(m *Manifest) { m.Operator.B.Block.Cols = 1 }), "scales"},
		{ManifestFile, changed(manifest, func(m *Manifest) { m.Operator.B.Recipe.Profile = "te-delayed" }), "multipliers"},
		{ManifestFile, changed(manifest, func(m *Manifest) { m.Operator.B.Recipe.Profile = "none" }), "profile"},
	} {
		path := filepath.Join(dir, c.file)
		good, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, c.change(append([]byte(nil), good...)), 0o644))
		_, err = Read(dir)
		require.ErrorContains(t, err, c.says)
		require.ErrorContains(t, err, dir)
		require.NotContains(t, err.Error(), "\n")
		require.NoError(t, os.WriteFile(path, good, 0o644))
	}
	_, err = Read(filepath.Join(dir, "no"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// changed returns a manifest with a change.
func changed(text []byte, change func(*Manifest)) func([]byte) []byte {
	return func([]byte) []byte {
		var m Manifest
		if err := json.Unmarshal(text, &m); err != nil {
			panic(err)
		}
		change(&m)
		text, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		return text
	}
}

// FuzzBundle: whatever a bundle says and has, it is refused or computed.
func FuzzBundle(f *testing.F) {
	f.Add([]byte(`{"version":1}`), []byte{})
	f.Add([]byte(`{"version":1,"operator":{"a":{"rows":1,"cols":1},"b":{"rows":1,"cols":1}}}`), []byte("{}"))
	text, data := smallBundle()
	f.Add(text, data)
	f.Fuzz(func(t *testing.T, text, data []byte) {
		m, err := parseManifest(text)
		if err != nil || m.Operator == nil {
			return
		}
		o, err := m.Operator.read(data)
		if err != nil {
			return
		}
		_ = o.Explain()
		_, _ = o.Replay(t.Context(), 1)
	})
}

// smallBundle returns the files of a bundle of a product of one number each.
func smallBundle() (text, data []byte) {
	operand := func() Operand {
		o := Operand{Recipe: scaling.Recipe{Profile: scaling.TECurrent}, Values: []float32{3}}
		o.Tensor = &tensor.Tensor{Shape: []int{1, 1}}
		made, err := o.quantize(context.Background(), 1)
		if err != nil {
			panic(err)
		}
		o.Tensor = made
		return o
	}
	o := &Operator{Name: "x.output", Op: "forward", A: operand(), B: operand(), Result: []float32{9}}
	m := Manifest{Version: Version}
	data, err := m.SetOperator(o)
	if err != nil {
		panic(err)
	}
	text, err = json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return text, data
}
