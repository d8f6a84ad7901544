package chart

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTableOfTicks: package page has a script that puts ticks at the same places, and a test of it with the same table.
func TestTableOfTicks(t *testing.T) {
	data, err := os.ReadFile("testdata/ticks.json")
	require.NoError(t, err)
	var cases []struct {
		Low, High         float64
		Log, Base2, Whole bool
		Labels            []string
	}
	require.NoError(t, json.Unmarshal(data, &cases))
	for _, c := range cases {
		var labels []string
		for _, k := range ticks(c.Low, c.High, c.Log, c.Base2, c.Whole) {
			if k.label != "" {
				labels = append(labels, k.label)
			}
		}
		require.Equal(t, c.Labels, labels, "%v to %v", c.Low, c.High)
	}
}
