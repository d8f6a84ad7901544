package chart

import (
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// axisRoom is about what the Y axis takes of the width of a static picture.
const axisRoom = 2 * vg.Centimeter

// layLabels sets the labels of the X axis: in lines where all words are narrow enough, or else slanted.
func (f *figure) layLabels(axis *plot.Axis) {
	slot := (width-axisRoom)/vg.Length(len(f.Labels)) - vg.Points(5)
	style := axis.Tick.Label
	var longest vg.Length
	for _, label := range f.Labels {
		for _, word := range strings.Fields(label) {
			longest = max(longest, style.Width(word))
		}
	}
	if longest > slot {
		axis.Tick.Label.Rotation = slant
		axis.Tick.Label.XAlign, axis.Tick.Label.YAlign = draw.XRight, draw.YCenter
		return
	}
	for i, label := range f.Labels {
		f.labels[i] = inLines(style, label, slot)
	}
}

// slant is the angle of labels that have no room beside each other.
const slant = 0.6

// inLines breaks a text at spaces into lines of at most a width.
func inLines(style draw.TextStyle, text string, width vg.Length) string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && style.Width(lines[last]+" "+word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return strings.Join(lines, "\n")
}
