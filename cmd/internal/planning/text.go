package planning

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/plan"
)

// WriteText prints the report for people.
func (r *Report) WriteText(stdout io.Writer) error {
	w := textout.NewWriter(stdout)
	say := func(lines ...string) {
		for _, line := range lines {
			textout.Paragraph(w, line, "")
		}
	}
	outcome, found := r.Outcome()+".", r.Findings()
	if r.Headroom != nil {
		outcome, found = outcome+" "+found[0], found[1:]
	}
	say(append([]string{outcome}, found...)...)
	fmt.Fprintln(w)
	say(r.ModelText(), r.LayoutText(), r.JobText())
	fmt.Fprintf(w, "\nGiB on a rank of each stage\n\n")
	r.writeTable(w)
	if r.HasClasses() {
		r.writeClasses(w)
	}
	fmt.Fprintln(w)
	say(r.Sentences()...)
	return w.Flush()
}

// kinds are the columns of the table: those of which there is something.
func (r *Report) kinds() (all []kind) {
	for _, k := range []kind{
		{"weights", "weights", func(s plan.Stage) int64 { return s.Weights }},
		{"gradients", "grads", func(s plan.Stage) int64 { return s.Gradients }},
		{"optimizer", "optimizer", func(s plan.Stage) int64 { return s.Optimizer }},
		{"activations", "activations", func(s plan.Stage) int64 { return s.Activations }},
		{"KV cache", "KV", func(s plan.Stage) int64 { return s.Cache }},
		{"workspace", "work", func(s plan.Stage) int64 { return s.Workspace }},
	} {
		var sum int64
		for _, s := range r.Stages {
			sum += k.of(s)
		}
		if sum > 0 {
			all = append(all, k)
		}
	}
	return all
}

// kind is a kind of memory.
type kind struct {
	Name, short string
	of          func(plan.Stage) int64
}

func (r *Report) writeTable(w io.Writer) {
	columns, rows := r.Table()
	for i, k := range r.kinds() {
		columns[3+i] = k.short
	}
	total := len(columns) - 1
	for i, s := range r.Stages {
		rows[i][total] = textout.WrongIf(slices.Contains(r.TooLarge, s.Stage), rows[i][total])
	}
	writeRows(w, columns, rows)
}

