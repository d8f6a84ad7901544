// Package page writes the HTML pages of commands: one file each, that needs nothing else and loads nothing.
package page

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"maps"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
)

//go:embed frame.html
var frameSource string

// Template is a kind of page.
type Template struct {
	frame, body *template.Template
}

// New returns the template of pages whose <main> element is body, in which {{chart .C}} shows a chart.Chart, and
// {{template "repeat" .}} how to repeat a run, of which .Command and .Machine are told. A template "style" in it, of
// <style> elements, goes to the head of the page. It panics if body is wrong.
func New(name, body string, funcs template.FuncMap) *Template {
	all := template.FuncMap{"chart": (*charts)(nil).figure}
	maps.Copy(all, funcs)
	t := template.Must(template.New(name).Funcs(all).Parse(repeatSource))
	return &Template{frame: frame, body: template.Must(t.Parse(body))}
}

var frame = template.Must(template.New("frame").Parse(frameSource))

const repeatSource = `{{define "style"}}{{end}}{{define "repeat"}}<h2>To repeat it</h2>
<p><code>{{.Command}}</code></p>
<p>{{.Machine}}.</p>
{{end}}`

// Write writes a page.
func (t *Template) Write(w io.Writer, title string, data any) error {
	body, err := t.body.Clone()
	if err != nil {
		return err
	}
	var all charts
	var b bytes.Buffer
	if err := body.Funcs(template.FuncMap{"chart": all.figure}).Execute(&b, data); err != nil {
		return err
	}
	var style strings.Builder
	if err := body.ExecuteTemplate(&style, "style", nil); err != nil {
		return err
	}
	// Nothing is written of a page that failed.
	var whole bytes.Buffer
	if err := t.frame.Execute(&whole, map[string]any{
		"Title": title, "Body": template.HTML(b.String()), "Style": template.HTML(style.String()), "Charts": all.count > 0, "Assets": assets,
	}); err != nil {
		return err
	}
	_, err = whole.WriteTo(w)
	return err
}

// charts are those of one page.
type charts struct {
	count  int
	colors chart.Colors
}
