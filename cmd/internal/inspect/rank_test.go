package inspect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// matrix is a made-up tensor of 1000 values under the recipes of recipesABC.
func matrix(name string, recipes ...RecipeReport) TensorReport {
	t := TensorReport{
		Name: name, DType: safetensors.F32, Shape: []int{10, 100}, weightShape: []int{10, 100}, Bytes: 4000, isMatrix: true,
		Values: &ValuesReport{Elements: 1000, Amax: 1, Smallest: 0.5, Range: 1, Crest: 4}, Recipes: recipes,
	}
	for i := range t.Recipes {
		t.Recipes[i].Profile = recipesABC[i].Profile
	}
	return t
}

var recipesABC = []scaling.Recipe{
	{Profile: scaling.TECurrent}, {Profile: scaling.MXFloor, Block: tensor.Block{Rows: 1, Cols: 32}}, {Profile: scaling.TorchAORowwise, Block: tensor.Block{Rows: 1}},
}

// errs is a report with a row error and a block error in percent.
func errs(row, block float64) RecipeReport {
	return RecipeReport{RowError: jsonout.Number(row / 100), BlockError: jsonout.Number(block / 100), SQNR: 30}
}

func profilesOf(ranking []RankedRecipe) string {
	var all []string
	for _, r := range ranking {
		all = append(all, string(r.Profile))
	}
	return strings.Join(all, " ")
}

// TestRank has made-up tensors for every step of the rule. What has the highest SQNR is the
// worst by each.
func TestRank(t *testing.T) {
	nan := jsonout.Number(math.NaN())
	broken := RecipeReport{SQNR: nan, RowError: nan, BlockError: nan, BecameNonFinite: 3, Saturated: 1, Flushed: 2}
	losing := func(saturated, flushed int64, sqnr float64) RecipeReport {
		return RecipeReport{Saturated: saturated, Flushed: flushed, SQNR: jsonout.Number(sqnr)}
	}
	for name, c := range map[string]struct {
		tensors []TensorReport
		want    string
	}{
		"lost, worst matrix": {[]TensorReport{
			matrix("a", losing(0, 170, 69.8), losing(0, 4, 20), losing(5, 0, 25)), matrix("b", losing(0, 0, 69.8), losing(2, 2, 20), losing(0, 0, 25)),
		}, "mx-floor torchao-rowwise te-current"},
		"worst row":        {[]TensorReport{matrix("a", errs(90, 2), errs(7, 3), errs(8, 1)), matrix("b", errs(1, 1), errs(6, 3), errs(1, 1))}, "mx-floor torchao-rowwise te-current"},
		"row in a percent": {[]TensorReport{matrix("a", errs(5.4, 3), errs(4.6, 4), errs(5, 2))}, "torchao-rowwise te-current mx-floor"},
		"worst block":      {[]TensorReport{matrix("a", errs(5, 3), errs(5, 2), errs(5, 2.5)), matrix("b", errs(5, 1), errs(5, 2), errs(5, 1))}, "mx-floor torchao-rowwise te-current"},
		"median block": {[]TensorReport{
			matrix("a", errs(5, 3), errs(5, 3), errs(5, 3)), matrix("b", errs(5, 2), errs(5, 1), errs(5, 1.5)), matrix("c", errs(5, 2), errs(5, 1), errs(5, 1.5)),
		}, "mx-floor torchao-rowwise te-current"},
		"scales": {[]TensorReport{matrix("a", errs(5, 3), errs(5, 3), errs(5, 3))}, "te-current mx-floor torchao-rowwise"},
		"broken": {[]TensorReport{matrix("a", broken, errs(50, 30), errs(60, 30)), matrix("b", errs(1, 1), errs(1, 1), broken)}, "mx-floor te-current torchao-rowwise"},
	} {
		zeros := matrix("zeros", broken, broken, broken)
		zeros.Values.Amax, zeros.Values.Zeros = 0, 1000
		for i := range zeros.Recipes {
			zeros.Recipes[i].BecameNonFinite = 0
		}
		got := rank(append(c.tensors, TensorReport{Name: "vector", Values: &ValuesReport{Elements: 5}}, zeros), recipesABC)
		require.Equal(t, c.want, profilesOf(got), name)
	}

	got := rank([]TensorReport{matrix("a", broken, losing(0, 0, 10), losing(0, 0, 20)), matrix("b", losing(0, 0, 50), losing(0, 0, 12), broken)}, recipesABC)
	require.Equal(t, []int64{2000, 3, 1, 2}, []int64{got[1].Elements, got[1].BecameNonFinite, got[1].Saturated, got[1].Flushed})
	require.Equal(t, []int64{2 * 10 * 4, 2 * 4, 2 * 10 * 4}, []int64{got[0].ScaleBytes, got[1].ScaleBytes, got[2].ScaleBytes}) // 1 byte each of 4 blocks a row
	require.True(t, math.IsInf(float64(got[1].WorstSQNR), -1))
	require.True(t, math.IsInf(float64(got[1].WorstRowError), 1))
	require.Equal(t, "a", got[1].WorstTensor)
	require.EqualValues(t, 0.006, got[1].WorstLost)
	require.EqualValues(t, 10, got[0].MedianSQNR)
	require.Empty(t, rank([]TensorReport{{Name: "vector"}}, recipesABC))
}

