package checkpoint_test

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// random returns a tensor of BF16 values, about normal with a few large ones.
func random(name string, seed uint64, shape ...int) safetensors.Tensor {
	v := stored(name, safetensors.BF16, 0, shape...)
	r := rand.New(rand.NewPCG(seed, 17))
	for i := 0; i < len(v.Data); i += 2 {
		x := r.NormFloat64() * 0.02
		if r.IntN(500) == 0 {
			x *= 40
		}
		binary.LittleEndian.PutUint16(v.Data[i:], uint16(fp8.BFloat16FromFloat32(float32(x))))
	}
	return v
}

// model opens a model of one file.
func model(t *testing.T, config string, tensors ...safetensors.Tensor) *checkpoint.Checkpoint {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "model.safetensors", tensors...)
	text(t, dir, "config.json", config)
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func layout(t *testing.T, name string) *checkpoint.Layout {
	t.Helper()
	l, err := checkpoint.ParseLayout(name)
	require.NoError(t, err)
	return l
}

// planned converts a model.
func planned(t *testing.T, c *checkpoint.Checkpoint, to string, o checkpoint.PlanOptions) (*checkpoint.Plan, map[string]safetensors.Tensor) {
	t.Helper()
	p, err := checkpoint.NewPlan(c, layout(t, to), o)
	require.NoError(t, err)
	got, _ := convert(t, p, checkpoint.Options{Strip: 1 << 14})
	return p, got
}

// TestStacks compares each matrix of a stack of experts, whose rows are no multiple of 128,
// with the same matrix by itself.
func TestStacks(t *testing.T) {
	const name = "model.layers.0.mlp.experts.gate_up_proj"
	stack := random(name, 1, 3, 200, 160)
	c := model(t, `{}`, stack)
	for _, to := range []string{"deepseek-v3", "deepseek-v3-ue8m0"} {
		_, got := planned(t, c, to, checkpoint.PlanOptions{})
		require.Equal(t, []int{3, 200, 160}, got[name].Shape)
		require.Equal(t, []int{3, 2, 2}, got[name+"_scale_inv"].Shape)
		for e := range 3 {
			size := len(stack.Data) / 3
			alone := stored("m.weight", safetensors.BF16, 0, 200, 160)
			copy(alone.Data, stack.Data[e*size:])
			_, want := planned(t, model(t, `{}`, alone), to, checkpoint.PlanOptions{})
			require.Equal(t, want["m.weight"].Data, got[name].Data[e*200*160:][:200*160])
			require.Equal(t, want["m.weight_scale_inv"].Data, got[name+"_scale_inv"].Data[e*16:][:16])
		}
		dir := t.TempDir()
		write(t, dir, "model.safetensors", got[name], got[name+"_scale_inv"])
		again, err := checkpoint.Open(dir)
		require.NoError(t, err)
		defer again.Close()
		w := again.Weight(name)
		require.NotNil(t, w.Scheme)
		require.Equal(t, []int{3, 200, 160}, w.Shape)
		_, back := planned(t, again, "bf16", checkpoint.PlanOptions{})
		require.Equal(t, []int{3, 200, 160}, back[name].Shape)
		near(t, stack, back[name], 0.07)
	}
	// Layouts that have no stacks leave them.
	_, err := checkpoint.NewPlan(c, layout(t, "ct-fp8-dynamic"), checkpoint.PlanOptions{})
	require.ErrorIs(t, err, checkpoint.ErrLayout)
	require.ErrorContains(t, err, "finds no weight to quantize")
	c = model(t, `{}`, stack, random("m.weight", 2, 8, 8))
	p, got := planned(t, c, "ct-fp8-dynamic", checkpoint.PlanOptions{})
	require.Equal(t, stack.Data, got[name].Data)
	require.Equal(t, []string{name}, p.Ignored)
}

// TestZerosUnderOuter converts a weight of zeros, such as a dead expert's, in layouts with an
// outer scale: scales must be numbers that loaders can divide by.
func TestZerosUnderOuter(t *testing.T) {
	c := model(t, `{}`, stored("m.weight", safetensors.BF16, 0, 4, 32), random("n.weight", 1, 4, 32))
	amax := map[string]float32{"m": 1, "n": 1}
	for _, to := range []string{"ct-nvfp4a16", "ct-nvfp4", "modelopt-nvfp4"} {
		_, got := planned(t, c, to, checkpoint.PlanOptions{Amax: amax})
		outer := got["m.weight_scale_2"]
		if to != "modelopt-nvfp4" {
			outer = got["m.weight_global_scale"]
		}
		require.Equal(t, float32(1), math.Float32frombits(binary.LittleEndian.Uint32(outer.Data)), to)
		for _, code := range got["m.weight_scale"].Data {
			require.True(t, code > 0 && code < 0x7F, "%s: %#x", to, code)
		}
	}
}

