// Package page writes the HTML pages of commands: those of internal/page, with charts. In a
// program of WebAssembly it makes parts of them.
package page

import (
	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/chart"
)

// Page is a page under way.
type Page struct {
	page.Body
	Style, Script page.HTML // the ends of its head and of its scripts
	WebAssembly   bool      // its scripts run it
	Live          page.Live

	charts int
	colors chart.Colors
	err    error // of a chart
}
