package comparison

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/telemetry"
)

// Expert is what happened to one of those that a router chooses from, in all steps.
type Expert struct {
	Layer, Number              int
	FP32Tokens, FP8Tokens      int64
	FP32Share, FP8Share        float64 // of the layer's tokens, as often as experts get each
	Input, DownInput, Gradient Operand // of gate and up, of down, and of all three, in FP8
}

// Multiplies reports whether products of the FP8 model with the expert were heard of. Those of
// a layer that a recipe leaves in BF16 are not, nor those of an expert without tokens.
func (e Expert) Multiplies() bool { return e.Input.Stats.Elements > 0 }

// Activations are all operands but weights.
func (e Expert) Activations() (all Operand) {
	for _, o := range []Operand{e.Input, e.DownInput, e.Gradient} {
		all.merge(o)
	}
	return all
}

// Experts returns the experts of both models, layer by layer.
func (r *Result) Experts() (all []Expert) {
	layers := make(map[string]Layer)
	for _, l := range r.Layers() {
		layers[l.Name] = l
	}
	for i, of := range r.LoadsFP8 {
		fp32, fp8 := r.LoadsFP32[i].shares(), of.shares()
		for n, tokens := range of.Tokens {
			name := func(projection string) string {
				return shortName(fmt.Sprintf("%s.%s_proj", expertName(of.Layer, n), projection))
			}
			gate, up, down := layers[name("gate")], layers[name("up")], layers[name("down")]
			e := Expert{
				Layer: of.Layer, Number: n, FP32Tokens: r.LoadsFP32[i].Tokens[n], FP8Tokens: tokens,
				FP32Share: fp32[n], FP8Share: fp8[n], Input: gate.Input, DownInput: down.Input,
			}
			for _, l := range []Layer{gate, up, down} {
				e.Gradient.merge(l.Gradient)
			}
			all = append(all, e)
		}
	}
	return all
}

// expertName begins the names of an expert's tensors.
func expertName(layer, expert int) string {
	return fmt.Sprintf("model.layers.%d.mlp.experts.%d", layer, expert)
}

// writeExperts writes two lines for each layer with experts.
func (r *Result) writeExperts(w io.Writer) {
	if len(r.LoadsFP8) == 0 {
		return
	}
	fmt.Fprintln(w, "\nTokens of each expert in percent:")
	line := func(layer int, model string, shares []float64) {
		var all []string
		for _, s := range shares {
			all = append(all, strconv.FormatFloat(100*s, 'f', 1, 64))
		}
		paragraph(w, fmt.Sprintf("layer %d, %s: %s", layer, model, strings.Join(all, " ")))
	}
	for i, of := range r.LoadsFP8 {
		line(of.Layer, fp32Model, r.LoadsFP32[i].shares())
		line(of.Layer, r.Options.Model(), of.shares())
	}
}

// expertCharts show the experts of the last layer that multiplies as the recipe says, over the
// steps of which events were kept. There are none without experts.
func (r *Result) expertCharts() []chart.Chart {
	for _, of := range slices.Backward(r.LoadsFP8) {
		if charts := r.layerCharts(of); charts != nil {
			return charts
		}
	}
	return nil
}

// layerCharts are those of the experts of a layer, nil where no events are.
func (r *Result) layerCharts(of Load) []chart.Chart {
	width := r.Options.Dim * r.Options.Batch * r.Options.Context
	tokens := r.ofExperts(of, "gate_proj.input", func(e *telemetry.Event) float64 {
		return percent(e.Stats.Elements, int64(width))
	})
	if tokens == nil {
		return nil
	}
	amax := r.ofExperts(of, "down_proj.input", func(e *telemetry.Event) float64 { return e.Stats.Amax })
	saturated := r.ofExperts(of, "down_proj.input", func(e *telemetry.Event) float64 {
		return 100 * e.SaturatedShare()
	})
	where := fmt.Sprintf(" layer %d, %s", of.Layer, r.Options.Model())
	return []chart.Chart{
		{Title: "Tokens of each expert," + where, X: "step", Y: "percent of all", Zero: true,
			Series: orZero(tokens)},
		{Title: "Largest magnitude before each expert's down," + where, X: "step", Y: "amax", LogY: true,
			Series: amax},
		{Title: "Values saturated before each expert's down," + where, X: "step", Y: "percent", Zero: true,
			Series: saturated},
	}
}

// orZero has a point of all series wherever one of them has a point: 0 where there was none.
func orZero(series []chart.Series) []chart.Series {
	all := make([]map[int64]float64, len(series))
	steps := make(map[int64]float64)
	for i, s := range series {
		all[i] = make(map[int64]float64)
		for _, p := range s.Points {
			all[i][int64(p.X)], steps[int64(p.X)] = p.Y, 0
		}
	}
	for i := range series {
		for step := range steps {
			all[i][step] += 0
		}
		series[i].Points = nil
		for _, step := range slices.Sorted(maps.Keys(all[i])) {
			series[i].Points = append(series[i].Points, chart.Point{X: float64(step), Y: all[i][step]})
		}
	}
	return series
}

// ofExperts returns a series of an operand of forward products for each expert of a layer, nil
// if there are no events of it.
func (r *Result) ofExperts(of Load, operand string, y func(*telemetry.Event) float64) []chart.Series {
	all, numbers := make([]chart.Series, len(of.Tokens)), make(map[string]int)
	for n := range all {
		all[n].Name = fmt.Sprintf("expert %d", n)
		numbers[expertName(of.Layer, n)+"."+operand] = n
	}
	heard := false
	for i := range r.Events {
		e := &r.Events[i]
		n, ok := numbers[e.Tensor]
		if !ok || e.Op != "forward" || e.Stats.Elements == 0 {
			continue
		}
		heard = true
		all[n].Points = append(all[n].Points, chart.Point{X: float64(e.Step), Y: y(e)})
	}
	if !heard {
		return nil
	}
	return all
}
