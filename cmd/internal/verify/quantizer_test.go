package verify

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	judged "github.com/octavo-fp8/octavo/oracle/judge/quantizer"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestMuseumQuantizers names the fault of every exhibit of a quantizer, by the words that it
// wants, and accuses no honest one.
func TestMuseumQuantizers(t *testing.T) {
	all, err := filepath.Glob(filepath.Join(testutil.Shared(t, "museum"), "*", "exhibit.json"))
	require.NoError(t, err)
	named, seen := 0, 0
	for _, path := range all {
		var e struct {
			Name, Kind, Issue string
			Claim             struct{ Profile, Block, Outer string }
			Expect            [][]string
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if json.Unmarshal(data, &e) != nil || e.Kind != "quantizer" {
			continue
		}
		named++
		dir := filepath.Dir(path)
		run := func(of string) *judged.Verdict {
			file := filepath.Join(dir, of+".safetensors")
			q := Quantizer{File: filepath.Join(dir, "input.safetensors"), X: "x", Codes: file + ":codes", Scales: file + ":scales"}
			if e.Claim.Outer != "" {
				q.Outer = file + ":outer"
			}
			r := scaling.Recipe{Profile: scaling.Profile(e.Claim.Profile)}
			r.Block, err = tensor.ParseBlock(e.Claim.Block)
			require.NoError(t, err)
			v, err := q.Run(t.Context(), r, judged.Options{})
			require.NoError(t, err, e.Name)
			return v
		}
		v := run("honest")
		require.True(t, v.Pass, "%s: %s", e.Name, v.Title())
		v = run("wrong")
		require.Equal(t, "fail", v.Outcome, e.Name)
		require.NotEmpty(t, v.Findings, e.Name)
		text := strings.ToLower(v.Findings[0].String())
		for _, list := range e.Expect {
			ok := false
			for _, word := range list {
				ok = ok || regexp.MustCompile(`(^|[^0-9])`+regexp.QuoteMeta(strings.ToLower(word))).MatchString(text)
			}
			require.True(t, ok, "%s: none of %q in %s", e.Name, list, text)
		}
		for _, k := range judged.Known() {
			if e.Issue != "" && slices.Contains(k.Reports, e.Issue) && strings.HasPrefix(v.Findings[0].String(), "fault "+k.Kind+":") {
				seen++
				require.Regexp(t, `\(seen in [^()]*`+regexp.QuoteMeta(e.Issue), v.Findings[0].String())
			}
		}
	}
	require.GreaterOrEqual(t, named, 16)
	require.GreaterOrEqual(t, seen, 8)
}
