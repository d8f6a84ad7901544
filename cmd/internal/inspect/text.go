package inspect

import (
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/safetensors"
)

// WriteText prints the report: what to do, the tensors, the recipes, and what there is. On a
// terminal names that v does not want whole are shortened.
func (r *Report) WriteText(stdout io.Writer, v View) error {
	w := textout.NewWriter(stdout)
	say := func(text string) { textout.Paragraph(w, text, "") }
	say(r.Advice.Sentence)
	if r.Advice.Command != "" {
		fmt.Fprintf(w, "  %s\n", r.Advice.Command)
	}
	fmt.Fprintf(w, "\n%s\n%s\n", textout.Name(r.title()), r.counts())
	for i, problem := range r.Problems {
		if i == mostProblems {
			fmt.Fprintf(w, "^ and %s more: octavo lint lists them\n", textout.Count(len(r.Problems)-i, "problem"))
			break
		}
		say("^ " + problem)
	}
	for _, said := range r.Summary() {
		say(said)
	}
	tensors := r.view(v)
	var left []string
	if !v.Detail && len(tensors) > 0 {
		left = r.printTensors(w, tensors, v)
	}
	r.printRecipes(w)
	fmt.Fprintln(w)
	types := textTable(w, typeColumns)
	for _, of := range r.Totals.ByType {
		writeRow(types, typeColumns, of)
	}
	types.Flush()
	r.printMetadata(w)
	if v.Detail {
		r.printDetails(w, tensors)
	} else if !slices.Contains(left, "file") {
		r.printFiles(w, tensors)
	}
	return w.Flush()
}

// printMetadata prints each value once, however many files have it.
func (r *Report) printMetadata(w io.Writer) {
	counts := map[string]int{}
	for _, f := range r.Files {
		for key, value := range f.Metadata {
			counts[textout.Name(key)+": "+textout.Name(value)]++
		}
	}
	if len(counts) > 0 {
		fmt.Fprintln(w)
	}
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		of := ""
		if n := counts[text]; n < len(r.Files) {
			of = " of " + textout.Count(n, "file")
		}
		fmt.Fprintln(w, cut(fmt.Sprintf("metadata%s %s", of, text), 80))
	}
}

// cut shortens a text at its end.
func cut(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:width-3]) + "..."
	}
	return text
}

const mostProblems = 3

// Stopped reports whether some tensors are missing.
func (r *Report) Stopped() bool { return len(r.Tensors) < r.Selected }

// Summary says in sentences what the tensors are that were read, and which were not.
func (r *Report) Summary() (all []string) {
	t := &r.Totals
	if n := len(r.LeftOut); n > 0 {
		const most = 4
		var names []string
		for _, path := range r.LeftOut[:min(most, n)] {
			names = append(names, textout.Name(filepath.Base(path)))
		}
		if n > most {
			names = append(names, fmt.Sprintf("%d more", n-most))
		}
		all = append(all, "Left out, not in the index: "+strings.Join(names, ", ")+".")
	}
	if r.Selected < r.All {
		all = append(all, fmt.Sprintf("Of %s, --only leaves %d.", textout.Count(r.All, "tensor"), r.Selected))
	}
	if r.Stopped() {
		all = append(all, fmt.Sprintf("Stopped: %d of %d tensors were inspected; all of this is of those.", len(r.Tensors), r.Selected))
	}
	if t.FP8WithScales+t.FP8WithoutScales > 0 {
		said := fmt.Sprintf("Tensors of codes: %d with scales, %d without.", t.FP8WithScales, t.FP8WithoutScales)
		if t.CodesAlone > 0 {
			said += fmt.Sprintf(" Values of %d are those of codes alone.", t.CodesAlone)
		}
		all = append(all, said)
	}
	if t.FaultyScales > 0 {
		all = append(all, fmt.Sprintf("Scales that are NaN or no scales: of %s.", textout.Count(t.FaultyScales, "tensor")))
	}
	if t.NotJudged > 0 {
		all = append(all, t.notJudged())
	}
	switch {
	case t.NonFinite > 0:
		all = append(all, fmt.Sprintf("NaN or infinite: %s.", t.nonFinite()))
	case t.Read == 0:
		all = append(all, "No floating-point value was read.")
	case r.Stopped() || t.NotJudged > 0:
		all = append(all, fmt.Sprintf("No value of the %s that could be read is NaN or infinite.", textout.Count(t.Read, "tensor")))
	default:
		all = append(all, "No value is NaN or infinite.")
	}
	return all
}

