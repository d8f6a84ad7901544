package inspect

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/checkpoint/quantize"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// amaxes are those of the matrices of a model of values, by name.
func amaxes(t *testing.T, path string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for _, in := range inputs(t, path) {
		for _, info := range in.File.Tensors() {
			if len(info.Shape) < 2 {
				continue
			}
			values, err := in.File.Float32s(info.Name)
			require.NoError(t, err)
			for _, v := range values {
				all[info.Name] = max(all[info.Name], math.Abs(float64(v)))
			}
		}
	}
	return all
}

// requireDequantized checks that every tensor of codes of a model is dequantized, to values
// whose amax is that of the source to within a step of the codes, and that recipes are tried on
// weights and on nothing else.
func requireDequantized(t *testing.T, source map[string]float64, path string) {
	t.Helper()
	r := run(t, Job{Inputs: inputs(t, path), Profiles: []scaling.Profile{scaling.TECurrent}})
	require.NotZero(t, r.Totals.Dequantized)
	require.Equal(t, r.Totals.Dequantized, r.Totals.FP8WithScales)
	require.Zero(t, r.Totals.FP8WithoutScales)
	require.Zero(t, r.Totals.NotJudged)
	require.Empty(t, r.Problems)
	judged := 0
	for _, tensor := range r.Tensors {
		if tensor.Scheme != "" {
			require.NotNil(t, tensor.Scales, tensor.Name)
		}
		if tensor.Recipes == nil {
			continue
		}
		judged++
		name := tensor.Name
		for _, suffix := range []string{"_packed", "_blocks"} {
			name = strings.TrimSuffix(name, suffix)
		}
		want, ok := source[name]
		require.True(t, ok, "%s is no weight", tensor.Name)
		require.InDelta(t, want, float64(tensor.Values.Amax), 0.2*want, tensor.Name)
	}
	require.Equal(t, judged, r.Totals.Matrices)
}

// TestGoldenLayouts inspects every golden checkpoint.
func TestGoldenLayouts(t *testing.T) {
	root := testutil.Shared(t, "golden", "checkpoints")
	dirs, err := os.ReadDir(root)
	require.NoError(t, err)
	quantized := 0
	for _, dir := range dirs {
		family, _, _ := strings.Cut(dir.Name(), "-")
		if !dir.IsDir() || strings.HasSuffix(dir.Name(), "bf16") {
			continue
		}
		quantized++
		t.Run(dir.Name(), func(t *testing.T) {
			source := amaxes(t, filepath.Join(root, family+"-bf16"))
			for name, amax := range source { // a loader's name of three that it fuses
				if stem, ok := strings.CutSuffix(name, "q_proj.weight"); ok {
					source[stem+"qkv_proj.weight"] = max(amax, source[stem+"k_proj.weight"], source[stem+"v_proj.weight"])
				}
			}
			requireDequantized(t, source, filepath.Join(root, dir.Name()))
		})
	}
	require.Greater(t, quantized, 12)
}

