package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// layer is the operands of a product and the file that holds them.
type layer struct {
	a, b      *tensor.Tensor
	bias, old []float32
	path      string
}

const layerM, layerN, layerK = 70, 150, 256

func newLayer(t *testing.T) layer {
	operand := func(name string, rows int, block tensor.Block, seed uint64) *tensor.Tensor {
		x := &tensor.Tensor{Name: name, Format: fp8.E4M3, Shape: []int{rows, layerK}, Block: block}
		values := oracle.Generator{Rows: rows, Cols: layerK, Seed: seed}.Values()
		require.NoError(t, tensor.Quantize(t.Context(), x, values, tensor.Quantizer{
			Scale: func(_ int, amax float32, _ bool) fp8.Scale { return fp8.Scale{Stored: amax / 448} },
		}))
		return x
	}
	l := layer{
		a:    operand("x", layerM, tensor.Block{Rows: 1, Cols: 128}, 1),
		b:    operand("w", layerN, tensor.Block{Rows: 128, Cols: 128}, 2),
		bias: oracle.Generator{Rows: 1, Cols: layerN, Seed: 3}.Values(),
		old:  oracle.Generator{Rows: layerM, Cols: layerN, Seed: 4}.Values(),
	}
	gridA, _ := l.a.Grid()
	l.path = filetest.Write(t, nil,
		filetest.Raw("x", safetensors.F8E4M3, l.a.Shape, l.a.Codes...), filetest.F32("xs",
			[]int{gridA, 2}, l.a.Scales...),
		filetest.Raw("w", safetensors.F8E4M3, l.b.Shape, l.b.Codes...), filetest.F32("ws", []int{2, 2},
			l.b.Scales...),
		filetest.Raw("bytes", safetensors.U8, l.a.Shape, l.a.Codes...),
		filetest.F32("bias", []int{layerN}, l.bias...), filetest.F32("old", []int{layerM, layerN},
			l.old...),
	)
	return l
}

func (l *layer) args(got string, more ...string) []string {
	return append([]string{"verify", l.path, "--got", got, "--a", "x", "--a-scales", "xs",
		"--a-block", "1x128",
		"--b", "w", "--b-scales", "ws", "--b-block", "128x128"}, more...)
}

// canonical returns octavo's own C.
func (l *layer) canonical(t *testing.T) []float32 {
	c := make([]float32, layerM*layerN)
	require.NoError(t, gemm.Multiply(t.Context(), c, l.a, l.b, gemm.Options{}))
	return c
}

func (l *layer) predicted(t *testing.T, k oracle.Kernel) []float32 {
	c := make([]float32, layerM*layerN)
	require.NoError(t, oracle.Predict(t.Context(), c, nil, l.a, l.b, k, oracle.Options{}))
	return c
}

func writeC(t *testing.T, c []float32) string {
	return filetest.Write(t, nil, filetest.F32("c", []int{layerM, layerN}, c...))
}

// failing runs a verification that must fail, and returns its report.
func failing(t *testing.T, args ...string) string {
	t.Helper()
	r := octavo(nil, args...)
	require.Equal(t, 1, r.status, r.stderr)
	require.Regexp(t, `^octavo: .*: \d+ of \d+ elements (differ from|are outside the bound of) .*\n$`,
		r.stderr)
	return r.stdout
}

