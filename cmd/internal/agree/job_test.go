package agree_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/agree"
	"github.com/octavo-fp8/octavo/safetensors"
)

func run(t *testing.T, model, a, b string, change func(*agree.Job)) *agree.Report {
	t.Helper()
	j := agree.Job{Model: model, Paths: [2]string{a, b}}
	if change != nil {
		change(&j)
	}
	r, err := j.Run(t.Context())
	require.NoError(t, err)
	return r
}

func text(t *testing.T, r *agree.Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.WriteText(&b))
	return b.String()
}

// TestRoundedUp has an engine that computes what is claimed and one that rounds its scales up
// and leaves a layer in bfloat16.
func TestRoundedUp(t *testing.T) {
	model := converted(t)
	a := dumped(t, "train.safetensors", model, false, map[string]string{"engine": "trainer"}, honest)
	b := dumped(t, "rollout.safetensors", model, true, map[string]string{"engine": "server"}, rounded)
	r := run(t, model, a, b, nil)
	require.Equal(t, "fail", r.Outcome)
	require.Len(t, r.Modules, 3*7+1)
	for _, m := range r.Modules {
		require.Equal(t, "right", m.Sides[0].Word(), "%s: %v", m.Name, m.Sides[0].Causes())
		causes := strings.Join(m.Sides[1].Causes(), "; ")
		switch {
		case m.Name == "lm_head":
			require.Equal(t, "right", m.Sides[1].Word(), causes)
		case m.Name == "model.layers.1.mlp.down_proj":
			require.Equal(t, "wrong", m.Sides[1].Word())
			require.Contains(t, causes, "the layer is not quantized")
			require.NotContains(t, causes, "powers of two")
		default:
			require.Equal(t, "wrong", m.Sides[1].Word(), m.Name)
			require.Contains(t, causes, "scales are rounded up to powers of two", m.Name)
			require.NotContains(t, causes, "not quantized", m.Name)
		}
	}
	require.Equal(t, "model.layers.0.self_attn.q_proj", r.First)
	require.NotNil(t, r.Next.Whole)
	require.Len(t, r.Next.Layers, 3*7)
	require.Empty(t, r.Next.Assumed)
	if runtime.GOARCH != "amd64" {
		return // elementary functions of package math differ in a last bit
	}
	r.Sides[0].Dump, r.Sides[1].Dump = filepath.Base(a), filepath.Base(b)
	guide, err := os.ReadFile("../../../docs/agreement.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(guide), "```\nFAIL:")
	shown, _, _ := strings.Cut(rest, "```")
	require.Equal(t, text(t, r), "FAIL:"+shown, "docs/agreement.md shows this report")
}

// TestHonest has two engines that compute what they claim, one of which adds in another order,
// and a dump beside itself.
func TestHonest(t *testing.T) {
	model := converted(t)
	a := dumped(t, "train.safetensors", model, false, nil, honest)
	b := dumped(t, "rollout.safetensors", model, true, nil, func(name string, x []float32, w *matrix) []float32 {
		if w.scales == nil {
			return honest(name, x, w)
		}
		q := quantized(x, len(x)/w.cols, w.cols, 1, same) // codes are multiplied by their scales first
		return product(asMatrix(q.float32sByRow(), w.cols), asMatrix(w.float32s(same), w.cols))
	})
	r := run(t, model, a, b, func(j *agree.Job) { j.NoDivergence = true })
	require.Equal(t, "pass", r.Outcome, text(t, r))
	require.Contains(t, text(t, r), "PASS: what was looked at of 44 layers is within the bounds of what is claimed")
	require.Equal(t, "--no-divergence", r.Next.Why)

	r = run(t, model, a, a, nil)
	require.Equal(t, "pass", r.Outcome)
	require.Contains(t, text(t, r), "inputs and outputs of all 22 layers are the same, bit for bit")
	require.Empty(t, r.Next.Layers)
	require.Zero(t, r.Next.Measured.Mean)

	// A claim that is not that of the dumps.
	r = run(t, model, a, a, func(j *agree.Job) { j.Claims[1].Recipe, j.NoDivergence = "torchao-tensorwise", true })
	require.Equal(t, "fail", r.Outcome)
	require.Equal(t, 22, r.Count(0, "pass"))
}

// TestNames has an engine whose list of excluded layers, "gate", swallowed gate_up_proj, and
// one that quantized the head although it is excluded (verl-project/verl#7519).
func TestNames(t *testing.T) {
	model := converted(t)
	a := dumped(t, "a.safetensors", model, true, map[string]string{"exclude": "mlp.gate, lm_head"}, func(name string, x []float32, w *matrix) []float32 {
		if strings.HasSuffix(name, "gate_proj") || strings.HasSuffix(name, "up_proj") {
			return left(x, w)
		}
		return honest(name, x, w)
	})
	b := dumped(t, "b.safetensors", model, false, nil, func(name string, x []float32, w *matrix) []float32 {
		if name == "lm_head" {
			return product(quantized(x, len(x)/w.cols, w.cols, 1, same), quantized(w.float32s(same), w.rows, w.cols, 128, same))
		}
		return honest(name, x, w)
	})
	r := run(t, model, a, b, func(j *agree.Job) { j.NoDivergence = true })
	for _, m := range r.Modules {
		gate := strings.HasSuffix(m.Name, "gate_proj") || strings.HasSuffix(m.Name, "up_proj")
		require.Equal(t, gate, m.Sides[0].Word() == "wrong", m.Name)
		require.Equal(t, m.Name == "lm_head", m.Sides[1].Word() == "wrong", m.Name)
		if gate {
			require.Contains(t, m.Sides[0].Causes()[0], "the layer is not quantized")
			require.Contains(t, m.Sides[0].Note, `"mlp.gate", which is excluded, is in the name "model.layers.`)
			require.Equal(t, m.Name[:strings.LastIndexByte(m.Name, '.')]+".gate_up_proj", m.Sides[0].Fused)
		}
		if m.Name == "lm_head" {
			require.Contains(t, strings.Join(m.Sides[1].Causes(), ";"), "deepgemm")
			require.Contains(t, m.Sides[1].Note, "it is quantized although it is")
		}
	}
}

// TestNotJudged has dumps that lack layers, or have nothing but log-probabilities.
func TestNotJudged(t *testing.T) {
	model := converted(t)
	e := &engine{t: t}
	e.record("logprobs", []float32{-1, -2, -3, -4}, 1, "F32")
	e.record("model.layers.0.mlp.up_proj.input", make([]float32, 64), 64, "BF16")
	e.record("visual.proj.input", make([]float32, 64), 64, "BF16")
	e.record("visual.proj.output", make([]float32, 64), 64, "BF16")
	a := e.save("a.safetensors")
	o := &engine{t: t}
	o.record("logprobs", []float32{-1.5, -2, -3, -3.5}, 1, "F32")
	b := o.save("b.safetensors")
	r := run(t, model, a, b, nil)
	require.Equal(t, "undecided", r.Outcome)
	require.Zero(t, r.Next.Measured.Mean)
	require.EqualValues(t, 0.25, r.Next.MeasuredSize.Mean)
	out := strings.Join(strings.Fields(text(t, r)), " ")
	require.Contains(t, out, "UNDECIDED: no dump has a linear layer of the model")
	require.Contains(t, out, "layer by layer not judged: no dump has tokens")
	require.Contains(t, out, "in no dump")
	require.Contains(t, out, "and the model has no linear layer of that name")
	require.Contains(t, out, "without its input or its output")
	require.Contains(t, out, "a norm: not a linear layer")
	require.Contains(t, out, "attention, softmax, rotary positions")
}

// TestRefused has a layer that is cut in two, as tensor parallelism has it.
func TestRefused(t *testing.T) {
	model := converted(t)
	e := &engine{t: t, weights: load(t, model), linear: honest}
	x := make([]float32, 5*64)
	e.apply("model.layers.0.self_attn.", "", x, "q_proj")
	e.record("model.layers.0.mlp.up_proj.input", x, 64, "BF16")
	e.record("model.layers.0.mlp.up_proj.output", make([]float32, 5*80), 80, "BF16")
	a := e.save("a.safetensors")
	r := run(t, model, a, a, nil)
	require.Equal(t, "undecided", r.Outcome)
	require.Equal(t, "UNDECIDED: of 4 layers none is wrong, and 2 could not be judged", r.Title())
	require.Contains(t, strings.Join(strings.Fields(text(t, r)), " "), "input and output have 64 and 80 columns: the weight is of 160x64")
}

// TestArrays has a dump of arrays of NumPy.
func TestArrays(t *testing.T) {
	model := converted(t)
	a := dumped(t, "a.safetensors", model, false, nil, honest)
	dir := t.TempDir()
	f, err := safetensors.Open(a)
	require.NoError(t, err)
	defer f.Close()
	for _, info := range f.Tensors() {
		if info.DType != safetensors.BF16 {
			continue
		}
		data, err := f.Bytes(info.Name)
		require.NoError(t, err)
		header := fmt.Sprintf("{'descr': '<u2', 'fortran_order': False, 'shape': (%d, %d), }", info.Shape[0], info.Shape[1])
		header += strings.Repeat(" ", 127-10-len(header)) + "\n"
		file := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
		require.NoError(t, os.WriteFile(filepath.Join(dir, info.Name+".npy"), append(append(file, header...), data...), 0o644))
	}
	r := run(t, model, a, dir, nil)
	require.Equal(t, "pass", r.Outcome, text(t, r))
	require.Contains(t, text(t, r), "of all 22 layers are the same")
	var page bytes.Buffer
	require.NoError(t, r.WritePage(&page, "octavo agree", "here"))
	require.Contains(t, page.String(), "model.layers.2.mlp.down_proj")
}

// TestLogits has recorded logits, and tokens that are not the same.
func TestLogits(t *testing.T) {
	model := converted(t)
	save := func(name string, tokens int64, logits []float32) string {
		e := &engine{t: t}
		e.record("logits", logits, 2, "F32")
		e.record("logprobs", []float32{-1}, 1, "F32")
		e.tensors = append(e.tensors, safetensors.Tensor{
			Info: safetensors.Info{Name: "tokens", DType: safetensors.I64, Shape: []int{1}}, Data: []byte{byte(tokens), 0, 0, 0, 0, 0, 0, 0},
		})
		return e.save(name)
	}
	l := func(p float64) float32 { return float32(math.Log(p)) }
	a := save("a.safetensors", 1, []float32{l(0.25), l(0.75), 3 + l(0.5), 3 + l(0.5)})
	b := save("b.safetensors", 1, []float32{l(0.5), l(0.5), l(0.5), l(0.5)})
	r := run(t, model, a, b, nil)
	require.InDelta(t, (0.25*math.Log(0.5)+0.75*math.Log(1.5))/2, float64(r.Next.MeasuredKL.Mean), 1e-6)
	require.Zero(t, r.Next.Measured.Mean)
	require.Contains(t, strings.Join(strings.Fields(text(t, r)), " "), "nats a token, by the recorded logits")
	other := save("c.safetensors", 2, []float32{0, 0, 0, 0})
	r = run(t, model, a, other, nil)
	require.Nil(t, r.Next.Measured)
	require.Nil(t, r.Next.MeasuredKL)
}
