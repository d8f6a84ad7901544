package comparison

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageSource string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"loss":    func(x float64) string { return fmt.Sprintf("%.4f", x) },
	"gap":     func(a, b float64) string { return fmt.Sprintf("%+.3f %%", Gap(a, b)) },
	"short":   func(x float64) string { return fmt.Sprintf("%.3g", x) },
	"percent": func(x float64) string { return fmt.Sprintf("%.3f", x) },
	"round":   round,
}).Parse(pageSource))

// WritePage writes the result as one HTML page that needs nothing else: tables,
// and plots as SVG. command is what repeats the run.
func (r *Result) WritePage(w io.Writer, command, machine string) error {
	var charts []template.HTML
	for _, draw := range []func() (template.HTML, error){r.lossChart, r.gapChart, r.amaxChart, r.underflowChart} {
		c, err := draw()
		if err != nil {
			return err
		}
		charts = append(charts, c)
	}
	return page.Execute(w, map[string]any{
		"Result": r, "First": r.Points[0], "Layers": r.Layers(), "Charts": charts,
		"Command": command, "Machine": machine, "Recipe": r.Options.recipe(), "Skips": r.skipLines(),
	})
}
