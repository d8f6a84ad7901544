package certify

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/parallel/twin"
)

// TestRun: everything that is promised is so, and what is not differs in a tensor that
// follows from it.
func TestRun(t *testing.T) {
	r, err := Run(t.Context(), Options{Steps: 1, Seed: 3})
	require.NoError(t, err)
	require.True(t, r.Equal)
	var varied []string
	for _, c := range r.Certificates {
		if !slices.Contains(varied, c.Varied) {
			varied = append(varied, c.Varied)
		}
		require.NotZero(t, c.Tensors, c.To)
		if c.Promised {
			require.Nil(t, c.First, "%s, %s", c.Varied, c.To)
			require.Equal(t, c.Tensors, c.Equal)
			continue
		}
		require.NotNil(t, c.First, "%s, %s", c.Varied, c.To)
		require.Less(t, c.Equal, c.Tensors)
		require.NotEqual(t, c.First.Want, c.First.Got)
		switch c.Varied {
		case "order", "micro-batches":
			require.Contains(t, c.First.Tensor, "mean_gradient")
		case "slices":
			require.Equal(t, "layers.0.mlp.output", c.First.Tensor)
		default:
			t.Errorf("%s is not promised", c.Varied)
		}
	}
	for _, name := range Varied() { // a machine may have one level only
		require.True(t, name == "level" || slices.Contains(varied, name), name)
	}
	require.Subset(t, Varied(), varied)
}

// TestDelayed: scales of a step follow from those of all ranks in the steps before.
func TestDelayed(t *testing.T) {
	if testing.Short() {
		t.Skip("does several steps")
	}
	r, err := Run(t.Context(), Options{Recipe: Delayed, Steps: 3, Seed: 4})
	require.NoError(t, err)
	require.True(t, r.Equal)
}

// TestOtherSequencesChangeTensorScales: with a scale for each tensor a sequence depends on
// those beside it, and the first activation of which the scale does is named.
func TestOtherSequencesChangeTensorScales(t *testing.T) {
	for _, recipe := range []Recipe{Tensor, Blocks, MXFP8, FP32} {
		r, err := Run(t.Context(), Options{Recipe: recipe, Steps: 1, Seed: 1, Vary: []string{"batch"}})
		require.NoError(t, err)
		require.True(t, r.Equal)
		for _, c := range r.Certificates {
			require.Equal(t, recipe != Tensor, c.Promised)
			if recipe != Tensor {
				require.Nil(t, c.First)
				continue
			}
			require.Equal(t, "model.layers.0.self_attn.q_proj.output", c.First.Tensor)
			require.Less(t, c.First.Part, sequences)
		}
	}
}

func TestSteps(t *testing.T) {
	_, err := Run(t.Context(), Options{})
	require.ErrorContains(t, err, "0 steps: want at least 1")
	_, err = Faults(t.Context(), 3, 1, nil)
	require.ErrorContains(t, err, "3 steps: want at least 4")
	ended, stop := context.WithCancel(t.Context())
	stop()
	_, err = Run(ended, Options{Steps: 1})
	require.ErrorIs(t, err, context.Canceled)
}

// TestBrokenPromise: a difference fails where the bits are promised.
func TestBrokenPromise(t *testing.T) {
	first := &twin.Difference{Step: 1, Tensor: "w", Rank: 2, Want: 1, Got: 2, Differ: 1, Elements: 4}
	r := Report{Steps: 2, Certificates: []Certificate{
		{"ranks", "2 ranks", "1 rank", true, twin.Result{Steps: 1, Equal: 7, Tensors: 8, First: first}},
		{"order", "a tree", "1 rank", false, twin.Result{Equal: 3, Tensors: 8, First: first}},
		{"zero", "stage 1", "1 rank", true, twin.Result{Steps: 2, Equal: 8, Tensors: 8}},
	}}
	require.Equal(t, 1, r.Failed())
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "ranks   2 ranks   1 rank   7 of 8  DIFFER\n")
	require.Contains(t, text.String(), "order   a tree    1 rank   3 of 8  differ, no promise\n")
	require.Contains(t, text.String(), "zero    stage 1   1 rank   8       same\n")
	require.Contains(t, text.String(), "  ranks, 2 ranks: step 1, rank 2, w, part 0, element 0: 2 (40000000), not 1\n  (3F800000); 1 of 4 differ\n")
	require.Contains(t, text.String(), "FAIL: 1 of 2 have other bits than promised\n")
}

