package comparison

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/chart"
)

// TestExperts: all tokens come to two experts of each layer with some, in both models, and those
// of FP8 are as many as its products have rows; those of a layer in BF16 are counted too.
func TestExperts(t *testing.T) {
	for _, test := range []struct {
		recipe string
		silent int // layer that is not heard of
	}{{"fp8", -1}, {"nvfp4", 2}} {
		o := named(test.recipe)
		o.MoE, o.Layers, o.Steps = true, 3, 4
		r, err := Run(t.Context(), o, rhyme(), Checkpoints{}, quiet)
		require.NoError(t, err)
		tokens := int64(o.Steps * o.Batch * o.Context)
		rows := make(map[string]int64)
		for _, total := range r.Totals {
			if total.Op == "forward" {
				rows[total.Tensor] = total.Stats.Elements / int64(o.Dim)
			}
		}
		experts := r.Experts()
		require.Len(t, experts, 2*8)
		fp32, fp8, shares := map[int]int64{}, map[int]int64{}, map[int]float64{}
		for i, e := range experts {
			require.Equal(t, []int{1 + i/8, i % 8}, []int{e.Layer, e.Number})
			fp32[e.Layer] += e.FP32Tokens
			fp8[e.Layer] += e.FP8Tokens
			shares[e.Layer] += e.FP32Share + e.FP8Share
			require.InDelta(t, float64(e.FP8Tokens)/float64(2*tokens), e.FP8Share, 1e-12)
			if e.Layer == test.silent {
				require.False(t, e.Multiplies())
				continue
			}
			require.Equal(t, rows[expertName(e.Layer, e.Number)+".gate_proj.input"], e.FP8Tokens)
			require.Equal(t, e.FP8Tokens > 0, e.Multiplies())
			activations := e.Activations().Stats
			require.GreaterOrEqual(t, activations.Amax, max(e.Input.Stats.Amax, e.Gradient.Stats.Amax))
			require.Equal(t, e.Input.Stats.Elements+e.DownInput.Stats.Elements+e.Gradient.Stats.Elements,
				activations.Elements)
		}
		for layer := 1; layer <= 2; layer++ {
			require.Equal(t, 2*tokens, fp32[layer])
			require.Equal(t, 2*tokens, fp8[layer])
			require.InDelta(t, 2, shares[layer], 1e-12)
		}
		requireExperts(t, r, map[bool]int{true: 1, false: 2}[test.silent > 0])
	}
}

// requireExperts requires the experts of a result in all that is written of it.
func requireExperts(t *testing.T, r *Result, charted int) {
	t.Helper()
	charts := r.expertCharts()
	require.Len(t, charts, 3)
	require.Contains(t, charts[0].Title, fmt.Sprintf("layer %d,", charted))
	sums := map[float64]float64{}
	for _, s := range charts[0].Series {
		require.Len(t, s.Points, 2, "0 where no tokens come")
		for _, p := range s.Points {
			sums[p.X] += p.Y
		}
	}
	require.Len(t, sums, 2, "steps 0 and 3")
	for _, sum := range sums {
		require.InDelta(t, 200, sum, 1e-9, "a token goes to two")
	}
	for _, c := range charts[1:] {
		for _, s := range c.Series {
			require.LessOrEqual(t, len(s.Points), 2, "a point a step, of the forward product alone")
		}
	}
	first := r.Experts()[0]
	var text, page, metrics, object bytes.Buffer
	require.NoError(t, r.WriteTable(&text))
	require.Contains(t, text.String(), "Tokens of each expert in percent:\nlayer 1, FP32: ")
	require.Contains(t, text.String(), fmt.Sprintf("\nlayer 2, %s: ", r.Options.Model()))
	require.NoError(t, r.WritePage(&page, "", ""))
	require.Contains(t, page.String(), "<h2>Experts</h2>")
	require.Contains(t, page.String(), charts[2].Title)
	require.Contains(t, page.String(), fmt.Sprintf("<td>%.1f</td><td>%.1f</td>", 100*first.FP32Share, 100*first.FP8Share))
	require.NoError(t, r.WriteMetrics(&metrics))
	family := parseMetrics(t, metrics.String())["octavo_train_expert_tokens_total"]
	for _, e := range r.Experts() {
		of := []string{"layer", strconv.Itoa(e.Layer), "expert", strconv.Itoa(e.Number)}
		require.EqualValues(t, e.FP32Tokens, sample(t, family, append(of, "model", "FP32")...))
		require.EqualValues(t, e.FP8Tokens, sample(t, family, append(of, "model", "FP8")...))
	}
	require.NoError(t, r.WriteJSON(&object))
	var got struct{ Experts []json.RawMessage }
	require.NoError(t, json.Unmarshal(object.Bytes(), &got))
	require.Len(t, got.Experts, 16)
	for i, e := range r.Experts() {
		want, err := json.Marshal(e.json())
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got.Experts[i]))
	}
}

func TestOrZero(t *testing.T) {
	got := orZero([]chart.Series{{Points: []chart.Point{{X: 0, Y: 7}, {X: 6, Y: 8}}}, {Points: []chart.Point{{X: 3, Y: 9}}}, {}})
	want := [][]float64{{7, 0, 8}, {0, 9, 0}, {0, 0, 0}}
	for i, s := range got {
		for j, p := range s.Points {
			require.Equal(t, chart.Point{X: float64(3 * j), Y: want[i][j]}, p)
		}
		require.Len(t, s.Points, 3)
	}
}

// TestLoadsSaved: loads come back as they were saved, a copy does not follow what is counted
// later, and those that are not of the model are refused.
func TestLoadsSaved(t *testing.T) {
	all := loads{{1, []int64{3, 4}}, {2, []int64{5, 6}}}
	copied := all.clone()
	all[0].Tokens[0]++
	require.EqualValues(t, 3, copied[0].Tokens[0])
	data, err := marshalExact(saved{LoadsFP32: copied, LoadsFP8: all})
	require.NoError(t, err)
	var file saved
	require.NoError(t, unmarshalExact(data, &file))
	to := loads{{1, make([]int64, 2)}, {2, make([]int64, 2)}}
	require.NoError(t, to.restore("FP32", file.LoadsFP32))
	require.Equal(t, copied, to)
	require.NoError(t, to.restore("FP8", file.LoadsFP8))
	require.Equal(t, all, to)
	require.NoError(t, to.restore("FP8", nil))
	require.Equal(t, all, to, "of a version that did not count")
	for _, bad := range []loads{{}, all[:1], {{1, []int64{3}}, {2, []int64{5, 6}}}, {{1, []int64{3, 4}}, {3, []int64{5, 6}}}} {
		require.ErrorContains(t, to.restore("FP8", bad), "run.json: loads of FP8 are not of its layers and experts")
	}
	err = to.restore("FP8", loads{{1, []int64{3, 4}}, {2, []int64{5, -6}}})
	require.EqualError(t, err, "run.json: FP8, layer 2: expert 1 has -6 tokens")
	require.Equal(t, all, to, "nothing of it was taken")
}
