package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/inspect"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestInspectText has one tensor of each kind. Powers of two are exact under
// the recipes whose scales are.
func TestInspectText(t *testing.T) {
	path := filetest.Write(t, map[string]string{"k": "v", "long": strings.Repeat("x", 100), "odd": "a\nb"},
		filetest.F32("w", []int{2, 2}, 4, -0.5, 0, 1e-7),
		filetest.Raw("codes", safetensors.F8E4M3, []int{1, 2}, 0x7E, 0x01),
		filetest.Raw("codes_scale_inv", safetensors.F8E8M0, []int{1, 2}, 126, 128),
		filetest.Raw("e5m2", safetensors.F8E5M2, []int{4}, 0x3C, 0xFC, 0x7F, 0x7C),
		filetest.F32("vector", []int{4}, nan, 3, inf(-1), 1.5),
		filetest.F32("zeros", []int{2}, 0, 0),
		filetest.F32("hopeless", []int{1}, nan),
		filetest.F32("empty", []int{0, 3}),
		filetest.Raw("ids", safetensors.I32, []int{1}, 1, 2, 3, 4),
		filetest.Raw("es\x1bcape", safetensors.Bool, []int{1}, 1),
	)
	require.Equal(t, `Repair 3 tensors first, such as hopeless: they have values that are NaN or
infinite; then keep the matrices in F32: under te-current-pow2, the only recipe
tried, 1 of 1 matrix would lose too much: w (33% of what is not zero would be
lost).

`+path+`
10 tensors, 19 parameters, 57 B
Tensors of codes: 1 with scales, 1 without. Values of 2 are those of codes
alone.
NaN or infinite: 6 values in 3 tensors.

Tensors, the riskiest first; crest is amax over rms; lost (saturated, flushed or
made NaN), row and block error and SQNR in dB are under te-current-pow2; a
matrix should stay as it is if lost or an error is above 6.25%, half a step of
E4M3:

name             type  shape  amax  crest  lost   row  block    SQNR
- with values that are NaN or infinite:
hopeless         F32   1         -      -     -     -      -       -
    ^ 1 NaN, 0 +Inf, 0 -Inf, the first at element 0
e5m2             E5M2  4         1   1        -     -      -       -
    ^ 1 NaN, 1 +Inf, 1 -Inf, the first at element 1
vector           F32   4         3   1.26     -     -      -       -
    ^ 1 NaN, 0 +Inf, 1 -Inf, the first at element 0
- that lose more than half a step:
w                F32   2x2       4   1.98   33%  100%    50%  152.11
    ^ keep it in F32: 33% of what is not zero would be lost
- others:
codes            E4M3  1x2     448   1.41     -     -      -       -
codes_scale_inv  E8M0  1x2       2   1.37     -     -      -       -
zeros            F32   2         0      -     -     -      -       -
empty            F32   0x3       -      -     -     -      -       -
ids              I32   1         -      -     -     -      -       -
"es\x1bcape"     BOOL  1         -      -     -     -      -       -

The float matrix encoded to E4M3, the best recipe first: the bytes of its
scales, what it loses of the worst matrix, and the block error of the median
one:

recipe           block   scales  lost   row  block  median    SQNR
te-current-pow2  tensor     4 B   33%  100%    50%     50%  152.11

type     tensors  elements  bytes
F32            5        11   44 B
F8_E5M2        1         4    4 B
I32            1         1    4 B
F8_E4M3        1         2    2 B
F8_E8M0        1         2    2 B
BOOL           1         1    1 B

metadata k: v
metadata long: `+strings.Repeat("x", 80-15-3)+`...
metadata odd: "a\nb"
`, succeed(t, "inspect", path, "--profile", "te-current-pow2"))

	detail := succeed(t, "inspect", path, "--detail", "--sort", "file")
	_, detail, _ = strings.Cut(detail, "\n\nw\n")
	first, rest, _ := strings.Cut(detail, "\n\ncodes\n")
	lines := strings.Split(first, "\n")
	require.Len(t, lines, 2+len(tensorfile.ProfilesFor(fp8.E4M3)))
	require.Equal(t, `  F32 [2 2], amax 4, crest 1.98, smallest 1e-07, range 25.3 bits
recipe                   block    satur.  flushed      row   block  SQNR dB     scale
te-current               tensor        0      25%  100%     50%      145.83  0.00893
te-current-pow2          tensor        0      25%  100%     50%      152.11  0.0156`, strings.Join(lines[:4], "\n"))
	require.Equal(t, `  F8_E4M3 [1 2], amax 448, crest 1.41, smallest 0.001953, range 17.8 bits
  0 of the values are zero, 50% of the codes the largest
  scales codes_scale_inv
    F8_E8M0 [1 2], 0.5 to 2

codes_scale_inv
  F8_E8M0 [1 2], amax 2, crest 1.37, smallest 0.5, range 2.0 bits

e5m2
  F8_E5M2 [4], amax 1, crest 1, smallest 1, range 0.0 bits
  0 of the values are zero, 0 of the codes the largest
  1 NaN, 1 +Inf, 1 -Inf, the first at element 1

vector
  F32 [4], amax 3, crest 1.26, smallest 1.5, range 1.0 bits
  1 NaN, 0 +Inf, 1 -Inf, the first at element 0

zeros
  F32 [2], all finite values are 0

hopeless
  F32 [1]
  1 NaN, 0 +Inf, 0 -Inf, the first at element 0

empty
  F32 [0 3], empty

ids
  I32 [1]

"es\x1bcape"
  BOOL [1]
`, rest)
}

