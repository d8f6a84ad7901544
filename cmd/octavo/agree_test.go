package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

const agreeLayer = "model.layers.1.mlp.up_proj"

// agreeDumps are of a layer, which one engine has in float32 and one has multiplied by three.
func agreeDumps(t *testing.T) (model, right, wrong string) {
	m, model, _ := byteModel(t)
	const name = agreeLayer
	w := m.Param(name + ".weight")
	const tokens = 12
	x, y := make([]float32, tokens*w.Cols), make([]float32, tokens*w.Rows)
	for i := range x {
		x[i] = float32(i*i%37)/8 - 2
	}
	dump := func(file string, factor float32) string {
		for i := range tokens {
			for j := range w.Rows {
				sum := float32(0)
				for k := range w.Cols {
					sum += float32(x[i*w.Cols+k] * w.Value[j*w.Cols+k])
				}
				y[i*w.Rows+j] = factor * sum
			}
		}
		path := filepath.Join(t.TempDir(), file)
		tensors := []safetensors.Tensor{
			filetest.F32(name+".input", []int{tokens, w.Cols}, x...),
			filetest.F32(name+".output", []int{tokens, w.Rows}, y...),
		}
		require.NoError(t, safetensors.WriteFile(path, tensors, map[string]string{"engine": "a loop"}))
		return path
	}
	return model, dump("right.safetensors", 1), dump("wrong.safetensors", 3)
}

// TestAgree has dumps of one layer, of which one is wrong, and command lines that are wrong.
func TestAgree(t *testing.T) {
	model, right, wrong := agreeDumps(t)
	out := succeed(t, "agree", "--model", model, right, right)
	require.Contains(t, out, "PASS: what was looked at of 2 layers is within the bounds of what is claimed")
	page := filepath.Join(t.TempDir(), "page.html")
	r := octavo(nil, "agree", "--model", model, right, wrong, "--json", "--html", page)
	require.Equal(t, 1, r.status, r.stderr)
	var report struct {
		Outcome string
		Modules []struct {
			Name  string
			Sides [2]struct{ Outcome string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &report))
	require.Equal(t, "fail", report.Outcome)
	require.Len(t, report.Modules, 1)
	require.Equal(t, "pass", report.Modules[0].Sides[0].Outcome)
	require.Equal(t, "fail", report.Modules[0].Sides[1].Outcome)
	written, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(written), agreeLayer)

	empty := filepath.Join(t.TempDir(), "empty.safetensors")
	require.NoError(t, safetensors.WriteFile(empty, nil, nil))
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{3, "no dump has a linear layer of the model", []string{"--model", model, empty, empty}},
		{2, "model", []string{right, wrong}},
		{2, "want two dumps", []string{"--model", model, right}},
		{2, "there is no recipe", []string{"--model", model, right, wrong, "--claim-a", "fp7"}},
		{2, "unknown model", []string{"--model", model, right, wrong, "--sums-b", "abacus"}},
		{2, "same file", []string{"--model", model, right, wrong, "--html", right}},
		{1, "nowhere", []string{"--model", model, right, "nowhere"}},
	} {
		r := octavo(nil, append([]string{"agree"}, c.args...)...)
		require.Equal(t, c.status, r.status, "%v: %s", c.args, r.stderr)
		require.Contains(t, r.stderr, c.says, c.args)
	}
}

// agreePage returns the page about two engines that have recorded all layers of a model, of which
// one quantizes the input of one layer, with the layers' names and that of this one.
func agreePage(t *testing.T) (file string, layers []string, differ string) {
	m, model, _ := byteModel(t)
	const tokens = 9
	ids := make([]int32, tokens)
	for i := range ids {
		ids[i] = int32(i*29) % 256
	}
	c, err := checkpoint.Open(model) // where rows of q and k lie in another order
	require.NoError(t, err)
	defer c.Close()
	var a, b []safetensors.Tensor
	for _, p := range m.Params() {
		name := strings.TrimSuffix(p.Name, ".weight")
		if last := name[strings.LastIndexByte(name, '.')+1:]; !strings.HasSuffix(last, "_proj") && last != "lm_head" {
			continue
		}
		layers = append(layers, name)
		w := make([]float32, p.Rows*p.Cols)
		require.NoError(t, checkpoint.ReadValues(new(checkpoint.Reader), c.Weight(p.Name), 0, 0, w))
		x := make([]float32, tokens*p.Cols)
		for i := range x {
			x[i] = float32((i*i+7*len(layers))%61)/16 - 2
		}
		product := func(x []float32) safetensors.Tensor {
			y := make([]float32, tokens*p.Rows)
			for i := range y {
				for k := range p.Cols {
					y[i] += float32(x[i/p.Rows*p.Cols+k] * w[i%p.Rows*p.Cols+k])
				}
			}
			return filetest.F32(name+".output", []int{tokens, p.Rows}, y...)
		}
		input := filetest.F32(name+".input", []int{tokens, p.Cols}, x...)
		a, b = append(a, input, product(x)), append(b, input, product(x))
		if strings.HasSuffix(name, "1.mlp.down_proj") {
			differ = name
			q := tensor.Tensor{Shape: []int{tokens, p.Cols}}
			require.NoError(t, scaling.Quantize(t.Context(), &q, x, scaling.Quantizer{Recipe: scaling.DeepGEMM.Recipe(scaling.Input)}))
			tensor.Dequantize(x, &q)
			b[len(b)-1] = product(x)
		}
	}
	dump := func(name string, tensors []safetensors.Tensor) string {
		path := filepath.Join(t.TempDir(), name)
		tensors = append(tensors, safetensors.New("tokens", safetensors.I32, []int{tokens}, ids))
		require.NoError(t, safetensors.WriteFile(path, tensors, nil))
		return path
	}
	file = filepath.Join(t.TempDir(), "agree.html")
	r := octavo(nil, "agree", "--model", model, dump("a.safetensors", a), dump("b.safetensors", b), "--html", file)
	require.Equal(t, 1, r.status, r.stderr)
	return file, layers, differ
}
