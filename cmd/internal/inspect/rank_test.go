package inspect

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// matrix is a made-up tensor of 1000 values under the recipes of recipesABC.
func matrix(name string, recipes ...RecipeReport) TensorReport {
	t := TensorReport{
		Name: name, DType: safetensors.F32, Shape: []int{10, 100}, Bytes: 4000, isMatrix: true,
		Values: &ValuesReport{Elements: 1000, Amax: 1, Smallest: 0.5, Range: 1}, Recipes: recipes,
	}
	for i := range t.Recipes {
		t.Recipes[i].Profile = recipesABC[i].Profile
	}
	return t
}

var recipesABC = []scaling.Recipe{
	{Profile: scaling.TECurrent}, {Profile: scaling.MXFloor, Block: tensor.Block{Rows: 1, Cols: 32}}, {Profile: scaling.TorchAORowwise, Block: tensor.Block{Rows: 1}},
}

func sqnr(x float64) RecipeReport { return RecipeReport{SQNR: jsonout.Number(x)} }

func profilesOf(ranking []RankedRecipe) string {
	var all []string
	for _, r := range ranking {
		all = append(all, string(r.Profile))
	}
	return strings.Join(all, " ")
}

// TestRank has made-up tensors for every step of the rule.
func TestRank(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	broken := RecipeReport{SQNR: jsonout.Number(nan), BecameNonFinite: 3, Saturated: 1, Flushed: 2}
	for name, c := range map[string]struct {
		first, second, third [3]float64 // SQNR under each recipe
		want                 string
	}{
		"worst":          {[3]float64{30, 20, 31}, [3]float64{30, 40, 29}, [3]float64{30, 40, 35}, "te-current torchao-rowwise mx-floor"},
		"worst in tenth": {[3]float64{30.01, 30.04, 29.96}, [3]float64{31, 32, 33}, [3]float64{31, 32, 33}, "torchao-rowwise mx-floor te-current"},
		"median":         {[3]float64{30, 30, 30}, [3]float64{33, 31, 35}, [3]float64{33, 99, 35}, "mx-floor torchao-rowwise te-current"},
		"scales":         {[3]float64{30, 30, 30}, [3]float64{33, 33, 33}, [3]float64{33, 33, 33}, "te-current mx-floor torchao-rowwise"},
		"exact":          {[3]float64{inf, 30, inf}, [3]float64{inf, 30, inf}, [3]float64{inf, 30, inf}, "te-current torchao-rowwise mx-floor"},
	} {
		tensors := []TensorReport{}
		for i, s := range [][3]float64{c.first, c.second, c.third} {
			tensors = append(tensors, matrix(fmt.Sprint(i), sqnr(s[0]), sqnr(s[1]), sqnr(s[2])))
		}
		if name == "median" { // that of three is the second
			tensors[2].Recipes[1].SQNR = 98
			tensors[1].Recipes[1].SQNR = 97
		}
		tensors = append(tensors, TensorReport{Name: "vector", Values: &ValuesReport{Elements: 5}})
		zeros := matrix("zeros", sqnr(nan), sqnr(nan), sqnr(nan))
		zeros.Values.Amax = 0
		got := rank(append(tensors, zeros), recipesABC)
		require.Equal(t, c.want, profilesOf(got), name)
	}

	got := rank([]TensorReport{matrix("a", broken, sqnr(10), sqnr(20)), matrix("b", sqnr(50), sqnr(10), broken), matrix("c", sqnr(50), sqnr(12), sqnr(25))}, recipesABC)
	require.Equal(t, "mx-floor te-current torchao-rowwise", profilesOf(got))
	require.Equal(t, []int64{3000, 3, 1, 2}, []int64{got[1].Elements, got[1].BecameNonFinite, got[1].Saturated, got[1].Flushed})
	require.Equal(t, []int64{3 * 10 * 4, 3 * 4, 3 * 10 * 4}, []int64{got[0].ScaleBytes, got[1].ScaleBytes, got[2].ScaleBytes}) // 1 byte each of 4 blocks a row
	require.True(t, math.IsInf(float64(got[1].WorstSQNR), -1))
	require.Equal(t, "a", got[1].WorstTensor)
	require.EqualValues(t, 10, got[0].MedianSQNR)
	require.Empty(t, rank([]TensorReport{{Name: "vector"}}, recipesABC))

	losing := func(saturated, flushed int64, sqnr float64) RecipeReport {
		return RecipeReport{Saturated: saturated, Flushed: flushed, SQNR: jsonout.Number(sqnr)}
	}
	got = rank([]TensorReport{matrix("a", losing(1, 2, 50), losing(2, 0, 10), losing(1, 1, 20))}, recipesABC)
	require.Equal(t, "torchao-rowwise mx-floor te-current", profilesOf(got))
	second := matrix("b", losing(0, 1, 20), losing(0, 0, 20), losing(0, 0, 20))
	got = rank([]TensorReport{matrix("a", losing(0, 0, 30), losing(0, 0, 10), losing(0, 0, 20)), second, second, second, second, second, second}, recipesABC)
	require.Equal(t, "torchao-rowwise mx-floor te-current", profilesOf(got))
	got = rank([]TensorReport{matrix("a", losing(0, 0, 30), losing(0, 0, 10), losing(0, 0, 20)), matrix("b", losing(0, 0, 30), sqnr(10), sqnr(20)), second}, recipesABC)
	require.Equal(t, "te-current torchao-rowwise mx-floor", profilesOf(got)) // 1 of 3000 is 0.0%
}