// jsonFile is what inspect --json prints, with numbers as they are written.
type jsonFile struct {
	File     string
	Metadata map[string]string
	Format   string
	Judge    string
	Advice   inspect.Advice
	Files    []struct {
		File           string
		Metadata       map[string]string
		Tensors, Bytes int64
	}
	Totals  inspect.Totals
	Ranking []inspect.RankedRecipe
	Tensors []struct {
		File, Name, DType string
		Format, Scheme    string
		NotJudged, Stays  string
		Shape             []int
		Bytes             int64
		Risk              struct {
			Rank         int
			Reason, Keep string
		}
		Values *struct {
			Elements, Zeros, NaN, PosInf, NegInf int64
			Amax, Smallest, RangeBits            scaling.Float
			Crest, Others                        scaling.Float
			FirstNonFinite                       *int
			Largest                              *int64
		}
		Scales *struct {
			Name, DType string
			Shape       []int
			Min, Max    scaling.Float
			NaN, None   *inspect.FaultyScales
		}
		Recipes []struct {
			Profile, Block                string
			Saturated, Flushed, Subnormal int64
			BecameNonFinite               int64
			SQNRDecibels                  any
			RowError, BlockError          any
			ScaleMin, ScaleMax            scaling.Float
		}
	}
}

func inspectJSON(t *testing.T, args ...string) (file jsonFile) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(succeed(t, append([]string{"inspect", "--json"}, args...)...)))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&file))
	return file
}

