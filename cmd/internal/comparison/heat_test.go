package comparison

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab/page"
	"github.com/octavo-fp8/octavo/telemetry"
)

// heatOnPage returns the data of the heat map on the page of a result.
func heatOnPage(t *testing.T, r *Result) (d struct {
	Rows     []string
	From     []float64
	Parts    []struct{ Name string }
	Measures []struct {
		Name  string
		Parts [][]*json.Number
	}
}) {
	html := written(t, r, writePage)
	for _, found := range regexp.MustCompile(`<script type="application/json">(.*)</script>`).FindAllStringSubmatch(html, -1) {
		if strings.Contains(found[1], `"measures"`) {
			require.NoError(t, json.Unmarshal([]byte(found[1]), &d))
			return d
		}
	}
	t.Fatal("there is no heat map")
	return d
}

// TestHeatMapIsTelemetry: each cell is the largest of what telemetry.csv has of the operand in the
// step, of all products.
func TestHeatMapIsTelemetry(t *testing.T) {
	o := sickOptions(8)
	o.TelemetryEvery = 2
	r, err := Run(t.Context(), o, rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)

	table := readCSV(t, r.WriteTelemetry)
	column := map[string]int{}
	for i, name := range table[0] {
		column[name] = i
	}
	want := map[string]float64{}
	for _, row := range table[1:] {
		number := func(name string) float64 {
			v, err := strconv.ParseFloat(row[column[name]], 64)
			require.NoError(t, err)
			return v
		}
		if number("elements") == 0 {
			continue
		}
		short := strings.NewReplacer("model.layers.", "", "self_attn", "attn", "_proj", "").Replace(row[column["tensor"]])
		for name, v := range map[string]float64{
			"saturated": 100 * number("saturated") / number("elements"), "became zero": 100 * number("flushed") / number("elements"), "amax": number("amax"),
		} {
			key := fmt.Sprint(short, " ", row[0], " ", name)
			want[key] = max(want[key], v)
		}
	}
	d := heatOnPage(t, r)
	require.Len(t, d.Rows, 14)
	require.Equal(t, "0.attn.k", d.Rows[0])
	require.Equal(t, []float64{0, 2, 4, 6}, d.From)
	cells, lost := 0, 0
	for _, m := range d.Measures {
		for part, p := range d.Parts {
			for row, layer := range d.Rows {
				for at, step := range d.From {
					got, err := m.Parts[part][row*len(d.From)+at].Float64()
					require.NoError(t, err)
					key := fmt.Sprint(layer, ".", p.Name, " ", step, " ", m.Name)
					require.InEpsilon(t, 1+want[key], 1+got, 1e-3, key)
					require.InDelta(t, want[key], got, 1e-3*want[key], key)
					cells++
					if m.Name != "amax" && got > 0 {
						lost++
					}
				}
			}
		}
	}
	require.Len(t, want, cells)
	require.Positive(t, lost)
}

// TestHeatMapCells: of several products the largest counts, what is not finite is seen, and where
// nothing was kept there is nothing.
func TestHeatMapCells(t *testing.T) {
	event := func(step int64, tensor, op string, amax float64, lost int64) telemetry.Event {
		return telemetry.Event{Step: step, Summary: telemetry.Summary{Tensor: tensor, Op: op, Blocks: 1,
			Stats: fp8.Stats{Elements: 200, Amax: amax, SaturatedNeg: lost, Flushed: 2 * lost}}}
	}
	const up, down = "model.layers.0.mlp.up_proj.", "model.layers.10.mlp.down_proj."
	bad := event(30, down+"gradient", "input-gradient", 2, 0)
	bad.Stats.BecameNonFinite = 1
	r := &Result{Options: options(40), Events: []telemetry.Event{
		event(0, up+"input", "forward", 4, 1), event(0, up+"input", "weight-gradient", 3, 20),
		bad, {Step: 30, Summary: telemetry.Summary{Tensor: up + "gradient"}}, event(30, "model.layers.0.mlp", "swiglu", 9, 9),
	}}
	h := r.heatMap()
	require.Equal(t, []page.HeatRow{{Name: "0.mlp.up", Group: "layer 0"}, {Name: "10.mlp.down", Group: "layer 10"}}, h.Rows)
	require.Equal(t, []float64{0, 30}, h.Columns)
	nan := math.NaN()
	for m, want := range [][]float64{
		{10, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, 0},
		{20, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, 0},
		{4, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, math.Inf(1)},
	} {
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(h.Measures[m].Values))
	}
	names := func(m int) (all []string) {
		for _, c := range h.Measures[m].Classes {
			all = append(all, c.Name)
		}
		return all
	}
	require.Equal(t, []string{"none", "below 0.01 %", "0.01 % or more", "0.1 % or more", "1 % or more, suspect", "10 % or more, sick in 2 steps"}, names(0))
	require.Equal(t, []string{"none", "below 0.1 %", "0.1 % or more", "1 % or more", "10 % or more, suspect", "50 % or more, sick in 2 steps"}, names(1))
	require.Equal(t, []string{"4 or more", "not finite"}, names(2))

	require.Equal(t, "0 | 0.01 or more | 0.1 or more | 1 or more | 10 or more | 100 or more | 1e+03 or more", func() string {
		var all []string
		for _, c := range amaxClasses([]float64{0, 0.01, nan, 1e4}) {
			all = append(all, c.Name)
		}
		return strings.Join(all, " | ")
	}())
}
