// Package page writes the HTML pages of commands: those of internal/page, with charts.
package page

import (
	"io"

	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/chart"
)

// Page is a page under way.
type Page struct {
	page.Body
	Style page.HTML // the end of its head

	charts int
	colors chart.Colors
	err    error // of a chart
}

// Write writes the page, or nothing if a chart has an error.
func (p *Page) Write(w io.Writer, title string) error {
	if p.err != nil {
		return p.err
	}
	all := page.Page{Title: title, Main: p.HTML(), Style: p.Style}
	if p.charts > 0 {
		all.Before, all.After, all.Library, all.Script = assets.Before, assets.After, assets.UPlot, assets.Charts
	}
	return all.Write(w)
}