// near fails unless values differ by less than a part of the larger.
func near(t *testing.T, a, b safetensors.Tensor, part float64) {
	t.Helper()
	require.Equal(t, len(a.Data), len(b.Data))
	for i := 0; i < len(a.Data); i += 2 {
		x := float64(fp8.BFloat16(binary.LittleEndian.Uint16(a.Data[i:])).Float32())
		y := float64(fp8.BFloat16(binary.LittleEndian.Uint16(b.Data[i:])).Float32())
		require.InDelta(t, x, y, part*math.Abs(x)+1e-3, i/2)
	}
}

// TestCalibrated writes the layouts that have scales of inputs and no golden checkpoint, and
// compares what is not golden elsewhere with its definition.
func TestCalibrated(t *testing.T) {
	const q, k, o = "model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj", "model.layers.0.self_attn.o_proj"
	c := model(t, `{}`, random(q+".weight", 1, 48, 64), random(k+".weight", 2, 16, 64), random(o+".weight", 3, 64, 48),
		random("lm_head.weight", 4, 8, 64), stored("model.norm.weight", safetensors.BF16, 0x3f, 64))
	amax := map[string]float32{q: 5, k: 3, o: 7, "model.layers.0.self_attn.k_scale": 448, "model.layers.0.self_attn.v_scale": 896}
	number := func(v safetensors.Tensor) float32 {
		switch len(v.Data) {
		case 2:
			return fp8.BFloat16(binary.LittleEndian.Uint16(v.Data)).Float32()
		case 4:
			return math.Float32frombits(binary.LittleEndian.Uint32(v.Data))
		}
		t.Fatal(v.Name)
		return 0
	}
	round := func(x float32) float32 { return fp8.BFloat16FromFloat32(x).Float32() }
	for _, l := range []struct {
		name, input, kv string
		scale           func(amax float32) float32
	}{
		{"ct-fp8", ".input_scale", "k_scale", func(a float32) float32 { return round(a / 448) }},
		{"ct-nvfp4", ".input_global_scale", "k_scale", func(a float32) float32 { return round(round(1/a) * 2688) }},
		{"modelopt-fp8", ".input_scale", "k_proj.k_scale", func(a float32) float32 { return a / 448 }},
		{"modelopt-nvfp4", ".input_scale", "k_proj.k_scale", func(a float32) float32 { return a / 2688 }},
	} {
		t.Run(l.name, func(t *testing.T) {
			_, err := checkpoint.NewPlan(c, layout(t, l.name), checkpoint.PlanOptions{})
			require.ErrorIs(t, err, checkpoint.ErrUncalibrated)
			require.ErrorContains(t, err, "which is not known: calibrate it first")
			dead := maps.Clone(amax)
			dead[q] = 0
			_, err = checkpoint.NewPlan(c, layout(t, l.name), checkpoint.PlanOptions{Amax: dead})
			require.ErrorContains(t, err, "which is 0: calibrate it with other inputs, or leave it out")
			p, got := planned(t, c, l.name, checkpoint.PlanOptions{Amax: amax})
			require.Equal(t, l.scale(5), number(got[q+l.input]), "what q and k share")
			require.Equal(t, l.scale(5), number(got[k+l.input]))
			require.Equal(t, l.scale(7), number(got[o+l.input]))
			require.Equal(t, float32(1), number(got["model.layers.0.self_attn."+l.kv]))
			require.Equal(t, []string{"lm_head"}, p.Ignored)
			documents := p.Documents()
			for name, d := range documents {
				require.True(t, json.Valid(d), name)
				require.Contains(t, string(d), `"lm_head"`, name)
			}
			dir := t.TempDir()
			var tensors []safetensors.Tensor
			for _, v := range got {
				tensors = append(tensors, v)
			}
			write(t, dir, "model.safetensors", tensors...)
			for name, d := range documents {
				text(t, dir, name, string(d))
			}
			again, err := checkpoint.Open(dir)
			require.NoError(t, err)
			defer again.Close()
			require.Empty(t, again.Problems())
			found, err := again.Detect()
			require.NoError(t, err)
			require.Equal(t, l.name, found[0].Name)
			_, back := planned(t, again, "bf16", checkpoint.PlanOptions{})
			require.Len(t, back, 5, "scales are gone")
			for _, e := range c.Entries() {
				data := make([]byte, e.Bytes())
				require.NoError(t, c.ReadBytes(e, 0, data))
				near(t, safetensors.Tensor{Info: e.Info, Data: data}, back[e.Name], map[bool]float64{true: 1, false: 0.07}[strings.Contains(l.name, "nvfp4")])
			}
		})
	}
}

