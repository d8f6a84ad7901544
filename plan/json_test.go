package plan_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/plan"
)

// TestJSON: laws and trainings are saved under keys of their own, and read back.
func TestJSON(t *testing.T) {
	k, s := plan.Kumar2024(), plan.Sun2025()
	training, err := s.Optimum(1e23, 128)
	require.NoError(t, err)
	fieldName := regexp.MustCompile(`"[A-Z]\w*":`)
	for _, x := range []any{k, s, training, plan.UniformBits(8)} {
		text, err := json.Marshal(x)
		require.NoError(t, err)
		require.NotRegexp(t, fieldName, string(text))
	}
	text, err := json.Marshal(k)
	require.NoError(t, err)
	var back plan.Kumar
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, k, back)
}
