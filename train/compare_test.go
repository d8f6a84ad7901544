package train

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// TestDifferencesAreShort: whatever a file holds, an error about it has one short line
// without control characters.
func TestDifferencesAreShort(t *testing.T) {
	long := strings.Repeat("a\x1b]0;\n\u202e", 1000)
	quote := func(v any) string {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		return string(text)
	}
	for name, saved := range map[string]string{
		"string":  quote(map[string]any{"a": long}),
		"array":   quote(map[string]any{"a": []any{long, long, long, map[string]any{long: long}}}),
		"numbers": quote(map[string]any{"a": make([]int, 1000)}),
		"number":  `{"a":` + strings.Repeat("9", 1000) + `}`,
		"field":   quote(map[string]any{"a": 1, long: 1}),
		"text":    quote(long),
	} {
		err := compareJSON("model.config", []byte(saved), []byte(`{"a":1}`), sinceSaved)
		require.ErrorIs(t, err, ErrMismatch, name)
		require.Less(t, len(err.Error()), 1000, name)
		require.Equal(t, -1, strings.IndexFunc(err.Error(), unicode.IsControl), "%s: %q", name, err)
	}
	err := compareJSON("x", []byte(`{"a":[1,2],"b":true}`), []byte(`{"a":[1,3],"b":true}`), sinceSaved)
	require.EqualError(t, err, "x.a[1] was 2 when it was saved and is 3")
	err = compareJSON("x", []byte(`{"a":["b"]}`), []byte(`{"a":1.50}`), sinceSaved)
	require.EqualError(t, err, `x.a was "[b]" when it was saved and is 1.50`)
	require.NoError(t, compareJSON("x", []byte(`{"a":1.50}`), []byte(`{"a":1.50,"b":null}`), sinceSaved))
}
