package report

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/lab/chart"
)

// goalOf is a goal that is named as what is measured.
func goalOf(what, want, got string, o Outcome) Goal {
	return Goal{What: what, Want: want, Got: got, Outcome: o, Declared: Declared{Name: what}}
}

func example() *Report {
	t := Table{Name: "numbers", Title: "Some numbers", Columns: []string{"name", "value", "count"}}
	t.Add("a, b", 1.0/3, 7)
	t.Add("<c>", float32(0.1), 8)
	raw := Table{Name: "raw", Title: "Too long", Columns: []string{"x"}, Raw: true}
	raw.Add(12345)
	return &Report{
		Name: "example", Title: "An example", Claim: "It is claimed.", Length: Full,
		Goals:    []Goal{goalOf("this", "1", "1", Met), goalOf("that", "2", "3", Missed)},
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
	require.NotContains(t, html, "short run")
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
	require.NotContains(t, page.String(), "short run")
	require.NotContains(t, page.String(), "not done")
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	r := example()
	r.Goals[1].Name += strings.Repeat(" and that", 9)
	require.NoError(t, r.WriteText(&b))
	require.Equal(t, `An example (1.2s)
  - Something was found.
  1 of 2 goals met
  met        this: 1
             wanted: 1
  MISSED     that and that and that and that and that and that and that and that
             and that and that: 3
             wanted: 2

`, b.String())
}

// shortExample is the example as a short run that does not judge the goal which the other
// missed.
func shortExample() *Report {
	r := example()
	r.Goals[1] = r.Goals[1].AtLength()
	r.SetLength(Short)
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
	r.SetLength(Short)
	require.Equal(t, "This This holds.", r.Findings[0].String())
	require.Equal(t, "That", r.Findings[1].String())
}

// TestShortRunSaysSo: on the page, on the index, in text and in JSON, where nothing is
// missed that was not judged.
func TestShortRunSaysSo(t *testing.T) {
	r := shortExample()
	html := pageOf(t, r)
	require.Equal(t, 1, strings.Count(html, Short.Notice()))
	require.Equal(t, 1, strings.Count(html, "preview"))
	require.Contains(t, html, "<strong>1 of 1 goals met.</strong>")
	require.NotContains(t, html, "not judged")
	require.NotContains(t, html, `class="missed"`)

	var index bytes.Buffer
	require.NoError(t, WriteIndex(&index, []*Report{r}, []string{"another", "last"}, Setting{Length: Short}))
	require.Equal(t, 1, strings.Count(index.String(), "preview"))
	require.Equal(t, 1, strings.Count(index.String(), "not judged"), "in the sum")
	require.Contains(t, index.String(), "<strong>1 of 1 goals met, 1 not judged.</strong>")
	require.NotContains(t, index.String(), `class="missed"`)
	require.Contains(t, index.String(), "not done: another, last.")

	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "            that: 3\n")
	require.Contains(t, text.String(), "  1 of 1 goals met\n")
	require.NotContains(t, text.String(), "not judged")
	require.NotContains(t, text.String(), "MISSED")

	got, err := json.Marshal(ResultsOf(Short, 7, r))
	require.NoError(t, err)
	require.Contains(t, string(got), `{"length":"short","seed":7,"met":1,"missed":0,"undecided":0,"notJudged":1,"controls":{"caught":0,"notCaught":0,"undecided":0,"notJudged":0},"experiments":[{"name":"example"`)
	require.Contains(t, string(got), `"got":"3","outcome":"not judged"`)
}

