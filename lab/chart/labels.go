package chart

import (
	"strings"

	"github.com/octavo-fp8/octavo/lab/picture"
)

// axisRoom is about what the Y axis takes of the width of a static picture.
const axisRoom = 2 * picture.Centimeter

// layLabels sets the labels of the X axis: in lines where all words are narrow enough, or else slanted.
func (f *figure) layLabels(axis *picture.Axis) {
	slot := (width-axisRoom)/float64(len(f.Labels)) - 5
	style := picture.TextStyle{Size: axis.TickSize}
	var longest float64
	for _, label := range f.Labels {
		for word := range strings.FieldsSeq(label) {
			longest = max(longest, style.Width(word))
		}
	}
	for i, label := range f.Labels {
		if longest <= slot {
			label = inLines(style, label, slot)
		}
		axis.Ticks = append(axis.Ticks, picture.Tick{At: float64(i), Label: label})
	}
	if longest > slot {
		axis.Slant = slant
	}
}

// slant is the angle of labels that have no room beside each other.
const slant = 0.6

// inLines breaks a text at spaces into lines of at most a width.
func inLines(style picture.TextStyle, text string, width float64) string {
	var lines []string
	for word := range strings.FieldsSeq(text) {
		if last := len(lines) - 1; last >= 0 && style.Width(lines[last]+" "+word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return strings.Join(lines, "\n")
}
