package landing

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/page"
	"github.com/octavo-fp8/octavo/telemetry"
)

//go:embed page.html
var pageSource string

var pages = page.New("landing", pageSource, template.FuncMap{
	"short":   func(x float64) string { return fmt.Sprintf("%.3g", x) },
	"percent": func(x float64) string { return fmt.Sprintf("%.3f", 100*x) },
})

// letteredOperand is an operand in a table.
type letteredOperand struct {
	Letter string
	OperandJSON
}

// WritePage writes a page that needs nothing else: what happened first, where, and what came
// before. Events are those of the last steps.
func (m *Manifest) WritePage(w io.Writer, charts []chart.Chart, events []telemetry.Event) error {
	data := map[string]any{
		"M": m, "Charts": charts, "Lost": mostLost(events, m.Step), "Finding": m.Found.finding().String(),
		"Command": m.Command, "Machine": m.Machine,
	}
	if o := m.Operator; o != nil {
		data["Operands"] = []letteredOperand{{"A", o.A}, {"B", o.B}}
	}
	return pages.Write(w, "octavo train: what happened first", data)
}

// finding is the inverse of what is saved of one.
func (f Found) finding() Finding {
	return Finding{Value{f.Tensor, f.Index, f.Row, f.Col, float64(f.Value)}, f.Of, f.Why}
}

// mostLost returns the few events of a step that lost the most.
func mostLost(events []telemetry.Event, step int) (all []telemetry.Event) {
	for _, e := range events {
		if e.Step == int64(step) && e.Stats.Lost() > 0 {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b telemetry.Event) int {
		return cmp.Or(
			cmp.Compare(b.Stats.NonFinite()+b.Stats.BecameNonFinite, a.Stats.NonFinite()+a.Stats.BecameNonFinite),
			cmp.Compare(b.LostShare(), a.LostShare()),
		)
	})
	return all[:min(len(all), 10)]
}
