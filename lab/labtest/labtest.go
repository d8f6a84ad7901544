// Package labtest helps the tests of the experiments of octavo lab.
package labtest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/progress"
)

// Rhymes returns options with a text that can be learnt.
func Rhymes(l lab.Length) lab.Options {
	return lab.Options{Seed: 1, Length: l, Text: text.New("a rhyme", []byte(strings.Repeat("one two, buckle my shoe; three four, knock at the door; ", 400)))}
}

// Short returns options of a short version.
func Short() lab.Options { return Rhymes(lab.Short) }

// Shakespeare returns options of a short version with a longer text.
func Shakespeare(t *testing.T) lab.Options {
	t.Helper()
	source, err := text.Read(testutil.Shared(t, "data", "tinyshakespeare.txt"))
	require.NoError(t, err)
	return lab.Options{Seed: 1, Length: lab.Short, Text: source}
}

// Run does an experiment and requires what holds of every report: it is whole, and its
// tables do not depend on the workers.
func Run(t *testing.T, e lab.Experiment, o lab.Options) *report.Report {
	t.Helper()
	done, total := int64(-1), int64(0)
	o.Progress = progress.Func(func(_ string, d, n int64) {
		require.Greater(t, d, done)
		require.True(t, done >= 0 || d == 0, "progress begins at 0")
		done, total = d, n
	})
	r, err := e.Run(t.Context(), o)
	require.NoError(t, err)
	require.Positive(t, done)
	require.Equal(t, total, done, "progress ends at its total")
	require.NotEmpty(t, r.Goals)
	Declared(t, e, r)
	require.NotEmpty(t, r.Findings)
	require.NotEmpty(t, r.Limits)
	require.NotEmpty(t, r.Charts)
	require.NotEmpty(t, r.Tables)
	var page bytes.Buffer
	require.NoError(t, r.WritePage(&page, report.Setting{}))
	require.Equal(t, len(r.Charts), strings.Count(page.String(), "<svg"))
	if !testing.Short() {
		o.Workers, o.Progress = 3, nil
		again, err := e.Run(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, Tables(t, r), Tables(t, again))
	}
	return r
}

// Judged requires that a short run met or caught the goals that it judged, and how many it
// did and did not judge, controls among them.
func Judged(t *testing.T, r *report.Report, judged, not int) {
	t.Helper()
	require.Equal(t, lab.Short, r.Length)
	for _, g := range r.Goals {
		require.Contains(t, []report.Outcome{report.Met, report.Caught, report.NotJudged}, g.Outcome, "%s: %s (wanted: %s)", g.Name, g.Got, g.Want)
	}
	tally := report.TallyOf(r)
	require.Equal(t, []int{judged, not}, []int{tally.Met + tally.Controls.Caught, tally.NotJudged + tally.Controls.NotJudged})
}

// Declared requires that a report judges each hypothesis and control of its experiment's
// declaration once, and nothing else.
func Declared(t *testing.T, e lab.Experiment, r *report.Report) {
	t.Helper()
	require.Equal(t, e.Name, e.Declaration().Experiment)
	var judged []string
	for _, g := range r.Goals {
		require.NotEmpty(t, g.Name, "not declared: %s", g.What)
		judged = append(judged, g.Name)
	}
	require.ElementsMatch(t, e.Declaration().Names(), judged)
}

// Tables returns all tables as CSV, in which a NaN equals another.
func Tables(t *testing.T, r *report.Report) string {
	var all bytes.Buffer
	for _, table := range r.Tables {
		require.NoError(t, table.WriteCSV(&all))
	}
	return all.String()
}

// Table returns a table of a report.
func Table(t *testing.T, r *report.Report, name string) report.Table {
	for _, a := range r.Tables {
		if a.Name == name {
			return a
		}
	}
	require.Fail(t, "no table "+name)
	return report.Table{}
}

// Slow keeps a test for the run that is not short: its parts have tests of their own.
func Slow(t *testing.T) {
	if testing.Short() {
		t.Skip("whole experiments take seconds, and far longer under an emulator or the race detector")
	}
}

// Sentences returns what a report says in words: all but its tables and charts' data.
func Sentences(r *report.Report) string {
	var all []string
	for _, g := range r.Goals {
		all = append(all, g.What, g.Want)
	}
	for _, f := range r.Findings {
		all = append(all, f.String())
	}
	all = append(all, r.Limits...)
	for _, c := range r.Charts {
		all = append(all, c.Title)
	}
	for _, t := range r.Tables {
		all = append(all, t.Title)
	}
	return strings.Join(all, "\n")
}

// NotSaid requires that a report makes none of some statements, which its numbers do not
// bear out.
func NotSaid(t *testing.T, r *report.Report, statements ...string) {
	t.Helper()
	for _, s := range statements {
		assert.NotContains(t, Sentences(r), s)
	}
}

// Outcomes requires of reports on different figures that every conclusion holds in one of
// them and not in another, in different words.
func Outcomes(t *testing.T, reports ...*report.Report) {
	t.Helper()
	for i, f := range reports[0].Findings {
		for j, c := range f.Follows {
			holds := map[bool]bool{}
			for _, r := range reports {
				require.Len(t, r.Findings, len(reports[0].Findings))
				require.Len(t, r.Findings[i].Follows, len(f.Follows), f.Measured)
				c := r.Findings[i].Follows[j]
				holds[c.Holds] = true
				assert.NotEqual(t, c.Then, c.Otherwise)
				assert.NotEmpty(t, c.Then)
				assert.NotEmpty(t, c.Otherwise)
			}
			assert.Len(t, holds, 2, "in all reports: %v: %s", c.Holds, c)
		}
	}
}