// unbroken returns text without its line breaks and columns.
func unbroken(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestVerifyPass(t *testing.T) {
	l := newLayer(t)
	c := l.canonical(t)
	got := writeC(t, c)
	text := succeed(t, l.args(got)...)
	require.Contains(t, text,
		"PASS: all 10500 elements are within the bound of the exact result\nC = A·Bᵀ, 70x150 F32, K = "+
			"256\n")
	require.Contains(t, text, `A: "x", E4M3 [70 256], one scale for 1x128`)
	require.Contains(t, text, "for sums in float32 in any order; the largest is ")
	require.Regexp(t, `outside the bound +0 of 10500`, text)
	require.Contains(t, text, "First that differs: row 0, column ")

	text = succeed(t, l.args(got, "--model", "Canonical", "--workers", "1")...)
	require.Contains(t, text, "PASS: all 10500 elements are octavo's canonical result, bit for bit\n")
	require.Regexp(t, `largest error, ulp +0\n`, text)
	require.Regexp(t, `outside the bound of the exact result +0 of 10500`, text)
	require.NotContains(t, text, "First")

	promoted := oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 64, Scales: oracle.ProductThenFMA}
	got = writeC(t, l.predicted(t, promoted))
	text = succeed(t, l.args(got, "--model", "hopper-wgmma", "--promote", "64", "--scale-order",
		"product-then-fma")...)
	require.Contains(t, text,
		"PASS: all 10500 elements are the prediction of hopper-wgmma, bit for bit\n")
	require.Contains(t, unbroken(text),
		"promoted to float32 every 64 products, scales product-then-fma")
	require.Contains(t, text, "model: verified on H100 vectors")
	require.Contains(t, text, "bound: a posteriori")
	succeed(t, l.args(got, "--bound", "hopper-wgmma", "--promote", "64")...)
	require.Contains(t, failing(t, l.args(got)...), "FAIL: ")
	failing(t, l.args(got, "--bound", "float32-truncated")...)
	failing(t, l.args(got, "--bound", "dequantized")...)
	failing(t, l.args(got, "--model", "hopper-wgmma", "--promote", "64")...)
	failing(t, l.args(got, "--model", "hopper-wgmma", "--scale-order", "product-then-fma")...)
	failing(t, l.args(got, "--model", "blackwell-tcgen05", "--promote", "64", "--scale-order",
		"product-then-fma")...)
}

// TestVerifyTypes narrows results, and names them in several ways.
func TestVerifyTypes(t *testing.T) {
	l := newLayer(t)
	shape := []int{layerM, layerN}
	var b, h []byte
	c16 := make([]fp8.BFloat16, layerM*layerN)
	require.NoError(t, gemm.Multiply(t.Context(), c16, l.a, l.b, gemm.Options{}))
	half := make([]float16.Float16, layerM*layerN)
	require.NoError(t, gemm.Multiply(t.Context(), half, l.a, l.b, gemm.Options{}))
	for i := range c16 {
		b = binary.LittleEndian.AppendUint16(b, uint16(c16[i]))
		h = binary.LittleEndian.AppendUint16(h, half[i].Bits())
	}
	got := filetest.Write(t, nil, filetest.Raw("out", safetensors.BF16, shape, b...),
		filetest.Raw("half", safetensors.F16, shape, h...),
		filetest.Raw("u", safetensors.U16, shape, h...), filetest.Raw("flat", safetensors.BF16,
			[]int{layerM * layerN}, b...))
	require.Contains(t, succeed(t, l.args(got, "--c", "out", "--model", "canonical")...),
		"70x150 BF16")
	require.Contains(t, succeed(t, l.args(got, "--c", "half", "--model", "canonical")...),
		"70x150 F16")
	succeed(t, l.args(got, "--c", "out")...)
	succeed(t, l.args(filetest.Write(t, nil, filetest.Raw("any", safetensors.F16, shape, h...)))...)

	fail(t, 1, got+" has 4 tensors and none is called c: name one with --c", l.args(got)...)
	fail(t, 1, `no tensor "none"`, l.args(got, "--c", "none")...)
	fail(t, 1, `tensor "u" is U16: C is F32, BF16 or F16; --npy-bf16 says`, l.args(got, "--c", "u")...)
	fail(t, 1, `tensor "flat" of shape [10500] is not C: want 70x150, the product of tensors "x" and "w"`, l.args(got, "--c", "flat")...)
	fail(t, 1, `tensor "x" is F8_E4M3: C is F32, BF16 or F16`, l.args(l.path, "--c", "x")...)
}

