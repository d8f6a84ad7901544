package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// tick is a place on an axis. Those without a label are minor.
type tick struct {
	at    float64
	label string
}

// mostLabels is how many an axis has at most. Steps of 1, 2 and 5 then leave at least three.
const mostLabels = 8

// ticks returns the ticks of an axis from low to high. whole says that only whole numbers have a meaning, base2 that
// a logarithmic axis is best labelled with powers of two.
func ticks(low, high float64, log, base2, whole bool) []tick {
	if log {
		return logTicks(low, high, base2)
	}
	return linearTicks(low, high, whole)
}

// linearTicks stand at multiples of 1, 2 or 5 times a power of ten: at 0 too, if the axis has it.
func linearTicks(low, high float64, whole bool) []tick {
	step := niceStep(low, high)
	if whole {
		step = max(1, step)
	}
	var places []float64
	for i := math.Ceil(low/step - 1e-9); i*step <= high+step*1e-9; i++ {
		places = append(places, i*step)
	}
	return labelled(places, step)
}

// niceStep returns the smallest of the steps with which an axis has no more than mostLabels.
func niceStep(low, high float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10((high-low)/mostLabels)))
	for _, factor := range []float64{1, 2, 5} {
		if step := factor * power; math.Floor(high/step+1e-9)-math.Ceil(low/step-1e-9)+1 <= mostLabels {
			return step
		}
	}
	return 10 * power
}

// labelled gives places that are multiples of step labels of as many digits as tell them apart.
func labelled(places []float64, step float64) (all []tick) {
	largest := 0.0
	for _, at := range places {
		largest = math.Max(largest, math.Abs(at))
	}
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	for _, at := range places {
		label := strconv.FormatFloat(at, 'f', decimals, 64)
		switch {
		case math.Abs(at) < step/2:
			at, label = 0, "0"
		case largest >= 1e6 || largest < 1e-3:
			digits := max(0, int(math.Floor(math.Log10(math.Abs(at))+1e-9))-int(math.Floor(math.Log10(step)+1e-9)))
			label = short(strconv.FormatFloat(at, 'e', digits, 64))
		}
		all = append(all, tick{at, label})
	}
	return all
}

// logTicks stand at powers of ten, or of two; where there are fewer than three, at 2 and 5 times them too, or like those of
// a linear axis.
func logTicks(low, high float64, base2 bool) []tick {
	if base2 {
		if all := powers(low, high, 2); count(all) >= 3 {
			return all
		}
	}
	all := powers(low, high, 10)
	if count(all) >= 3 {
		return all
	}
	for _, factors := range [][]int{{1, 3}, {1, 2, 5}} {
		if all := multiples(low, high, factors); count(all) >= 3 && count(all) <= mostLabels {
			return all
		}
	}
	return linearTicks(low, high, false)
}

// powers returns the powers of a base, labelled where that is not too often.
func powers(low, high, base float64) (all []tick) {
	first := int(math.Ceil(math.Log(low)/math.Log(base) - 1e-9))
	last := int(math.Floor(math.Log(high)/math.Log(base) + 1e-9))
	if base == 10 && last-first < 6 {
		return multiples(low, high, []int{1})
	}
	stride := max(1, (last-first+mostLabels)/mostLabels)
	for e := first; e <= last; e++ {
		t := tick{at: math.Ldexp(1, e)}
		if base == 10 {
			t.at = factorOf10(1, e)
		}
		if e%stride == 0 {
			t.label = power(t.at)
		}
		all = append(all, t)
	}
	return all
}

// multiples returns factors of the powers of ten.
func multiples(low, high float64, factors []int) (all []tick) {
	for e := int(math.Floor(math.Log10(low))); ; e++ {
		for factor := 1; factor < 10; factor++ {
			at := factorOf10(factor, e)
			if at > high*(1+1e-9) {
				return all
			}
			if at < low*(1-1e-9) {
				continue
			}
			t := tick{at: at}
			if slices.Contains(factors, factor) {
				t.label = power(at)
			}
			all = append(all, t)
		}
	}
}

// factorOf10 returns the number nearest to factor*10^e.
func factorOf10(factor, e int) float64 {
	x, err := strconv.ParseFloat(fmt.Sprintf("%de%d", factor, e), 64)
	if err != nil { // too large or too small
		return float64(factor) * math.Pow10(e)
	}
	return x
}