// TestModelOptFP8 compares codes with their definition: the quotient by the float32 scale,
// rounded to BF16 first.
func TestModelOptFP8(t *testing.T) {
	const name = "model.layers.0.mlp.down_proj"
	source := random(name+".weight", 9, 40, 72)
	_, got := planned(t, model(t, `{}`, source), "modelopt-fp8", checkpoint.PlanOptions{Amax: map[string]float32{name: 1}})
	values := make([]float32, 40*72)
	amax := float32(0)
	for i := range values {
		values[i] = fp8.BFloat16(binary.LittleEndian.Uint16(source.Data[2*i:])).Float32()
		amax = max(amax, float32(math.Abs(float64(values[i]))))
	}
	scale := amax / 448
	require.Equal(t, math.Float32bits(scale), binary.LittleEndian.Uint32(got[name+".weight_scale"].Data))
	require.Empty(t, got[name+".weight_scale"].Shape)
	for i, x := range values {
		q := fp8.BFloat16FromFloat32(x / scale)
		require.Equal(t, fp8.EncodeOne(q, fp8.E4M3, fp8.Policy{}), got[name+".weight"].Data[i], i)
	}
}

// TestDefaults has what stays as it is, and what configurations list.
func TestDefaults(t *testing.T) {
	var tensors []safetensors.Tensor
	for _, name := range []string{
		"model.embed_tokens", "lm_head", "model.layers.0.mlp.gate", "model.layers.0.mlp.shared_expert_gate",
		"model.layers.0.mlp.gate_proj", "model.layers.0.mlp.up_proj", "model.layers.1.eh_proj",
		"model.layers.0.self_attn.indexer.weights_proj", "visual.blocks.0.attn.qkv", "model.layers.0.block_sparse_moe.router.layer",
	} {
		tensors = append(tensors, random(name+".weight", 1, 32, 64))
	}
	tensors = append(tensors, random("model.norm.weight", 2, 64), random("model.layers.0.mlp.up_proj.bias", 2, 32), random("visual.patch_embed.proj.weight", 3, 4, 4, 2, 2))
	c := model(t, `{"torch_dtype":"bfloat16"}`, tensors...)
	quantized := func(p *checkpoint.Plan) (names []string) {
		for _, target := range p.Shards[0].Targets {
			if target.Scheme != nil {
				names = append(names, target.Weight.Name)
			}
		}
		return names
	}
	p, err := checkpoint.NewPlan(c, layout(t, "ct-mxfp4"), checkpoint.PlanOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight"}, quantized(p))
	require.Equal(t, []string{
		"lm_head", "model.layers.0.block_sparse_moe.router.layer", "model.layers.0.mlp.gate", "model.layers.0.mlp.shared_expert_gate",
		"model.layers.0.self_attn.indexer.weights_proj", "model.layers.1.eh_proj", "visual.blocks.0.attn.qkv",
	}, p.Ignored)

	up := regexp.MustCompile(`up_proj`)
	p, err = checkpoint.NewPlan(c, layout(t, "deepseek-v3"), checkpoint.PlanOptions{Except: up.MatchString})
	require.NoError(t, err)
	require.Equal(t, []string{"model.layers.0.mlp.gate_proj.weight"}, quantized(p))
	d := p.Documents()
	require.Contains(t, string(d["config.json"]), `"model.layers.0.mlp.up_proj"`, "which loaders would not know")

	_, err = checkpoint.NewPlan(c, layout(t, "ct-mxfp4"), checkpoint.PlanOptions{Arithmetic: "te-delayed"})
	require.ErrorContains(t, err, "no such arithmetic without a history")
	_, err = checkpoint.NewPlan(c, layout(t, "ct-mxfp4"), checkpoint.PlanOptions{Arithmetic: "nvfp4-te"})
	require.ErrorContains(t, err, "outer scale")
	_, err = checkpoint.NewPlan(c, layout(t, "ct-fp8-dynamic"), checkpoint.PlanOptions{Arithmetic: "torchao-rowwise"})
	require.ErrorContains(t, err, `tensor "model.layers.0.mlp.gate_proj.weight": scales by "torchao-rowwise" are float32, and those of scheme ct-fp8-channel have the type of the weight, BF16`)
	_, err = checkpoint.NewPlan(c, layout(t, "ct-fp8-dynamic"), checkpoint.PlanOptions{Arithmetic: "torchao-rowwise-pow2"})
	require.NoError(t, err)
	amax := map[string]float32{"model.layers.0.mlp.gate_proj": 1, "model.layers.0.mlp.up_proj": 1}
	_, err = checkpoint.NewPlan(c, layout(t, "modelopt-nvfp4"), checkpoint.PlanOptions{Arithmetic: "nvfp4-te-row", Amax: amax})
	require.ErrorContains(t, err, "this arithmetic has an outer scale for each row")
	_, err = checkpoint.NewPlan(c, layout(t, "torchao"), checkpoint.PlanOptions{})
	require.ErrorContains(t, err, "can be read, not written")
	_, err = checkpoint.ParseLayout("fp9")
	require.ErrorContains(t, err, `layout "fp9" is unknown: want one of bf16, f16`)
	_, err = checkpoint.NewPlan(model(t, `{}`, random("a.up_proj.weight", 1, 4, 40)), layout(t, "ct-mxfp4"), checkpoint.PlanOptions{})
	require.ErrorContains(t, err, `tensor "a.up_proj.weight": shape [4 40] in ct-mxfp4: 40 columns are no multiple of 32`)
}

// TestNonFinite has an infinity in a weight: there is no scale for its block.
func TestNonFinite(t *testing.T) {
	v := random("a.up_proj.weight", 1, 300, 160)
	binary.LittleEndian.PutUint16(v.Data[2*(200*160+130):], 0x7F80)
	c := model(t, `{}`, v)
	for _, to := range []string{"deepseek-v3", "ct-fp8-block", "ct-nvfp4a16"} {
		p, err := checkpoint.NewPlan(c, layout(t, to), checkpoint.PlanOptions{})
		require.NoError(t, err)
		_, err = checkpoint.Write(t.Context(), p.Shards[0].Targets, newMemory(p.Shards[0].Infos()), checkpoint.Options{})
		require.ErrorContains(t, err, `"a.up_proj.weight"`, to)
		require.ErrorContains(t, err, "Inf", to)
	}
}

// TestStats compares what was counted with a count of the values and their codes, in a type
// of arithmetic in which small values become zeros before they are encoded.
func TestStats(t *testing.T) {
	v := random("a.up_proj.weight", 3, 16, 64)
	for i, bits := range []uint16{0x0001, 0x8001, 0x0000, 0x8000, 0x7F00, 0x3F80} { // 0x7F00 is 2^127
		binary.LittleEndian.PutUint16(v.Data[2*64*3+2*i:], bits)
	}
	p, err := checkpoint.NewPlan(model(t, `{}`, v), layout(t, "ct-fp8-dynamic"), checkpoint.PlanOptions{})
	require.NoError(t, err)
	got, results := convert(t, p, checkpoint.Options{Errors: true})
	var want fp8.Stats
	var e checkpoint.Error
	want.Smallest = math.Inf(1)
	for i, code := range got["a.up_proj.weight"].Data {
		s := fp8.BFloat16(binary.LittleEndian.Uint16(got["a.up_proj.weight_scale"].Data[i/64*2:])).Float32()
		x := float64(fp8.BFloat16(binary.LittleEndian.Uint16(v.Data[2*i:])).Float32())
		d := math.Abs(float64(fp8.E4M3.Float32(code)*s) - x)
		want.Elements++
		want.Amax = max(want.Amax, math.Abs(x))
		if x != 0 {
			want.Smallest = min(want.Smallest, math.Abs(x))
		}
		switch {
		case x == 0:
			want.Zeros++
		case code&0x7F == 0:
			want.Flushed++
		case code&0x7F < 8:
			want.Subnormal++
		}
		e.Squared += d * d
		e.Signal += x * x
		if d > e.Largest {
			e.Largest, e.Where = d, int64(i)
		}
	}
	require.Equal(t, want, results[0].Stats)
	require.Equal(t, e.Largest, results[0].Error.Largest)
	require.Equal(t, e.Where, results[0].Error.Where)
	require.InEpsilon(t, e.SQNR(), results[0].Error.SQNR(), 1e-12)
	require.GreaterOrEqual(t, want.Flushed, int64(2))
}

// TestTransposed has experts as gpt-oss has them: [experts, inputs, outputs] in BF16, and in
// MXFP4 the blocks of 32 inputs of each output. Every value of a block is worked out from its
// bytes.
func TestTransposed(t *testing.T) {
	const name = "model.layers.0.mlp.experts.gate_up_proj"
	const experts, inputs, outputs = 2, 96, 50
	v := random(name, 5, experts, inputs, outputs)
	bias := random(name+"_bias", 6, experts, outputs)
	value := func(v safetensors.Tensor, i int) float32 {
		return fp8.BFloat16(binary.LittleEndian.Uint16(v.Data[2*i:])).Float32()
	}
	p, got := planned(t, model(t, `{"model_type":"gpt_oss"}`, v, bias), "gpt-oss", checkpoint.PlanOptions{})
	blocks, scales := got[name+"_blocks"], got[name+"_scales"]
	require.Len(t, got, 3)
	require.Equal(t, []int{experts, outputs, 3, 16}, blocks.Shape)
	require.Equal(t, []int{experts, outputs, 3}, scales.Shape)
	values := make([]float32, experts*inputs*outputs)
	for e := range experts {
		for o := range outputs {
			for i := range inputs {
				block := (e*outputs+o)*3 + i/32
				code := blocks.Data[block*16+i%32/2] >> (i % 2 * 4) & 15
				scale := math.Ldexp(1, int(scales.Data[block])-127)
				at := (e*inputs+i)*outputs + o
				values[at] = float32(float64(fp8.E2M1.Float32(code)) * scale)
				require.InDelta(t, value(v, at), values[at], scale)
				if math.Abs(float64(value(v, at))) > 0.25*scale {
					require.NotZero(t, code&7)
				}
			}
		}
	}
	dir := t.TempDir()
	write(t, dir, "model.safetensors", blocks, scales, got[name+"_bias"])
	documents := p.Documents()
	text(t, dir, "config.json", string(documents["config.json"]))
	again, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer again.Close()
	found, err := again.Detect()
	require.NoError(t, err)
	require.Equal(t, "gpt-oss", found[0].Name)
	_, back := planned(t, again, "bf16", checkpoint.PlanOptions{})
	require.Equal(t, bias.Data, back[name+"_bias"].Data)
	require.Equal(t, []int{experts, inputs, outputs}, back[name].Shape)
	for i, x := range values {
		require.Equal(t, x, value(back[name], i), i)
	}
	_, err = checkpoint.NewPlan(again, layout(t, "deepseek-v3"), checkpoint.PlanOptions{})
	require.ErrorContains(t, err, "convert it to values first")

	// What comes from such codes goes into the same values.
	_, twice := planned(t, model(t, `{}`, back[name]), "gpt-oss", checkpoint.PlanOptions{})
	_, last := planned(t, model(t, `{}`, twice[name+"_blocks"], twice[name+"_scales"]), "bf16", checkpoint.PlanOptions{})
	require.Equal(t, back[name].Data, last[name].Data)
}

// TestOldDeclarations: what config.json says of quantization is read where other programs wrote
// it, and does not outlive a conversion there.
func TestOldDeclarations(t *testing.T) {
	const fp8 = `{"quant_method":"fp8","weight_block_size":[64,64]}`
	for name, config := range map[string]string{
		"new":           `{"quantization_config":` + fp8 + `,"n":1}`,
		"old":           `{"compression_config":` + fp8 + `,"n":1}`,
		"of text":       `{"text_config":{"quantization_config":` + fp8 + `,"dtype":"float32","x":1e3},"n":1}`,
		"of text, once": `{"text_config":{"compression_config":` + fp8 + `,"dtype":"float32","x":1e3},"n":1}`,
	} {
		c := model(t, config, stored("m.up_proj.weight", safetensors.F8E4M3, 1, 130, 4),
			stored("m.up_proj.weight_scale_inv", safetensors.F32, 0, 3, 1))
		require.Equal(t, "fp8", c.Config.Method(), name)
		require.Equal(t, tensor.Block{Rows: 64, Cols: 64}, c.Weight("m.up_proj.weight").Block, name)
		p, err := checkpoint.NewPlan(c, layout(t, "bf16"), checkpoint.PlanOptions{})
		require.NoError(t, err)
		documents := p.Documents()
		want := `{"n":1}`
		if strings.Contains(name, "text") {
			want = `{"text_config":{"dtype":"bfloat16","x":1e3},"n":1}`
		}
		require.JSONEq(t, want, string(documents["config.json"]), name)
	}
}
