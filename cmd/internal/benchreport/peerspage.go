package benchreport

import (
	"io"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/page"
)

func (r PeerResult) writePage(w io.Writer) error {
	var p page.Page
	p.Put("<h1>Octavo beside its peers</h1>\n")
	frame.Each(&p.Body, "<p>%s.</p>\n", r.Lines())
	if len(r.Done) < r.Cases {
		p.Put("<p class=\"bad\">Stopped after %s of %s comparisons.</p>\n", len(r.Done), r.Cases)
	}
	p.Put("<h2>Rates and ratios</h2>\n<p>%s</p>\n", legend)
	for _, t := range r.tables(putFull) {
		p.Put("<h3>%s</h3>\n", t.corner)
		t.putOn(&p, t.corner)
	}
	p.Put("<h2>What to know about them</h2>\n")
	frame.Each(&p.Body, "<p>%s</p>\n", r.Remarks())
	if r.Against != nil {
		p.Put("<h2>Against an earlier run</h2>\n")
		frame.Each(&p.Body, "<p>%s</p>\n", r.Earlier())
	}
	p.Repeat(r.Command, "") // the machine is above
	return p.Write(w, "octavo bench: beside its peers")
}