// counts says how much there is.
func (r *Report) counts() string {
	t := &r.Totals
	text := fmt.Sprintf("%s, %s, %s", textout.Count(t.Tensors, "tensor"), textout.Count(t.Parameters, "parameter"), size(t.Bytes))
	if len(r.Files) > 1 {
		text = textout.Count(t.Files, "file") + ", " + text
	}
	if r.Layout != "" {
		text += ", layout " + r.Layout
	}
	return text
}

// notJudged says how many tensors were not read, and of which methods of quantization.
func (t *Totals) notJudged() string {
	var which []string
	rest := t.NotJudged
	for _, u := range t.Unread {
		if u.Method == unknownMethod {
			which = append(which, textout.Count(u.Tensors, "tensor")+" of integers that may be codes")
		} else {
			which = append(which, fmt.Sprintf("%s of %s", textout.Count(u.Tensors, "tensor"), u.Method))
		}
		rest -= u.Tensors
	}
	if rest > 0 {
		which = append(which, textout.Count(rest, "tensor")+" as said below")
	}
	return "Not judged: " + strings.Join(which, ", ") + "."
}

func (t *Totals) nonFinite() string {
	return textout.Count(t.NonFinite, "value") + " in " + textout.Count(t.NonFiniteTensors, "tensor")
}

// size writes a number of bytes in at most four digits.
func size(bytes int64) string {
	if bytes < 10_000 {
		return fmt.Sprintf("%d B", bytes)
	}
	x := float64(bytes)
	for _, unit := range []string{"kB", "MB", "GB"} {
		if x /= 1000; x < 999.5 {
			return strconv.FormatFloat(x, 'g', 3, 64) + " " + unit
		}
	}
	return fmt.Sprintf("%.4g TB", x/1000)
}

var typeColumns = []column[TypeTotal]{
	{"type", true, func(t TypeTotal) string { return string(t.DType) }},
	{"tensors", false, func(t TypeTotal) string { return strconv.Itoa(t.Tensors) }},
	{"elements", false, func(t TypeTotal) string { return strconv.FormatInt(t.Elements, 10) }},
	{"bytes", false, func(t TypeTotal) string { return size(t.Bytes) }},
}

var recipeColumns = []column[tied]{
	{"recipe", true, func(t tied) string { return string(t.Profile) }},
	{"block", true, func(t tied) string { return t.Block }},
	{"scales", false, func(t tied) string { return size(t.ScaleBytes) }},
	{"lost", false, func(t tied) string { return percent(t.WorstLost) }},
	{"row", false, func(t tied) string { return percent(t.WorstRowError) }},
	{"block", false, func(t tied) string { return percent(t.WorstBlockError) }},
	{"median", false, func(t tied) string { return percent(t.MedianBlockError) }},
	{"SQNR", false, func(t tied) string { return textout.Decibels(float64(t.WorstSQNR)) }},
}

// ranked says what the table of recipes has.
func (r *Report) ranked() string {
	return r.matrices() + " encoded to " + r.Format + ", the best recipe first: the bytes of its scales, what it loses of the worst matrix, and the block error of the median one:"
}

func (r *Report) printRecipes(w io.Writer) {
	if len(r.Ranking) == 0 {
		return
	}
	fmt.Fprintln(w)
	textout.Paragraph(w, r.ranked(), "")
	fmt.Fprintln(w)
	table := textTable(w, recipeColumns)
	for _, of := range r.rows() {
		writeRow(table, recipeColumns, of)
		for _, remark := range of.remarks() {
			table.Note("%s", remark)
		}
	}
	table.Flush()
}

// remarks are what there is to say of recipes besides.
func (t tied) remarks() (all []string) {
	if t.BecameNonFinite > 0 {
		all = append(all, fmt.Sprintf("%s of the values became NaN or infinite with their scale", textout.Percent(t.BecameNonFinite, t.Elements)))
	}
	if len(t.others) > 0 {
		all = append(all, t.said())
	}
	return all
}

// percent writes a share or an error in two digits.
func percent(x jsonout.Number) string {
	switch v := 100 * float64(x); {
	case v > 99 && v < 100: // not all of it
		return strconv.FormatFloat(min(v, 99.9), 'f', 1, 64) + "%"
	case v != v:
		return "-"
	case math.IsInf(v, 1):
		return "inf"
	case v == 0:
		return "0"
	case v < 0.01:
		return "<0.01%"
	case v >= 1000:
		return strconv.FormatFloat(v, 'g', 1, 64) + "%"
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 0, 64) + "%"
	default:
		return strconv.FormatFloat(v, 'g', 2, 64) + "%"
	}
}

