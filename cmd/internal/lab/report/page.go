package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"time"
)

// Setting is what a reader needs to repeat a page.
type Setting struct {
	Command string // that repeats it
	Machine string // version, platform and level
	Inputs  []string
	Seed    uint64
}

//go:embed page.html
var pageSource string

//go:embed index.html
var indexSource string

//go:embed style.css
var styleSource string

var templates = template.Must(template.Must(template.New("page").Funcs(template.FuncMap{
	"cell":  text4,
	"round": func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) },
	"style": func() template.CSS { return template.CSS(styleSource) },
}).Parse(pageSource)).New("index").Parse(indexSource))

// download is a CSV file inside a page.
type download struct {
	Name string
	Data template.URL
}

// WritePage writes the report as one HTML page that needs nothing else: the CSV
// files are in it.
func (r *Report) WritePage(w io.Writer, s Setting) error {
	var charts []template.HTML
	for _, c := range r.Charts {
		svg, err := c.SVG()
		if err != nil {
			return err
		}
		charts = append(charts, svg)
	}
	var files []download
	for _, t := range r.Tables {
		var data bytes.Buffer
		if err := t.WriteCSV(&data); err != nil {
			return err
		}
		files = append(files, download{r.File(t), template.URL("data:text/csv;base64," + base64.StdEncoding.EncodeToString(data.Bytes()))})
	}
	return templates.ExecuteTemplate(w, "page", map[string]any{"Report": r, "Charts": charts, "Files": files, "Setting": s})
}

// WriteIndex writes a page with the outcome of several experiments and links to
// theirs, which are beside it.
func WriteIndex(w io.Writer, reports []*Report, s Setting) error {
	return templates.ExecuteTemplate(w, "index", map[string]any{"Reports": reports, "Setting": s})
}

// Page returns the name of the report's page.
func (r *Report) Page() string { return r.Name + ".html" }
