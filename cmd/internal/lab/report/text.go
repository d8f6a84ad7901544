package report

import (
	"fmt"
	"io"
	"time"
)

// WriteText writes the goals and findings for a terminal.
func (r *Report) WriteText(w io.Writer) (err error) {
	print := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	print("%s (%v)\n", r.Title, r.Time.Round(100*time.Millisecond))
	for _, g := range r.Goals {
		print("  %-6s %s: %s (wanted: %s)\n", g.outcome(), g.What, g.Got, g.Want)
	}
	for _, f := range r.Findings {
		print("  - %s\n", f)
	}
	print("\n")
	return err
}

func (g Goal) outcome() string {
	if g.Met() {
		return "met"
	}
	return "MISSED"
}

// Summary is a report without its charts and tables, for a program.
type Summary struct {
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	Claim    string   `json:"claim"`
	Goals    []Goal   `json:"goals"`
	Findings []string `json:"findings"`
	Limits   []string `json:"limits"`
	Seconds  float64  `json:"seconds"`
}

// Summaries returns the summary of each report.
func Summaries(reports []*Report) []Summary {
	all := make([]Summary, len(reports))
	for i, r := range reports {
		var findings []string
		for _, f := range r.Findings {
			findings = append(findings, f.String())
		}
		all[i] = Summary{r.Name, r.Title, r.Claim, r.Goals, findings, r.Limits, r.Time.Seconds()}
	}
	return all
}