// TestWrittenLayouts inspects what octavo convert writes, in every layout that it can.
func TestWrittenLayouts(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 9))
	normal := func(name string, shape ...int) safetensors.Tensor {
		values := make([]float32, safetensors.Info{DType: safetensors.F32, Shape: shape}.Len())
		for i := range values {
			values[i] = float32(0.02 * r.NormFloat64())
		}
		return filetest.F32(name, shape, values...)
	}
	const layer = "model.layers.0."
	path := filepath.Join(t.TempDir(), "model.safetensors")
	require.NoError(t, safetensors.WriteFile(path, []safetensors.Tensor{
		normal(layer+"self_attn.q_proj.weight", 256, 160), normal(layer+"self_attn.k_proj.weight", 64, 160), normal(layer+"self_attn.v_proj.weight", 64, 160),
		normal(layer+"mlp.experts.0.w1.weight", 200, 160), normal(layer+"mlp.gate.weight", 4, 160), normal(layer+"input_layernorm.weight", 160),
		normal(layer+"mlp.experts.gate_up_proj", 3, 64, 96),
	}, nil))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "config.json"), []byte("{}"), 0o666))
	source := amaxes(t, path)
	for _, l := range checkpoint.Layouts() {
		if !l.Writable() || l.Plain != "" {
			continue
		}
		t.Run(l.Name, func(t *testing.T) {
			c, err := checkpoint.Open(filepath.Dir(path))
			require.NoError(t, err)
			defer c.Close()
			o := checkpoint.PlanOptions{}
			if l.Calibrated == checkpoint.Calibrated {
				o.Amax = map[string]float32{}
				for _, w := range c.Weights() {
					o.Amax[strings.TrimSuffix(w.Name, ".weight")] = 3
				}
			}
			p, err := checkpoint.NewPlan(c, l, o)
			require.NoError(t, err)
			out := t.TempDir()
			_, err = checkpoint.Convert(t.Context(), p, out, checkpoint.Options{})
			require.NoError(t, err)
			requireDequantized(t, source, out)
		})
	}
	for _, p := range scaling.Profiles() {
		if p.Delayed() {
			continue
		}
		t.Run("quantize "+string(p), func(t *testing.T) {
			recipe := p.Recipe(scaling.Weight)
			out := filetest.Output(t)
			_, err := quantize.File(t.Context(), path, out, quantize.Options{Recipe: recipe})
			require.NoError(t, err)
			requireDequantized(t, source, out)
		})
	}
}

// TestNeverOnScales has scales beside codes that they do not fit, and codes of a method that is
// not read: neither is a matrix of values.
func TestNeverOnScales(t *testing.T) {
	half := make([]byte, 2*4*32)
	path := filetest.Write(t, nil,
		filetest.Raw("a.weight", safetensors.F8E4M3, []int{4, 32}, make([]byte, 128)...), filetest.F32("a.weight_scale", []int{4, 3}, make([]float32, 12)...),
		filetest.Raw("q.qweight", safetensors.I32, []int{4, 32}, make([]byte, 512)...), filetest.Raw("q.qzeros", safetensors.I32, []int{1, 4}, make([]byte, 16)...),
		filetest.Raw("q.scales", safetensors.F16, []int{4, 32}, half...), filetest.F32("plain.weight", []int{2, 2}, 1, 2, 3, 4),
	)
	r := run(t, Job{Inputs: inputs(t, path)})
	for _, tensor := range r.Tensors {
		require.Equal(t, tensor.Name == "plain.weight", tensor.Recipes != nil, tensor.Name)
	}
	require.Equal(t, 3, r.Totals.NotJudged)
	var said strings.Builder
	require.NoError(t, r.WriteText(&said, View{Sort: ByRisk}))
	require.Contains(t, said.String(), "Not judged: 3 tensors of GPTQ.\nNo value of the 3 tensors that could be read is NaN or infinite.\n")
	require.Contains(t, said.String(), "Tensors of codes: 0 with scales, 1 without. Values of 1 are those of codes\nalone.")
	require.Equal(t, fp8.E4M3.String(), r.Tensors[0].Format)
	require.True(t, tensorfile.Has(inputs(t, path)[0].File, "q.scales"))
}

// TestDeclaredMethodIsBelieved has codes of DeepSeek's under a configuration that says GPTQ: what
// they stand for is not known.
func TestDeclaredMethodIsBelieved(t *testing.T) {
	path := filetest.Write(t, nil,
		filetest.Raw("a.weight", safetensors.F8E4M3, []int{4, 32}, make([]byte, 128)...), filetest.F32("a.weight_scale_inv", []int{1, 1}, 1), filetest.F32("b.weight", []int{1, 1}, 1))
	require.Contains(t, textOf(t, run(t, Job{Inputs: inputs(t, path)})), "No value is NaN or infinite.")
	config := `{"quantization_config":{"quant_method":"gptq","bits":4}}`
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "config.json"), []byte(config), 0o666))
	r := run(t, Job{Inputs: inputs(t, path)})
	require.Equal(t, 1, r.Totals.Matrices)
	require.NotContains(t, textOf(t, r), "Tensors of codes")
	require.Contains(t, textOf(t, r), "Not judged: 2 tensors of GPTQ. No value of the 1 tensor that could be read is NaN or infinite.")
}