// TestInspectModel compares with the library, and the SQNR with one computed
// from the decoded values.
func TestInspectModel(t *testing.T) {
	path := testutil.Shared(t, "data", "stories260K.safetensors")
	in := filetest.Open(t, path)
	got := inspectJSON(t, path, "--format", "e5m2")
	require.Equal(t, path, got.File)
	require.Equal(t, in.Metadata(), got.Metadata)
	require.Equal(t, "E5M2", got.Format)
	require.Len(t, got.Tensors, 47)
	for i, info := range in.Tensors() {
		report := got.Tensors[i]
		require.Equal(t, info.Name, report.Name)
		require.Equal(t, info.Shape, report.Shape)
		require.Equal(t, map[string]string{"model.embed_tokens.weight": "embedding", "lm_head.weight": "head"}[info.Name], report.Stays)
		values, err := in.Float32s(info.Name)
		require.NoError(t, err)
		amax, smallest := 0.0, math.Inf(1)
		for _, v := range values {
			amax = max(amax, math.Abs(float64(v)))
			if v != 0 {
				smallest = min(smallest, math.Abs(float64(v)))
			}
		}
		require.Equal(t, scaling.Float(amax), report.Values.Amax)
		require.Equal(t, scaling.Float(smallest), report.Values.Smallest)
		require.InDelta(t, math.Log2(amax/smallest), float64(report.Values.RangeBits), 1e-5)
		require.Nil(t, report.Values.FirstNonFinite)
		if len(info.Shape) < 2 {
			require.Empty(t, report.Recipes)
			continue
		}
		require.Len(t, report.Recipes, len(tensorfile.ProfilesFor(fp8.E5M2)))
		for _, r := range report.Recipes {
			recipe := scaling.Profile(r.Profile).Recipe(scaling.Weight)
			recipe.Format = fp8.E5M2
			require.Equal(t, recipe.Block.String(), r.Block)
			x := tensor.Tensor{Shape: info.Shape}
			var st fp8.Stats
			require.NoError(t, scaling.Quantize(t.Context(), &x, values, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &st}}))
			require.Equal(t, []int64{st.Saturated(), st.Flushed, st.Subnormal}, []int64{r.Saturated, r.Flushed, r.Subnormal})
			decoded := make([]float64, len(values))
			tensor.Dequantize(decoded, &x)
			signal, noise := 0.0, 0.0
			for j, v := range values {
				signal += float64(v) * float64(v)
				noise += (float64(v) - decoded[j]) * (float64(v) - decoded[j])
			}
			require.InDelta(t, 10*math.Log10(signal/noise), r.SQNRDecibels, 1e-6)
			lo, hi := tensorfile.ScaleRange(x.Scales)
			require.Equal(t, []scaling.Float{lo, hi}, []scaling.Float{r.ScaleMin, r.ScaleMax})
		}
	}
}

// TestInspectQuantized inspects what quantize wrote.
func TestInspectQuantized(t *testing.T) {
	path, out := testutil.Shared(t, "data", "stories260K.safetensors"), filetest.Output(t)
	succeed(t, "quantize", path, "-o", out, "--profile", "torchao-rowwise")
	name := "model.layers.0.mlp.up_proj.weight"
	got := inspectJSON(t, out, "--only", "^"+name)
	require.Equal(t, "row", got.Metadata["octavo.block"])
	require.Len(t, got.Tensors, 2)
	for _, report := range got.Tensors {
		if report.Name != name {
			require.Empty(t, report.Recipes, report.Name)
			continue
		}
		require.Equal(t, name+"_scale_inv", report.Scales.Name)
		require.Equal(t, []int{172, 1}, report.Scales.Shape)
		scales, err := filetest.Open(t, out).Float32s(name + "_scale_inv")
		require.NoError(t, err)
		lo, hi := tensorfile.ScaleRange(scales)
		require.Equal(t, []scaling.Float{lo, hi}, []scaling.Float{report.Scales.Min, report.Scales.Max})
		require.InDelta(t, 448*float64(hi), float64(report.Values.Amax), 1e-7)
		require.Empty(t, got.Judge, "codes alone are not judged unless a recipe is asked for")
		require.Equal(t, "torchao-rowwise", inspectJSON(t, out, "--only", "^"+name, "--format", "e4m3").Judge)
		require.Len(t, report.Recipes, len(tensorfile.ProfilesFor(fp8.E4M3)))
	}
}

// TestInspectScaleTypes reads scales that other programs write.
func TestInspectScaleTypes(t *testing.T) {
	got := inspectJSON(t, filetest.Write(t, nil,
		filetest.Raw("a", safetensors.F8E5M2, []int{1}, 1), filetest.Raw("a_scale_inv", safetensors.BF16, []int{1}, 0, 0x40),
		filetest.Raw("b", safetensors.F8E4M3, []int{1}, 1), filetest.Raw("b_scale_inv", safetensors.I8, []int{1}, 1),
		filetest.Raw("c", safetensors.F8E4M3, []int{1}, 1),
	)).Tensors
	require.Equal(t, scaling.Float(2), got[0].Scales.Min)
	for _, report := range got[1:] {
		require.Nil(t, report.Scales, report.Name)
	}
}

