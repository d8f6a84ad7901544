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
	small := func(v []float32) { // a third is flushed under one scale
		for i := range 7000 {
			v[i] *= 1e-7
		}
	}
	codes := []safetensors.Tensor{filetest.Raw("w", safetensors.F8E4M3, []int{2, 128}, []byte(strings.Repeat("8", 256))...), filetest.F32("w_scale_inv", []int{2, 1}, 1, 2)}
	gptq := filetest.Raw("q.qweight", safetensors.I32, []int{2, 2}, make([]byte, 16)...)
	ids := filetest.Raw("ids", safetensors.I64, []int{1}, make([]byte, 8)...)
	down := normal("model.layers.5.mlp.down_proj.weight", 0.1, small)
	embed, head := normal("model.embed_tokens.weight", 1, small), normal("lm_head.weight", 0.1, nil)
	gates := []safetensors.Tensor{normal("model.layers.0.mlp.gate.weight", 1, nil), normal("model.layers.1.mlp.gate.weight", 1, nil)}
	const (
		row     = "E4M3 under torchao-rowwise, a scale for each row, "
		tensor  = "E4M3 under te-current, a scale for each tensor, "
		nothing = "; none would lose enough to stay in F32"
		lost    = "35% of what is not zero would be lost"
	)
	list := func(all ...safetensors.Tensor) []safetensors.Tensor { return all }
	for _, c := range []struct {
		name    string
		recipe  scaling.Profile
		only    string
		tensors []safetensors.Tensor
		want    string
	}{
		{"nothing stands out", scaling.TorchAORowwise, "", list(plain, other), row + "in all 2 matrices" + nothing + "."},
		{"an outlier loses nothing", scaling.TECurrent, "", list(plain, other, normal("c", 0.1, put(777, 40))), tensor + "in all 3 matrices" + nothing + "."},
		{"but what is a million times smaller", scaling.TECurrent, "", list(plain, other, normal("c", 1e-6, put(3, 40))), tensor + "in 2 of 3 matrices; keep c in F32: 99.9% of what is not zero would be lost."},
		{"one that loses", scaling.TECurrent, "", list(plain, other, down), tensor + "in 2 of 3 matrices; keep model.layers.5.mlp.down_proj.weight in F32: " + lost + "."},
		{"two that lose", scaling.TECurrent, "", list(plain, other, down, normal("c", 1, small), normal("d", 1, nil)),
			tensor + "in 3 of 5 matrices; keep 2 in F32: model.layers.5.mlp.down_proj.weight (" + lost + "), c (" + lost + ")."},
		{"the same by row", scaling.TorchAORowwise, "", list(plain, down), row + "in all 2 matrices" + nothing + "."},
		{"zeros beside", scaling.TorchAORowwise, "", list(plain, normal("z", 0, nil)), row + "in all 2 matrices" + nothing + "."},
		{"one", scaling.TorchAORowwise, "", list(plain), row + "in the only matrix" + nothing + "."},
		{"parts of a model", scaling.TECurrent, "", append(gates, plain, embed, head), tensor + "in the only projection" + nothing + "; 2 routers and the embedding and the head stay in F32."},
		{"parts, and one to keep", scaling.TECurrent, "", list(plain, other, down, head), tensor + "in 2 of 3 projections; keep model.layers.5.mlp.down_proj.weight in F32: " + lost + "; the head stays in F32, too."},
		{"a bias alone is no projection", scaling.TECurrent, "", list(normal("a_bias", 1, small)), "No advice: there is no matrix of values to quantize among what was read; the bias vector stays in F32."},
		{"embeddings are no part", scaling.TECurrent, "", list(normal("embeddings", 1, nil)), tensor + "in the only matrix" + nothing + "."},
		{"a NaN in a part", scaling.TECurrent, "", list(plain, normal("lm_head.weight", 1, put(5, nan))),
			"Repair lm_head.weight first: it has values that are NaN or infinite; then " + tensor + "in 1 matrix that could be judged" + nothing + "."},
		{"parts and a NaN", scaling.TECurrent, "", list(head, normal("c", 1, put(5, nan))), "Repair c first: it has values that are NaN or infinite."},
		{"codes and parts", scaling.TorchAORowwise, "", append(codes, embed), "Nothing to decide: what could be quantized is codes already, 1 matrix; the embedding stays in F32."},
		{"most lose", scaling.TECurrent, "", list(normal("c", 1, small), head),
			"Keep the matrices in F32: under te-current, the only recipe tried, 1 of 1 projection would lose too much: c (" + lost + ")."},
		{"a NaN", scaling.TorchAORowwise, "", list(plain, normal("c", 1, put(5, nan))),
			"Repair c first: it has values that are NaN or infinite; then " + row + "in 1 matrix that could be judged" + nothing + "."},
		{"nothing but NaN", scaling.TorchAORowwise, "", list(normal("c", 1, put(5, nan)), normal("d", 1, put(5, nan))),
			"Repair 2 tensors first, such as c: they have values that are NaN or infinite."},
		{"a selection", scaling.TorchAORowwise, "^a", list(plain, other), row + "in 1 matrix that could be judged" + nothing + "."},
		{"GPTQ too", scaling.TorchAORowwise, "", list(plain, gptq), row + "in 1 matrix that could be judged" + nothing + "."},
		{"GPTQ alone", scaling.TorchAORowwise, "", list(gptq), "No advice: 1 tensor could not be judged, and there is no matrix of values to quantize."},
		{"codes too", scaling.TorchAORowwise, "", append(codes, plain), row + "in 1 matrix not encoded yet" + nothing + "."},
		{"codes, GPTQ and values", scaling.TorchAORowwise, "", append(codes, plain, gptq), row + "in 1 matrix that could be judged, beside codes" + nothing + "."},
		{"codes alone", scaling.TorchAORowwise, "", codes, "Nothing to decide: what could be quantized is codes already, 1 matrix."},
		{"codes and GPTQ", scaling.TorchAORowwise, "", append(codes, gptq), "Nothing to decide of what could be read, 1 matrix of codes; 1 tensor could not be judged."},
		{"zeros", scaling.TorchAORowwise, "", list(normal("a", 0, nil), normal("b", 0, nil)), "No advice: all values are 0, in 2 matrices."},
		{"integers", scaling.TorchAORowwise, "", list(ids), "No advice: there is no matrix of values to quantize among what was read."},
		{"types", scaling.TorchAORowwise, "", list(plain, filetest.Raw("h", safetensors.BF16, []int{1, 2}, 0x80, 0x3F, 0x80, 0x3F)), row + "in all 2 matrices; none would lose enough to stay in their types."},
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

// TestAdviceOfAModel: what is advised follows from the table. A value of 3 among 0.01 is coded as
// well as others; rows that saturate, and blocks of FP4 that a large value flushes, are not. The
// embedding and the head stay, and no recipe is judged by them.
func TestAdviceOfAModel(t *testing.T) {
	const mlp, attention = "model.layers.0.mlp.", "model.layers.1.self_attn."
	for p, keep := range map[scaling.Profile][]string{
		scaling.MXRCeil: nil, scaling.TEBlock: nil, scaling.MXFloor: {mlp + "up_proj.weight"},
	} {
		r := run(t, Job{Inputs: inputs(t, testutil.Shared(t, "golden", "checkpoints", "llama-bf16")), Profiles: []scaling.Profile{p}})
		requireAdvice(t, r, 0.0625, keep...)
		require.Contains(t, r.Advice.Sentence, map[bool]string{true: "in all 14 projections", false: "in 13 of 14 projections"}[len(keep) == 0])
		require.Contains(t, r.Advice.Sentence, "; the head and the embedding stay in BF16")
	}
	r := run(t, Job{Inputs: inputs(t, testutil.Shared(t, "golden", "checkpoints", "llama-bf16")), Profiles: []scaling.Profile{scaling.NVFP4TE}, Format: fp8.E2M1})
	requireAdvice(t, r, 0.25, mlp+"down_proj.weight", attention+"k_proj.weight", attention+"q_proj.weight", attention+"v_proj.weight")
	require.Contains(t, text(t, r), `"keep": [
      {
        "file": "`)
	require.Contains(t, text(t, r), `"stays": "embedding"`)
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E2M1, fp8.MXINT8} {
		r = run(t, Job{Inputs: inputs(t, testutil.Shared(t, "models", "llama")), Format: f})
		require.Regexp(t, `^`+f.String()+` under .* in all 21 projections; none would lose enough to stay in BF16; the head and the embedding stay in BF16\.$`, r.Advice.Sentence)
	}
}

