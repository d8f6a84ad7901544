package display

import (
	"fmt"
	"strings"
	"time"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// Bytes is the unit of operations that count bytes.
const Bytes = "B"

// fields are the parts of what is shown, each empty if there is nothing to say.
type fields struct{ op, share, amount, rate, left, note string }

func (s status) fields() fields {
	f := fields{op: textout.Line(s.op), note: textout.Line(s.note), rate: s.speed()}
	if s.waited > 0 {
		f.amount = s.waited.Round(time.Second).String() + " so far"
	} else if s.total > 0 {
		f.share = fmt.Sprintf("%d%%", percent(s.done, s.total))
		if s.rate > 0 {
			f.left = timeLeft(float64(s.total-s.done)/s.rate) + " left"
		}
	} else if s.unit != "" {
		f.amount = quantity(float64(s.done), s.unit)
	}
	return f
}

// percent is rounded down, so that 100 is all.
func percent(done, total int64) int64 { return int64(100 * float64(done) / float64(total)) }

// speed says how fast it goes, in units if there are any and in shares of the total
// otherwise.
func (s status) speed() string {
	switch {
	case s.rate == 0:
		return ""
	case s.unit == Bytes:
		return quantity(s.rate, Bytes) + "/s"
	case s.unit != "":
		return perTime(s.rate, " "+s.unit)
	case s.total > 0:
		return perTime(100*s.rate/float64(s.total), "%")
	}
	return ""
}

// perTime is a rate a second, a minute or an hour, so that it is a number to look at.
func perTime(rate float64, unit string) string {
	for _, per := range []struct {
		seconds float64
		name    string
	}{{1, "/s"}, {60, "/min"}} {
		if x := rate * per.seconds; x >= 1 {
			return short(x) + unit + per.name
		}
	}
	return short(rate*3600) + unit + "/h"
}

// short is a number of about three digits.
func short(x float64) string {
	switch {
	case x < 10:
		return fmt.Sprintf("%.2f", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// quantity is a number of units, of bytes with a prefix.
func quantity(n float64, unit string) string {
	if unit != Bytes {
		return fmt.Sprintf("%.0f %s", n, unit)
	}
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	i := 0
	for ; n >= 999.5 && i < len(prefixes)-1; i++ {
		n /= 1000
	}
	if i == 0 {
		return fmt.Sprintf("%.0f B", n)
	}
	return short(n) + " " + prefixes[i] + "B"
}

// timeLeft is a number of seconds, the less exact the longer it is.
func timeLeft(seconds float64) string {
	const longest = 1000 * time.Hour
	if !(seconds < longest.Seconds()) {
		return "more than 1000h"
	}
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}