// TestInspectNarrow inspects codes of less than a byte, with the scales of NVFP4 beside
// them, in files that hold them as their types and as bytes.
func TestInspectNarrow(t *testing.T) {
	// 6, -6, 0, 0.5 and so on in E2M1; 7.5, 0, 1, 0.125 in E2M3; 28, 28, 0, 0.0625 in E3M2.
	path := filetest.Write(t, nil,
		filetest.Raw("w", safetensors.F4, []int{2, 4}, 0xF7, 0x10, 0x42, 0x00), filetest.Raw("w_scale_inv", safetensors.F8E4M3, []int{2, 1}, 0x38, 0x40),
		filetest.Raw("v", safetensors.F6E2M3, []int{4}, 0x1F, 0x80, 0x04), filetest.Raw("u", safetensors.F6E3M2, []int{1, 4}, 0xDF, 0x07, 0x04),
		filetest.Raw("weight_packed", safetensors.U8, []int{2, 2}, 0xF7, 0x10, 0x42, 0x00), filetest.Raw("z", safetensors.C64, []int{1}, make([]byte, 8)...),
	)
	got := map[string]int{}
	file := inspectJSON(t, path)
	for i, report := range file.Tensors {
		got[report.Name] = i
	}
	for name, want := range map[string][]float64{ // elements, amax, smallest, zeros, largest
		"w": {8, 6, 0.5, 3, 2}, "v": {4, 7.5, 0.125, 1, 1}, "u": {4, 28, 0.0625, 1, 2},
	} {
		v := file.Tensors[got[name]].Values
		require.Equal(t, want, []float64{float64(v.Elements), float64(v.Amax), float64(v.Smallest), float64(v.Zeros), float64(*v.Largest)}, name)
	}
	require.Equal(t, []scaling.Float{1, 2}, []scaling.Float{file.Tensors[got["w"]].Scales.Min, file.Tensors[got["w"]].Scales.Max})
	for _, name := range []string{"weight_packed", "z"} {
		require.Nil(t, file.Tensors[got[name]].Values, "%s is what it is in the file", name)
	}
	text := succeed(t, "inspect", path, "--detail", "--only", "^w$")
	require.Contains(t, text, "F4 [2 4], amax 6, crest 1.77, smallest 0.5, range 3.6 bits\n  38% of the values are zero, 25% of the codes the largest\n  dequantized as octavo [2 4]\n  scales w_scale_inv\n    F8_E4M3 [2 1], 1 to 2\n")
	page := filepath.Join(t.TempDir(), "page.html")
	succeed(t, "inspect", path, "--html", page)
	written, err := os.ReadFile(page)
	require.NoError(t, err)
	require.True(t, strings.Contains(string(written), "How many codes of F6_E2M3 stand for values in each power of two"))

	odd := filetest.Write(t, nil, filetest.Raw("w", safetensors.F4, []int{2, 4}, make([]byte, 4)...))
	data, err := os.ReadFile(odd)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(odd, bytes.Replace(data, []byte("[2,4]"), []byte("[1,7]"), 1), 0o666))
	fail(t, 1, `tensor "w": F4 [1 7] has 7 elements of 4 bits, which do not fill whole bytes`, "inspect", odd)
}

// TestInspectNonFiniteJSON checks that NaN and infinities survive JSON.
func TestInspectNonFiniteJSON(t *testing.T) {
	got := inspectJSON(t, filetest.Write(t, nil,
		filetest.F32("w", []int{1, 3}, 1, nan, inf(1)),
		filetest.F32("zeros", []int{1, 1}, 0),
		filetest.F32("exact", []int{1, 1}, 1),
	)).Tensors
	require.Equal(t, 1, *got[0].Values.FirstNonFinite)
	require.Equal(t, []int64{1, 1, 0}, []int64{got[0].Values.NaN, got[0].Values.PosInf, got[0].Values.NegInf})
	for _, r := range got[0].Recipes {
		switch r.Profile {
		case "torchao-tensorwise", "mx-floor":
			require.True(t, math.IsNaN(float64(r.ScaleMax)))
			require.Equal(t, "NaN", r.SQNRDecibels)
			require.EqualValues(t, 1, r.BecameNonFinite)
		case "te-current":
			require.Zero(t, r.BecameNonFinite)
		case "mtfp8":
			require.True(t, math.IsInf(float64(r.ScaleMax), 1))
		}
	}
	require.True(t, math.IsNaN(float64(got[1].Values.RangeBits)))
	require.Equal(t, "NaN", got[1].Recipes[0].SQNRDecibels)
	require.Equal(t, "+Inf", got[2].Recipes[1].SQNRDecibels)
}

