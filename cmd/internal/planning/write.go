//go:build !js

package planning

import (
	_ "embed"
	"encoding/json"
	"io"

	"github.com/octavo-fp8/octavo/cmd/internal/wasm"
	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/page"
)

//go:embed whatif.js
var script string

//go:embed whatif.css
var style string

// WritePage writes the report as a page. command is what repeats it, on the given machine.
func (r *Report) WritePage(w io.Writer, command, machine string) error {
	asked, err := json.Marshal(r.ask) // which escapes what HTML gives a meaning
	if err != nil {
		return err
	}
	p := page.Page{Style: "<style>\n" + frame.HTML(style) + "</style>"}
	p.Put("<div id=\"head\">\n")
	r.putHead(&p)
	p.Put("</div>\n")
	r.putControls(&p)
	p.Put("<div id=\"main\">\n")
	r.putMain(&p)
	p.Put("</div>\n<script type=\"application/json\" id=\"asked\">%s</script>\n", frame.HTML(asked))
	p.Repeat(command, machine)
	wasm.Add(&p, script)
	return p.Write(w, "What "+r.ModelName()+" takes")
}
