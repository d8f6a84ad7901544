package agree_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/agree"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/safetensors"
)

// inputs are what the linear layers of a model are given on some tokens, in bfloat16, and their
// names in the order of their calls.
func inputs(t *testing.T, model string, ids []int32) (of map[string][]float32, names []string) {
	c, err := checkpoint.Open(model)
	require.NoError(t, err)
	defer c.Close()
	m, err := hf.Load(t.Context(), c, hf.Options{})
	require.NoError(t, err)
	of = map[string][]float32{}
	m.Shared().Tap = func(name string, x []float32, _, _ int) {
		if layer, ok := strings.CutSuffix(name, ".input"); ok {
			for _, v := range x {
				of[layer] = append(of[layer], bf16(v))
			}
			names = append(names, layer)
		}
	}
	_, err = m.Logits(t.Context(), ids, 1, len(ids))
	require.NoError(t, err)
	return of, names
}

// TestDeepSeek has engines that run a model with latent attention and experts, of which one
// fuses what it projects down, leaves an expert in bfloat16 and quantizes a router.
func TestDeepSeek(t *testing.T) {
	model := convertedFrom(t, "deepseek-v3")
	config := filepath.Join(model, "config.json")
	weights := load(t, model)
	ids := make([]int32, 48)
	for i := range ids {
		ids[i] = int32((i*i*5 + 11*i + 3) % 320)
	}
	given, names := inputs(t, model, ids)
	const expert, router = "model.layers.2.mlp.experts.5.up_proj", "model.layers.1.mlp.gate"
	require.Contains(t, names, expert)
	require.Contains(t, names, "model.layers.0.self_attn.kv_a_proj_with_mqa")
	dump := func(name string, fused bool, names ...string) string {
		e := &engine{t: t, weights: weights, fused: fused, linear: func(name string, x []float32, w *matrix) []float32 {
			switch {
			case fused && name == expert:
				return left(x, w)
			case fused && name == router:
				return product(quantized(x, len(x)/w.cols, w.cols, 1, same), quantized(w.float32s(same), w.rows, w.cols, 128, same))
			}
			return honest(name, x, w)
		}}
		for _, name := range names {
			parent, last := name[:strings.LastIndexByte(name, '.')+1], name[strings.LastIndexByte(name, '.')+1:]
			switch last {
			case "q_a_proj":
				e.apply(parent, "fused_qkv_a_proj_with_mqa", given[name], last, "kv_a_proj_with_mqa")
			case "kv_a_proj_with_mqa":
			default:
				e.apply(parent, "", given[name], last)
			}
		}
		data := []byte{}
		for _, id := range ids {
			data = binary.LittleEndian.AppendUint32(data, uint32(id))
		}
		e.tensors = append(e.tensors, safetensors.Tensor{Info: safetensors.Info{Name: "tokens", DType: safetensors.I32, Shape: []int{len(ids)}}, Data: data},
			safetensors.New("passes", safetensors.I64, []int{2}, []int64{40, int64(len(ids)) - 40})) // not those of experts
		return e.save(name)
	}
	a, b := dump("a.safetensors", false, names...), dump("b.safetensors", true, names...)
	r := run(t, model, a, b, nil)
	require.Equal(t, "fail", r.Outcome)
	require.Zero(t, r.Count(0, "fail")+r.Count(0, "undecided"), text(t, r))
	require.Len(t, r.Modules, len(names))
	for _, m := range r.Modules {
		want := "right"
		if m.Name == expert || m.Name == router {
			want = "wrong"
		}
		require.Equal(t, want, m.Sides[1].Word(), "%s: %v", m.Name, m.Sides[1].Causes())
		down := strings.HasSuffix(m.Name, ".q_a_proj") || strings.HasSuffix(m.Name, ".kv_a_proj_with_mqa")
		require.Equal(t, down, m.Sides[1].Fused != "", m.Name)
		switch m.Name {
		case expert:
			require.Contains(t, m.Sides[1].Causes()[0], "the layer is not quantized")
		case router:
			require.Contains(t, m.Sides[1].Note, "it is quantized although it is")
		}
	}
	layers := []string{}
	for _, l := range r.Next.Layers {
		layers = append(layers, l.Name)
	}
	require.Equal(t, []string{expert}, layers)
	require.Equal(t, []string{router}, r.Next.NotRun)
	out := strings.Join(strings.Fields(text(t, r)), " ")
	require.Contains(t, out, "what differs in layers that are not run otherwise than in FP32: layers.1.mlp.gate")
	for i := range 8 {
		other := strings.Replace(expert, "5", string(rune('0'+i)), 1)
		require.Equal(t, !slices.Contains(names, other), slices.Contains(r.NotJudged, agree.NotJudged{Name: other, Why: "in no dump"}), other)
	}
	a = dump("few.safetensors", false, router, expert)
	r = run(t, model, a, a, nil)
	require.Equal(t, "pass", r.Outcome)
	require.Empty(t, r.Next.NotRun)
	published, err := os.ReadFile(config)
	require.NoError(t, err)
	unknown := strings.Replace(string(published), "{", `{"norm_of_values": true, `, 1)
	require.NoError(t, os.WriteFile(config, []byte(unknown), 0o644))
	require.Contains(t, run(t, model, a, a, nil).Next.Why, "the model is none that is run here: ")
	require.NotContains(t, text(t, r), "not run otherwise")
}