// TestInspectBecameNonFinite checks that recipes that spoil finite values are
// marked, and no others.
func TestInspectBecameNonFinite(t *testing.T) {
	text := succeed(t, "inspect", "--detail", filetest.Write(t, nil, filetest.F32("w", []int{1, 4}, nan, 1, 2, 0)))
	require.Regexp(t, `\nmx-floor .*\n    \^ 3 \(75%\) became NaN or infinite with their scale\n`, text)
	require.NotRegexp(t, `\nte-current .*\n    \^`, text)
}

func TestInspectErrors(t *testing.T) {
	path := filetest.Write(t, nil, filetest.F32("w", []int{1}, 1))
	fail(t, 1, `no tensor has a name that matches --only "x"`, "inspect", path, "--only", "x")
	fail(t, 2, `error parsing regexp`, "inspect", path, "--only", "[")
	fail(t, 2, `unknown format "fp8"`, "inspect", path, "--format", "fp8")
}

// TestInspectSeveral inspects a directory of two files, in lines that fit a terminal.
func TestInspectSeveral(t *testing.T) {
	dir := t.TempDir()
	long := "model.layers.12.self_attention.a_long_name_of_a_projection.weight"
	for i, name := range []string{"one.safetensors", "two.safetensors"} {
		values := []float32{1, float32(i), -3, 2}
		require.NoError(t, safetensors.WriteFile(filepath.Join(dir, name), []safetensors.Tensor{filetest.F32(long, []int{2, 2}, values...)}, nil))
	}
	text := succeed(t, "inspect", dir)
	require.Contains(t, text, "\n^ two.safetensors: tensor\n\""+long+"\" is in\none.safetensors, too\n")
	text = strings.Replace(text, "\""+long+"\"", "", 1)
	for line := range strings.Lines(strings.ReplaceAll(text, dir, "dir")) {
		if !strings.HasPrefix(line, long) && !strings.HasPrefix(line, "name ") {
			require.LessOrEqual(t, len(line)-1, 80, line)
		}
	}
	require.Contains(t, text, "2 files, 2 tensors, 8 parameters, 32 B\n")
	require.Contains(t, text, "\nfile 2: "+filepath.Join(dir, "two.safetensors")+"\n")
	require.Regexp(t, `\n`+long+` .* 2\n`, text)
	require.Contains(t, succeed(t, "inspect", dir, "--top", "1"), "\n1 of 2 tensors, the riskiest first;")

	got := inspectJSON(t, dir, "--profile", "mx-rceil,te-block", "--profile", "te-block", "--sort", "amax", "--top", "1")
	require.Len(t, got.Files, 2)
	require.Equal(t, 2, got.Totals.Tensors)
	require.Len(t, got.Ranking, 2)
	require.Equal(t, got.Judge, string(got.Ranking[0].Profile))
	require.Len(t, got.Tensors, 1)
	require.Equal(t, filepath.Join(dir, "one.safetensors"), got.Tensors[0].File)
	require.Equal(t, "mx-rceil", got.Tensors[0].Recipes[0].Profile)

	fail(t, 2, `none multiplies values as they are: leave the recipe out`, "inspect", dir, "--profile", "mx-rceil,none")
	fail(t, 2, `want risk or name or size`, "inspect", dir, "--sort", "none")
	fail(t, 2, `want a file or a directory at least`, "inspect")
}

// TestInspectFirst: a table of text has the first 20 tensors, unless more are asked for, and
// whatever lists all for a program or in detail has all.
func TestInspectFirst(t *testing.T) {
	var all []safetensors.Tensor
	for i := range 25 {
		all = append(all, filetest.F32(fmt.Sprintf("w%d", i), []int{1, 2}, 1, float32(i)))
	}
	path := filetest.Write(t, nil, all...)
	text := succeed(t, "inspect", path)
	require.True(t, strings.HasPrefix(text, "E4M3 under "))
	require.Contains(t, text, "\n20 of 25 tensors, the riskiest first;")
	require.Contains(t, text, "\n  and 5 more: --top 0 shows all\n")
	for _, more := range [][]string{{"--top", "0"}, {"--detail"}} {
		text := succeed(t, append([]string{"inspect", path}, more...)...)
		for i := range 25 {
			require.Regexp(t, fmt.Sprintf(`\nw%d[ \n]`, i), text)
		}
		require.NotContains(t, text, "shows all")
	}
	require.Len(t, inspectJSON(t, path).Tensors, 25)
}

