package evaluate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn/evaluate"
)

// TestLinearChart: a linear layer stands at the place of its kind, wherever it is in the list.
func TestLinearChart(t *testing.T) {
	r := Report{Evaluation: &evaluate.Evaluation{Results: []evaluate.Result{{
		Mode:  evaluate.Both,
		Kinds: []evaluate.PartCost{{Name: "o_proj"}, {Name: "up_proj"}, {Name: "experts.up_proj"}, {Name: "q_proj"}},
		Linears: []evaluate.Linear{
			{Layer: 0, Kind: "o_proj"}, {Layer: 0, Kind: "up_proj"},
			{Layer: 1, Kind: "o_proj"}, {Layer: 1, Kind: "experts.up_proj"}, {Layer: 1, Kind: "experts.up_proj"},
		},
	}}}}
	var at []float64
	for _, p := range r.LinearChart().Series[0].Points {
		at = append(at, p.X)
	}
	require.Equal(t, []float64{0, 0.25, 1, 1.5, 1.5}, at)
}
