package comparison

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/page"
	"github.com/octavo-fp8/octavo/telemetry"
)

//go:embed page.html
var pageSource string

var pages = page.New("train", pageSource, template.FuncMap{
	"loss":    func(x float64) string { return fmt.Sprintf("%.4f", x) },
	"gap":     func(a, b float64) string { return fmt.Sprintf("%+.3f\u00a0%%", Gap(a, b)) },
	"short":   func(x float64) string { return fmt.Sprintf("%.3g", x) },
	"percent": func(x float64) string { return fmt.Sprintf("%.3f", x) },
	"share":   func(x float64) string { return fmt.Sprintf("%.1f", 100*x) },
	"round":   round,
	"mark":    func(h telemetry.Health) string { return strings.TrimSpace(mark(h)) },
})

// WritePage writes the result as one HTML page that needs nothing else: tables and
// charts. command is what repeats the run.
func (r *Result) WritePage(w io.Writer, command, machine string) error {
	return pages.Write(w, "octavo train: "+r.Options.Model()+" against FP32", map[string]any{
		"Result": r, "First": r.Points[0], "Layers": r.Layers(), "Verdict": r.Verdict(), "Charts": r.charts(), "SpikeCharts": r.spikeCharts(),
		"Experts": r.Experts(), "ExpertCharts": r.expertCharts(),
		"Command": command, "Machine": machine, "Recipe": r.Options.recipe(), "Model": r.Options.Model(), "Skips": r.skipLines(),
	})
}

// charts are those of the page.
func (r *Result) charts() []chart.Chart {
	return []chart.Chart{r.LossChart(), r.gapChart(), r.normChart(), r.amaxChart(), r.underflowChart()}
}
