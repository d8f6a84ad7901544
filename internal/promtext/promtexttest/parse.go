// Package promtexttest reads the text format of Prometheus by its definition, for tests:
// https://prometheus.io/docs/instrumenting/exposition_formats/. It is stricter than that:
// each metric has one HELP line, then one TYPE line, then samples, without blank lines,
// comments or timestamps.
package promtexttest

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/promtext"
)

var (
	helpLine   = regexp.MustCompile(`^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\\n]|\\\\|\\n)*)$`)
	typeLine   = regexp.MustCompile(`^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge)$`)
	sampleLine = regexp.MustCompile(`(?s)^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (NaN|[+-]Inf|[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?)$`)
	label      = regexp.MustCompile(`(?s)^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)`)
)

// Parse returns the families of a text. It is an error if the text is none, or if a
// family or a sample comes twice.
func Parse(text string) (families []promtext.Family, err error) {
	if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return nil, fmt.Errorf("the text is not UTF-8, or has a zero byte")
	}
	if text == "" {
		return nil, nil
	}
	if !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("the last line has no end")
	}
	seen := map[string]bool{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		if m := helpLine.FindStringSubmatch(lines[i]); m != nil {
			if i++; i == len(lines) {
				return nil, fmt.Errorf("%s has a help line and nothing else", m[1])
			}
			kind := typeLine.FindStringSubmatch(lines[i])
			if kind == nil || kind[1] != m[1] {
				return nil, fmt.Errorf("line %d is not the type of %s: %q", i+1, m[1], lines[i])
			}
			families = append(families, promtext.Family{Name: m[1], Help: unescape(m[2]), Type: promtext.Type(kind[2])})
			if seen[m[1]] {
				return nil, fmt.Errorf("%s comes twice", m[1])
			}
			seen[m[1]] = true
			continue
		}
		s, err := parseSample(lines[i], families)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w: %q", i+1, err, lines[i])
		}
		f := &families[len(families)-1]
		if key := f.Name + fmt.Sprintf("%q", s.Labels); seen[key] {
			return nil, fmt.Errorf("line %d comes twice: %q", i+1, lines[i])
		} else {
			seen[key] = true
		}
		f.Samples = append(f.Samples, s)
	}
	return families, nil
}

// parseSample reads a sample of the last family.
func parseSample(line string, families []promtext.Family) (s promtext.Sample, err error) {
	m := sampleLine.FindStringSubmatch(line)
	if m == nil {
		return s, fmt.Errorf("it is neither help nor a sample")
	}
	if len(families) == 0 || families[len(families)-1].Name != m[1] {
		return s, fmt.Errorf("it is not of the metric before it")
	}
	for rest := m[2]; rest != ""; {
		l := label.FindStringSubmatch(rest)
		if l == nil {
			return s, fmt.Errorf("%q is not a label", rest)
		}
		s.Labels = append(s.Labels, promtext.Label{Name: l[1], Value: unescape(l[2])})
		rest = rest[len(l[0]):]
	}
	if s.Value, err = strconv.ParseFloat(m[3], 64); err != nil {
		return s, err
	}
	if k := families[len(families)-1].Type; k == promtext.Counter && (s.Value < 0 || math.IsNaN(s.Value)) {
		return s, fmt.Errorf("it is a counter")
	}
	return s, nil
}

func unescape(text string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`).Replace(text)
}
