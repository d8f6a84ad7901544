package comparison

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
	"github.com/octavo-fp8/octavo/telemetry"
)

// operandRoles are the operands of a linear layer.
var operandRoles = []string{"input", "weight", "gradient"}

// heatMap shows what each linear layer lost, and its amax, in each step whose telemetry was kept. Of
// the products that an operand is in it has the largest.
func (r *Result) heatMap() page.HeatMap {
	h := page.HeatMap{
		Title: "What each layer lost", Row: "layer", Column: "step", Parts: operandRoles,
		Full: "telemetry.csv has all that was kept, by product.",
	}
	rowOf, columnOf := map[string]int{}, map[int64]int{}
	names := map[string]string{} // of layers, by tensor
	for i := range r.Events {
		e := &r.Events[i]
		if part, layer := splitTensor(e.Tensor); part >= 0 && e.Stats.Elements > 0 {
			if names[e.Tensor] == "" {
				names[e.Tensor] = shortName(layer)
			}
			rowOf[names[e.Tensor]], columnOf[e.Step] = 0, 0
		}
	}
	for i, name := range slices.SortedFunc(maps.Keys(rowOf), func(a, b string) int {
		if natural(a, b) {
			return -1
		}
		return 1
	}) {
		block, _, _ := strings.Cut(name, ".")
		h.Rows, rowOf[name] = append(h.Rows, page.HeatRow{Name: name, Group: "layer " + block}), i
	}
	for i, step := range slices.Sorted(maps.Keys(columnOf)) {
		h.Columns, columnOf[step] = append(h.Columns, float64(step)), i
	}
	var values [3][]float64
	for m := range values {
		values[m] = slices.Repeat([]float64{math.NaN()}, len(h.Rows)*len(h.Columns)*len(h.Parts))
	}
	for i := range r.Events {
		e := &r.Events[i]
		name, ok := names[e.Tensor]
		if !ok || e.Stats.Elements == 0 {
			continue
		}
		part, _ := splitTensor(e.Tensor)
		at := (rowOf[name]*len(h.Columns)+columnOf[e.Step])*len(h.Parts) + part
		for m, v := range [...]float64{100 * e.SaturatedShare(), 100 * e.FlushedShare(), finiteAmax(&e.Stats)} {
			if !(v <= values[m][at]) {
				values[m][at] = v
			}
		}
	}
	t := telemetry.ThresholdsFor(fp8.E4M3)
	if r.health != nil {
		t = r.health.thresholds
	}
	h.Measures = []page.Measure{
		{Name: saturated, Unit: "%", Classes: lossClasses(t.Saturated), Values: values[0]},
		{Name: "became zero", Unit: "%", Classes: lossClasses(t.Flushed), Values: values[1]},
		{Name: "amax", Log: true, Classes: amaxClasses(values[2]), Values: values[2]},
	}
	return h
}

// splitTensor returns which operand of which layer a tensor is, or -1 if it is none.
func splitTensor(tensor string) (part int, layer string) {
	role := roleOf(tensor)
	return slices.Index(operandRoles, role), strings.TrimSuffix(tensor, "."+role)
}

// finiteAmax is +Inf where a value was or became NaN or infinite.
func finiteAmax(s *fp8.Stats) float64 {
	if s.NonFinite()+s.BecameNonFinite > 0 {
		return math.Inf(1)
	}
	return s.Amax
}

// lossClasses are those of a share in percent: the same colours say the same of all operands.
func lossClasses(l telemetry.Limit) []page.Class {
	suspect, sick := 100*l.Suspect, 100*l.Sick
	return []page.Class{
		{From: 0, Name: "none", Color: chart.Shade(0)},
		{From: math.SmallestNonzeroFloat64, Name: fmt.Sprintf("below %g %%", suspect/100), Color: chart.Shade(0.3)},
		{From: suspect / 100, Name: fmt.Sprintf("%g %% or more", suspect/100), Color: chart.Shade(0.6)},
		{From: suspect / 10, Name: fmt.Sprintf("%g %% or more", suspect/10), Color: chart.Shade(1)},
		{From: suspect, Name: fmt.Sprintf("%g %% or more, suspect", suspect), Color: chart.ColorOf("ochre")},
		{From: sick, Name: fmt.Sprintf("%g %% or more, sick in %d steps", sick, sickSteps), Color: chart.Bad},
	}
}

// amaxShades is the number of classes of amax that is finite and not zero.
const amaxShades = 6

// amaxClasses are as wide as each other by logarithm.
func amaxClasses(values []float64) (classes []page.Class) {
	least, largest, zero, bad := math.Inf(1), 0.0, false, false
	for _, v := range values {
		switch {
		case math.IsInf(v, 0):
			bad = true
		case v == 0:
			zero = true
		case v > 0:
			least, largest = min(least, v), max(largest, v)
		}
	}
	if zero {
		classes = append(classes, page.Class{From: 0, Name: "0", Color: chart.Shade(0)})
	}
	if largest > 0 {
		n := amaxShades
		if largest/least < 1.1 {
			n = 1
		}
		for i := range n {
			from := least * math.Pow(largest/least, float64(i)/float64(n))
			classes = append(classes, page.Class{From: from, Name: fmt.Sprintf("%.3g or more", from), Color: chart.Shade(float64(i+1) / float64(n))})
		}
	}
	if bad {
		classes = append(classes, page.Class{From: math.Inf(1), Name: notFinite, Color: chart.Bad})
	}
	return classes
}
