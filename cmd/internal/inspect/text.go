package inspect

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/safetensors"
)

// WriteText prints the report in lines of at most 80 characters, but for names that v
// wants whole.
func (r *Report) WriteText(stdout io.Writer, v View) error {
	w := bufio.NewWriter(stdout)
	r.printMetadata(w)
	r.printTotals(w)
	r.printRanking(w)
	tensors := r.view(v)
	switch {
	case v.Detail:
		r.printDetails(w, tensors)
	case len(tensors) > 0:
		r.printLines(w, tensors, v)
	}
	return w.Flush()
}

func (r *Report) printMetadata(w io.Writer) {
	for _, f := range r.Files {
		if len(f.Metadata) == 0 {
			continue
		}
		if len(r.Files) > 1 {
			fmt.Fprintf(w, "%s\n", textout.Name(f.Path))
		}
		for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
			line := fmt.Sprintf("metadata %s: %s", textout.Name(key), textout.Name(f.Metadata[key]))
			fmt.Fprintln(w, cut(line, 80))
		}
		fmt.Fprintln(w)
	}
}

// cut shortens a text at its end.
func cut(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:width-3]) + "..."
	}
	return text
}

func (r *Report) printTotals(w io.Writer) {
	t := &r.Totals
	fmt.Fprintf(w, "%s\n", textout.Name(r.title()))
	fmt.Fprintln(w, r.counts())
	for i, problem := range r.Problems {
		if i == mostProblems {
			fmt.Fprintf(w, "^ and %s more: octavo lint lists them\n", textout.Count(len(r.Problems)-i, "problem"))
			break
		}
		fmt.Fprintln(w, textout.Wrap("^ "+problem, 80, ""))
	}
	if r.Selected < r.All {
		fmt.Fprintf(w, "Of %d tensors, --only leaves %d.\n", r.All, r.Selected)
	}
	if r.Stopped() {
		fmt.Fprintf(w, "Stopped: %d of %d tensors were inspected; what follows is of those.\n", len(r.Tensors), r.Selected)
	}
	fmt.Fprintf(w, "\n  %-12s %9s %16s %10s\n", "type", "tensors", "elements", "bytes")
	for _, of := range t.ByType {
		fmt.Fprintf(w, "  %-12s %9d %16d %10s\n", of.DType, of.Tensors, of.Elements, size(of.Bytes))
	}
	fmt.Fprintln(w)
	for _, said := range r.Summary() {
		fmt.Fprintln(w, textout.Wrap(said, 80, ""))
	}
}

const mostProblems = 3

// Stopped reports whether some tensors are missing.
func (r *Report) Stopped() bool { return len(r.Tensors) < r.Selected }