func TestMedian(t *testing.T) {
	require.True(t, math.IsNaN(median(nil)))
	require.EqualValues(t, 2, median([]float64{3, 1, 2}))
	require.EqualValues(t, 2, median([]float64{4, 3, 1, 2}))
}

// TestRisk has tensors for each reason, two of them in the order of their amounts.
func TestRisk(t *testing.T) {
	change := func(name string, f func(v *ValuesReport, r *RecipeReport)) TensorReport {
		m := matrix(name, sqnr(30))
		f(m.Values, &m.Recipes[0])
		return m
	}
	type values = *ValuesReport
	type recipe = *RecipeReport
	tensors := []TensorReport{
		{Name: "vector", Values: &ValuesReport{Elements: 5, Amax: 1}},
		change("fine", func(values, recipe) {}),
		change("lower", func(_ values, r recipe) { r.SQNR = 29.1 }),
		change("few flushed", func(v values, r recipe) { r.Flushed, r.SQNR = 9, 30.5 }),
		change("low", func(_ values, r recipe) { r.SQNR = 29 }),
		change("lowest", func(_ values, r recipe) { r.SQNR = 3 }),
		change("flushed", func(_ values, r recipe) { r.Flushed = 10 }),
		change("much flushed", func(_ values, r recipe) { r.Flushed = 11 }),
		change("flushed of few", func(v values, r recipe) { r.Flushed, v.Zeros = 9, 990 }),
		change("saturated", func(_ values, r recipe) { r.Saturated, r.Flushed = 1, 900 }),
		change("more saturated", func(_ values, r recipe) { r.Saturated = 2 }),
		change("became", func(_ values, r recipe) { r.BecameNonFinite, r.SQNR = 1, jsonout.Number(math.NaN()) }),
		change("inf", func(v values, _ recipe) { v.NegInf = 1 }),
		change("nan", func(v values, _ recipe) { v.NaN = 2 }),
		{Name: "nan vector", Values: &ValuesReport{Elements: 5, PosInf: 1}},
		{Name: "integers"},
		change("zeros", func(v values, r recipe) { v.Amax, v.Zeros, r.SQNR = 0, 1000, jsonout.Number(math.NaN()) }),
	}
	assess(tensors, scaling.TECurrent, 30)
	r := Report{Tensors: tensors, Judge: scaling.TECurrent}
	shown := r.view(View{Sort: ByRisk})
	require.Equal(t, "nan vector,nan,inf,became,more saturated,saturated,flushed of few,much flushed,flushed,lowest,low,lower,fine,few flushed,vector,integers,zeros",
		strings.Join(namesOf(shown), ","))
	for i, s := range shown {
		require.Equal(t, i+1, s.Risk.Rank)
	}
	require.Equal(t, Flushed, shown[8].Risk.Reason)
	require.Equal(t, LowSQNR, shown[10].Risk.Reason)
	require.Equal(t, NoReason, shown[11].Risk.Reason)
	exact := []TensorReport{matrix("a", sqnr(math.Inf(1)))}
	assess(exact, scaling.TECurrent, math.Inf(1))
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
		matrix("a", sqnr(1)),
		{DType: safetensors.F8E4M3, Shape: []int{4}, Bytes: 4, isCodes: true, Scales: &ScalesReport{}, Values: &ValuesReport{NaN: 2}},
		{DType: safetensors.F32, Shape: []int{2}, Bytes: 8, isScale: true},
		{DType: safetensors.F8E4M3, Shape: []int{2}, Bytes: 2, isCodes: true},
		{DType: safetensors.I64, Shape: []int{}, Bytes: 8},
	})
	require.Equal(t, Totals{
		Tensors: 5, Parameters: 1007, Bytes: 4022, Matrices: 1, FP8WithScales: 1, FP8WithoutScales: 1, NonFinite: 2, NonFiniteTensors: 1,
		ByType: []TypeTotal{{safetensors.F32, 2, 1002, 4008}, {safetensors.I64, 1, 1, 8}, {safetensors.F8E4M3, 2, 6, 6}},
	}, got)
}

// TestScalesAreNoCodes counts scales in UE4M3, which are F8_E4M3 too, as scales only.
func TestScalesAreNoCodes(t *testing.T) {
	file := filetest.Open(t, filetest.Write(t, nil,
		filetest.Raw("w", safetensors.F4, []int{1, 16}, make([]byte, 8)...), filetest.Raw("w_scale_inv", safetensors.F8E4M3, []int{1, 1}, 0x38)))
	var all []TensorReport
	for _, info := range file.Tensors() {
		r := TensorReport{Name: info.Name, DType: info.DType, Shape: info.Shape, Bytes: info.Bytes()}
		r.classify(file)
		all = append(all, r)
	}
	sum := totals(all)
	require.Equal(t, []int64{0, 1, 16}, []int64{int64(sum.FP8WithScales), int64(sum.FP8WithoutScales), sum.Parameters})
}