// requireAdvice has those kept of which a column of the table is above the limit, and no others.
func requireAdvice(t *testing.T, r *Report, limit float64, keep ...string) {
	t.Helper()
	var above, kept []string
	for i := range r.Tensors {
		m := &r.Tensors[i]
		of := m.under(r.Judge)
		if of == nil || m.Stays != "" {
			require.Empty(t, m.Risk.Keep)
			continue
		}
		if max(m.lost(of), float64(of.RowError), float64(of.BlockError)) > limit {
			above = append(above, m.Name)
		}
		if m.Risk.Keep != "" {
			kept = append(kept, m.Name)
			require.Equal(t, LosesMuch, m.Risk.Reason)
		}
	}
	require.ElementsMatch(t, above, kept)
	require.ElementsMatch(t, keep, kept)
}

// TestHalfSteps are those of the help.
func TestHalfSteps(t *testing.T) {
	for f, want := range map[fp8.Format]float64{fp8.E4M3: 0.0625, fp8.E5M2: 0.125, fp8.E2M1: 0.25, fp8.E2M3: 0.0625, fp8.E3M2: 0.125, fp8.MXINT8: 0.0625} {
		require.EqualValues(t, want, halfStepOf(f), f)
	}
}

// TestJudgedByWhatIsQuantized: the embedding alone would lose less by row than by tensor.
func TestJudgedByWhatIsQuantized(t *testing.T) {
	small := func(v []float32) {
		for i := range 7000 {
			v[i] *= 1e-7
		}
	}
	embed, plain := normal("embed_tokens.weight", 1, small), normal("a.weight", 1, nil)
	judge := func(all ...safetensors.Tensor) *Report {
		return run(t, Job{Inputs: inputs(t, filetest.Write(t, nil, all...)), Profiles: []scaling.Profile{scaling.TECurrentPow2, scaling.TorchAORowwisePow2}})
	}
	both, alone := judge(embed, plain), judge(embed)
	require.Equal(t, scaling.TECurrentPow2, both.Judge)
	require.Less(t, both.Ranking[0].Flushed, int64(10))
	require.Contains(t, textOf(t, both), " The projection encoded to E4M3")
	require.Greater(t, both.Tensors[0].under(both.Judge).Flushed, int64(6000), "the table has it all the same")
	require.Equal(t, RiskReport{Rank: 1, Reason: LosesMuch, amount: 1}, both.Tensors[0].Risk, "and it is not said to be kept for that")
	require.Contains(t, textOf(t, both), " ^ embedding: stays in F32 (looked up, not multiplied) ")
	require.Equal(t, scaling.TorchAORowwisePow2, alone.Judge)
	require.Contains(t, textOf(t, alone), " The float matrix encoded to E4M3")
}