// TestInspectPage writes the page before it prints, and not over a file that it reads.
func TestInspectPage(t *testing.T) {
	dir := t.TempDir()
	path, page := filepath.Join(dir, "a model.safetensors"), filepath.Join(dir, "page.html")
	require.NoError(t, safetensors.WriteFile(path, []safetensors.Tensor{filetest.F32("w", []int{1, 2}, 1, 2)}, nil))
	succeed(t, "inspect", path, "--html", page, "--profile", "mx-floor,te-block", "--quiet", "--detail")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	_, command, _ := strings.Cut(string(text), "<h2>To repeat it</h2>")
	require.Contains(t, html.UnescapeString(command), "octavo inspect '"+path+"' --detail --html "+page+" --recipe mx-floor,te-block<")
	fail(t, 2, "are the same file: write another one", "inspect", path, "--html", path)
	fail(t, 1, "name another file with --html", "inspect", path, "--html", filepath.Join(dir, "absent", "page.html"))
}

// TestInspectStoppedAtOnce is stopped before anything was read: it writes no page and says nothing
// of values.
func TestInspectStoppedAtOnce(t *testing.T) {
	dir := t.TempDir()
	path, page := filepath.Join(dir, "in.safetensors"), filepath.Join(dir, "page.html")
	require.NoError(t, safetensors.WriteFile(path, []safetensors.Tensor{filetest.F32("w", []int{1, 2}, 1, 2)}, nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, more := range [][]string{nil, {"--json"}, {"--detail"}} {
		root := newRoot()
		var stdout bytes.Buffer
		root.SetOut(&stdout)
		root.SetArgs(append([]string{"inspect", path, "--progress", "none", "--html", page}, more...))
		err := root.ExecuteContext(ctx)
		require.ErrorContains(t, err, "0 of 1 tensors were read, nothing was written")
		require.Empty(t, stdout.String())
		require.NoFileExists(t, page)
	}
}

// TestInspectCommand: the command below the advice does it, and there is none where no command does.
func TestInspectCommand(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "model")
	require.NoError(t, os.CopyFS(model, os.DirFS(testutil.Shared(t, "golden", "checkpoints", "llama-bf16"))))
	command := func(args ...string) string {
		lines := regexp.MustCompile(`(?m)^  octavo .*$`).FindAllString(succeed(t, append([]string{"inspect"}, args...)...), -1)
		return strings.TrimSpace(strings.Join(lines, "\n"))
	}
	for recipe, layout := range map[string]string{
		"torchao-rowwise": "ct-fp8-dynamic", "te-current": "fp8", "deepseek": "deepseek-v3", "mx-rceil": "ct-mxfp8",
	} {
		said := command(model, "--recipe", recipe)
		require.Regexp(t, " --to "+layout+"( |$)", said)
		succeed(t, strings.Fields(said)[1:]...)
		written := succeed(t, "inspect", model+"-"+layout)
		require.Contains(t, written, ", layout "+layout+"\n")
		require.NotContains(t, written, "  octavo ")
		require.NotContains(t, written, "a matrix should stay")
		require.NotContains(t, written, "encoded to E4M3")
	}
	file := filetest.Write(t, nil, filetest.F32("w", []int{1, 2}, 1, 2), filetest.F32("lm_head.weight", []int{1, 2}, 1, 2))
	said := command(file, "--recipe", "te-current:e5m2")
	require.Contains(t, said, " --recipe te-current:e5m2")
	succeed(t, strings.Fields(said)[1:]...)
	require.Contains(t, succeed(t, "inspect", strings.Fields(said)[4]), "F8_E5M2")
	require.Empty(t, command(file, "--only", "^w"))
	require.Empty(t, command(file, model))
	require.Empty(t, command(filetest.Write(t, nil, filetest.F32("w", []int{1, 2}, 1, float32(math.NaN())), filetest.F32("v", []int{1, 2}, 1, 2))))
}
