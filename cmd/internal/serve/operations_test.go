package serve

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/audit"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/oracle/power"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

func TestCheck(t *testing.T) {
	c := start(t, t.Context())
	arrays, want := exactProduct(t, 5, 7, 64)
	options := func(more ...any) map[string]any {
		o := map[string]any{"a_format": "E4M3", "b_format": "e4m3"}
		for i := 0; i < len(more); i += 2 {
			o[more[i].(string)] = more[i+1]
		}
		return o
	}
	with := func(c []float32, more ...safetensors.Tensor) []safetensors.Tensor {
		return append(append(slices.Clone(arrays), floatArray("c", []int{5, 7}, c)), more...)
	}
	r := c.get("check", options(), with(want)...)
	require.Equal(t, true, r.Result["pass"])
	require.Equal(t, "", r.Result["failure"])
	require.Nil(t, r.file)
	for _, model := range []string{"canonical", "hopper-wgmma"} {
		// Sums are exact here, so that every model gives the same.
		require.Equal(t, true, c.get("check", options("model", model, "promote", 32*(len(model)-9)/3), with(want)...).Result["pass"])
	}

	require.Contains(t, r.Result["verdict"], "power")
	require.NotContains(t, c.get("check", options("alarms", "ignore"), with(want)...).Result["verdict"], "power")

	wrong := slices.Clone(want)
	wrong[9]++
	r = c.get("check", options("page", true), with(wrong)...)
	require.Equal(t, false, r.Result["pass"])
	require.Equal(t, "1 of 35 elements are outside the bound of the exact result", r.Result["failure"])
	require.Contains(t, r.Result["text"], "First outside the bound: row 1, column 2")
	require.Equal(t, float64(1), r.Result["verdict"].(map[string]any)["report"].(map[string]any)["outside"])
	require.Contains(t, string(r.bytes(t, "page")), "</html>")

	// Bias and old C are added, and both are part of the report.
	bias, old, sum := make([]float32, 7), make([]float32, 35), slices.Clone(want)
	for i := range sum {
		bias[i%7], old[i] = float32(i%7), float32(i)
		sum[i] += float32(i%7) + float32(i)
	}
	added := []safetensors.Tensor{floatArray("bias", []int{7}, bias), floatArray("old", []int{5, 7}, old)}
	r = c.get("check", options(), with(sum, added...)...)
	require.Equal(t, true, r.Result["pass"], "%v", r.Result["text"])
	require.Equal(t, true, r.Result["verdict"].(map[string]any)["accumulate"])
	require.Equal(t, sum, c.get("multiply", options(), append(slices.Clone(arrays), added...)...).floats(t, "c"))

	// A sample looks at what it names.
	tile := judge.Tile{Row: 1, Col: 2, Height: 1, Width: 1}
	for at, pass := range map[int]bool{2: false, 3: true} {
		tile.Col = at
		sample := map[string]any{"elements": -1, "suspects": -1, "tiles": []judge.Tile{tile}}
		r = c.get("check", options("sample", sample, "alarms", "ignore"), with(wrong)...)
		require.Equal(t, pass, r.Result["pass"])
	}

	for text, o := range map[string]map[string]any{
		`tensor "a" is U8, which does not say a format: add the option a_format`: {},
		`unknown field "rtol"`:                   options("rtol", 1),
		`unknown field \"elems\"`:                options("sample", map[string]any{"elems": 1}),
		"model":                                  options("model", "tpu"),
		"bound is for model exact":               options("model", "canonical", "bound", "float32"),
		"scale_order is not for model":           options("model", "canonical", "scale_order", "a-then-b"),
		"promote is -1: want 0 to":               options("promote", -1),
		"-1 workers":                             options("workers", -1),
		"has no operands of format":              options("model", "blackwell-nvfp4"),
		"row 5 of a sample: C has 5":             options("sample", map[string]any{"rows": []int{5}}),
		"blocks of":                              options("a_block", "1x3"),
		"promote is string: want a whole number": options("promote", "x"),
		"promote is 1.5: want a whole number":    options("promote", 1.5),
		"elements is 0.5: want a whole number":   options("sample", map[string]any{"elements": 0.5}),
		"page is number: want true or false":     options("page", 1),
		"a_format is number: want a text":        options("a_format", 3),
	} {
		text = strings.ReplaceAll(text, `\"`, `"`)
		c.refused(text, "check", o, with(want)...)
	}
	c.refused(`check wants a tensor "c"`, "check", options(), arrays...)
	c.refused(`takes no tensor "d"`, "check", options(), with(want, floatArray("d", []int{0}, nil))...)
	c.refused(`tensor "c" of shape [35] is not C: want 5x7`, "check", options(), append(slices.Clone(arrays), floatArray("c", []int{35}, want))...)
	c.refused(`the old C, is F16 and C is F32`, "check", options(), with(want, safetensors.New("old", safetensors.F16, []int{5, 7}, make([]byte, 70)))...)
	c.refused(`bias, is F32 of shape [2]`, "check", options(), with(want, floatArray("bias", []int{2}, []float32{1, 2}))...)
	c.refused(`"c" is U16`, "check", options(), append(slices.Clone(arrays), safetensors.New("c", safetensors.U16, []int{5, 7}, make([]byte, 70)))...)
	c.refused(`check wants tensors "b" and "b_scales"`, "check", options(), arrays[:3]...)
	arrays[1] = floatArray("a_scales", []int{1, 1}, []float32{float32(-2)})
	c.refused(`"a"`, "check", options(), with(want)...)
}