// TestHead has engines of which one quantizes the head: what that causes is said.
func TestHead(t *testing.T) {
	model := converted(t)
	a := dumped(t, "a.safetensors", model, false, nil, honest)
	b := dumped(t, "b.safetensors", model, false, nil, func(name string, x []float32, w *matrix) []float32 {
		if name == "lm_head" {
			return product(quantized(x, len(x)/w.cols, w.cols, 1, same), quantized(w.float32s(same), w.rows, w.cols, 128, same))
		}
		return honest(name, x, w)
	})
	r := run(t, model, a, b, nil)
	require.Len(t, r.Next.Layers, 1)
	require.Equal(t, "lm_head", r.Next.Layers[0].Name)
	require.Positive(t, r.Next.Layers[0].KL.Mean)
	require.Equal(t, r.Next.Whole.KL, r.Next.Layers[0].KL)
	// Nothing else differs: what is modelled is what was measured, of other roundings.
	measured := r.Next.MeasuredSize
	require.InDelta(t, float64(r.Next.Measured.Mean), float64(r.Next.Whole.Difference.Mean), float64(measured.High))
	require.Positive(t, measured.Low)
}

// written writes a checkpoint without a configuration that says more than a head that is tied.
func written(t *testing.T, tensors ...safetensors.Tensor) string {
	return writtenAs(t, `{"tie_word_embeddings": true}`, tensors...)
}

func writtenAs(t *testing.T, config string, tensors ...safetensors.Tensor) string {
	dir := t.TempDir()
	require.NoError(t, safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), tensors, nil))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o644))
	return dir
}

// TestStack has experts whose weights are one tensor, and lie in two ways; a stack that may lie
// in both; and a head that is the embedding.
func TestStack(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = bf16(float32(r.NormFloat64()))
		}
		return x
	}
	const experts, in, out, tokens, of = 3, 40, 56, 7, 2
	tensors := map[string][]float32{}
	var all []safetensors.Tensor
	add := func(name string, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		tensors[name] = random(n)
		all = append(all, safetensors.New(name, safetensors.F32, shape, tensors[name]))
	}
	const up, down, square = "model.layers.0.mlp.experts.gate_up_proj", "model.layers.0.mlp.experts.down_proj", "model.layers.1.mlp.experts.down_proj"
	add(up, experts, in, out) // as gpt-oss has it
	add(up+"_bias", experts, out)
	add(down+".weight", experts, out, in)
	add(square, experts, in, in)
	add("model.embed_tokens.weight", out, in)
	model := written(t, all...)
	dump := func(bias bool) string {
		e := &engine{t: t}
		record := func(name string, at func(j, k int) float32, n int, bias []float32) {
			x := random(tokens * in)
			y := make([]float32, tokens*n)
			for i := range tokens {
				for j := range n {
					sum := 0.0
					for k := range in {
						sum += float64(x[i*in+k]) * float64(at(j, k))
					}
					if bias != nil {
						sum += float64(bias[j])
					}
					y[i*n+j] = float32(sum)
				}
			}
			e.record(name+".input", x, in, safetensors.F32)
			e.record(name+".output", y, n, safetensors.F32)
		}
		add := tensors[up+"_bias"][of*out : (of+1)*out]
		if !bias {
			add = nil
		}
		record("model.layers.0.mlp.experts.2.gate_up_proj", func(j, k int) float32 { return tensors[up][(of*in+k)*out+j] }, out, add)
		record("model.layers.0.mlp.experts.2.down_proj", func(j, k int) float32 { return tensors[down+".weight"][(of*out+j)*in+k] }, out, nil)
		record("model.layers.1.mlp.experts.2.down_proj", func(j, k int) float32 { return tensors[square][(of*in+k)*in+j] }, in, nil)
		record("lm_head", func(j, k int) float32 { return tensors["model.embed_tokens.weight"][j*in+k] }, out, nil)
		record(up, func(j, k int) float32 { return 1 }, out, nil)
		return e.save("dump.safetensors")
	}
	report := run(t, model, dump(true), dump(false), nil)
	words := map[string][2]string{}
	for _, m := range report.Modules {
		words[m.Name] = [2]string{m.Sides[0].Word(), m.Sides[1].Word()}
	}
	require.Equal(t, map[string][2]string{
		"model.layers.0.mlp.experts.2.gate_up_proj": {"right", "wrong"},
		"model.layers.0.mlp.experts.2.down_proj":    {"right", "right"},
		"lm_head":                                   {"right", "right"},
	}, words, text(t, report))
	shown := strings.Join(strings.Fields(text(t, report)), " ")
	require.Contains(t, shown, "the bias is not added")
	require.Contains(t, shown, "the matrices of its stack are square: it is not known which way they lie")
	require.Contains(t, shown, "a stack of experts together: want each as model.layers.0.mlp.experts.0.gate_up_proj and so on")
	require.Contains(t, report.NotJudged, agree.NotJudged{Name: "model.layers.0.mlp.experts.1.down_proj", Why: "in no dump"})
}

