package lab

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/text"
)

// rhymes returns options with a text that can be learnt.
func rhymes(short bool) Options {
	return Options{Seed: 1, Short: short, Text: text.New("a rhyme", []byte(strings.Repeat("one two, buckle my shoe; three four, knock at the door; ", 400)))}
}

// short returns options of a short version.
func short() Options { return rhymes(true) }

// run does an experiment and requires what holds of every report: it is whole, and its
// tables do not depend on the workers.
func run(t *testing.T, e Experiment, o Options) *Report {
	steps, total := 0, 0
	r, err := e.Run(context.Background(), o, &Progress{Total: func(n int) { total = n }, Done: func(string) { steps++ }})
	require.NoError(t, err)
	require.Equal(t, total, steps, "steps of the progress")
	require.NotEmpty(t, r.Goals)
	require.NotEmpty(t, r.Findings)
	require.NotEmpty(t, r.Limits)
	require.NotEmpty(t, r.Charts)
	require.NotEmpty(t, r.Tables)
	var page bytes.Buffer
	require.NoError(t, r.WritePage(&page, Setting{}))
	require.Equal(t, len(r.Charts), strings.Count(page.String(), "<svg"))
	if !testing.Short() {
		o.Workers = 3
		again, err := e.Run(context.Background(), o, nil)
		require.NoError(t, err)
		require.Equal(t, tables(t, r), tables(t, again))
	}
	return r
}

// tables returns all tables as CSV, in which a NaN equals another.
func tables(t *testing.T, r *Report) string {
	var all bytes.Buffer
	for _, table := range r.Tables {
		require.NoError(t, table.WriteCSV(&all))
	}
	return all.String()
}

func table(t *testing.T, r *Report, name string) Table {
	for _, a := range r.Tables {
		if a.Name == name {
			return a
		}
	}
	require.Fail(t, "no table "+name)
	return Table{}
}

// slow keeps a test for the run that is not short: its parts have tests of their own.
func slow(t *testing.T) {
	if testing.Short() {
		t.Skip("whole experiments take seconds, and far longer under an emulator or the race detector")
	}
}

func TestNamesAreUniqueAndFound(t *testing.T) {
	for _, e := range All() {
		found, err := Find(e.Name)
		require.NoError(t, err)
		require.Equal(t, e.Title, found.Title)
		require.Regexp(t, `^[a-z]+$`, e.Name)
		require.NotEmpty(t, e.Claim)
	}
	_, err := Find("alchemy")
	require.EqualError(t, err, `there is no experiment "alchemy"`)
}

func TestSeedMatters(t *testing.T) {
	slow(t)
	for _, e := range []Experiment{parity, accumulation} {
		o := short()
		a, err := e.Run(context.Background(), o, nil)
		require.NoError(t, err)
		o.Seed = 2
		b, err := e.Run(context.Background(), o, nil)
		require.NoError(t, err)
		require.NotEqual(t, tables(t, a), tables(t, b), e.Name)
	}
}

func TestInterruption(t *testing.T) {
	slow(t)
	for _, e := range All() {
		ctx, cancel := context.WithCancelCause(context.Background())
		why, steps := errors.New("enough"), 0
		_, err := e.Run(ctx, short(), &Progress{Done: func(string) {
			if steps++; steps == 2 {
				cancel(why)
			}
		}})
		require.ErrorIs(t, err, why, e.Name)
		require.LessOrEqual(t, steps, 2+runtime.GOMAXPROCS(0), "%s went on", e.Name)
		require.ErrorContains(t, err, e.Name+": ")
	}
}

// TestTextIsMixed: an experiment gets the pieces of the text in the seed's order.
func TestTextIsMixed(t *testing.T) {
	o := short()
	var got []byte
	e := Experiment{run: func(_ context.Context, o Options, _ *Progress) (*Report, error) {
		got = o.Text.Data
		return new(Report), nil
	}}
	_, err := e.Run(context.Background(), o, nil)
	require.NoError(t, err)
	require.Equal(t, inPieces(o.Text.Data, o.Seed), got)
	require.NotEqual(t, o.Text.Data, got)
}

func TestShortText(t *testing.T) {
	o := short()
	o.Text = text.New("a word", []byte("word"))
	for _, e := range All() {
		if e.Name == accumulation.Name { // which trains nothing
			continue
		}
		_, err := e.Run(context.Background(), o, nil)
		require.ErrorContains(t, err, e.Name+": a word has 4 bytes, which is too short ")
		require.ErrorContains(t, err, "name a longer one with --text")
	}
}

func example() *Report {
	t := Table{Name: "numbers", Title: "Some numbers", Columns: []string{"name", "value", "count"}}
	t.add("a, b", 1.0/3, 7)
	t.add("<c>", float32(0.1), 8)
	raw := Table{Name: "raw", Title: "Too long", Columns: []string{"x"}, Raw: true}
	raw.add(12345)
	return &Report{
		Experiment: Experiment{Name: "example", Title: "An example", Claim: "It is claimed."},
		Goals:      []Goal{{"this", "1", "1", true}, {"that", "2", "3", false}},
		Findings:   []string{"Something was found."},
		Limits:     []string{"Much was not."},
		Charts:     []chart.Chart{{Title: "A plot", Series: []chart.Series{{Points: []chart.Point{{X: 1, Y: 2}, {X: 2, Y: 3}}}}}},
		Tables:     []Table{t, raw},
		Time:       1234 * time.Millisecond,
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, example().Tables[0].WriteCSV(&b))
	rows, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Equal(t, [][]string{{"name", "value", "count"}, {"a, b", "0.333333333", "7"}, {"<c>", "0.100000001", "8"}}, rows)
	require.False(t, Table{Columns: []string{"x"}}.Numeric(0))
	require.Panics(t, func() { t := example().Tables[0]; t.add("too few") })
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