// TestFaults: each is found by its twin in its step, and those that can be without one.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("does many runs")
	}
	r, err := Faults(t.Context(), 5, 7, nil)
	require.NoError(t, err)
	require.True(t, r.Found)
	require.False(t, r.Clean.any())
	for _, f := range r.Rows {
		require.True(t, f.InTime())
		require.GreaterOrEqual(t, f.Fault.Step, 2)
		require.Less(t, f.Fault.Step, 4)
		switch f.Fault.Kind {
		case twin.FlippedBit:
			require.False(t, f.Alone())
		case twin.BitFlippedOnTheWay:
			require.Equal(t, f.Fault.Bit > 20, f.Alone())
		default:
			require.True(t, f.Alone(), "%v", f.Fault.Kind)
		}
	}
}

func TestFaultReport(t *testing.T) {
	d := &twin.Difference{Step: 2, Tensor: "w", Rank: 2, Want: 1, Got: 2, Differ: 1, Elements: 4}
	r := FaultReport{Steps: 5, Rows: []Found{
		{twin.Fault{Kind: twin.FlippedBit, Step: 2, Rank: 1, Tensor: "w", Element: 3, Bit: 4}, Checks{Twin: d}},
		{twin.Fault{Kind: twin.DroppedRank, Step: 2}, Checks{d, d, &SumsFound{2, twin.Wrong{Divisor: 8, Ranks: 7}}}},
		{twin.Fault{Kind: twin.MixedScales, Step: 1, Tensor: "a", Other: "b"}, Checks{Twin: d}},
	}}
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	for _, line := range []string{
		"flipped-bit in step 2 on rank 1: w, element 3, bit 4\n", "mixed-scales in step 1 on rank 0: a, with those of b\n",
		"  ranks: nothing\n", "  sums: step 2, gradients are divided by 8, and 7 ranks took part\n",
		"\nFAIL: 2 of 3 found in their step by the twin, 1 without one\n",
	} {
		require.Contains(t, text.String(), line)
	}
	data, err := json.Marshal(r.Rows[0])
	require.NoError(t, err)
	require.JSONEq(t, `{"fault": {"kind": "flipped-bit", "step": 2, "rank": 1, "tensor": "w", "element": 3, "bit": 4},
		"twin": {"step": 2, "tensor": "w", "part": 0, "rank": 2, "against": 0, "element": 0,
			"want": "1 (3F800000)", "got": "2 (40000000)", "differ": 1, "elements": 4}}`, string(data))
}

// TestSentences: a verdict is of what was promised and compared, and names what was not.
func TestSentences(t *testing.T) {
	first := &twin.Difference{Step: 1, Tensor: "w", Want: 1, Got: 2, Differ: 1, Elements: 4}
	of := func(varied string, promised bool, first *twin.Difference) Certificate {
		return Certificate{varied, "x", "1 rank", promised, twin.Result{Equal: 8, Tensors: 8, First: first}}
	}
	var whole []Certificate
	for _, name := range Varied() {
		whole = append(whole, of(name, name != "order", nil))
	}
	texts := map[string]string{}
	for name, c := range map[string][]Certificate{
		"whole": whole, "ranks": {of("ranks", true, nil)}, "differs": {of("ranks", true, first)}, "order": {of("order", false, first)},
	} {
		var text bytes.Buffer
		require.NoError(t, (&Report{Steps: 2, Certificates: c}).WriteText(&text))
		texts[name] = strings.Join(strings.Fields(text.String()), " ")
	}
	for _, x := range []struct{ sentence, of, not string }{
		{"PASS: every bit is the same wherever that is promised, in all 1", "ranks", "differs"},
		{"PASS: ", "whole", "order"},
		{"FAIL: 1 of 1 have other bits than promised", "differs", "order"},
		{"No verdict: of what was varied nothing is promised", "order", "ranks"},
		{"Not compared: workers, level, replicas, zero, tensor, layouts, batch, micro-batches, order, slices", "ranks", "whole"},
		{"Not compared: ", "ranks", "whole"},
		{"differ, no promise", "order", "differs"},
		{"First differences", "differs", "ranks"},
	} {
		require.Contains(t, texts[x.of], x.sentence, x.of)
		require.NotContains(t, texts[x.not], x.sentence, x.not)
	}
	texts = map[string]string{}
	for name, r := range map[string]FaultReport{
		"found":  {Found: true, Rows: []Found{{twin.Fault{Step: 1}, Checks{Twin: first, Ranks: first}}}},
		"missed": {Rows: []Found{{twin.Fault{Step: 1}, Checks{}}}},
	} {
		var text bytes.Buffer
		require.NoError(t, r.WriteText(&text))
		texts[name] = text.String()
	}
	require.Contains(t, texts["found"], "PASS: 1 of 1 found in their step by the twin, 1 without one")
	require.NotContains(t, texts["missed"], "PASS: ")
	require.Contains(t, texts["missed"], "FAIL: 0 of 1 found in their step by the twin, 0 without one")
}