// matrices says how many there are, and how many of them were codes.
func (r *Report) matrices() string {
	dequantized, n := 0, 0
	for i := range r.Tensors {
		if t := &r.Tensors[i]; r.judges(t) {
			n++
			if t.Scheme != "" {
				dequantized++
			}
		}
	}
	projections := len(r.stay()) > 0 && !r.partsAlone
	switch {
	case n == 1 && dequantized == 1:
		return "The matrix, dequantized and"
	case n == 1 && projections:
		return "The projection"
	case n == 1:
		return "The float matrix"
	case dequantized == 0 && projections:
		return fmt.Sprintf("The %d projections", n)
	case dequantized == 0:
		return fmt.Sprintf("The %d float matrices", n)
	case dequantized == n:
		return fmt.Sprintf("The %d matrices, dequantized and", n)
	default:
		return fmt.Sprintf("The %d matrices, %d of them dequantized and", n, dequantized)
	}
}

var headings = map[Reason]string{
	NonFinite:       "with values that are NaN or infinite",
	BecameNonFinite: "with values that become NaN or infinite",
	Saturated:       "with values that saturate",
	LosesMuch:       "that lose more than half a step",
	StandsOut:       "with an error or a crest (amax over rms) that stands out",
	NotJudged:       "not judged",
	NoReason:        "others",
}

// printTensors prints a line for each tensor, and returns the columns for which there is no room.
func (r *Report) printTensors(w io.Writer, tensors []*TensorReport, v View) (left []string) {
	to, most := w, 100
	if v.Wide {
		to, most = struct{ io.Writer }{w}, 0 // no screen, and nothing is shortened
	}
	columns := append([]column[*TensorReport]{{"name", true, func(t *TensorReport) string { return textout.Name(t.Name) }}}, r.columns()...)
	table := textTable(to, columns)
	for i, t := range tensors {
		if v.Sort == ByRisk && tensors[0].Risk.Reason != NoReason && (i == 0 || t.Risk.Reason != tensors[i-1].Risk.Reason) {
			table.Heading("- " + headings[t.Risk.Reason] + ":")
		}
		writeRow(table, columns, t)
		if n := t.Values; n.nonFinite() > 0 {
			table.Note("%s", textout.Wrong(fmt.Sprintf("%d NaN, %d +Inf, %d -Inf, the first at element %d", n.NaN, n.PosInf, n.NegInf, *n.FirstNonFinite)))
		}
		if why := t.staying(); why != "" {
			table.Note("%s", why)
		}
		for _, defect := range t.defects() {
			defect = textout.WrongIf(t.Scales.faulty(), defect)
			table.Note("%s", defect)
		}
	}
	left = table.Fit(most, spare(tensors)...)
	said := strings.TrimSuffix(r.introduction(len(tensors), v)+"; "+r.measures(left), "; ")
	if len(left) > 0 {
		said += "; --wide has " + strings.Join(left, ", ") + ", too"
	}
	fmt.Fprintln(w)
	textout.Paragraph(w, said+":", "")
	fmt.Fprintln(w)
	table.Flush()
	if more := len(r.Tensors) - len(tensors); more > 0 {
		fmt.Fprintf(w, "  and %d more: --top 0 shows all\n", more)
	}
	return left
}

// spare are the columns of tensors that may be left out, the first to go first. The file stays
// where names alone do not tell tensors apart.
func spare(tensors []*TensorReport) []string {
	all := []string{"file", "type", "SQNR", "amax", "shape", "crest"}
	names := map[string]bool{}
	for _, t := range tensors {
		names[t.Name] = true
	}
	if len(names) < len(tensors) {
		return all[1:]
	}
	return all
}

// printFiles says which files the numbers in the table of tensors stand for.
func (r *Report) printFiles(w io.Writer, tensors []*TensorReport) {
	if len(r.Files) > 1 && len(tensors) > 0 {
		fmt.Fprintln(w)
	}
	for i, f := range r.Files {
		if len(r.Files) > 1 && slices.ContainsFunc(tensors, func(t *TensorReport) bool { return t.file == i }) {
			fmt.Fprintf(w, "file %d: %s\n", i+1, textout.Name(f.Path))
		}
	}
}

