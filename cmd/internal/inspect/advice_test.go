package inspect

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// normal is a matrix of normal values times spread, changed.
func normal(name string, spread float64, change func(values []float32)) safetensors.Tensor {
	r := rand.New(rand.NewPCG(38, 2))
	values := make([]float32, 100*200)
	for i := range values {
		values[i] = float32(spread * r.NormFloat64())
	}
	if change != nil {
		change(values)
	}
	return filetest.F32(name, []int{100, 200}, values...)
}

func put(at int, x float32) func([]float32) { return func(v []float32) { v[at] = x } }

// TestAdvice has, for each sentence of advice, a file for which it is said, and others for which
// it must not be.
func TestAdvice(t *testing.T) {
	nan := float32(math.NaN())
	plain, other := normal("a.weight", 0.1, nil), normal("b.weight", 0.2, nil)
	down := normal("layers.5.mlp.down_proj.weight", 0.1, put(777, 40))
	small := func(v []float32) { // a third is flushed under one scale
		for i := range 7000 {
			v[i] *= 1e-7
		}
	}
	codes := []safetensors.Tensor{filetest.Raw("w", safetensors.F8E4M3, []int{2, 128}, []byte(strings.Repeat("8", 256))...), filetest.F32("w_scale_inv", []int{2, 1}, 1, 2)}
	gptq := filetest.Raw("q.qweight", safetensors.I32, []int{2, 2}, make([]byte, 16)...)
	ids := filetest.Raw("ids", safetensors.I64, []int{1}, make([]byte, 8)...)
	const (
		row     = "E4M3 under torchao-rowwise, a scale for each row, "
		tensor  = "E4M3 under te-current, a scale for each tensor, "
		nothing = "; no matrix would lose enough to stay in F32."
	)
	for _, c := range []struct {
		name    string
		recipe  scaling.Profile
		only    string
		tensors []safetensors.Tensor
		want    string
	}{
		{"nothing stands out", scaling.TorchAORowwise, "", []safetensors.Tensor{plain, other}, row + "everywhere" + nothing},
		{"an outlier", scaling.TorchAORowwise, "", []safetensors.Tensor{plain, other, down}, row + "everywhere; keep layers.5.mlp.down_proj.weight in F32: an outlier of 40 among 0.1."},
		{"a million times", scaling.TorchAORowwise, "", []safetensors.Tensor{plain, other, normal("c", 1e-6, put(3, 40))}, row + "everywhere; keep c in F32: an outlier of 40, a million times the others or more."},
		{"6 among 0.1 is none", scaling.TorchAORowwise, "", []safetensors.Tensor{plain, normal("c", 0.1, put(3, 6))}, row + "everywhere" + nothing},
		{"one value among zeros is none", scaling.TorchAORowwise, "", []safetensors.Tensor{plain, normal("c", 0, put(3, 6))}, row + "everywhere" + nothing},
		{"two that lose", scaling.TECurrent, "", []safetensors.Tensor{plain, other, down, normal("c", 1, small), normal("d", 1, nil)},
			tensor + "everywhere; keep 2 of the 5 matrices in F32: c (35% of what is not zero would be lost), layers.5.mlp.down_proj.weight (an outlier of 40 among 0.1)."},
		{"the same by row", scaling.TorchAORowwise, "", []safetensors.Tensor{plain, normal("c", 1, small)}, row + "everywhere" + nothing},
		{"most lose", scaling.TECurrent, "", []safetensors.Tensor{normal("c", 1, small)},
			"Keep the matrices in F32: under te-current, the only recipe tried, 1 of 1 would lose too much: c (35% of what is not zero would be lost)."},
		{"a NaN", scaling.TorchAORowwise, "", []safetensors.Tensor{plain, normal("c", 1, put(5, nan))},
			"Repair c first: it has values that are NaN or infinite; then " + row + "in 1 matrix that could be judged" + nothing},
		{"nothing but NaN", scaling.TorchAORowwise, "", []safetensors.Tensor{normal("c", 1, put(5, nan)), normal("d", 1, put(5, nan))},
			"Repair 2 tensors first, such as c: they have values that are NaN or infinite."},
		{"a selection", scaling.TorchAORowwise, "^a", []safetensors.Tensor{plain, other}, row + "in 1 matrix that could be judged" + nothing},
		{"GPTQ too", scaling.TorchAORowwise, "", []safetensors.Tensor{plain, gptq}, row + "in 1 matrix that could be judged" + nothing},
		{"GPTQ alone", scaling.TorchAORowwise, "", []safetensors.Tensor{gptq}, "No advice: 1 tensor could not be judged, and there is no other matrix of values."},
		{"codes too", scaling.TorchAORowwise, "", append(codes, plain), row + "in 1 matrix not encoded yet" + nothing},
		{"codes, GPTQ and values", scaling.TorchAORowwise, "", append(codes, plain, gptq), row + "in 1 matrix that could be judged, beside codes" + nothing},
		{"codes alone", scaling.TorchAORowwise, "", codes, "Nothing to decide: all that could be read is codes already, 1 matrix."},
		{"codes and GPTQ", scaling.TorchAORowwise, "", append(codes, gptq), "Nothing to decide of what could be read, 1 matrix of codes; 1 tensor could not be judged."},
		{"zeros", scaling.TorchAORowwise, "", []safetensors.Tensor{normal("a", 0, nil), normal("b", 0, nil)}, "No advice: all values are 0, in 2 matrices."},
		{"integers", scaling.TorchAORowwise, "", []safetensors.Tensor{ids}, "No advice: there is no matrix of floating-point values among what was read."},
		{"types", scaling.TorchAORowwise, "", []safetensors.Tensor{plain, filetest.Raw("h", safetensors.BF16, []int{1, 2}, 0x80, 0x3F, 0x80, 0x3F)}, row + "everywhere; no matrix would lose enough to stay in their types."},
	} {
		j := Job{Inputs: inputs(t, filetest.Write(t, nil, c.tensors...)), Profiles: []scaling.Profile{c.recipe}}
		if c.only != "" {
			j.Only = regexp.MustCompile(c.only)
		}
		r := run(t, j)
		require.Equal(t, c.want, r.Advice.Sentence, c.name)
		require.True(t, strings.HasPrefix(textOf(t, r), c.want), "%s: it comes first", c.name)
		page := strings.Index(pageText(t, r), "<strong>"+c.want+"</strong>")
		require.True(t, page > 0 && page < strings.Index(pageText(t, r), "<table"), c.name)
	}
}

