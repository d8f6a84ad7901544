package benchreport

import (
	_ "embed"
	"io"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/page"
	"github.com/octavo-fp8/octavo/cmd/internal/roofline"
)

//go:embed page.html
var pageBody string

// tableBody is the template of a table, in both pages.
//
//go:embed table.html
var tableBody string

var pageTemplate = page.New("bench", pageBody+tableBody, nil)

// pageData is what the template is about.
type pageData struct{ Result }

// writePage writes the page with the charts and tables.
func (r Result) writePage(w io.Writer) error {
	return pageTemplate.Write(w, "octavo bench: products and conversions", pageData{r})
}

// Charts are the rooflines.
func (d pageData) Charts() []chart.Chart { return roofline.Charts(d.Report) }

// ProductTables are a table for each number of workers.
func (d pageData) ProductTables() (all []htmlTable) {
	for _, t := range d.productTables() {
		all = append(all, t.html("Products, "+t.corner))
	}
	return all
}

// LimitTable says what the machine can do.
func (d pageData) LimitTable() htmlTable { return d.limitTable().html("What the machine can do") }

// ConversionTable is that of conversions.
func (d pageData) ConversionTable() htmlTable { return d.conversionTable().html("Conversions") }

// Machine says what was measured, on what.
func (d pageData) Machine() string { return d.machine() }