func TestMedian(t *testing.T) {
	require.True(t, math.IsNaN(median(nil)))
	require.EqualValues(t, 2, median([]float64{3, 1, 2}))
	require.EqualValues(t, 2, median([]float64{4, 3, 1, 2}))
}

// TestRisk has tensors for each reason, two of them in the order of their amounts.
func TestRisk(t *testing.T) {
	change := func(name string, f func(v *ValuesReport, r *RecipeReport)) TensorReport {
		m := matrix(name, errs(5, 2.5))
		f(m.Values, &m.Recipes[0])
		return m
	}
	type values = *ValuesReport
	type recipe = *RecipeReport
	tensors := []TensorReport{
		{Name: "vector", Values: &ValuesReport{Elements: 5, Amax: 1, Crest: 99}},
		change("fine", func(values, recipe) {}),
		change("higher", func(_ values, r recipe) { r.BlockError = 0.049 }),
		change("few flushed", func(_ values, r recipe) { r.Flushed, r.SQNR = 9, 1 }),
		change("row", func(_ values, r recipe) { r.RowError = 0.1 }),
		change("block", func(_ values, r recipe) { r.BlockError = 0.06 }),
		change("outlier", func(v values, r recipe) { v.Crest, r.SQNR = 40, 99 }),
		{Name: "foreign", NotJudged: "quantized by GPTQ, which is not read"},
		change("flushed", func(_ values, r recipe) { r.Flushed, r.SQNR = 501, 69.8 }),
		change("much flushed", func(_ values, r recipe) { r.Flushed = 511 }),
		change("flushed of few", func(v values, r recipe) { r.Flushed, v.Zeros = 9, 990 }),
		change("much error", func(_ values, r recipe) { r.RowError, r.Saturated = 0.6, 300 }),
		change("saturated", func(_ values, r recipe) { r.Saturated, r.Flushed = 1, 499 }),
		change("more saturated", func(_ values, r recipe) { r.Saturated = 2 }),
		change("became", func(_ values, r recipe) { r.BecameNonFinite, r.RowError = 1, jsonout.Number(math.NaN()) }),
		change("inf", func(v values, _ recipe) { v.NegInf = 1 }),
		change("nan", func(v values, _ recipe) { v.NaN = 2 }),
		{Name: "nan vector", Values: &ValuesReport{Elements: 5, PosInf: 1}},
		{Name: "integers"},
		change("zeros", func(v values, r recipe) { v.Amax, v.Zeros, r.RowError = 0, 1000, jsonout.Number(math.NaN()) }),
	}
	assess(tensors, scaling.TECurrent, Medians{RowError: 0.05, BlockError: 0.025, Crest: 4}, 0.5)
	r := Report{Tensors: tensors, Judge: scaling.TECurrent}
	shown := r.view(View{Sort: ByRisk})
	require.Equal(t, "nan vector,nan,inf,became,flushed of few,much error,much flushed,flushed,more saturated,saturated,outlier,block,row,foreign,higher,fine,few flushed,vector,integers,zeros",
		strings.Join(namesOf(shown), ","))
	for i, s := range shown {
		require.Equal(t, i+1, s.Risk.Rank)
	}
	var found []Reason
	for _, s := range shown[3:15] {
		found = append(found, s.Risk.Reason)
	}
	require.Equal(t, []Reason{BecameNonFinite, LosesMuch, LosesMuch, LosesMuch, LosesMuch, Saturated, Saturated, StandsOut, StandsOut, StandsOut, NotJudged, NoReason}, found)
	exact := []TensorReport{matrix("a", errs(0, 0))}
	assess(exact, scaling.TECurrent, Medians{Crest: 4}, 0.5)
	require.Equal(t, NoReason, exact[0].Risk.Reason)
}

func namesOf(tensors []*TensorReport) (all []string) {
	for _, t := range tensors {
		all = append(all, t.Name)
	}
	return all
}