// power returns a round number for people.
func power(x float64) string {
	if x >= 1e6 || x < 1e-3 {
		return short(strconv.FormatFloat(x, 'e', -1, 64))
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// short returns 1.50e+06 as 1.5e6.
func short(label string) string {
	mantissa, exponent, _ := strings.Cut(label, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	sign := ""
	if strings.HasPrefix(exponent, "-") {
		sign = "-"
	}
	return mantissa + "e" + sign + strings.TrimLeft(exponent, "+-0")
}

func count(all []tick) (labels int) {
	for _, t := range all {
		if t.label != "" {
			labels++
		}
	}
	return labels
}

// spanX returns what the X axis shows: all points, whole bars and labels.
func (f *figure) spanX() span {
	if len(f.Labels) > 0 {
		return span{-0.5, float64(len(f.Labels)) - 0.5}
	}
	all := nothing()
	for _, c := range f.curves {
		half := 0.0
		if c.Mark == Bars {
			half = f.barWidth() / 2
		}
		for _, at := range c.Points {
			all.include(f.beside(at.X, -half), f.beside(at.X, half))
		}
	}
	for _, l := range f.lines {
		if l.Vertical {
			all.include(l.Value, l.Value)
		}
	}
	return all.padded(f.LogX, 0.02)
}

// spanY returns what the Y axis shows: all points with their spread, and the bottom of bars.
func (f *figure) spanY() span {
	all := nothing()
	zero := f.Zero
	for _, c := range f.curves {
		zero = zero || c.Mark == Bars
		for i, at := range c.shown() {
			if c.bases != nil {
				all.include(c.bases[i]+at.Y, at.Y)
			}
			all.include(at.Y+at.Spread, at.Y)
			if !f.LogY || at.Y > at.Spread {
				all.include(at.Y-at.Spread, at.Y)
			}
		}
	}
	for _, l := range f.lines {
		if !l.Vertical {
			all.include(l.Value, l.Value)
		}
	}
	if zero && !f.LogY {
		all.include(0, 0)
	}
	padded := all.padded(f.LogY, 0.05)
	if f.LogY {
		return padded
	}
	switch more := f.leastSpan() - (padded.high - padded.low); {
	case zero && all.low == 0:
		return span{0, max(padded.high, f.leastSpan())}
	case zero && all.high == 0 && all.low < 0:
		return span{min(padded.low, -f.leastSpan()), 0}
	case more > 0:
		return span{padded.low - more/2, padded.high + more/2}
	}
	return padded
}

// leastSpans are what a linear Y axis shows at least, from end to end, by a word of its name:
// differences that mean nothing shall not fill it.
var leastSpans = []struct {
	unit string
	span float64
}{{"dB", 1}, {"percent", 0.1}, {"nats", 0.01}}

// leastSpan is that of the unit that the Y axis is in; 0: it has none.
func (c Chart) leastSpan() float64 {
	for _, l := range leastSpans {
		if slices.Contains(strings.FieldsFunc(c.Y, func(r rune) bool { return r == ' ' || r == ',' }), l.unit) {
			return l.span
		}
	}
	return 0
}

func nothing() span { return span{math.Inf(1), math.Inf(-1)} }

func (s *span) include(a, b float64) {
	s.low, s.high = min(s.low, a, b), max(s.high, a, b)
}

// Limits of axes, so that all that is computed from them is finite.
const least, largest = 1e-307, 8e307

// padded returns the span with a share of it around it, and one of some length if it has none.
func (s span) padded(log bool, share float64) span {
	s = s.around(log, share)
	s.low, s.high = max(s.low, -largest), min(s.high, largest)
	if log {
		s.low = max(s.low, least)
	}
	return s
}

func (s span) around(log bool, share float64) span {
	if log {
		if s.low > s.high {
			return span{1, 10}
		}
		if s.low == s.high {
			return span{s.low / 2, s.high * 2}
		}
		around := math.Pow(s.high/s.low, share)
		return span{s.low / around, s.high * around}
	}
	switch {
	case s.low > s.high:
		return span{0, 1}
	case s.low == s.high && s.low == 0:
		return span{-1, 1}
	case s.high-s.low <= 1e-9*max(math.Abs(s.low), math.Abs(s.high)):
		around := math.Abs(s.low) / 10
		return span{s.low - around, s.high + around}
	}
	around := share * (s.high - s.low)
	return span{s.low - around, s.high + around}
}

// barWidth is the smallest distance of two bars of a series, so that they touch: a difference of X, or of its logarithm
// on a logarithmic axis.
func (f *figure) barWidth() float64 {
	if f.shared != nil {
		return f.shared.bar
	}
	width := math.Inf(1)
	for _, c := range f.curves {
		for i := 1; c.Mark == Bars && i < len(c.Points); i++ {
			gap := c.Points[i].X - c.Points[i-1].X
			if f.LogX {
				gap = math.Log(c.Points[i].X / c.Points[i-1].X)
			}
			if gap > 0 {
				width = min(width, gap)
			}
		}
	}
	if math.IsInf(width, 1) {
		return 1
	}
	return width
}

// beside returns the place that is so far from x, in the units of barWidth.
func (f *figure) beside(x, distance float64) float64 {
	if f.LogX {
		return max(least, min(x*math.Exp(distance), largest))
	}
	return x + distance
}
