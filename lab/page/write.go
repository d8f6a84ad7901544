//go:build !js

package page

import (
	"io"
	"strings"

	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/chart"
)

// Write writes the page, or nothing if a chart has an error.
func (p *Page) Write(w io.Writer, title string) error {
	if p.err != nil {
		return p.err
	}
	all := page.Page{Title: title, Main: p.HTML(), Style: p.Style, Script: p.Script, WebAssembly: p.WebAssembly, Live: p.Live}
	if p.charts > 0 {
		all.Before, all.After, all.Library, all.Script = assets.Before, assets.After, assets.UPlot, assets.Charts+p.Script
	}
	return all.Write(w)
}

// picture is what of a chart is seen without scripts.
func picture(c chart.Chart) (page.HTML, error) {
	var b strings.Builder
	err := c.WriteElement(&b)
	return page.HTML(b.String()), err
}