// writeRows writes a table.
func writeRows(w io.Writer, columns []string, rows [][]string) {
	t := textout.NewTable(w)
	for _, row := range append([][]string{columns}, rows...) {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush()
}

// Table has a row for each stage.
func (r *Report) Table() (columns []string, rows [][]string) {
	kinds := r.kinds()
	columns = []string{"stage", "ranks", "layers"}
	for _, k := range kinds {
		columns = append(columns, k.Name)
	}
	columns = append(columns, "total")
	for _, s := range r.Stages {
		row := []string{strconv.Itoa(s.Stage), ranks(s), strconv.Itoa(s.Layers)}
		for _, k := range kinds {
			row = append(row, fmt.Sprintf("%.2f", gib(k.of(s))))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f", gib(s.Total()))))
	}
	return columns, rows
}

func ranks(s plan.Stage) string {
	if s.Ranks == 1 {
		return strconv.Itoa(s.First)
	}
	return fmt.Sprintf("%d-%d", s.First, s.First+s.Ranks-1)
}

// ModelText says what the model is.
func (r *Report) ModelText() string {
	text := fmt.Sprintf("%s: %s parameters", r.ModelName(), grouped(r.Parameters.Total))
	if r.Parameters.Active != r.Parameters.Total {
		text += fmt.Sprintf(", %s on the path of a token", grouped(r.Parameters.Active))
	}
	return text + "."
}

// ModelName is the name of the model, or of its kind.
func (r *Report) ModelName() string { return textout.Name(r.Model.Name) }

// LayoutText says what ranks there are.
func (r *Report) LayoutText() string {
	l := r.Layout
	parts := []string{count(l.Ranks, "rank")}
	for _, p := range []struct {
		ranks int
		name  string
	}{
		{l.Tensor, "tensor"}, {l.Context, "context"}, {l.Pipeline, "pipeline"}, {l.Expert, "expert"}, {l.ExpertTensor, "expert tensor"},
	} {
		if p.ranks > 1 {
			parts = append(parts, fmt.Sprintf("%d %s parallel", p.ranks, p.name))
		}
	}
	parts = append(parts, fmt.Sprintf("%d data parallel", r.Data))
	if l.Virtual > 1 {
		parts = append(parts, count(l.Virtual, "chunk")+" of layers on a stage")
	}
	if l.Zero > 0 {
		parts = append(parts, fmt.Sprintf("ZeRO-%d", l.Zero))
	}
	return strings.Join(parts, ", ") + "."
}

// JobText says what is done.
func (r *Report) JobText() string {
	if s := r.Serving; s != nil {
		text := fmt.Sprintf("Serves %s: %s of %s at a time on each data-parallel rank", r.recipe(), count(s.Sequences, "sequence"), count(s.Tokens, "token"))
		if int64(s.Chunk) < int64(s.Sequences)*int64(s.Tokens) {
			text += fmt.Sprintf("; prompts are computed in chunks of %s", count(s.Chunk, "token"))
		}
		return text + "."
	}
	t := r.Training
	return fmt.Sprintf("Trains %s: a step is %s on each data-parallel rank, each of %s of %s.",
		r.recipe(), count(t.Batches, "micro-batch"), count(t.Batch, "sequence"), count(t.Sequence, "token"))
}

// recipe says how numbers are stored, and whether weights are published so.
func (r *Report) recipe() string {
	switch name := r.Precision.Name; {
	case name == "":
		return "in a precision of its own"
	case r.Serving != nil && name == r.Model.Published:
		return "as published, by recipe " + name
	default:
		return "by recipe " + textout.Name(name)
	}
}

// Outcome is the finding: whether a card holds it and by how much, or without one what it takes.
func (r *Report) Outcome() string {
	s := r.Stages[r.Highest]
	if r.Headroom == nil {
		text := fmt.Sprintf("%s takes %.2f GiB on a rank", r.ModelName(), gib(s.Total()))
		if len(r.Stages) > 1 {
			text += fmt.Sprintf(" of stage %d, which needs most", s.Stage)
		}
		return text
	}
	spare := r.ask.card() - s.Reserved(*r.Headroom)
	if len(r.TooLarge) > 0 {
		return fmt.Sprintf("%s does not fit a card of %g GiB: %.2f GiB are missing", r.ModelName(), r.Card, gibUp(-spare))
	}
	return fmt.Sprintf("%s fits a card of %g GiB: %.2f GiB are spare", r.ModelName(), r.Card, math.Abs(gibUp(-spare)))
}

// Findings say what a card is to hold, and with which flags one would, and how long it takes, if that was asked.
func (r *Report) Findings() (all []string) {
	if s := r.Stages[r.Highest]; r.Headroom != nil {
		most := "A rank needs"
		if len(r.Stages) > 1 {
			most = fmt.Sprintf("A rank of stage %d needs most,", s.Stage)
		}
		most += fmt.Sprintf(" %.2f GiB, %.2f with a headroom of %.4g%% for fragments", gib(s.Total()), gibUp(s.Reserved(*r.Headroom)), *r.Headroom*100)
		if n := len(r.TooLarge); n > 0 && len(r.Stages) > 1 {
			most += fmt.Sprintf("; %d of %s %s not fit", n, count(len(r.Stages), "stage"), map[bool]string{true: "does", false: "do"}[n == 1])
		}
		all = append(all, most+".")
	}
	if r.searched {
		text := r.ask.NearestText(r.Nearest)
		all = append(all, "N"+text[1:]+".")
	}
	return append(all, r.run()...)
}

// Sentences say what else follows from the table.
func (r *Report) Sentences() []string {
	s := r.Stages[r.Highest]
	at, pass, trains := strings.Cut(s.At, ", ")
	most := fmt.Sprintf("Most is needed while %s is computed", at)
	if trains {
		most = fmt.Sprintf("Most is needed in the %s pass of %s", pass, at)
	}
	switch {
	case r.Training != nil && r.Layout.Virtual > 1:
		most += fmt.Sprintf(", with activations of %s of layers kept; those of a micro-batch on all chunks are %.2f GiB", count(s.InFlight, "chunk"), gib(s.Microbatch))
	case r.Training != nil:
		most += fmt.Sprintf(", with activations of %s kept: %.2f GiB%s", count(s.InFlight, "micro-batch"), gib(s.Activations), whole(s))
	}
	uncounted := "Fragments, contexts of devices and buffers of communication are not counted."
	if r.Headroom != nil {
		uncounted = "Contexts of devices and buffers of communication are not counted."
	}
	all := append([]string{most + "."}, r.again()...)
	return append(append(all, uncounted, r.compute()), r.step()...)
}

// whole says what the forward pass of a micro-batch leaves, where there is not as much of each.
func whole(s plan.Stage) string {
	each, all := fmt.Sprintf("%.2f GiB", gib(s.Microbatch)), int64(s.InFlight)*s.Microbatch
	switch {
	case s.Activations < all:
		return fmt.Sprintf("; the forward pass of one leaves %s, of which not all is there then", each)
	case s.Activations > all:
		return fmt.Sprintf("; the forward pass of one leaves %s, and what is computed again is there too", each)
	case s.InFlight > 1:
		return ", " + each + " each"
	}
	return ""
}

func (r *Report) compute() string {
	f := r.FLOPs
	if r.Serving != nil {
		return fmt.Sprintf("The last token of a sequence takes %s, %s of them in products with weights. Each token leaves %s bytes of keys and values in all layers together.",
			flops(f.Masked()), flops(f.Products), grouped(r.Serving.KVBytes))
	}
	return fmt.Sprintf("A token takes %s with a causal mask: %s in products with weights and %s in attention (%s without the mask).",
		flops(f.Masked()), flops(f.Products), flops(f.Causal), flops(f.Full))
}

// step says how long one takes.
func (r *Report) step() []string {
	s := r.Step
	if s == nil {
		return nil
	}
	rate := s.FLOPs / (s.Seconds * float64(r.Layout.Ranks))
	return []string{fmt.Sprintf("A step has %s, which are %s, and takes %.4g s at %.4g TFLOP/s a card. Stages wait for each other for %.1f%% of the time that they work, which is one reason why the MFU is below 100%%.",
		count64(s.Tokens, "token"), flops(s.FLOPs), s.Seconds, rate/1e12, 100*s.Bubble)}
}

// run says how long the whole training takes.
func (r *Report) run() []string {
	n := r.Run
	if n == nil {
		return nil
	}
	head := fmt.Sprintf("%s tokens are %s (%.4g): on %s ", large(n.Tokens), flops(n.FLOPs), n.FLOPs, r.cards())
	switch {
	case n.Stated == "mfu":
		return []string{head + fmt.Sprintf("%s at the stated MFU of %.4g%%.", days(n.Days), 100*n.MFU)}
	case n.MFU > 1:
		return []string{head + fmt.Sprintf("the stated %.4g days would be an MFU of %.4g%%, which cannot be.", n.Days, 100*n.MFU)}
	}
	return []string{head + fmt.Sprintf("the stated %.4g days are an MFU of %.4g%%.", n.Days, 100*n.MFU)}
}

func count(n int, what string) string { return count64(int64(n), what) }

func count64(n int64, what string) string {
	text := grouped(n) + " " + what
	switch {
	case n == 1:
		return text
	case strings.HasSuffix(what, "ch") || strings.HasSuffix(what, "s"):
		return text + "es"
	}
	return text + "s"
}

// grouped writes digits in groups of three.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