// TestWeightsAlone has a checkpoint that says that inputs are not quantized, and engines that
// multiply its weights as values of bfloat16, or with their scales behind; and one that does
// quantize inputs.
func TestWeightsAlone(t *testing.T) {
	model := testutil.Shared(t, "golden", "checkpoints", "llama-ct-nvfp4a16")
	c, err := checkpoint.Open(model)
	require.NoError(t, err)
	defer c.Close()
	r := rand.New(rand.NewPCG(8, 8))
	const tokens = 11
	dump := func(of func(x []float32, w *matrix) []float32) string {
		e := &engine{t: t, linear: func(_ string, x []float32, w *matrix) []float32 { return of(x, w) }, weights: map[string]*matrix{}}
		for _, w := range c.Weights() {
			if w.Scheme == nil {
				continue
			}
			_, rows, cols := w.Dims()
			values := make([]float32, rows*cols)
			require.NoError(t, checkpoint.ReadValues(new(checkpoint.Reader), w, 0, 0, values))
			e.weights[w.Name] = asMatrix(values, cols)
			x := make([]float32, tokens*cols)
			for i := range x {
				x[i] = bf16(float32(r.NormFloat64()))
			}
			name := strings.TrimSuffix(w.Name, ".weight")
			at := strings.LastIndexByte(name, '.') + 1
			e.apply(name[:at], "", x, name[at:])
		}
		require.NotEmpty(t, e.tensors)
		return e.save("dump.safetensors")
	}
	values := dump(func(x []float32, w *matrix) []float32 { return left(x, w) })
	behind := dump(func(x []float32, w *matrix) []float32 { return product(asMatrix(x, w.cols), w) })
	inputs := dump(func(x []float32, w *matrix) []float32 {
		return product(quantized(x, len(x)/w.cols, w.cols, 1, same), w)
	})
	report := run(t, model, values, behind, nil)
	require.Equal(t, "pass", report.Outcome, text(t, report))
	require.Equal(t, "weights alone", report.Modules[0].Sides[0].Claim)
	report = run(t, model, values, inputs, nil)
	require.Zero(t, report.Count(0, "fail"))
	require.Equal(t, len(report.Modules), report.Count(1, "fail"))
	require.Contains(t, strings.Join(report.Modules[0].Sides[1].Causes(), ";"), "the input is quantized by another recipe (input E4M3 1x128")
}

// TestDynamic has a checkpoint with a scale for a weight that says no more of inputs than that
// their scales are dynamic: of a pass, or of each token.
func TestDynamic(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	const rows, cols, tokens, scale = 70, 48, 13, 0x1p-6
	const name = "model.layers.0.mlp.up_proj"
	codes, w := make([]byte, rows*cols), &matrix{rows: rows, cols: cols}
	for i := range codes {
		codes[i] = byte(r.IntN(127)) | byte(r.IntN(2))<<7
		w.values = append(w.values, e4m3(codes[i])*scale)
	}
	model := writtenAs(t, `{"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}`,
		safetensors.New(name+".weight", safetensors.F8E4M3, []int{rows, cols}, codes),
		safetensors.New(name+".weight_scale", safetensors.F32, []int{1}, []float32{scale}))
	x := make([]float32, tokens*cols)
	for i := range x {
		x[i] = bf16(float32(r.NormFloat64()) * float32(1+i/cols%4))
	}
	dump := func(height int, passes ...int64) string {
		var groups []float32 // values under a scale of so many tokens
		for lo := 0; lo < tokens; lo += height {
			some := x[lo*cols : min(lo+height, tokens)*cols]
			amax := float32(0)
			for _, v := range some {
				amax = max(amax, float32(math.Abs(float64(v))))
			}
			for _, v := range some {
				groups = append(groups, float32(nearest(float64(v)*448/float64(amax)))*(amax/448))
			}
		}
		e := &engine{t: t}
		e.record(name+".input", x, cols, safetensors.BF16)
		e.record(name+".output", product(asMatrix(groups, cols), w), rows, safetensors.BF16)
		if passes != nil {
			e.tensors = append(e.tensors, safetensors.New("passes", safetensors.I64, []int{len(passes)}, passes))
		}
		return e.save("dump.safetensors")
	}
	report := run(t, model, dump(tokens, tokens), dump(1), nil)
	require.Equal(t, "pass", report.Outcome, text(t, report))
	require.NotEqual(t, report.Modules[0].Sides[0].Claim, report.Modules[0].Sides[1].Claim)
	report = run(t, model, dump(2, tokens), dump(2), nil)
	require.Equal(t, 1, report.Count(0, "fail"), "two tokens share a scale")
	require.Equal(t, 1, report.Count(1, "undecided"), "they may be a pass")
}