func TestVerifyEpilogue(t *testing.T) {
	l := newLayer(t)
	c := append([]float32{}, l.old...)
	require.NoError(t, gemm.Multiply(t.Context(), c, l.a, l.b,
		gemm.Options{Bias: l.bias, Accumulate: true}))
	got := writeC(t, c)
	text := succeed(t, l.args(got, "--model", "canonical", "--bias", "bias", "--accumulate", "old")...)
	require.Contains(t, text, "octavo's canonical result with bias added to the old C")
	succeed(t, l.args(got, "--bias", "bias", "--accumulate", "old")...)
	failing(t, l.args(got, "--bias", "bias")...)
	failing(t, l.args(got, "--accumulate", "old", "--model", "canonical")...)
	k := oracle.Kernel{Model: oracle.AdaMMA()}
	copy(c, l.old)
	require.NoError(t, oracle.Predict(t.Context(), c, nil, l.a, l.b, k,
		oracle.Options{Bias: l.bias, Accumulate: true}))
	succeed(t, l.args(writeC(t, c), "--model", "ada-mma", "--bias", "bias", "--accumulate", "old")...)

	fail(t, 1, `tensor "old", the bias, is F32 of shape [70 150]: want F32 and 150 values`,
		l.args(got, "--bias", "old")...)
	fail(t, 1, `tensor "bias" of shape [150] is not C`, l.args(got, "--accumulate", "bias")...)
	fail(t, 1, `tensor "x", the old C, is F8_E4M3: want F32, BF16 or F16`,
		l.args(got, "--accumulate", "x")...)
	fail(t, 1, `no tensor "none"`, l.args(got, "--accumulate", "none")...)
	fail(t, 1, `no tensor "none"`, l.args(got, "--bias", "none")...)
}

// TestVerifyFailures damages a result in ways that the report has to name.
func TestVerifyFailures(t *testing.T) {
	l := newLayer(t)
	good := l.canonical(t)
	first, err := l.a.ColRange(0, 128)
	require.NoError(t, err)
	w, err := l.b.ColRange(0, 128)
	require.NoError(t, err)
	half := make([]float32, layerM*layerN)
	require.NoError(t, gemm.Multiply(t.Context(), half, first, w, gemm.Options{}))
	for _, test := range []struct {
		name   string
		damage func(c []float32)
		want   []string
	}{
		{"block left out", func(c []float32) { copy(c, half) }, []string{
			`What explains them one of these; this result cannot tell them apart: \(1\) products 128 to 255 of K .*: explains \d+ of \d+ wrong elements looked at, in 70 of 70 rows`, `explained by block 1 of K`,
			`\*1 +128-255 `, `codes of A, row 0, block 1\n +128: .. .. `, `codes of B, row 0, block 1\n +128: `,
		}},
		{"tile", func(c []float32) {
			for i := 16; i < 32; i++ {
				for j := 64; j < 80; j++ {
					c[i*layerN+j] = 1000
				}
			}
		}, []string{`FAIL: 256 of 10500 elements`, `tiles of 16x16 +1 of 50; the one at \(16, 64\) has 256 of its 256 elements`, `First .*: row 16, column 64: got 1000`}},
		{"column", func(c []float32) {
			for i := range layerM {
				c[i*layerN+7] += 100
			}
		}, []string{`columns +1 of 150; column 7 has 70 of its 70 elements`, `rows +70 of 70; row 0 has 1 of its 150`}},
		{"one element", func(c []float32) { c[12*layerN+34] = float32(math.Inf(1)) }, []string{
			`FAIL: 1 of 10500`, `\+Inf at \(12, 34\): got \+Inf, want `, `infinite +1 in the result, 0 wanted`, `not finite though wanted so +1`}},
		{"NaN", func(c []float32) { c[5] = nan }, []string{`NaN +1 in the result, 0 wanted`,
			`row 0, column 5: got NaN, want`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := append([]float32{}, good...)
			test.damage(c)
			got := writeC(t, c)
			for _, more := range [][]string{nil, {"--model", "canonical"}} {
				text := failing(t, l.args(got, more...)...)
				for line := range strings.Lines(text) {
					require.LessOrEqual(t, utf8.RuneCountInString(line), 80+1, line)
				}
				for _, want := range test.want {
					require.Regexp(t, want, text+unbroken(text))
				}
				r := octavo(nil, l.args(got, append(more, "--json")...)...)
				require.Equal(t, 1, r.status)
				require.True(t, json.Valid([]byte(r.stdout)))
			}
		})
	}
}

