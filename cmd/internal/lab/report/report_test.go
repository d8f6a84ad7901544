package report

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
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

// pageOf returns the page of a report.
func pageOf(t *testing.T, r *Report) string {
	var page bytes.Buffer
	s := Setting{Command: "octavo lab example", Machine: "a machine", Inputs: []string{"Text: a text."}, Seed: 3}
	require.NoError(t, r.WritePage(&page, s))
	return page.String()
}

// TestPageNeedsNothingElse: whatever it refers to is in it.
func TestPageNeedsNothingElse(t *testing.T) {
	html := pageOf(t, example())
	for _, want := range []string{
		"An example", "It is claimed.", "Something was found.", "Much was not.", `class="met"`, `class="missed"`, "1 of 2 goals met",
		"&lt;c&gt;", `<td class="number">0.3333</td>`, `<th class="number">value</th>`, "<th>name</th>",
		"octavo lab example", "Seed 3. Text: a text. a machine. Wall time 1.2s.",
	} {
		require.Contains(t, html, want)
	}
	require.NotContains(t, html, "<h3>Too long", "a raw table is for download only")
	require.NotContains(t, html, "Short run")
	require.NotRegexp(t, `(src|href)="[^d]`, html)
	data := regexp.MustCompile(`download="example-raw.csv" href="data:text/csv;base64,([^"]*)"`).FindStringSubmatch(html)
	require.Len(t, data, 2)
	file, err := base64.StdEncoding.DecodeString(strings.NewReplacer("&#43;", "+").Replace(data[1]))
	require.NoError(t, err)
	require.Equal(t, "x\n12345\n", string(file))
}

func TestIndexLinksPages(t *testing.T) {
	var page bytes.Buffer
	require.NoError(t, WriteIndex(&page, []*Report{example(), example()}, nil, Setting{Command: "octavo lab all", Seed: 3}))
	for _, want := range []string{
		`href="example.html"`, "It is claimed.", `class="missed"`, "Something was found.", "octavo lab all", "1.2s",
		"<strong>2 of 4 goals met.</strong>", "that: 3; wanted: 2.",
	} {
		require.Contains(t, page.String(), want)
	}
	require.NotContains(t, page.String(), "Short run")
	require.NotContains(t, page.String(), "not done")
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	r := example()
	r.Goals[1].What += strings.Repeat(" and that", 9)
	require.NoError(t, r.WriteText(&b))
	require.Equal(t, `An example (1.2s)
  1 of 2 goals met
  met        this: 1
             wanted: 1
  MISSED     that and that and that and that and that and that and that and that
             and that and that: 3
             wanted: 2
  - Something was found.

`, b.String())
}

// shortExample is the example as a short run that does not judge the goal which the other
// missed.
func shortExample() *Report {
	r := example()
	r.Goals[1] = r.Goals[1].AtLength()
	r.Shorten()
	return r
}

// TestShortRunConcludesNothing: it says what was measured, and what follows where that
// takes no full length.
func TestShortRunConcludesNothing(t *testing.T) {
	finding := func(measured string) Finding {
		return NewFinding(measured, If(true, measured+" holds.", measured+" does not."))
	}
	r := &Report{Findings: []Finding{finding("This"), finding("That").AtLength()}}
	require.Equal(t, "That That holds.", r.Findings[1].String())
	r.Shorten()
	require.Equal(t, "This This holds.", r.Findings[0].String())
	require.Equal(t, "That", r.Findings[1].String())
}

// TestShortRunSaysSo: on the page, on the index, in text and in JSON, where nothing is
// missed that was not judged.
func TestShortRunSaysSo(t *testing.T) {
	r := shortExample()
	const tally = "1 of 1 goals met, 1 not judged: the run is short"
	html := pageOf(t, r)
	require.Contains(t, html, "Short run")
	require.Contains(t, html, ShortNotice)
	require.Contains(t, html, tally)
	require.Contains(t, html, `class="unjudged">not judged`)
	require.NotContains(t, html, `class="missed"`)

	var index bytes.Buffer
	require.NoError(t, WriteIndex(&index, []*Report{r}, []string{"another", "last"}, Setting{}))
	require.Contains(t, index.String(), ShortNotice)
	require.Contains(t, index.String(), tally)
	require.NotContains(t, index.String(), `class="missed"`)
	require.Contains(t, index.String(), "not done: another, last.")

	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "  not judged that: 3\n")
	require.Contains(t, text.String(), tally)
	require.NotContains(t, text.String(), "MISSED")

	got, err := json.Marshal(ResultsOf(7, r))
	require.NoError(t, err)
	require.Contains(t, string(got), `{"short":true,"seed":7,"met":1,"missed":0,"notJudged":1,"experiments":[{"name":"example"`)
	require.Contains(t, string(got), `"got":"3","outcome":"not judged"`)
}

// TestAtLength: a goal that makes sense at full length only is judged there.
func TestAtLength(t *testing.T) {
	for _, met := range []bool{false, true} {
		r := &Report{Goals: []Goal{NewGoal("", "", "", met).AtLength(), NewGoal("", "", "", met)}}
		want := Missed
		if met {
			want = Met
		}
		require.Equal(t, []Outcome{want, want}, []Outcome{r.Goals[0].Outcome, r.Goals[1].Outcome})
		r.Shorten()
		require.Equal(t, []Outcome{NotJudged, want}, []Outcome{r.Goals[0].Outcome, r.Goals[1].Outcome})
	}
}

func TestResults(t *testing.T) {
	all := ResultsOf(7, example(), example())
	require.Equal(t, Tally{Met: 2, Missed: 2}, all.Tally)
	require.False(t, all.Short)
	require.Len(t, all.Experiments, 2)
	require.Equal(t, "example", all.Experiments[0].Name)
	require.Equal(t, 1.234, all.Experiments[0].Seconds)
	require.Equal(t, Tally{Met: 1, Missed: 1}, all.Experiments[0].Tally)
	require.Equal(t, []string{"Something was found."}, all.Experiments[0].Findings)
}