// TestKeeping has matrices on both sides of the limit.
func TestKeeping(t *testing.T) {
	for _, c := range []struct {
		change func(v *ValuesReport, r *RecipeReport)
		want   string
	}{
		{func(*ValuesReport, *RecipeReport) {}, ""},
		{func(_ *ValuesReport, r *RecipeReport) { r.BecameNonFinite = 1 }, "1 value would become NaN or infinite"},
		{func(v *ValuesReport, _ *RecipeReport) { v.Amax, v.Others = 1e9, 1 }, ""},
		{func(_ *ValuesReport, r *RecipeReport) { r.Saturated, r.Flushed = 32, 30 }, ""},
		{func(_ *ValuesReport, r *RecipeReport) { r.Saturated, r.Flushed = 32, 31 }, "6.3% of what is not zero would be lost"},
		{func(v *ValuesReport, r *RecipeReport) { r.Saturated, v.Zeros = 32, 500 }, "6.4% of what is not zero would be lost"},
		{func(_ *ValuesReport, r *RecipeReport) { r.RowError, r.BlockError = 0.0625, 0.0625 }, ""},
		{func(_ *ValuesReport, r *RecipeReport) { r.RowError = 0.063 }, "a row with an error of 6.3%"},
		{func(_ *ValuesReport, r *RecipeReport) { r.BlockError = 0.07 }, "a mean error of blocks of 7%"},
	} {
		m := matrix("a", errs(3, 2.5))
		c.change(m.Values, &m.Recipes[0])
		require.Equal(t, c.want, m.keeping(&m.Recipes[0], 1.0/16))
	}
}

// TestOutlierInHistogram is named where it is 64 times the others or more.
func TestOutlierInHistogram(t *testing.T) {
	for _, c := range []struct {
		amax, others jsonout.Number
		want         string
	}{{63.9, 1, ""}, {64, 1, "an outlier of 64 among 1"}, {64, 0, ""}, {40, 4e-5, "an outlier of 40 among 4e-05 or less"}} {
		require.Equal(t, c.want, (&ValuesReport{Amax: c.amax, Others: c.others}).outlier())
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
	require.Equal(t, 1, strings.Count(b.String(), "metadata of 1 file of: b\n"))
	require.Contains(t, b.String(), "\n  and 1 more: --top 0 shows all\n")
	require.Contains(t, b.String(), "\nfile 2: ")
	require.NotContains(t, b.String(), "\nfile 3: ", "of which no tensor is shown")
	require.NoError(t, os.RemoveAll(dir))
}
