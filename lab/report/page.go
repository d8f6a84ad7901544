package report

import (
	"bytes"
	"encoding/base64"
	"io"
	"slices"
	"strings"
	"time"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/page"
)

// Setting is what a reader needs to repeat a page.
type Setting struct {
	Command string // that repeats it
	Machine string // version, platform and level
	Inputs  []string
	Seed    uint64
	Length  Length
}

// withUnits keeps a number and its unit on one line.
func withUnits(text string) string {
	return strings.NewReplacer(" %", "\u00a0%", " dB", "\u00a0dB").Replace(text)
}

// WritePage writes the report as one HTML page that needs nothing else: the CSV
// files are in it. What came out is first, what was declared after it.
func (r *Report) WritePage(w io.Writer, s Setting) error {
	var p page.Page
	p.Put("<h1>%s</h1>\n", r.Title)
	if headline := r.headline(); headline != "" {
		p.Put("<p class=\"notice\"><strong>%s</strong></p>\n", withUnits(headline))
	}
	putLength(&p, r.Length)
	if tally := r.tally(); tally != "" {
		p.Put("<p><strong>%s.</strong></p>\n", tally)
	}
	first := min(1, len(r.Charts))
	p.Charts(r.Charts[:first]...)
	if len(r.Findings) > 0 {
		p.Put("<h2>What came out</h2>\n")
		putList(&p, r.sentences())
	}
	if len(r.Limits) > 0 {
		p.Put("<h2>What this does not show</h2>\n")
		putList(&p, r.Limits)
	}
	if len(r.Charts) > first {
		p.Put("<h2>More plots</h2>\n")
		p.Charts(r.Charts[first:]...)
	}
	p.Put("<h2>Claim and goals</h2>\n<p>The claim that is tested:</p>\n<blockquote>%s</blockquote>\n", withUnits(r.Claim))
	r.putGoals(&p)
	p.Put("<h2>Tables</h2>\n")
	for _, t := range r.Tables {
		if !t.Raw {
			t.put(&p)
		}
	}
	p.Put("<h2>Data</h2>\n<ul>")
	for _, t := range r.Tables {
		var data bytes.Buffer
		if err := t.WriteCSV(&data); err != nil {
			return err
		}
		p.Put("\n  <li><a download=\"%s\" href=\"data:text/csv;base64,%s\">%s</a></li>", r.File(t), base64.StdEncoding.EncodeToString(data.Bytes()), r.File(t))
	}
	p.Put("\n</ul>\n")
	s.put(&p, frame.Format(" Wall time %s.", roundTime(r.Time)))
	return p.Write(w, "octavo lab "+r.Name+": "+r.Title)
}

// WriteIndex writes a page with the outcome of several experiments and links to
// theirs, which are beside it, and the names of others that were not done.
func WriteIndex(w io.Writer, reports []*Report, unfinished []string, s Setting) error {
	var p page.Page
	p.Put("<h1>FP8 training, claim by claim</h1>\n")
	putLength(&p, s.Length)
	if len(unfinished) > 0 {
		p.Put("<p class=\"notice\" role=\"note\"><strong>Stopped.</strong> These experiments were not done: %s.</p>\n", strings.Join(unfinished, ", "))
	}
	p.Table(frame.Table{Label: "Experiments", Columns: slices.Concat(frame.Columns("", "experiment", "what came out"), frame.Columns(frame.Whole, "goals"), frame.Columns(frame.Number, "wall time")),
		Rows: frame.Rows(reports, func(r *Report) []any {
			return []any{frame.Format("<a href=\"%s\">%s</a><br>%s", r.Page(), r.Name, r.Title), withUnits(r.headline()), r.counts(), roundTime(r.Time)}
		})})
	p.Put("<p><strong>%s.</strong></p>\n", TallyOf(reports...))
	for _, r := range reports {
		p.Put("<h2><a href=\"%s\">%s</a></h2>\n", r.Page(), r.Title)
		if tally := r.tally(); tally != "" {
			p.Put("<p>%s.</p>\n", tally)
		}
		for _, g := range r.Goals {
			if g.Outcome == Missed || g.Outcome == NotCaught {
				p.Put("<p>%s %s: %s; wanted: %s.</p>\n", g.Outcome.html(), withUnits(g.Name), withUnits(g.Got), withUnits(g.Want))
			}
		}
		if len(r.Findings) > 0 {
			p.Put("<details><summary>What came out</summary>\n")
			putList(&p, r.sentences())
			p.Put("</details>\n")
		}
		p.Put("<details><summary>The claim, and all %s goals of %s</summary>\n<blockquote>%s</blockquote>\n", len(r.Goals), r.Name, withUnits(r.Claim))
		r.putGoals(&p)
		p.Put("</details>\n")
	}
	s.put(&p, "")
	return p.Write(w, "octavo lab")
}

// Page returns the name of the report's page.
func (r *Report) Page() string { return r.Name + ".html" }