// TestVerifyJSON pins the keys.
func TestVerifyJSON(t *testing.T) {
	l := newLayer(t)
	c := l.canonical(t)
	c[3] = nan
	r := octavo(nil, l.args(writeC(t, c), "--model", "canonical", "--json")...)
	require.Equal(t, 1, r.status)
	var top map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &top))
	for _, key := range []string{"explanation", "pass", "demand", "model", "promote", "scaleOrder",
		"bound", "largestBound", "type",
		"m", "n", "k", "a", "b", "bias", "accumulate", "report", "exact", "blind", "power"} {
		require.Contains(t, top, key)
		require.Contains(t, helpOf("verify"), key)
	}
	require.Len(t, top, 21)
	require.Equal(t, false, top["pass"])
	require.Equal(t, "fail", top["outcome"])
	require.Equal(t, "bits", top["demand"])
	require.Equal(t, "F32", top["type"])
	report := top["report"].(map[string]any)
	for _, key := range []string{"rows", "cols", "equal", "different", "outside", "maxULP",
		"maxBound", "first", "clusters", "nonFinite"} {
		require.Contains(t, report, key)
		require.Contains(t, helpOf("verify"), key)
	}
	first := report["first"].(map[string]any)
	require.Equal(t, "NaN", first["got"])
	require.Equal(t, "+Inf", first["error"])
	require.EqualValues(t, 3, first["col"])
	require.EqualValues(t, 1, top["exact"].(map[string]any)["outside"])

	out := succeed(t, l.args(writeC(t, l.predicted(t, oracle.Kernel{Model: oracle.AdaMMA()})),
		"--model", "ada-mma", "--json")...)
	require.NoError(t, json.Unmarshal([]byte(out), &top))
	require.Equal(t, true, top["pass"])
	require.Equal(t, "ada-mma", top["model"])
	require.Contains(t, top["evidence"], "verified on Ada")
	require.Equal(t, "a posteriori", top["bound"])
}

// saveNPY writes an array as NumPy does.
func saveNPY(t *testing.T, dir, name, descr string, shape []int, data []byte) string {
	text := "("
	for _, d := range shape {
		text += fmt.Sprintf("%d, ", d)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s), }", descr, text)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	path := filepath.Join(dir, name+".npy")
	require.NoError(t, os.WriteFile(path, append(append(b, header...), data...), 0o666))
	return path
}

// TestVerifyNPY takes everything from arrays of NumPy, and some from a file.
func TestVerifyNPY(t *testing.T) {
	l, dir := newLayer(t), t.TempDir()
	c := l.canonical(t)
	var bf16 []byte
	for _, x := range c {
		bf16 = binary.LittleEndian.AppendUint16(bf16, uint16(fp8.BFloat16FromFloat32(x)))
	}
	shape := []int{layerM, layerN}
	a := saveNPY(t, dir, "a", "|u1", l.a.Shape, l.a.Codes)
	as := saveNPY(t, dir, "as", "<f4", []int{layerM, 2}, filetest.FloatBytes(l.a.Scales...))
	b := saveNPY(t, dir, "b", "|u1", l.b.Shape, l.b.Codes)
	bs := saveNPY(t, dir, "bs", "<f4", []int{2, 2}, filetest.FloatBytes(l.b.Scales...))
	got := saveNPY(t, dir, "c", "<f4", shape, filetest.FloatBytes(c...))
	got16 := saveNPY(t, dir, "c16", "<u2", shape, bf16)
	args := func(got string, more ...string) []string {
		return append([]string{"verify", "--got", got, "--a", a, "--a-scales", as, "--a-block", "1x128",
			"--a-format", "e4m3",
			"--b", b, "--b-scales", bs, "--b-block", "128x128", "--b-format", "e4m3", "--model", "canonical"}, more...)
	}
	succeed(t, args(got)...)
	require.Contains(t, succeed(t, args(got16, "--npy-bf16")...), "70x150 BF16")
	succeed(t, args(got, l.path, "--b", "w", "--b-scales", "ws", "--b-format",
		"")[:len(args(got))+5]...)
	succeed(t, args(writeC(t, c), l.path, "--a", "bytes")...)
	failing(t, args(got, "--b-format", "e5m2")...)

	fail(t, 1, `c16.npy" is U16: C is F32, BF16 or F16; --npy-bf16 says that <u2 is bfloat16`,
		args(got16)...)
	fail(t, 1, `tensor "w" is F8_E4M3 and not F8_E5M2: leave --b-format out`,
		args(got, l.path, "--b", "w", "--b-format", "e5m2")...)
	fail(t, 1, `there is no safetensors file to find tensor "w" in: name one, or arrays that end in .npy`, args(got, "--b", "w")...)
	fail(t, 1, `as.npy" is F32 and no codes: octavo quantize makes them`, args(got, "--a", as)...)
	fail(t, 1, "none.npy: no such file", args(got, "--a", filepath.Join(dir, "none.npy"))...)
	fail(t, 2, "--c x: --got "+got+" is one array", args(got, "--c", "x")...)
	fail(t, 2, `invalid argument "int8" for "--a-format" flag`, args(got, "--a-format", "int8")...)

	// E8M0 scales of 2, as bytes.
	e := saveNPY(t, dir, "e", "|u1", []int{1}, []byte{128})
	doubled := *l.a
	doubled.Block, doubled.Scales = tensor.Block{}, []float32{2}
	require.NoError(t, gemm.Multiply(t.Context(), c, &doubled, l.b, gemm.Options{}))
	succeed(t, args(writeC(t, c), "--a-scales", e, "--a-block", "tensor")...)
}