// introduction says which tensors a table has, in which order.
func (r *Report) introduction(shown int, v View) string {
	which := "Tensors"
	if shown < len(r.Tensors) {
		which = fmt.Sprintf("%d of %d tensors", shown, len(r.Tensors))
	}
	return which + ", " + v.Sort.said()
}

// measures says what the columns are, but for some that are left out.
func (r *Report) measures(left []string) (said string) {
	if !slices.Contains(left, "crest") {
		said = "crest is amax over rms"
	}
	if r.Judge == "" {
		return said
	}
	sqnr := " and SQNR in dB"
	if slices.Contains(left, "SQNR") {
		sqnr = ""
	}
	return strings.TrimPrefix(said+fmt.Sprintf("; lost (saturated, flushed or made NaN), row and block error%s are under %s; a matrix should stay as it is if lost or an error is above %.4g%%, half a step of %s",
		sqnr, r.Judge, 100*halfStepOf(r.format), r.Format), "; ")
}

// columns are what is said of each tensor besides its name.
func (r *Report) columns() []column[*TensorReport] {
	all := []column[*TensorReport]{
		{"type", true, (*TensorReport).typeName},
		{"shape", true, func(t *TensorReport) string { return shape(t.weightShape) }},
		{"amax", false, amax},
		{"crest", false, crest},
	}
	if len(r.Ranking) > 0 {
		under := func(name string, cell func(*TensorReport, *RecipeReport) string) column[*TensorReport] {
			return column[*TensorReport]{name, false, func(t *TensorReport) string {
				if of := t.under(r.Judge); of != nil {
					return cell(t, of)
				}
				return "-"
			}}
		}
		all = append(all,
			under("lost", func(t *TensorReport, of *RecipeReport) string { return percent(jsonout.Number(t.lost(of))) }),
			under("row", func(_ *TensorReport, of *RecipeReport) string { return percent(of.RowError) }),
			under("block", func(_ *TensorReport, of *RecipeReport) string { return percent(of.BlockError) }),
			under("SQNR", func(_ *TensorReport, of *RecipeReport) string { return textout.Decibels(float64(of.SQNR)) }))
	}
	if len(r.Files) > 1 {
		all = append(all, column[*TensorReport]{"file", false, func(t *TensorReport) string { return strconv.Itoa(t.file + 1) }})
	}
	return all
}

// typeName is the type of a tensor, or the format of codes that are bytes.
func (t *TensorReport) typeName() string {
	if t.isCodes && t.isBytes() {
		return t.Format
	}
	return strings.TrimPrefix(string(t.DType), "F8_")
}

// isBytes reports whether the type of a tensor does not say what its codes are.
func (t *TensorReport) isBytes() bool { return t.DType == safetensors.U8 || t.DType == safetensors.I8 }

// staying says why a matrix should stay as it is, or why it does; "" if neither.
func (t *TensorReport) staying() string {
	switch {
	case t.Risk.Keep != "":
		return fmt.Sprintf("keep it in %s: %s", t.DType, t.Risk.Keep)
	case t.part != nil:
		return fmt.Sprintf("%s: stays in %s (%s)", t.part.Name, t.DType, t.part.Why)
	}
	return ""
}

// defects say what is wrong with the scales of a tensor, or why else its values were not read.
func (t *TensorReport) defects() []string {
	if t.NotJudged != "" && !t.Scales.faulty() {
		return []string{"not judged: " + textout.Name(t.NotJudged)}
	}
	return t.Scales.faults()
}

// amax writes the largest magnitude of a tensor, "-" where it has no finite value.
func amax(t *TensorReport) string {
	switch e := t.values(); {
	case e.amax == e.amax:
		return strconv.FormatFloat(e.amax, 'g', 3, 64)
	case t.Values != nil && t.Values.Zeros > 0:
		return "0"
	}
	return "-"
}

// crest writes the largest magnitude over the root mean square.
func crest(t *TensorReport) string {
	if t.Values == nil || !(t.Values.Crest > 0) {
		return "-"
	}
	return strconv.FormatFloat(float64(t.Values.Crest), 'g', 3, 64)
}

// shape writes the extents of a tensor, "1" for a scalar.
func shape(extents []int) string {
	if len(extents) == 0 {
		return "scalar"
	}
	var parts []string
	for _, n := range extents {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, "x")
}
