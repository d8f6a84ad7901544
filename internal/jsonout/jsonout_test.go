package jsonout

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

func TestPrint(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Print(&b, map[string]any{
		"numbers": []Number{0, 0.1, 1e300, Number(math.NaN()), Number(math.Inf(1)), Number(math.Inf(-1))}, "text": "<&>",
	}))
	require.Equal(t, `{
  "numbers": [
    0,
    0.1,
    1e+300,
    "NaN",
    "+Inf",
    "-Inf"
  ],
  "text": "<&>"
}
`, b.String())
}

// TestPrintEscapes prints names that would have a terminal do something. A program
// reads them as they were.
func TestPrintEscapes(t *testing.T) {
	names := []string{"a\nb", "\x1b[2J", "\x7f", "\u009b2J", "\u202eabc", "\U000e0001", "é権😀", "\u2028", strings.Repeat("n", 1<<20)}
	var out bytes.Buffer
	require.NoError(t, Print(&out, names))
	for _, r := range out.String() {
		require.True(t, r == '\n' || unicode.IsPrint(r), "%U", r)
	}
	var got []string
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, names, got)
	require.Contains(t, out.String(), "é権😀")
	require.Contains(t, out.String(), `"\udb40\udc01"`)

	out.Reset()
	require.NoError(t, Print(&out, "a\xffb"))
	require.Equal(t, "\"a\ufffdb\"\n", strings.ReplaceAll(out.String(), `\ufffd`, "\ufffd"))
}

// TestPrintList compares with Print of the whole.
func TestPrintList(t *testing.T) {
	type object struct {
		Name string            `json:"name"`
		Map  map[string]string `json:"map"`
	}
	type item struct{ A, B []int }
	for _, items := range [][]item{{}, {{}}, {{[]int{1}, nil}, {nil, []int{2, 3}}}} {
		var got, want bytes.Buffer
		head := object{Name: "x}\n", Map: map[string]string{"a": "b"}}
		require.NoError(t, PrintList(&got, head, "items", func(each func(any) error) error {
			for _, v := range items {
				if err := each(v); err != nil {
					return err
				}
			}
			return nil
		}))
		require.NoError(t, Print(&want, struct {
			object
			Items []item `json:"items"`
		}{head, items}))
		require.Equal(t, want.String(), got.String())
	}
	var nothing bytes.Buffer
	failed := errors.New("failed")
	require.Equal(t, failed, PrintList(&nothing, object{}, "items", func(each func(any) error) error {
		require.NoError(t, each(1))
		return failed
	}))
	require.Empty(t, nothing.String())
}