// TestVerifySample looks at some elements, and says so.
func TestVerifySample(t *testing.T) {
	l := newLayer(t)
	c := l.canonical(t)
	text := succeed(t, l.args(writeC(t, c), "--sample=100", "--seed", "4", "--model", "canonical")...)
	require.Regexp(t, `PASS: all \d+ elements looked at are octavo's canonical result`, text)
	require.Contains(t, unbroken(text), "one at random in each tile of 11x10, seed 4")
	require.Contains(t, succeed(t, l.args(writeC(t, c), "--sample")...),
		"PASS: all 10500 elements looked at")

	c[12*layerN+34] = 1000
	got := writeC(t, c)
	text = failingSample(t, l.args(got, "--sample-rows", "3,12", "--sample-cols", "7")...)
	require.Contains(t, unbroken(text),
		"looked at: 368 of 10500 elements: 2 whole rows; 1 whole column")
	require.Contains(t, text, "may be missed: anything elsewhere")
	text = failingSample(t, l.args(got, "--sample-tiles", "2x2+12+34,1x1+0+0", "--json")...)
	var top map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &top))
	for key, want := range map[string]int{"elements": 5, "of": 10500, "random": 0, "height": 0,
		"width": 0, "rows": 0, "cols": 0, "tiles": 2, "suspects": 0, "seed": 0, "row": 1, "col": 1} {
		require.EqualValues(t, want, top["sample"].(map[string]any)[key], key)
		require.Contains(t, helpOf("verify"), key)
	}
	require.Contains(t, unbroken(succeed(t, l.args(got, "--sample-rows", "3")...)), "; the others were not judged")

	fail(t, 1, "row 70 of a sample: C has 70", l.args(got, "--sample-rows", "70")...)
	fail(t, 2, "want tiles such as 128x128+0+3968", l.args(got, "--sample-tiles", "2x2+1")...)
	fail(t, 2, "want tiles such as 128x128+0+3968", l.args(got, "--sample-tiles", "2x2+1+1z")...)
	fail(t, 2, "--seed is of a sample: add --sample", l.args(got, "--seed", "1")...)
	fail(t, 2, "want a whole number from 0", l.args(got, "--sample=-1")...)
}

// failingSample is failing for a sample.
func failingSample(t *testing.T, args ...string) string {
	t.Helper()
	r := octavo(nil, args...)
	require.Equal(t, 1, r.status, r.stderr)
	require.Regexp(t, `^octavo: .*: 1 of \d+ elements looked at are outside the bound of .*\n$`,
		r.stderr)
	return r.stdout
}