func roundTime(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

func putLength(p *page.Page, l Length) {
	if notice := l.Notice(); notice != "" {
		p.Put("<p class=\"note\" role=\"note\">%s</p>\n", notice)
	}
}

func putList(p *page.Page, texts []string) {
	p.Put("<ul>")
	for _, text := range texts {
		p.Put("\n  <li>%s</li>", withUnits(text))
	}
	p.Put("\n</ul>\n")
}

// put adds how to repeat the run. more stands behind the machine.
func (s Setting) put(p *page.Page, more frame.HTML) {
	p.Put("<h2>To repeat it</h2>\n<p><code>%s</code></p>\n<p>Seed %s.", s.Command, s.Seed)
	frame.Each(&p.Body, " %s", s.Inputs)
	p.Put(` %s.%s
Losses, codes and products are the same bits on every machine, and what is computed from them agrees to the digits shown.</p>
`, s.Machine, more)
}

// put adds the table under its title.
func (t Table) put(p *page.Page) {
	on := frame.Table{Label: t.Title}
	for i, name := range t.Columns {
		c := frame.Column{Name: name}
		if t.Numeric(i) {
			c.Attributes = frame.Number
		}
		on.Columns = append(on.Columns, c)
	}
	on.Rows = frame.Rows(t.Rows, func(row []any) (cells []any) {
		for _, cell := range row {
			cells = append(cells, cellText(cell, fewDigits))
		}
		return cells
	})
	p.Put("<h3>%s</h3>\n", t.Title)
	p.Table(on)
}

// class is that of the style sheet.
func (o Outcome) class() string {
	return [...]string{NotJudged: "unjudged", Met: "met", Missed: "missed", Undecided: "undecided", Caught: "met", NotCaught: "missed"}[o]
}

func (o Outcome) html() frame.HTML { return frame.Format("<span class=\"%s\">%s</span>", o.class(), o) }

// counts says how many goals had each outcome, but for those that a preview does not judge.
func (r *Report) counts() (text frame.HTML) {
	t := TallyOf(r)
	for _, of := range []struct {
		n int
		o Outcome
	}{{t.Met, Met}, {t.Missed, Missed}, {t.Undecided, Undecided}, {t.NotJudged, NotJudged}} {
		if of.n == 0 || of.o == NotJudged && r.Length != Full {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += frame.Format("%s %s", of.n, of.o.html())
	}
	return text
}

// putGoals adds what was declared and found.
func (r *Report) putGoals(p *page.Page) {
	p.Put("<h3>Declared and found</h3>\n")
	r.putPairs(p, "Goals of "+r.Name+": declared and found", r.goals(func(g Goal) bool { return !g.Control }))
	if controls := r.goals(func(g Goal) bool { return g.Control }); len(controls) > 0 {
		p.Put("<h3>Controls</h3>\n<p>Each is known to be worse. A measure that catches it would have shown as much of a hypothesis; one that does not says little where it shows nothing.</p>\n")
		r.putPairs(p, "Controls of "+r.Name+": declared and found", controls)
	}
	if open := r.goals(func(g Goal) bool { return g.Undecided != "" && r.saysOf(g) }); len(open) > 0 {
		p.Put("<h3>What could not be decided at this scale</h3>\n<ul>")
		for _, g := range open {
			p.Put("\n  <li>%s: %s</li>", g.Name, withUnits(g.Undecided))
		}
		p.Put("\n</ul>\n")
	}
	if r.Plan != nil {
		r.Plan.put(p)
	}
}

func (d *Plan) put(p *page.Page) {
	p.Put(`<h3>The declaration</h3>
<p>Declared on %s, before the run. SHA-256 of declaration.toml: <code>%s</code></p>
<details><summary>What was known before</summary><p class="known">%s</p></details>
`, d.Date, d.SHA256, d.Known)
	if len(d.Changes) == 0 {
		p.Put("<p>Nothing was changed since.</p>\n")
		return
	}
	p.Put("<p>Changed since:</p>\n<ul>")
	for _, c := range d.Changes {
		known := "No result was known by then."
		if c.Seen {
			known = "A result was known by then."
		}
		p.Put("\n  <li>%s, %s: %s Why: %s %s</li>", c.Date, strings.Join(c.Of, ", "), c.What, c.Why, known)
	}
	p.Put("\n</ul>\n")
}

// putPairs adds a table of goals.
func (r *Report) putPairs(p *page.Page, label string, goals []Goal) {
	p.Table(frame.Table{Label: label, Columns: append(frame.Columns(frame.Whole, "outcome"), frame.Columns("", "declared", "wanted", "found", "refuted by")...),
		Rows: frame.Rows(goals, func(g Goal) []any {
			what := frame.Format("<strong>%s</strong>: %s<br>Measured: %s.", g.Name, withUnits(g.Hypothesis), withUnits(g.What))
			if g.Reproduces != "" {
				what += frame.Format("<br>Published: %s", withUnits(g.Reproduces))
			}
			want := frame.Format("%s", withUnits(g.Want))
			if g.Sample > 0 {
				want += frame.Format("<br>%s values", g.Sample)
				if g.Compared > 1 {
					want += frame.Format(", one of %s compared", g.Compared)
				}
				want += frame.Format("; power %s", withUnits(g.Power))
			}
			outcome := frame.HTML("")
			if r.saysOf(g) {
				outcome = g.Outcome.html()
			}
			return []any{outcome, what, want, withUnits(g.Got), withUnits(g.Refuted)}
		})})
}