// TestAdviceOfAModel is of a model that was given an outlier.
func TestAdviceOfAModel(t *testing.T) {
	r := run(t, Job{Inputs: inputs(t, testutil.Shared(t, "golden", "checkpoints", "llama-bf16"))})
	require.Contains(t, r.Advice.Sentence, "everywhere; keep model.layers.0.mlp.down_proj.weight in BF16: an outlier of 3 among 0.01.")
	require.Equal(t, "model.layers.0.mlp.down_proj.weight", r.view(View{Sort: ByRisk})[0].Name)
	require.Contains(t, text(t, r), `"keep": [
      {
        "file": "`)
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E2M1, fp8.MXINT8} {
		r = run(t, Job{Inputs: inputs(t, testutil.Shared(t, "models", "llama")), Format: f})
		require.Regexp(t, `^`+f.String()+` under .* everywhere; no matrix would lose enough to stay in BF16\.$`, r.Advice.Sentence)
	}
}

// TestLimits are those of the help: half a step, and 8 times the share of the range that is flushed.
func TestLimits(t *testing.T) {
	for f, want := range map[fp8.Format]limits{fp8.E4M3: {0.0625, 0.01}, fp8.E5M2: {0.125, 0.01}, fp8.E2M1: {0.25, 8 * 0.25 / 6}, fp8.E2M3: {0.0625, 8 * 0.0625 / 7.5}, fp8.MXINT8: {0.0625, 8 * 0.0078125 / 1.984375}} {
		got := limitsOf(f)
		require.InDelta(t, want.halfStep, got.halfStep, 1e-9, f)
		require.InDelta(t, want.lost, got.lost, 1e-6, f)
	}
}

// TestKeeping has matrices on both sides of each limit.
func TestKeeping(t *testing.T) {
	for _, c := range []struct {
		change func(v *ValuesReport, r *RecipeReport)
		want   string
	}{
		{func(*ValuesReport, *RecipeReport) {}, ""},
		{func(_ *ValuesReport, r *RecipeReport) { r.BecameNonFinite = 1 }, "1 value would become NaN or infinite"},
		{func(v *ValuesReport, _ *RecipeReport) { v.Amax, v.Others = 63.9, 1 }, ""},
		{func(v *ValuesReport, _ *RecipeReport) { v.Amax, v.Others = 64, 1 }, "an outlier of 64 among 1"},
		{func(v *ValuesReport, _ *RecipeReport) { v.Amax, v.Others = 64, 0 }, ""},
		{func(_ *ValuesReport, r *RecipeReport) { r.Saturated, r.Flushed = 5, 4 }, ""},
		{func(_ *ValuesReport, r *RecipeReport) { r.Saturated, r.Flushed = 5, 5 }, "1% of what is not zero would be lost"},
		{func(v *ValuesReport, r *RecipeReport) { r.Saturated, v.Zeros = 5, 500 }, "1% of what is not zero would be lost"},
		{func(_ *ValuesReport, r *RecipeReport) { r.RowError, r.BlockError = 0.0625, 0.0625 }, ""},
		{func(_ *ValuesReport, r *RecipeReport) { r.RowError = 0.063 }, "a row with an error of 6.3%"},
		{func(_ *ValuesReport, r *RecipeReport) { r.BlockError = 0.07 }, "a mean error of blocks of 7%"},
	} {
		m := matrix("a", errs(3, 2.5))
		m.Values.Others = 0.2
		c.change(m.Values, &m.Recipes[0])
		require.Equal(t, c.want, m.keeping(&m.Recipes[0], limits{1.0 / 16, 0.01}))
		assess([]TensorReport{m}, scaling.TECurrent, Medians{RowError: 0.05, BlockError: 0.06, Crest: 4}, limits{1.0 / 16, 0.01})
	}
}

