package lint

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/checkpoint/lint"
)

// TestVerdict: nothing found is said where all was judged and nothing found, and of other tensors
// where some were.
func TestVerdict(t *testing.T) {
	gptq := []checkpoint.Unread{{Method: "GPTQ", Tensors: []string{"a", "b"}}}
	two := append(gptq, checkpoint.Unread{Tensors: []string{"c"}})
	empty := []checkpoint.Unread{{Method: "GPTQ", Declared: true, Contradicted: true}}
	wrong := []lint.Finding{{Rule: "codes-nan", Severity: lint.Error}}
	for _, c := range []struct {
		findings []lint.Finding
		unread   []checkpoint.Unread
		headers  bool
		want     string
	}{
		{nil, nil, false, "nothing found"},
		{nil, nil, true, "nothing found"},
		{nil, gptq, false, "nothing found in other tensors, not judged: 2 of 3 tensors (2 of GPTQ)"},
		{nil, two, false, "not judged: 3 of 3 tensors (2 of GPTQ, 1 of no method that is known)"},
		{wrong, gptq, false, "1 error, not judged: 2 of 3 tensors (2 of GPTQ)"},
		{wrong, empty, false, "1 error"},
		{wrong, nil, false, "1 error"},
		{append([]lint.Finding{{Severity: lint.Warning}, {Severity: lint.Info}, {Severity: lint.Info}}, wrong...), nil, false, "1 error, 1 warning, 2 infos"},
	} {
		r := &lint.Report{Path: "model", Files: 1, Tensors: 3, Headers: c.headers, Findings: c.findings, NotJudged: c.unread}
		require.Equal(t, c.want, Verdict(r))
		var text strings.Builder
		require.NoError(t, WriteText(&text, r, false))
		require.Contains(t, text.String(), "model: "+c.want+"\n3 tensors in 1 files, no layout that is known, by 0 rules")
		require.Equal(t, c.headers, strings.Contains(text.String(), ", from headers alone\n"))
	}
}