// TestAudit wants the report of package audit, of a test that lets a lost product pass and
// of one that does not.
func TestAudit(t *testing.T) {
	c := start(t, t.Context())
	arrays, _ := exactProduct(t, 5, 7, 64)
	options := func(more ...any) map[string]any {
		o := map[string]any{"a_format": "E4M3", "b_format": "E4M3", "alone": true}
		for i := 0; i < len(more); i += 2 {
			o[more[i].(string)] = more[i+1]
		}
		return o
	}
	survive := func(o map[string]any) float64 {
		r := c.get("audit", o, arrays...)
		require.Contains(t, r.Result["text"], r.Result["verdict"])
		return r.Result["report"].(map[string]any)["survive"].(float64)
	}
	loose := survive(options("criteria", []audit.Criterion{{Rtol: 100, Atol: 100}}))
	require.Positive(t, loose)
	require.Less(t, survive(options("criteria", []audit.Criterion{{}})), loose)
	for _, defaults := range []string{"assert_close", "allclose", "assert_allclose"} {
		require.Less(t, survive(options("defaults", defaults)), loose)
	}
	// The report is that of the package, whatever the options.
	a, b := power.Operands(5, 7, 64, fp8.E4M3, tensor.Block{}, 1)
	bias, old := make([]float32, 7), make([]float32, 35)
	bias[3], old[4] = 3, 4
	criteria := []audit.Criterion{{Measure: audit.RelativeL2, Limit: 1e-3}}
	for _, model := range []string{"exact", "canonical", "hopper-wgmma"} {
		p := fault.Product{A: a, B: b, Bias: bias, Old: old, Bits: model != "exact"}
		switch model {
		case "canonical":
			p.Accumulation.Scales = oracle.AThenB
		case "hopper-wgmma":
			p.Kernel = oracle.Kernel{Model: oracle.HopperWGMMA()}
		}
		want, err := audit.RunType(t.Context(), fault.BFloat16, p, audit.Test{Criteria: criteria, Reference: audit.Reference{Wide: true}}, audit.Options{Seed: 5})
		require.NoError(t, err)
		text, err := json.Marshal(want)
		require.NoError(t, err)
		o := map[string]any{"a_format": "E4M3", "b_format": "E4M3", "criteria": criteria, "type": "bfloat16", "model": model, "seed": 5, "wide": true}
		oldBits := make([]byte, 70)
		binary.LittleEndian.PutUint16(oldBits[8:], 0x4080)
		r := c.get("audit", o, append(slices.Clone(arrays), floatArray("bias", []int{7}, bias), safetensors.New("old", safetensors.BF16, []int{5, 7}, oldBits))...)
		got, err := json.Marshal(r.Result["report"])
		require.NoError(t, err)
		require.JSONEq(t, string(text), string(got), model)
	}
	for _, reference := range []string{"exact", "canonical", "dequantized", "itself", "hopper-wgmma"} {
		r := c.get("audit", options("defaults", "allclose", "reference", reference), arrays...)
		of := r.Result["report"].(map[string]any)["test"].(map[string]any)["reference"].(map[string]any)["of"]
		require.Equal(t, strings.Replace(reference, "hopper-wgmma", "predicted", 1), of)
	}
	c.refused("without criteria", "audit", options(), arrays...)
	c.refused("tpu", "audit", options("defaults", "allclose", "reference", "tpu"), arrays...)
	c.refused("predicted", "audit", options("defaults", "allclose", "reference", "predicted"), arrays...)
	c.refused(`no defaults "close"`, "audit", options("defaults", "close"), arrays...)
	c.refused("unknown field", "audit", options("criteria", []map[string]any{{"tol": 1}}), arrays...)
	c.refused("", "audit", options("criteria", []audit.Criterion{{Rtol: -1}}), arrays...)
	empty := func(name string) []safetensors.Tensor {
		return []safetensors.Tensor{safetensors.New(name, safetensors.U8, []int{1 << 20, 0}, []byte(nil)), safetensors.New(name+"_scales", safetensors.F32, []int{1, 0}, []float32(nil))}
	}
	none := append(empty("a"), empty("b")...)
	c.refused("an array of 1048576x1048576 elements does not fit in memory: it takes 4 TiB, and ", "audit", options("defaults", "allclose", "a_block", "tensor", "b_block", "tensor"), none...)
}

