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

const clean = "clean" // all is judged and nothing is found

// Verdict says in a few words how many findings there are and in how many places, and how many tensors are
// not judged.
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
	if len(counts) > 0 {
		counts = []string{strings.Join(counts, ", ") + places(r)}
	}
	n := checkpoint.UnreadTensors(r.NotJudged)
	switch {
	case len(counts) == 0 && n == 0 && len(r.Rules) == 0:
		counts = append(counts, "not judged: no rule was applied")
	case len(counts) == 0 && n == 0:
		counts = append(counts, clean)
	case len(counts) == 0 && n < r.Tensors:
		counts = append(counts, "nothing found in other tensors")
	}
	if n > 0 {
		counts = append(counts, fmt.Sprintf("not judged: %d of %d tensors (%s)", n, r.Tensors, checkpoint.UnreadMethods(r.NotJudged)))
	}
	return strings.Join(counts, ", ")
}

// places says in how many tensors findings are, and of those that have none in how many files.
func places(r *lint.Report) string {
	tensors, files := map[string]bool{}, map[string]bool{}
	for _, f := range r.Findings {
		for _, name := range f.Tensors {
			tensors[name] = true
		}
		if len(f.Tensors) == 0 && f.File != "" {
			files[f.File] = true
		}
	}
	var in []string
	if n := len(tensors); n > 0 {
		in = append(in, textout.Count(n, "tensor"))
	}
	if n := len(files); n > 0 {
		in = append(in, textout.Count(n, "file"))
	}
	if len(in) == 0 {
		return ""
	}
	return " in " + strings.Join(in, " and ")
}

// WriteText writes the verdict, what it is of, and the findings by rules, the first few of each unless all
// is set.
func WriteText(stdout io.Writer, r *lint.Report, all bool) error {
	w := textout.NewWriter(stdout)
	verdict := textout.Name(r.Path) + ": " + Verdict(r)
	layout := r.Layout
	if layout == "" {
		layout = "no layout that is known"
	}
	headers := ""
	if r.Headers {
		headers = ", from headers alone"
	}
	of := fmt.Sprintf("%s in %s, %s, by %s%s", textout.Count(r.Tensors, "tensor"), textout.Count(r.Files, "file"),
		layout, textout.Count(len(r.Rules), "rule"), headers)
	if r.Files == 0 {
		of = "no file could be read, by " + textout.Count(len(r.Rules), "rule") + headers
	}
	if Verdict(r) == clean {
		verdict, of = verdict+": "+of, ""
	}
	textout.Paragraph(w, verdict, "")
	if of != "" {
		textout.Paragraph(w, of, "")
	}
	for i := 0; i < len(r.Findings); {
		f := r.Findings[i]
		end := i + 1
		for end < len(r.Findings) && r.Findings[end].Rule == f.Rule && r.Findings[end].Severity == f.Severity {
			end++
		}
		fmt.Fprintln(w)
		writeRule(w, r.Findings[i:end], all)
		i = end
	}
	return w.Flush()
}

// writeRule writes findings of one rule and severity.
func writeRule(w textout.Writer, list []lint.Finding, all bool) {
	f := list[0]
	letter, _ := f.Severity.MarshalText()
	fmt.Fprintf(w, "%s %s", letter, f.Rule)
	if len(list) > 1 {
		fmt.Fprintf(w, " (%d)", len(list))
	}
	fmt.Fprintln(w)
	for i, f := range list {
		if i == few && !all {
			fmt.Fprintf(w, "  and %d more: --all or --json has them\n", len(list)-few)
			break
		}
		textout.Paragraph(w, textout.Line(place(f)), "  ")
		textout.Paragraph(w, textout.Line(f.What), "    ")
	}
	for _, line := range [][2]string{
		{"so:   ", f.Consequence}, {"mend: ", f.Mend}, {"in:   ", strings.Join(f.Loaders, ", ")},
	} {
		textout.Hanging(w, "  "+line[0], line[1], 8)
	}
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
func WriteRules(stdout io.Writer) error {
	w := textout.NewWriter(stdout)
	for _, r := range lint.Rules() {
		letter, _ := r.Severity.MarshalText()
		data := " "
		if r.Data {
			data = "*"
		}
		fmt.Fprintf(w, "%s%s %s\n", letter, data, r.ID)
		for _, text := range []string{r.Title, "seen in " + strings.Join(r.Sources, ", ")} {
			textout.Paragraph(w, text, "     ")
		}
	}
	fmt.Fprintln(w)
	textout.Paragraph(w, "E error, W warning, I info; * reads data, which --headers leaves out", "")
	return w.Flush()
}