// Summary says in sentences what the tensors are that were read, and which were not.
func (r *Report) Summary() (all []string) {
	t := &r.Totals
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

func (r *Report) printRanking(w io.Writer) {
	if len(r.Ranking) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n\n", textout.Wrap(r.matrices()+" encoded to "+r.Format+", the best recipe first:", 80, ""))
	fmt.Fprintf(w, "  %-23s %-7s %8s %20s %6s %7s\n", "", "", "bytes of", "worst of a matrix  ", "median", "SQNR dB")
	fmt.Fprintf(w, "  %-23s %-7s %8s %6s %6s %6s %6s %7s\n", "recipe", "block", "scales", "lost", "row", "block", "block", "worst")
	for _, of := range r.Ranking {
		fmt.Fprintf(w, "  %-23s %-7s %8s %6s %6s %6s %6s %7s\n", of.Profile, of.Block, size(of.ScaleBytes),
			percent(of.WorstLost), percent(of.WorstRowError), percent(of.WorstBlockError), percent(of.MedianBlockError), textout.Decibels(float64(of.WorstSQNR)))
		if of.BecameNonFinite > 0 {
			fmt.Fprintf(w, "    ^ %s of the values became NaN or infinite with their scale\n", textout.Percent(of.BecameNonFinite, of.Elements))
		}
	}
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
	dequantized := 0
	for i := range r.Tensors {
		if t := &r.Tensors[i]; t.isMatrix && t.Scheme != "" {
			dequantized++
		}
	}
	switch n := r.Totals.Matrices; {
	case n == 1 && dequantized == 1:
		return "The matrix, dequantized and"
	case n == 1:
		return "The float matrix"
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
	Flushed:         "of which 1% or more of what is not zero is flushed to zero",
	StandsOut:       "with a row or block error, or a crest, twice the median or more",
	NotJudged:       "not judged",
	NoReason:        "others",
}

// printLines prints a line for each tensor.
func (r *Report) printLines(w io.Writer, tensors []*TensorReport, v View) {
	fmt.Fprintf(w, "\n%s\n\n", textout.Wrap(r.introduction(len(tensors), v), 80, ""))
	rows := [][]string{r.columns()}
	for _, t := range tensors {
		rows = append(rows, r.cells(t))
	}
	widths := columnWidths(rows)
	left := 80 - 2
	for _, n := range widths {
		left -= n + 1
	}
	printCells(w, rows[0], widths, "name")
	for i, t := range tensors {
		if v.Sort == ByRisk && tensors[0].Risk.Reason != NoReason && (i == 0 || t.Risk.Reason != tensors[i-1].Risk.Reason) {
			fmt.Fprintf(w, "- %s:\n", headings[t.Risk.Reason])
		}
		name := textout.Name(t.Name)
		if !v.Wide {
			name = textout.Shorten(name, max(left, 20))
		}
		printCells(w, rows[1+i], widths, name)
		if n := t.Values; n.nonFinite() > 0 {
			fmt.Fprintf(w, "    ^ %d NaN, %d +Inf, %d -Inf, the first at element %d\n", n.NaN, n.PosInf, n.NegInf, *n.FirstNonFinite)
		}
		t.Scales.printFaults(w)
		t.printUnjudged(w)
	}
	if len(r.Files) > 1 {
		fmt.Fprintln(w)
		for i, f := range r.Files {
			fmt.Fprintf(w, "file %d: %s\n", i+1, textout.Name(f.Path))
		}
	}
}

func (r *Report) introduction(shown int, v View) string {
	which := "Tensors"
	if shown < len(r.Tensors) {
		which = fmt.Sprintf("%d of %d tensors", shown, len(r.Tensors))
	}
	order := v.Sort.said()
	if r.Judge == "" {
		return fmt.Sprintf("%s, %s:", which, order)
	}
	return fmt.Sprintf("%s, %s; lost (saturated, flushed or made NaN), row and block error and SQNR in dB are under %s:", which, order, r.Judge)
}

// columns are the titles of the columns before the name.
func (r *Report) columns() []string {
	titles := []string{"type", "shape", "amax", "crest"}
	if len(r.Ranking) > 0 {
		titles = append(titles, "lost", "row", "block", "SQNR")
	}
	if len(r.Files) > 1 {
		titles = append(titles, "file")
	}
	return titles
}

// cells are what stands in columns.
func (r *Report) cells(t *TensorReport) []string {
	cells := []string{t.typeName(), shape(t.weightShape), amax(t), crest(t)}
	if len(r.Ranking) > 0 {
		lost, row, block := "-", "-", "-"
		if of := t.under(r.Judge); of != nil {
			lost, row, block = percent(jsonout.Number(t.lost(of))), percent(of.RowError), percent(of.BlockError)
		}
		cells = append(cells, lost, row, block, textout.Decibels(r.sqnr(t)))
	}
	if len(r.Files) > 1 {
		cells = append(cells, strconv.Itoa(t.file+1))
	}
	return cells
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

// printUnjudged says why the values of a tensor were not read, unless that has been said.
func (t *TensorReport) printUnjudged(w io.Writer) {
	if t.NotJudged != "" && !t.Scales.faulty() {
		fmt.Fprintf(w, "    %s\n", textout.Wrap("^ not judged: "+textout.Name(t.NotJudged), 76, "      "))
	}
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

func rangeBits(t *TensorReport) string {
	if bits := t.values().bits; bits == bits {
		return strconv.FormatFloat(bits, 'f', 1, 64)
	}
	return "-"
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

func columnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	return widths
}

// leftColumns are the type and the shape, whose cells begin at the left.
const leftColumns = 2

func printCells(w io.Writer, cells []string, widths []int, name string) {
	fmt.Fprint(w, "  ")
	for i, cell := range cells {
		if i < leftColumns {
			fmt.Fprintf(w, "%-*s ", widths[i], cell)
		} else {
			fmt.Fprintf(w, "%*s ", widths[i], cell)
		}
	}
	fmt.Fprintln(w, name)
}
