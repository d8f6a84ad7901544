package report

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
)

func example() *Report {
	t := Table{Name: "numbers", Title: "Some numbers", Columns: []string{"name", "value", "count"}}
	t.Add("a, b", 1.0/3, 7)
	t.Add("<c>", float32(0.1), 8)
	raw := Table{Name: "raw", Title: "Too long", Columns: []string{"x"}, Raw: true}
	raw.Add(12345)
	return &Report{
		Name: "example", Title: "An example", Claim: "It is claimed.",
		Goals:    []Goal{NewGoal("this", "1", "1", true), NewGoal("that", "2", "3", false)},
		Findings: []Finding{NewFinding("Something was found.")},
		Limits:   []string{"Much was not."},
		Charts:   []chart.Chart{{Title: "A plot", Series: []chart.Series{{Points: []chart.Point{{X: 1, Y: 2}, {X: 2, Y: 3}}}}}},
		Tables:   []Table{t, raw},
		Time:     1234 * time.Millisecond,
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, example().Tables[0].WriteCSV(&b))
	rows, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Equal(t, [][]string{{"name", "value", "count"}, {"a, b", "0.333333333", "7"}, {"<c>", "0.100000001", "8"}}, rows)
	require.False(t, Table{Columns: []string{"x"}}.Numeric(0))
	require.Panics(t, func() { t := example().Tables[0]; t.Add("too few") })
}

// TestPageNeedsNothingElse: whatever it refers to is in it.
func TestPageNeedsNothingElse(t *testing.T) {
	var page bytes.Buffer
	s := Setting{Command: "octavo lab example", Machine: "a machine", Inputs: []string{"Text: a text."}, Seed: 3}
	require.NoError(t, example().WritePage(&page, s))
	html := page.String()
	for _, want := range []string{
		"An example", "It is claimed.", "Something was found.", "Much was not.", `class="met"`, `class="missed"`,
		"&lt;c&gt;", `<td class="number">0.3333</td>`, `<th class="number">value</th>`, "<th>name</th>",
		"octavo lab example", "Seed 3. Text: a text. a machine. Wall time 1.2s.",
	} {
		require.Contains(t, html, want)
	}
	require.NotContains(t, html, "<h3>Too long", "a raw table is for download only")
	require.NotRegexp(t, `(src|href)="[^d]`, html)
	data := regexp.MustCompile(`download="example-raw.csv" href="data:text/csv;base64,([^"]*)"`).FindStringSubmatch(html)
	require.Len(t, data, 2)
	file, err := base64.StdEncoding.DecodeString(strings.NewReplacer("&#43;", "+").Replace(data[1]))
	require.NoError(t, err)
	require.Equal(t, "x\n12345\n", string(file))
}

func TestIndexLinksPages(t *testing.T) {
	var page bytes.Buffer
	require.NoError(t, WriteIndex(&page, []*Report{example()}, Setting{Command: "octavo lab all", Seed: 3}))
	for _, want := range []string{`href="example.html"`, "It is claimed.", `class="missed"`, "Something was found.", "octavo lab all", "Wall time 1.2s"} {
		require.Contains(t, page.String(), want)
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, example().WriteText(&b))
	require.Equal(t, `An example (1.2s)
  met    this: 1 (wanted: 1)
  MISSED that: 3 (wanted: 2)
  - Something was found.

`, b.String())
}

func TestSummary(t *testing.T) {
	s := Summaries([]*Report{example()})
	require.Len(t, s, 1)
	require.Equal(t, "example", s[0].Name)
	require.Equal(t, 1.234, s[0].Seconds)
	require.Len(t, s[0].Goals, 2)
}
