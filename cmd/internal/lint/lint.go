// Package lint writes what octavo lint has found.
package lint

import (
	"fmt"
	"io"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/checkpoint/lint"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// few is how many findings of a rule are printed unless all are asked for.
const few = 3

// width is that of what is printed.
const width = 80

// Verdict says in a few words how many findings there are, and how many tensors are not judged.
func Verdict(r *lint.Report) string {
	var counts []string
	for _, s := range []lint.Severity{lint.Error, lint.Warning, lint.Info} {
		switch n := r.Count(s); {
		case n == 1:
			counts = append(counts, "1 "+s.String())
		case n > 1 && s == lint.Info:
			counts = append(counts, fmt.Sprintf("%d infos", n))
		case n > 1:
			counts = append(counts, fmt.Sprintf("%d %ss", n, s))
		}
	}
	n := checkpoint.UnreadTensors(r.NotJudged)
	switch {
	case len(counts) == 0 && n == 0:
		counts = append(counts, "nothing found")
	case len(counts) == 0 && n < r.Tensors:
		counts = append(counts, "nothing found in other tensors")
	}
	if n > 0 {
		counts = append(counts, fmt.Sprintf("not judged: %d of %d tensors (%s)", n, r.Tensors, checkpoint.UnreadMethods(r.NotJudged)))
	}
	return strings.Join(counts, ", ")
}

// WriteText writes the findings by rules, the first few of each unless all is set, and a
// last line that sums up.
func WriteText(w io.Writer, r *lint.Report, all bool) error {
	var b strings.Builder
	for i := 0; i < len(r.Findings); {
		f := r.Findings[i]
		end := i + 1
		for end < len(r.Findings) && r.Findings[end].Rule == f.Rule && r.Findings[end].Severity == f.Severity {
			end++
		}
		writeRule(&b, r.Findings[i:end], all)
		i = end
	}
	layout := r.Layout
	if layout == "" {
		layout = "no layout that is known"
	}
	fmt.Fprintf(&b, "%s: %s\n", textout.Name(r.Path), Verdict(r))
	headers := ""
	if r.Headers {
		headers = ", from headers alone"
	}
	fmt.Fprintf(&b, "%d tensors in %d files, %s, by %d rules%s\n", r.Tensors, r.Files, layout, len(r.Rules), headers)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeRule writes findings of one rule and severity.
func writeRule(b *strings.Builder, list []lint.Finding, all bool) {
	f := list[0]
	letter, _ := f.Severity.MarshalText()
	fmt.Fprintf(b, "%s %s", letter, f.Rule)
	if len(list) > 1 {
		fmt.Fprintf(b, " (%d)", len(list))
	}
	b.WriteByte('\n')
	for i, f := range list {
		if i == few && !all {
			fmt.Fprintf(b, "  and %d more: --all or --json has them\n", len(list)-few)
			break
		}
		b.WriteString("  " + textout.Line(place(f)) + "\n")
		b.WriteString("    " + textout.Line(f.What) + "\n")
	}
	for _, line := range [][2]string{
		{"so:   ", f.Consequence}, {"mend: ", f.Mend}, {"in:   ", strings.Join(f.Loaders, ", ")},
	} {
		b.WriteString("  " + line[0] + strings.TrimSpace(textout.Wrap(line[1], width, "        ")) + "\n")
	}
	b.WriteByte('\n')
}

// place names the tensors of a finding, or its file.
func place(f lint.Finding) string {
	names := f.Tensors
	more := ""
	if len(names) > 4 {
		names, more = names[:3], fmt.Sprintf(" and %d more", len(names)-3)
	}
	var shown []string
	for _, n := range names {
		shown = append(shown, textout.Name(n))
	}
	text := strings.Join(shown, ", ") + more
	switch {
	case text == "" && f.File == "":
		return "the checkpoint"
	case text == "":
		return textout.Name(f.File)
	case f.File == "":
		return text
	}
	return text + " in " + textout.Name(f.File)
}

// WriteRules writes the table of rules.
func WriteRules(w io.Writer) error {
	var b strings.Builder
	for _, r := range lint.Rules() {
		letter, _ := r.Severity.MarshalText()
		data := " "
		if r.Data {
			data = "*"
		}
		fmt.Fprintf(&b, "%s%s %s\n", letter, data, r.ID)
		for _, text := range []string{r.Title, "seen in " + strings.Join(r.Sources, ", ")} {
			b.WriteString(textout.Wrap(text, width, "     ") + "\n")
		}
	}
	b.WriteString("\nE error, W warning, I info; * reads data, which --headers leaves out\n")
	_, err := io.WriteString(w, b.String())
	return err
}
