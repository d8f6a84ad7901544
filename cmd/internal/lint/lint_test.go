package lint

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/checkpoint/lint"
)

// TestVerdict: it is the first line, and clean where all was judged and nothing found; nothing found in other
// tensors where some were judged.
func TestVerdict(t *testing.T) {
	gptq := []checkpoint.Unread{{Method: "GPTQ", Tensors: []string{"a", "b"}}}
	two := append(gptq, checkpoint.Unread{Tensors: []string{"c"}})
	empty := []checkpoint.Unread{{Method: "GPTQ", Declared: true, Contradicted: true}}
	wrong := []lint.Finding{{Rule: "codes-nan", Severity: lint.Error}}
	info := func(file string, tensors ...string) lint.Finding {
		return lint.Finding{Severity: lint.Info, File: file, Tensors: tensors}
	}
	require.Equal(t, "not judged: no rule was applied", Verdict(&lint.Report{Tensors: 3}))
	for _, c := range []struct {
		findings []lint.Finding
		unread   []checkpoint.Unread
		headers  bool
		want     string
	}{
		{nil, nil, false, "clean"},
		{nil, nil, true, "clean"},
		{nil, gptq, false, "nothing found in other tensors, not judged: 2 of 3 tensors (2 of GPTQ)"},
		{nil, two, false, "not judged: 3 of 3 tensors (2 of GPTQ, 1 of no method that is known)"},
		{wrong, gptq, false, "1 error, not judged: 2 of 3 tensors (2 of GPTQ)"},
		{wrong, empty, false, "1 error"},
		{wrong, nil, false, "1 error"},
		{append([]lint.Finding{{Severity: lint.Warning}, {Severity: lint.Info}, {Severity: lint.Info}}, wrong...), nil, false, "1 error, 1 warning, 2 infos"},
		{[]lint.Finding{info("x", "a", "b"), info("y", "b")}, nil, false, "2 infos in 2 tensors"},
		{[]lint.Finding{info("x", "a"), info("x"), info("y"), info("y")}, gptq, false, "4 infos in 1 tensor and 2 files, not judged: 2 of 3 tensors (2 of GPTQ)"},
		{[]lint.Finding{info("x")}, nil, false, "1 info in 1 file"},
	} {
		r := &lint.Report{Path: "model", Files: 1, Tensors: 3, Headers: c.headers, Findings: c.findings, NotJudged: c.unread, Rules: make([]string, 2)}
		require.Equal(t, c.want, Verdict(r))
		var text strings.Builder
		require.NoError(t, WriteText(&text, r, false))
		unbroken := strings.Join(strings.Fields(text.String()), " ")
		first, of, _ := strings.Cut(unbroken, "3 tensors in 1 file, no layout that is known, by 2 rules")
		require.Equal(t, "model: "+c.want, strings.TrimRight(first, ": "))
		require.Equal(t, c.want == "clean", strings.HasSuffix(first, ": "), "one line")
		require.Equal(t, c.headers, strings.HasPrefix(of, ", from headers alone"))
	}
	var text strings.Builder
	require.NoError(t, WriteText(&text, &lint.Report{Path: "m", Findings: []lint.Finding{{Severity: lint.Error, File: "x", What: strings.Repeat("what ", 40)}}}, false))
	require.True(t, strings.HasPrefix(text.String(), "m: 1 error in 1 file\nno file could be read, by 0 rules\n"))
	for line := range strings.SplitSeq(text.String(), "\n") {
		require.LessOrEqual(t, len(line), 80)
	}
}