// TestFindingFirst: on a page the finding and the plot come before goals, and goals before
// tables; on the index findings come before everything about goals.
func TestFindingFirst(t *testing.T) {
	r := declaredExample()
	r.Findings = []Finding{NewFinding("This is 3. That is 4."), NewFinding("More is 5.", If(true, "So it grows.", "It does not."), If(false, "", "Nor does it end."))}
	r.Charts = append(r.Charts, chart.Chart{Title: "Another plot", Series: r.Charts[0].Series})
	html := pageOf(t, r)
	last := 0
	for _, want := range []string{"<h1>", "<strong>So it grows. Nor does it end.</strong>", declaredTally, "A plot", "<li>This is 3. That is 4.</li>", "Another plot", "It is claimed.", "<strong>gap</strong>", "<h2>Tables</h2>"} {
		at := strings.Index(html[last:], want)
		require.Positive(t, at, want)
		last += at
	}
	r.Findings = r.Findings[:1]
	require.Contains(t, pageOf(t, r), "<strong>This is 3.</strong>", "nothing follows")
	r.Findings = []Finding{NewFinding("This is 3.5.")}
	require.Contains(t, pageOf(t, r), "<strong>This is 3.5.</strong>")
	r.Findings = nil
	require.NotContains(t, pageOf(t, r), "What came out")

	var index bytes.Buffer
	require.NoError(t, WriteIndex(&index, []*Report{example(), declaredExample()}, nil, Setting{Length: Full}))
	table := strings.Index(index.String(), "Something was found.")
	require.Positive(t, table)
	require.Less(t, table, strings.Index(index.String(), "goals met"))
	require.Contains(t, index.String(), `>1 <span class="met">met</span>, 1 <span class="missed">missed</span></td>`)
}

// TestOutcomes has a goal that is not judged among others, and alone.
func TestOutcomes(t *testing.T) {
	goals := []Goal{goalOf("a", "", "", Met), goalOf("b", "", "", NotJudged), goalOf("c", "", "", Missed)}
	require.Equal(t, " As declared: c is missed, a is met.", Outcomes(goals, "As declared", "c", "b", "a"))
	require.Empty(t, Outcomes(goals, "As declared", "b"))
	require.Panics(t, func() { Outcomes(goals, "As declared", "d") })
}

// TestAtLength: a goal that makes sense at full length only is judged there.
func TestAtLength(t *testing.T) {
	for _, want := range []Outcome{Missed, Met} {
		r := &Report{Goals: []Goal{goalOf("", "", "", want).AtLength(), goalOf("", "", "", want)}}
		require.Equal(t, []Outcome{want, want}, []Outcome{r.Goals[0].Outcome, r.Goals[1].Outcome})
		r.SetLength(Short)
		require.Equal(t, []Outcome{NotJudged, want}, []Outcome{r.Goals[0].Outcome, r.Goals[1].Outcome})
	}
}

func TestResults(t *testing.T) {
	require.Equal(t, Full, ResultsOf(Full, 7).Length, "without reports")
	all := ResultsOf(Full, 7, example(), example())
	require.Equal(t, Tally{Met: 2, Missed: 2}, all.Tally)
	require.Equal(t, Full, all.Length)
	require.Len(t, all.Experiments, 2)
	require.Equal(t, "example", all.Experiments[0].Name)
	require.Equal(t, 1.234, all.Experiments[0].Seconds)
	require.Equal(t, Tally{Met: 1, Missed: 1}, all.Experiments[0].Tally)
	require.Equal(t, []string{"Something was found."}, all.Experiments[0].Findings)
}

// declaredExample is a report on goals that were declared, one of each outcome.
func declaredExample() *Report {
	r := example()
	r.Plan = &Plan{Date: "2026-11-23", SHA256: "abc", Known: "A pilot.", Changes: []Change{
		{Date: "2026-11-24", Of: []string{"gap", "coarse"}, What: "wider.", Why: "A slip.", Seen: true},
	}}
	r.Goals = nil
	add := func(name string, control bool, o Outcome, undecided string) {
		d := Declared{
			Name: name, Control: control, Hypothesis: "It is so.", Refuted: "More than that.", Unit: "%", Test: "equivalent",
			Family: "loss", Compared: 3, Sample: 12, Power: "0.9 if so", Reproduces: "0.25 % (a paper)",
			Found: &Found{Mean: 1, Low: 0, High: jsonout.Number(math.Inf(1)), Values: 12}, Undecided: undecided,
		}
		r.Goals = append(r.Goals, Goal{What: "the gap", Want: "within 1 %", Got: "0.5 %", Outcome: o, Declared: d})
	}
	add("gap", false, Met, "")
	add("wide", false, Undecided, "It may be anywhere.")
	add("late", false, NotJudged, "It wants 12 values.")
	add("bad", false, Missed, "")
	add("coarse", true, Caught, "")
	add("fine", true, NotCaught, "")
	add("odd", true, Undecided, "It may be there.")
	return r
}

