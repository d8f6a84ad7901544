// Package page writes the HTML pages of commands: those of internal/page, with charts.
package page

import (
	"html/template"
	"io"
	"maps"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/internal/page"
)

// Template is a kind of page.
type Template struct{ frame *page.Template }

// New returns the template of pages whose <main> element is body, in which {{chart .C}} shows a chart.Chart, and
// {{template "repeat" .}} how to repeat a run, of which .Command and .Machine are told. A template "style" in it, of
// <style> elements, goes to the head of the page. A body that is wrong panics when the first page is written.
func New(name, body string, funcs template.FuncMap) *Template {
	all := template.FuncMap{"chart": (*charts)(nil).figure}
	maps.Copy(all, funcs)
	return &Template{page.New(name, repeatSource+body, all)}
}

const repeatSource = `{{define "repeat"}}<h2>To repeat it</h2>
<p><code>{{.Command}}</code></p>
<p>{{.Machine}}.</p>
{{end}}`

// Write writes a page.
func (t *Template) Write(w io.Writer, title string, data any) error {
	var all charts
	p, err := t.frame.Page(title, data, template.FuncMap{"chart": all.figure})
	if err != nil {
		return err
	}
	if all.count > 0 {
		p.Before, p.After, p.Library, p.Script = assets.Before, assets.After, assets.UPlot, assets.Charts
	}
	return p.Write(w)
}

// charts are those of one page.
type charts struct {
	count  int
	colors chart.Colors
}
