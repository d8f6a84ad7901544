// Package promtext writes metrics in the text format of Prometheus, version 0.0.4.
package promtext

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ContentType is the media type of what [Write] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Type is the type of a metric.
type Type string

const (
	Counter Type = "counter" // never falls
	Gauge   Type = "gauge"
)

// Family is a metric with all of its samples. The caller answers for names that
// Prometheus takes, and for labels by which no two samples of a family are the same.
type Family struct {
	Name    string
	Help    string
	Type    Type
	Samples []Sample
}

// Sample is a value of a metric and the labels that say of what.
type Sample struct {
	Labels []Label
	Value  float64
}

// Label is a name and its value, which may be any bytes: see [LabelValue].
type Label struct{ Name, Value string }

// Add adds a sample.
func (f *Family) Add(value float64, labels ...Label) {
	f.Samples = append(f.Samples, Sample{labels, value})
}

// Write writes families in their order, and samples in theirs. A family without samples
// is left out.
func Write(w io.Writer, families ...Family) error {
	text := bufio.NewWriter(w) // which keeps the first error until Flush
	for _, f := range families {
		if len(f.Samples) == 0 {
			continue
		}
		text.WriteString("# HELP " + f.Name + " " + helpEscapes.Replace(f.Help) + "\n")
		text.WriteString("# TYPE " + f.Name + " " + string(f.Type) + "\n")
		for _, s := range f.Samples {
			text.WriteString(f.Name + labelSet(s.Labels) + " " + Value(s.Value) + "\n")
		}
	}
	return text.Flush()
}

// labelSet returns the labels of a sample as they stand behind its name.
func labelSet(labels []Label) string {
	if len(labels) == 0 {
		return ""
	}
	var set []string
	for _, l := range labels {
		set = append(set, l.Name+`="`+valueEscapes.Replace(LabelValue(l.Value))+`"`)
	}
	return "{" + strings.Join(set, ",") + "}"
}

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	valueEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// LabelValue returns the label value of a text: the text, unless it cannot be one. What
// is not UTF-8 or has a zero byte is quoted as Go does it, and so is what begins with a
// quotation mark, so that no two texts become the same.
func LabelValue(text string) string {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || strings.HasPrefix(text, `"`) {
		return strconv.Quote(text)
	}
	return text
}

// Value returns a value with all its digits. Whole numbers up to 2^53, which are counts
// more often than not, have no exponent.
func Value(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) <= 1<<53 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64) // NaN, +Inf and -Inf are spelled so
}