// TestTies: recipes are tied with the best within 0.1 dB of them, and by every error; those tied
// with a recipe that is tied itself are not.
func TestTies(t *testing.T) {
	of := func(p scaling.Profile, row, block, median, worst, middle, lost float64) RankedRecipe {
		n := func(x float64) jsonout.Number { return jsonout.Number(x) }
		return RankedRecipe{Profile: p, Block: "row", WorstRowError: n(row), WorstBlockError: n(block), MedianBlockError: n(median), WorstSQNR: n(worst), MedianSQNR: n(middle), WorstLost: n(lost)}
	}
	all := []RankedRecipe{
		of("best", 0.03, 0.025, 0.025, 31, 32, 0),
		of("near", 0.03*1.011, 0.025, 0.025, 30.91, 32, 0.0004), // 0.095 dB
		of("row", 0.03*1.013, 0.025, 0.025, 31, 32, 0),          // 0.11 dB
		of("block", 0.03, 0.025*1.013, 0.025, 31, 32, 0),
		of("median", 0.03, 0.025, 0.025*1.013, 31, 32, 0),
		of("sqnr", 0.03, 0.025, 0.025, 30.89, 32, 0),
		of("middle", 0.03, 0.025, 0.025, 31, 32.2, 0),
		of("lost", 0.03, 0.025, 0.025, 31, 32, 0.001),
		of("like the row", 0.03*1.02, 0.025, 0.025, 31, 32, 0),
		of("tiny", 1e-9, 1e-8, 1e-7, 150, 160, 0), of("tinier", 1e-8, 1e-9, 1e-5, 120, math.Inf(1), 0),
		of("NaN", math.NaN(), math.Inf(1), math.NaN(), math.NaN(), math.Inf(-1), 0), of("NaN too", math.Inf(1), math.NaN(), math.NaN(), math.Inf(-1), math.NaN(), 0),
	}
	broken := of("broken", 0.03, 0.025, 0.025, 31, 32, 0)
	broken.BecameNonFinite = 5
	all = append(all, broken)
	tie(all)
	got := map[scaling.Profile]scaling.Profile{}
	for _, r := range all {
		if r.TiedWith != "" {
			got[r.Profile] = r.TiedWith
		}
	}
	require.Equal(t, map[scaling.Profile]scaling.Profile{"near": "best", "like the row": "row", "tinier": "tiny", "NaN too": "NaN"}, got)

	all[1].Block = "1x32"
	all = append(all, of("third", 0.03, 0.025, 0.025, 31, 32, 0))
	tie(all)
	rows := (&Report{Ranking: all}).rows()
	require.Len(t, rows, len(all)-5)
	require.Equal(t, []string{"tied within 0.1 dB: near (1x32), third (row)"}, rows[0].remarks())
	require.Empty(t, rows[2].remarks())
}

// TestOfManyShards: before what was found come no lines about files, and metadata that all have
// are said once.
func TestOfManyShards(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		metadata := map[string]string{"format": "pt", "of": name}
		require.NoError(t, safetensors.WriteFile(filepath.Join(dir, name+".safetensors"), []safetensors.Tensor{filetest.F32(name, []int{1, 2}, 1, 2)}, metadata))
	}
	r := run(t, Job{Inputs: inputs(t, dir)})
	var b strings.Builder
	require.NoError(t, r.WriteText(&b, View{Sort: ByRisk, Top: 2}))
	require.True(t, strings.HasPrefix(b.String(), r.Advice.Sentence[:40]))
	require.Equal(t, 1, strings.Count(b.String(), "metadata format: pt\n"))
	require.Equal(t, 1, strings.Count(b.String(), "metadata of 1 files of: b\n"))
	require.Contains(t, b.String(), "\n  and 1 more: --top 0 shows all\n")
	require.Contains(t, b.String(), "\nfile 2: ")
	require.NotContains(t, b.String(), "\nfile 3: ", "of which no tensor is shown")
	require.NoError(t, os.RemoveAll(dir))
}
