//go:build !js

package planning

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/plan"
)

// measured is a published memory and what is counted here.
type measured struct {
	plan.Measurement
	Counted float64 `json:"counted"` // GiB, of the stage that needs most
	Error   float64 `json:"error"`   // as a share of Measured
}

// MeasuredFacts returns published peaks of memory beside what is counted of them.
func MeasuredFacts() (Facts, error) {
	f := Facts{
		Title:   "Counted and measured memory",
		Columns: []string{"model, layers", "sequence", "layout", "measured", "SimuMax", "error", "octavo", "error"},
		Chart: chart.Chart{
			Title: "The most that a rank has", Y: "GiB",
			Description: "Memory that was measured, that SimuMax says and that is counted here, in GiB.",
		},
	}
	var all []measured
	var worst float64
	for _, m := range plan.Measurements() {
		memory, err := m.Job.Memory()
		if err != nil {
			return f, err
		}
		of := measured{Measurement: m, Counted: gib(memory.Peak().Total())}
		of.Error = of.Counted/m.Measured - 1
		worst = max(worst, max(of.Error, -of.Error))
		all = append(all, of)
		label := fmt.Sprintf("%s %dk %s", m.Model, m.Job.Sequence/1024, layoutName(m.Job.Layout))
		for _, bar := range []struct {
			series string
			value  float64
		}{{"measured", m.Measured}, {"SimuMax", m.SimuMax}, {"octavo", of.Counted}} {
			addBar(&f.Chart, bar.series, label, bar.value)
		}
		f.Rows = append(f.Rows, []string{
			fmt.Sprintf("%s, %d", m.Model, m.Job.Model.Layers), fmt.Sprint(m.Job.Sequence), layoutName(m.Job.Layout),
			fmt.Sprintf("%.2f", m.Measured), fmt.Sprintf("%.2f", m.SimuMax), percent(m.SimuMax/m.Measured - 1),
			fmt.Sprintf("%.2f", of.Counted), percent(of.Error),
		})
	}
	f.JSON = map[string]any{"measured": all}
	f.Sentences = []string{
		fmt.Sprintf("GiB that a rank has allocated at most, on 8 B200 with Megatron-LM and TransformerEngine 2.11, in BF16 with ZeRO-1 and micro-batches of one sequence, and what SimuMax 1.2 says of it (docs/b200/b200_release_v1.2_summary.md). What octavo counts is off by %.2f%% at most.", 100*worst),
		"Models are cut to so many layers; the benchmark's 405B has 16 heads of keys and values in place of 8, and its DeepSeek-V3 one dense layer in place of three.",
	}
	return f, nil
}

func percent(share float64) string { return fmt.Sprintf("%+.2f%%", 100*share) }

// layoutName names what of a layout is parallel, as in "tp2 cp4".
func layoutName(l plan.Layout) string {
	var parts []string
	for _, p := range []struct {
		name  string
		ranks int
	}{{"tp", l.Tensor}, {"cp", l.Context}, {"pp", l.Pipeline}, {"ep", l.Expert}} {
		if p.ranks > 1 {
			parts = append(parts, fmt.Sprintf("%s%d", p.name, p.ranks))
		}
	}
	return strings.Join(parts, " ")
}
