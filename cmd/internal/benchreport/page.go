package benchreport

import (
	"io"

	"github.com/octavo-fp8/octavo/cmd/internal/roofline"
	"github.com/octavo-fp8/octavo/lab/page"
)

// writePage writes the page with the charts and tables.
func (r Result) writePage(w io.Writer) error {
	var p page.Page
	p.Put("<h1>What products and conversions reach on this machine</h1>\n<p>%s. Each case ran for at least %s s.</p>\n", r.machine(), r.Seconds)
	if r.Done < r.Cases {
		p.Put("<p class=\"bad\">Stopped after %s of %s cases.</p>\n", r.Done, r.Cases)
	}
	if len(r.Products) > 0 {
		r.putProducts(&p)
	}
	if t := r.limitTable(); len(t.rows) > 0 {
		p.Put("<h2>What the machine can do</h2>\n<p>At best of several measurements in this run.</p>\n")
		t.putOn(&p, "What the machine can do")
	}
	if len(r.Conversions) > 0 {
		p.Put("<h2>Conversions</h2>\n<p>Of %s values on one processor. GB/s of float32, best and median.</p>\n", r.Conversions[0].Elements)
		r.conversionTable().putOn(&p, "Conversions")
	}
	p.Repeat(r.Command, "") // the machine is above
	return p.Write(w, "octavo bench: products and conversions")
}

func (r Result) putProducts(p *page.Page) {
	p.Put("<h2>Products</h2>\n<p>C = A·Bᵀ of E4M3, scales for blocks of 1x128 by 128x128, C in float32. Peers compute in float32.")
	if len(r.Limits.FMA) > 0 {
		p.Put(" Roofs are\nwhat fused multiply-adds in registers, and reading so much memory again and again, reached in the same run. Arithmetic\nintensity counts codes, scales and C, each moved once.")
	}
	p.Put("</p>\n")
	p.Charts(roofline.Charts(r.Report)...)
	p.Put("<p>GFLOP/s, best and median")
	if len(r.Limits.FMA) > 0 {
		p.Put("; roof: best in %% of what arithmetic and reading allow")
	}
	p.Put(".</p>\n")
	for _, t := range r.productTables() {
		p.Put("<h3>%s</h3>\n", t.corner)
		t.putOn(p, "Products, "+t.corner)
	}
}