const declaredTally = "1 of 3 goals met, 1 undecided, 1 not judged; 1 of 3 controls caught, 1 undecided"

// TestDeclaredPage has what was declared beside what was found.
func TestDeclaredPage(t *testing.T) {
	html := pageOf(t, declaredExample())
	for _, want := range []string{
		declaredTally, "Declared and found", "What could not be decided at this scale", "<strong>gap</strong>: It is so.", "Published: 0.25\u00a0% (a paper)",
		"12 values, one of 3 compared; power 0.9 if so", "More than that.", `class="met">caught`, `class="missed">not caught`, `class="undecided">undecided`,
		"wide: It may be anywhere.", "late: It wants 12 values.", "odd: It may be there.", "<code>abc</code>", "A pilot.",
		"2026-11-24, gap, coarse: wider. Why: A slip. A result was known by then.",
	} {
		require.Contains(t, html, want)
	}
	controls := html[strings.Index(html, "<h3>Controls"):]
	require.Contains(t, controls, "<strong>fine</strong>")
	require.NotContains(t, controls, "<strong>gap</strong>")
	none := declaredExample()
	none.Goals, none.Plan.Changes = none.Goals[:1], nil
	html = pageOf(t, none)
	require.Contains(t, html, "Nothing was changed since.")
	require.NotContains(t, html, "<h3>Controls")
	require.NotContains(t, html, "What could not be decided")

	var index bytes.Buffer
	require.NoError(t, WriteIndex(&index, []*Report{declaredExample()}, nil, Setting{}))
	require.Contains(t, index.String(), "bad: 0.5\u00a0%; wanted: within 1\u00a0%.")
	require.Contains(t, index.String(), "fine: 0.5\u00a0%")
	require.Contains(t, index.String(), declaredTally)
}

func TestDeclaredText(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, declaredExample().WriteText(&b))
	for _, want := range []string{
		"  met        gap: 0.5 %\n             wanted: within 1 %\n",
		"  undecided  wide: 0.5 %\n             wanted: within 1 %\n             It may be anywhere.\n",
		"  NOT CAUGHT control fine: 0.5 %\n",
	} {
		require.Contains(t, b.String(), want)
	}
}

func TestDeclaredJSON(t *testing.T) {
	text, err := json.Marshal(ResultsOf(Full, 7, declaredExample()))
	require.NoError(t, err)
	for _, want := range []string{
		`"length":"full","seed":7,"met":1,"missed":1,"undecided":1,"notJudged":1,"controls":{"caught":1,"notCaught":1,"undecided":1,"notJudged":0}`,
		`"declaration":{"declared":"2026-11-23","sha256":"abc","known":"A pilot.","changes":[{"date":"2026-11-24","of":["gap","coarse"],"what":"wider.","why":"A slip.","seen":true}]}`,
		`"outcome":"not caught","name":"fine","control":true,`, `"found":{"mean":1,"low":0,"high":"+Inf","values":12}`, `"sample":12`,
	} {
		require.Contains(t, string(text), want)
	}
	require.Equal(t, "", Full.Notice())
	require.Contains(t, Look.Notice(), "--full")
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0.00123456: "0.123 %", 9.9949: "999 %", 9.996: "1,000 %", 22.49: "2,249 %", -12345.678: "-1,234,568 %",
	} {
		require.Equal(t, want, Percent(share))
	}
	require.Equal(t, "16,384", Whole(16384))
}