// TestVerifyRaw takes raw bytes, whose files the page does not replace.
func TestVerifyRaw(t *testing.T) {
	l, dir := newLayer(t), t.TempDir()
	put := func(name string, data []byte, what string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o666))
		return path + what
	}
	args := []string{"verify", "--model", "canonical", "--got",
		put("c", filetest.FloatBytes(l.canonical(t)...), ":f32:70x150"),
		"--a", put("a", l.a.Codes, ":e4m3:70x256"), "--a-scales", put("as",
			filetest.FloatBytes(l.a.Scales...), ":f32:70x2"),
		"--b", put("b", l.b.Codes, ":e4m3:150x256"), "--b-scales", put("bs",
			filetest.FloatBytes(l.b.Scales...), ":f32:2x2"), "--b-block", "128x128"}
	require.Contains(t, succeed(t, args...), "PASS: all 10500 elements")
	for _, name := range []string{"c", "a", "bs"} {
		fail(t, 2, "are the same file: write another one",
			append(args, "--html", filepath.Join(dir, name))...)
	}
	fail(t, 1, "has 17920 bytes: F8_E4M3 of shape [70 255] has 17850",
		append(args, "--a", filepath.Join(dir, "a")+":e4m3:70x255")...)
}

// TestVerifyPage writes the page, of a failure too.
func TestVerifyPage(t *testing.T) {
	l := newLayer(t)
	c := l.canonical(t)
	page := filepath.Join(t.TempDir(), "errors.html")
	succeed(t, l.args(writeC(t, c), "--html", page)...)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "<title>PASS: all 10500 elements are within")
	c[7] = nan
	failing(t, l.args(writeC(t, c), "--html", page, "--json")...)
	text, err = os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "<title>FAIL: 1 of 10500 elements are outside")
	got := writeC(t, c)
	fail(t, 2, "are the same file: write another one", l.args(got, "--html", got)...)
	fail(t, 2, "are the same file: write another one", l.args(got, "--html", l.path)...)
	r := octavo(nil, l.args(got, "--html", filepath.Join(page, "no"))...)
	require.Equal(t, 1, r.status)
	require.Contains(t, r.stderr, "name another file with --html")
}

func TestVerifyUsage(t *testing.T) {
	l := newLayer(t)
	got := writeC(t, l.canonical(t))
	fail(t, 2, `required flag(s) "got" not set`, "verify", l.path, "--a", "x", "--a-scales", "xs",
		"--a-block", "row", "--b", "w", "--b-scales", "ws", "--b-block", "row")
	fail(t, 2, `unknown model "h100": want one of ada-mma`, l.args(got, "--model", "h100")...)
	fail(t, 2, `unknown model "hopper": did you mean hopper-mma or hopper-wgmma? (see octavo verify --help)`, l.args(got, "--bound", "hopper")...)
	fail(t, 1, `"blackwell-nvfp4" has no operands of format E4M3`,
		l.args(got, "--model", "blackwell-nvfp4")...)
	fail(t, 2, `unknown model "bf16"`, l.args(got, "--bound", "bf16")...)
	r := octavo(nil, l.args(got, "--bound", "bf16")...)
	require.Contains(t, r.stderr, "float32-truncated, dequantized")
	require.NotContains(t, r.stderr, "volta-fp16", "whose operands are not read here")
	fail(t, 2, `unknown order of scales "b"`, l.args(got, "--scale-order", "b")...)
	fail(t, 2, `--bound is for --model exact`, l.args(got, "--model", "canonical", "--bound",
		"float32")...)
	fail(t, 2, `--promote is for GPU models`, l.args(got, "--promote", "128")...)
	fail(t, 2, `--promote is for GPU models`, l.args(got, "--promote", "128", "--bound",
		"dequantized")...)
	fail(t, 2, `--scale-order is not for --model canonical`,
		l.args(got, "--model", "canonical", "--scale-order", "b-then-a")...)
	fail(t, 2, `want a whole number`, l.args(got, "--promote", "-1")...)
	fail(t, 2, `want two files at most, of A and of B, there are 3 arguments`,
		l.args(got, l.path, l.path)...)
	fail(t, 1, `model "cdna3-mfma" has no operands of format E4M3`,
		l.args(got, "--model", "cdna3-mfma")...)
	fail(t, 1, `no such file or directory: name a safetensors file`, l.args(got+"x")...)
	fail(t, 1, `tensor "x": shape [70 256] in blocks of 1x1 needs`,
		append(l.args(got), "--a-block", "1x1", "--model", "exact")...)
}