// TestTypes judges C of every type.
func TestTypes(t *testing.T) {
	c := start(t, t.Context())
	arrays, _ := exactProduct(t, 3, 4, 32)
	options := map[string]any{"a_format": "E4M3", "b_format": "E4M3"}
	for _, dtype := range []safetensors.DType{safetensors.F32, safetensors.BF16, safetensors.F16} {
		options["type"] = dtype
		r := c.get("multiply", options, arrays...)
		result := safetensors.New("c", dtype, []int{3, 4}, r.bytes(t, "c"))
		require.Len(t, result.Data, 12*dtype.Size())
		delete(options, "type")
		require.Equal(t, true, c.get("check", options, append(slices.Clone(arrays), result)...).Result["pass"])
		result.Data[len(result.Data)-1] ^= 0x40 // an exponent's bit
		require.Equal(t, false, c.get("check", options, append(slices.Clone(arrays), result)...).Result["pass"])
	}
	options["type"] = "F64"
	c.refused(`type "F64" of C`, "multiply", options, arrays...)
}

func TestEncodeDecode(t *testing.T) {
	c := start(t, t.Context())
	values := []float32{0, 1.5, -500, 1e-9, 448, 0.3}
	want := make([]byte, len(values))
	for _, f := range fp8.Formats()[:fp8.E2M1] {
		fp8.Encode(want, values, f, fp8.Policy{Overflow: fp8.OverflowNonFinite}, nil)
		r := c.get("encode", map[string]any{"format": f, "overflow": "non-finite"}, floatArray("values", []int{2, 3}, values))
		require.Equal(t, want, r.bytes(t, "codes"))
		require.Equal(t, float64(6), r.Result["stats"].(map[string]any)["elements"])
		info, _ := r.file.Info("codes")
		require.Equal(t, []int{2, 3}, info.Shape)

		decoded := make([]float32, len(values))
		fp8.Decode(decoded, want, f)
		for _, dtype := range []safetensors.DType{info.DType, safetensors.U8} {
			r = c.get("decode", map[string]any{"format": f}, safetensors.New("codes", dtype, []int{2, 3}, want))
			require.Equal(t, fmt.Sprint(decoded), fmt.Sprint(r.floats(t, "values")))
		}
	}
	var doubles []byte
	for _, v := range values {
		doubles = binary.LittleEndian.AppendUint64(doubles, uint64(0x3FF0000000000000)+uint64(v))
	}
	require.Equal(t, bytes.Repeat([]byte{0x38}, 6), c.get("encode", map[string]any{"format": "E4M3"}, safetensors.New("values", safetensors.F64, []int{6}, doubles)).bytes(t, "codes"))

	c.refused("format is missing", "encode", nil, floatArray("values", []int{1}, values[:1]))
	c.refused("E9M9", "encode", map[string]any{"format": "E9M9"}, floatArray("values", []int{1}, values[:1]))
	c.refused("is U8: want floats", "encode", map[string]any{"format": "E4M3"}, safetensors.New("values", safetensors.U8, []int{1}, []byte{1}))
	c.refused(`wants a tensor "values"`, "encode", map[string]any{"format": "E4M3"})
	c.refused("format is missing", "decode", nil, safetensors.New("codes", safetensors.U8, []int{1}, []byte{1}))
	c.refused("is F32: want codes", "decode", nil, floatArray("codes", []int{1}, values[:1]))
	c.refused("is F8_E4M3 and not E5M2", "decode", map[string]any{"format": "E5M2"}, safetensors.New("codes", safetensors.F8E4M3, []int{1}, []byte{1}))
}