func TestSort(t *testing.T) {
	tensors := []TensorReport{
		{Name: "c", Bytes: 5, place: 0},
		{Name: "b", Bytes: 1, place: 1, Values: &ValuesReport{Elements: 1, Amax: 2, Range: 9}, Recipes: []RecipeReport{{SQNR: 20}}},
		{Name: "a", Bytes: 5, place: 2, Values: &ValuesReport{Elements: 1, Amax: 3, Range: 8}, Recipes: []RecipeReport{{SQNR: 10}}},
		{Name: "d", Bytes: 7, place: 3, Values: &ValuesReport{Elements: 1, Zeros: 1}},
	}
	for i := range tensors {
		tensors[i].Risk.Rank = (i+2)%4 + 1
	}
	r := Report{Tensors: tensors}
	for s, want := range map[Sort]string{ByRisk: "adcb", ByName: "abcd", BySize: "dcab", ByAmax: "abcd", ByRange: "bacd", BySQNR: "abcd", ByFile: "cbad"} {
		require.Equal(t, want, strings.Join(namesOf(r.view(View{Sort: s})), ""), s)
	}
	require.Equal(t, []string{"a", "b"}, namesOf(r.view(View{Sort: ByName, Top: 2})))
	require.Len(t, r.view(View{Sort: ByName, Top: 9}), 4)
	require.Len(t, Sorts(), 7)
}

func TestTotals(t *testing.T) {
	got := totals([]TensorReport{
		matrix("a", errs(1, 1)),
		{DType: safetensors.F8E4M3, Shape: []int{4}, weightShape: []int{4}, Bytes: 4, isCodes: true, Scales: &ScalesReport{}, Values: &ValuesReport{NaN: 2}},
		{DType: safetensors.F32, Shape: []int{2}, Bytes: 8, isScale: true},
		{DType: safetensors.F8E4M3, Shape: []int{2}, weightShape: []int{2}, Bytes: 2, isCodes: true},
		{DType: safetensors.I64, Shape: []int{}, Bytes: 8},
	})
	require.Equal(t, Totals{
		Tensors: 5, Parameters: 1007, Bytes: 4022, Matrices: 1, FP8WithScales: 1, FP8WithoutScales: 1, CodesAlone: 1, Read: 2, NonFinite: 2, NonFiniteTensors: 1,
		ByType: []TypeTotal{{safetensors.F32, 2, 1002, 4008}, {safetensors.I64, 1, 1, 8}, {safetensors.F8E4M3, 2, 6, 6}},
	}, got)
}

// TestScalesAreNoCodes counts scales in UE4M3, which are F8_E4M3 too, as scales only.
func TestScalesAreNoCodes(t *testing.T) {
	in := inputs(t, filetest.Write(t, nil,
		filetest.Raw("w", safetensors.F4, []int{1, 16}, make([]byte, 8)...), filetest.Raw("w_scale_inv", safetensors.F8E4M3, []int{1, 1}, 0x38)))
	var all []TensorReport
	for _, info := range in[0].File.Tensors() {
		m := newMeasurement(&in[0], info)
		r := TensorReport{Name: info.Name, DType: info.DType, Shape: info.Shape, Bytes: info.Bytes()}
		r.classify(m)
		all = append(all, r)
	}
	sum := totals(all)
	require.Equal(t, []int64{0, 1, 16}, []int64{int64(sum.FP8WithScales), int64(sum.FP8WithoutScales), sum.Parameters})
}

// TestOutlierFirst has a value of 40 among those of 0.1, which has the highest SQNR of all
// under every recipe, and 17% of a matrix in rows that one scale for all flushes, which SQNR does
// not see.
func TestOutlierFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 10))
	var all []safetensors.Tensor
	for i := range 12 {
		values := make([]float32, 100*200)
		for k := range values {
			values[k] = float32(0.1 * r.NormFloat64())
		}
		switch i {
		case 5:
			values[777] = 40
		case 7:
			for k := range values {
				values[k] = float32(math.Ldexp(1, r.IntN(4)))
				if k < 17*200 {
					values[k] *= 1e-7
				}
			}
		}
		all = append(all, filetest.F32(fmt.Sprintf("layers.%d.weight", i), []int{100, 200}, values...))
	}
	in := inputs(t, filetest.Write(t, nil, all...))
	got := run(t, Job{Inputs: in, Profiles: []scaling.Profile{scaling.TECurrentPow2, scaling.TorchAORowwise}, Only: regexp.MustCompile(`\.([0-6]|8|9|10|11)\.`)})
	first := got.view(View{Sort: ByRisk})[0]
	require.Equal(t, "layers.5.weight", first.Name)
	require.Equal(t, StandsOut, first.Risk.Reason)
	require.Greater(t, float64(first.Values.Crest), 100.0)
	for i := range got.Tensors {
		require.LessOrEqual(t, float64(got.Tensors[i].Recipes[1].SQNR), float64(first.Recipes[1].SQNR))
	}

	got = run(t, Job{Inputs: in, Profiles: []scaling.Profile{scaling.TECurrentPow2, scaling.TorchAORowwise}, Only: regexp.MustCompile(`\.[78]\.`)})
	require.Equal(t, scaling.TorchAORowwise, got.Judge)
	flushing := got.Ranking[1]
	require.InDelta(t, 0.17, float64(flushing.WorstLost), 1e-3)
	require.EqualValues(t, 1, flushing.WorstRowError)
	require.Greater(t, float64(got.Tensors[0].under(scaling.TECurrentPow2).SQNR), 69.8)
}
