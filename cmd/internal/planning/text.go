package planning

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/plan"
)

// WriteText prints the report for people.
func (r *Report) WriteText(stdout io.Writer) error {
	w := textout.NewWriter(stdout)
	for _, line := range []string{r.ModelText(), r.LayoutText(), r.JobText()} {
		fmt.Fprintln(w, textout.Wrap(line, 80, ""))
	}
	fmt.Fprintf(w, "\nGiB on a rank of each stage\n\n")
	r.writeTable(w)
	if r.HasClasses() {
		r.writeClasses(w)
	}
	fmt.Fprintln(w)
	for _, line := range append(r.Findings(), r.Sentences()...) {
		fmt.Fprintln(w, textout.Wrap(line, 80, ""))
	}
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
		if slices.Contains(r.TooLarge, s.Stage) {
			rows[i][total] = textout.Wrong(rows[i][total])
		}
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
		return fmt.Sprintf("Serves in %s: %s of %s on each data-parallel rank, %s at once.", r.recipe(),
			count(s.Sequences, "sequence"), count(s.Tokens, "token"), grouped(int64(s.Chunk)))
	}
	t := r.Training
	return fmt.Sprintf("Trains in %s: sequences of %s, %s in a micro-batch, %s in a step of a data-parallel rank.",
		r.recipe(), count(t.Sequence, "token"), grouped(int64(t.Batch)), count(t.Batches, "micro-batch"))
}

// recipe is the name of the precision.
func (r *Report) recipe() string {
	if r.Precision.Name == "" {
		return "a precision of its own"
	}
	return textout.Name(r.Precision.Name)
}

// Findings say whether a card holds it, and how long it takes, if that was asked.
func (r *Report) Findings() (all []string) {
	if s := r.Stages[r.Highest]; r.Headroom != nil {
		fits := "holds that"
		if n := len(r.TooLarge); n > 0 {
			fits = fmt.Sprintf("does not hold %s of %d", count(n, "stage"), len(r.Stages))
		}
		all = append(all, fmt.Sprintf("A card of %g GiB %s: %.2f GiB are reserved on stage %d, with a headroom of %.4g%% for fragments.",
			r.Card, fits, gibUp(s.Reserved(*r.Headroom)), s.Stage, *r.Headroom*100))
	}
	return append(all, r.run()...)
}

// Sentences say what else follows from the table.
func (r *Report) Sentences() []string {
	s := r.Stages[r.Highest]
	most := fmt.Sprintf("Stage %d needs most: %.2f GiB on each of its ranks, at: %s", s.Stage, gib(s.Total()), s.At)
	if r.Training != nil {
		most += fmt.Sprintf(", with %s kept, of %.2f GiB for a micro-batch on all of them", count(s.InFlight, "forward pass"), gib(s.Microbatch))
		if r.Layout.Virtual == 1 {
			most = strings.Replace(most, " on all of them", "", 1)
		}
	}
	uncounted := "Fragments, contexts of devices and buffers of communication are not counted."
	if r.Headroom != nil {
		uncounted = "Contexts of devices and buffers of communication are not counted."
	}
	all := append([]string{most + "."}, r.again()...)
	return append(append(all, uncounted, r.compute()), r.step()...)
}

func (r *Report) compute() string {
	f := r.FLOPs
	if r.Serving != nil {
		return fmt.Sprintf("The next token after all others takes %s, %s of them in products with weights; in all layers a token leaves %s bytes of keys and values.",
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
	return []string{fmt.Sprintf("A step has %s, which are %s, and takes %.4g s at %.4g TFLOP/s a card. Stages wait for each other for %.1f%% of the time that they work, which is a part of what the efficiency is below 100%%.",
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