func TestQuantize(t *testing.T) {
	c := start(t, t.Context())
	g := oracle.Generator{Rows: 5, Cols: 300, Seed: 3}
	r := c.get("generate", map[string]any{"rows": 5, "cols": 300, "seed": 3})
	values := r.floats(t, "values")
	require.Equal(t, g.Values(), values)
	for _, p := range scaling.ProfilesFor(fp8.E4M3) {
		if p.Delayed() {
			continue
		}
		want := &tensor.Tensor{Shape: []int{5, 300}}
		require.NoError(t, scaling.Quantize(t.Context(), want, values, scaling.Quantizer{Recipe: scaling.Recipe{Profile: p, Block: tensor.Block{Rows: 1, Cols: 32}}}))
		r := c.get("quantize", map[string]any{"recipe": p, "block": "1x32"}, floatArray("values", []int{5, 300}, values))
		require.Equal(t, want.Codes, r.bytes(t, "codes"))
		require.Equal(t, "1x32", r.Result["block"])
		info, _ := r.file.Info("scales")
		require.Equal(t, []int{5, 10}, info.Shape)
		require.Equal(t, p.E8M0(), info.DType == safetensors.F8E8M0)

		scales := safetensors.New("scales", info.DType, info.Shape, r.bytes(t, "scales"))
		back := make([]float32, 1500)
		tensor.Dequantize(back, want)
		r = c.get("dequantize", map[string]any{"block": "1x32"}, safetensors.New("codes", safetensors.F8E4M3, []int{5, 300}, want.Codes), scales)
		require.Equal(t, back, r.floats(t, "values"))
	}
	x := floatArray("values", []int{5, 300}, values)
	r = c.get("quantize", map[string]any{"recipe": "deepseek"}, x)
	require.Equal(t, "128x128", r.Result["block"])
	c.refused("earlier steps", "quantize", map[string]any{"recipe": "te-delayed"}, x)
	c.refused("there is no recipe", "quantize", map[string]any{"recipe": "mine"}, x)
	c.refused("epsilon", "quantize", map[string]any{"recipe": "deepseek", "epsilon": -1}, x)
	codes, one := safetensors.New("codes", safetensors.U8, []int{2, 3}, make([]byte, 6)), floatArray("scales", []int{}, []float32{1})
	c.refused("add the option format, E4M3", "dequantize", nil, codes, one)
	c.refused("with the option block", "dequantize", map[string]any{"format": "E4M3"}, codes, floatArray("scales", []int{5}, make([]float32, 5)))
	c.refused(`wants tensors "codes" and "scales"`, "dequantize", nil, safetensors.New("codes", safetensors.F8E4M3, []int{1}, []byte{1}))
}

func TestOperands(t *testing.T) {
	c := start(t, t.Context())
	size := map[string]any{"m": 3, "n": 4, "k": 65, "seed": 7, "format": "E5M2"}
	check := func(r reply, a, b *tensor.Tensor) {
		for _, x := range []*tensor.Tensor{a, b} {
			require.Equal(t, x.Codes, r.bytes(t, x.Name))
			require.Equal(t, x.Scales, r.floats(t, x.Name+"_scales"))
		}
		require.Equal(t, a.Block.String(), r.Result["block"])
		require.Equal(t, "E5M2", r.Result["format"])
	}
	a, b := oracle.Cancelling(3, 4, 65, fp8.E5M2, 7)
	check(c.get("cancelling", size), a, b)
	size["block"] = "1x16"
	a, b = power.Operands(3, 4, 65, fp8.E5M2, tensor.Block{Rows: 1, Cols: 16}, 7)
	check(c.get("operands", size), a, b)

	for _, o := range []map[string]any{{"m": -1}, {"m": int64(1 << 40), "k": int64(1 << 40)}, {"m": 1 << 16, "k": 1 << 15}, {"k": 1<<24 + 1, "m": 1}} {
		c.refused("", "operands", o)
	}
	c.refused("", "cancelling", map[string]any{"n": int64(1 << 60), "k": int64(1 << 60)})
	c.refused("unknown field", "cancelling", map[string]any{"block": "1x16"})
	c.refused("", "generate", map[string]any{"rows": -1})
	c.refused("seed is -1: want a whole number that is not negative", "generate", map[string]any{"seed": -1})
	c.refused("", "generate", map[string]any{"rows": int64(1 << 32), "cols": int64(1 << 32)})
	c.refused("pattern", "generate", map[string]any{"pattern": "plaid"})
	c.refused("takes no tensor", "generate", nil, floatArray("x", []int{0}, nil))
}
