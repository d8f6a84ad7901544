package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/octavo-fp8/octavo/cmd/internal/page"
)

// Setting is what a reader needs to repeat a page.
type Setting struct {
	Command string // that repeats it
	Machine string // version, platform and level
	Inputs  []string
	Seed    uint64
	Length  Length
}

//go:embed parts.html
var partsSource string

//go:embed page.html
var pageSource string

//go:embed index.html
var indexSource string

var functions = template.FuncMap{
	"cell":    text4,
	"round":   func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) },
	"tally":   func(reports ...*Report) Tally { return TallyOf(reports...) },
	"all":     func(reports []*Report) Tally { return TallyOf(reports...) },
	"finding": func(text fmt.Stringer) string { return withUnits(text.String()) },
	"units":   withUnits,
	"missed":  func(g Goal) bool { return g.Outcome == Missed || g.Outcome == NotCaught },
	"join":    func(names []string) string { return strings.Join(names, ", ") },
	"class": func(o Outcome) string {
		return [...]string{NotJudged: "unjudged", Met: "met", Missed: "missed", Undecided: "undecided", Caught: "met", NotCaught: "missed"}[o]
	},
}

var (
	reportPage = page.New("report", pageSource+partsSource, functions)
	indexPage  = page.New("index", indexSource+partsSource, functions)
)

// withUnits keeps a number and its unit on one line.
func withUnits(text string) string {
	return strings.NewReplacer(" %", "\u00a0%", " dB", "\u00a0dB").Replace(text)
}

// download is a CSV file inside a page.
type download struct {
	Name string
	Data template.URL
}

// WritePage writes the report as one HTML page that needs nothing else: the CSV
// files are in it.
func (r *Report) WritePage(w io.Writer, s Setting) error {
	var files []download
	for _, t := range r.Tables {
		var data bytes.Buffer
		if err := t.WriteCSV(&data); err != nil {
			return err
		}
		files = append(files, download{r.File(t), template.URL("data:text/csv;base64," + base64.StdEncoding.EncodeToString(data.Bytes()))})
	}
	return reportPage.Write(w, "octavo lab "+r.Name+": "+r.Title, map[string]any{"Report": r, "Files": files, "Setting": s})
}

// WriteIndex writes a page with the outcome of several experiments and links to
// theirs, which are beside it, and the names of others that were not done.
func WriteIndex(w io.Writer, reports []*Report, unfinished []string, s Setting) error {
	return indexPage.Write(w, "octavo lab", map[string]any{
		"Reports": reports, "Unfinished": strings.Join(unfinished, ", "), "Setting": s, "Length": s.Length,
	})
}

// Page returns the name of the report's page.
func (r *Report) Page() string { return r.Name + ".html" }
