package page

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"
	"strconv"

	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/chart"
)

// heatData is what the script of a page draws a heat map from.
type heatData struct {
	Title    string        `json:"title"`
	Row      string        `json:"row"`
	Column   string        `json:"column"`
	Rows     []string      `json:"rows"`
	Names    []string      `json:"names"` // of rows before they were binned
	From     []float64     `json:"from"`  // the first and last column of each bin
	To       []float64     `json:"to"`
	Parts    []heatPart    `json:"parts"`
	Measures []heatMeasure `json:"measures"`
}

type heatPart struct {
	Name  string `json:"name"`
	Light string `json:"light"`
	Dark  string `json:"dark"`
}

type heatMeasure struct {
	Name    string      `json:"name"`
	Unit    string      `json:"unit"`
	Log     bool        `json:"log"`
	Classes []heatClass `json:"classes"`
	Parts   []numbers   `json:"parts"` // the values of each cell
	Where   []int       `json:"where"` // of each cell, which row has the largest
	When    []float64   `json:"when"`  // and in which column
}

type heatClass struct {
	From  numbers `json:"from"` // one
	Name  string  `json:"name"`
	Light string  `json:"light"`
	Dark  string  `json:"dark"`
}

// numbers are short in JSON: NaN is null, and +Inf is what a script reads as that.
type numbers []float64

// MarshalJSON implements [json.Marshaler].
func (n numbers) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, x := range n {
		if i > 0 {
			b = append(b, ',')
		}
		switch {
		case math.IsNaN(x):
			b = append(b, "null"...)
		case math.IsInf(x, 1):
			b = append(b, "1e999"...)
		default:
			b = strconv.AppendFloat(b, x, 'g', 4, 64)
		}
	}
	return append(b, ']'), nil
}

func (b *binned) json() ([]byte, error) {
	d := heatData{Title: b.Title, Row: b.Row, Column: b.Column}
	for _, r := range b.Rows {
		d.Names = append(d.Names, r.Name)
	}
	for row := range b.rows {
		d.Rows = append(d.Rows, b.nameOf(row))
	}
	for _, s := range b.columns {
		d.From, d.To = append(d.From, b.Columns[s.from]), append(d.To, b.Columns[s.to-1])
	}
	for _, name := range b.Parts {
		c := chart.ColorOf(chart.Key(name))
		d.Parts = append(d.Parts, heatPart{name, c.Light, c.Dark})
	}
	for i, m := range b.Measures {
		of := heatMeasure{Name: m.Name, Unit: m.Unit, Log: m.Log, Parts: make([]numbers, len(b.Parts))}
		for _, c := range m.Classes {
			of.Classes = append(of.Classes, heatClass{numbers{c.From}, c.Name, c.Color.Light, c.Color.Dark})
		}
		for _, c := range b.cells[i] {
			for part, v := range c.parts {
				of.Parts[part] = append(of.Parts[part], v)
			}
			of.Where, of.When = append(of.Where, c.row), append(of.When, b.Columns[c.column])
		}
		d.Measures = append(d.Measures, of)
	}
	return json.Marshal(d)
}

// classOf returns the class of a value, or -1 if it has none.
func (m Measure) classOf(v float64) int {
	for i, c := range slices.Backward(m.Classes) {
		if v >= c.From {
			return i
		}
	}
	return -1
}

// mostNamed is the number of rows that have names beside a still picture.
const mostNamed = 60

// putStill adds a measure as it is without scripts.
func (b *binned) putStill(to *page.Body, measure int) {
	m := b.Measures[measure]
	to.Put("<p><strong>%s</strong></p>\n<ul class=\"scale\">", m.label())
	for _, c := range m.Classes {
		to.Put("<li><span style=\"background: %s\"></span>%s</li>", c.Color.Light, c.Name)
	}
	to.Put("</ul>\n<div class=\"still\">")
	height := 6
	if len(b.rows) <= mostNamed {
		height = 16
		to.Put("<ol>")
		for row := range b.rows {
			to.Put("<li>%s</li>", b.nameOf(row))
		}
		to.Put("</ol>")
	}
	to.Put("<img alt=\"%s of each %s, from the first to the last %s\" style=\"height: %spx\" src=\"data:image/png;base64,%s\">",
		m.label(), b.Row, b.Column, height*len(b.rows), base64.StdEncoding.EncodeToString(b.still(measure)))
	to.Put("</div>\n")
}

// still draws a pixel for each cell.
func (b *binned) still(measure int) []byte {
	m := b.Measures[measure]
	palette := color.Palette{color.Transparent}
	for _, c := range m.Classes {
		palette = append(palette, chart.RGB(c.Color.Light))
	}
	picture := image.NewPaletted(image.Rect(0, 0, len(b.columns), len(b.rows)), palette)
	for i, c := range b.cells[measure] {
		picture.Pix[i] = uint8(m.classOf(c.value()) + 1)
	}
	var file bytes.Buffer
	_ = png.Encode(&file, picture) // memory takes all
	return file.Bytes()
}
