package benchreport

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// PeerResult is what octavo bench --peers prints as JSON.
type PeerResult struct {
	Machine machine.Info `json:"machine"`
	Date    string       `json:"date"`
	*bench.PeerReport
	Against *Against `json:"against,omitempty"`
	Command string   `json:"command"` // what repeats the run
}

// Against is what a table of an earlier run says about this one.
type Against struct {
	File   string         `json:"file"`
	Model  string         `json:"model"` // of the processor
	BLAS   string         `json:"blas"`
	OneDNN string         `json:"oneDNN"`
	Both   int            `json:"both"` // ratios that both know
	Worse  []bench.Change `json:"worse"`
	Better []bench.Change `json:"better"`
}

// Compare compares the run with a table of ratios.
func (r *PeerResult) Compare(file string, t RatioTable) {
	a := &Against{File: file, Model: t.Machine.Processor(), BLAS: t.BLAS, OneDNN: t.OneDNN}
	a.Worse, a.Better, a.Both = bench.Changes(t.Ratios, r.Ratios(), r.Spread)
	r.Against = a
}

// AddFiles adds the page, the JSON and the table of ratios to what a run writes.
func (r PeerResult) AddFiles(run *outdir.Run) error {
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{pageName, r.writePage},
		{"bench.json", func(w io.Writer) error { return jsonout.Print(w, r) }},
		{ratiosName, r.ratioTable().write},
	} {
		if err := run.Add(file.name, file.write); err != nil {
			return err
		}
	}
	return nil
}

// Manifest says what the run of a directory is.
func (r PeerResult) Manifest() outdir.Manifest {
	return outdir.Manifest{Kind: "bench", Command: r.Command, Machine: machineText(r.Machine)}
}

// WriteText writes the tables for people, and where the files are.
func (r PeerResult) WriteText(w io.Writer, dir string) error {
	for _, line := range r.Lines() {
		textout.Paragraph(w, line, "  ")
	}
	fmt.Fprintln(w)
	textout.Paragraph(w, legend+briefLegend, "")
	for _, t := range r.tables(putBrief) {
		fmt.Fprintln(w)
		if err := t.print(w); err != nil {
			return err
		}
	}
	for _, line := range append(r.Remarks(), r.Earlier()...) {
		fmt.Fprintln(w)
		textout.Paragraph(w, line, "  ")
	}
	if dir == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nTables and how to repeat it: %s\n", textout.Name(filepath.Join(dir, pageName)))
	return err
}

const legend = `Products of octavo are E4M3, scales 1x128 by 128x128; peers' are of the type that their name says, without scales. Rates are the best, GFLOP/s or, of conversions, GB/s of float32. A ratio is octavo's rate divided by the other's in the same round: the median of all rounds, and half of its 95% interval after ±, or ? of fewer than six rounds; then the ratio of the best rates, with ! where it is outside of the interval, so that one of the two misleads. In each round the roof is the best of three short spins, a rate the mean of a turn.`

const briefLegend = ` OpenBLAS is its sgemm or sgemv; f32, bf16 and fp8 are oneDNN's, with weights as they are or reordered, whichever was faster.`

// Lines say what was compared with what.
func (r PeerResult) Lines() []string {
	lines := []string{
		machineText(r.Machine),
		fmt.Sprintf("Processor: %s; %s; %s", r.Machine.Processor(), r.Machine.CacheText(), strings.Join(r.Machine.Features, " ")),
		fmt.Sprintf("Peers: %s, which takes this processor for %s; %s", r.Program.BLAS, coreText(r.Program.Core), r.coresText()),
	}
	if r.Program.OneDNN != "" {
		text := "Peers: oneDNN " + r.Program.OneDNN
		if r.Program.Instructions != "" {
			text += " with " + r.Program.Instructions
		}
		lines = append(lines, text)
	}
	return lines
}

func coreText(core string) string {
	if core == "" {
		return "nothing that it names"
	}
	return core
}

// coresText says what OPENBLAS_CORETYPE gave.
func (r PeerResult) coresText() string {
	var texts []string
	for _, c := range r.Cores {
		switch {
		case c.Asked == "":
		case strings.EqualFold(c.Asked, c.Got):
			texts = append(texts, c.Asked)
		case c.Got == "":
			texts = append(texts, c.Asked+" (does not run)")
		default:
			texts = append(texts, fmt.Sprintf("%s (gives %s)", c.Asked, c.Got))
		}
	}
	if len(texts) == 0 {
		return "no other core was tried"
	}
	return "cores tried: " + strings.Join(texts, ", ")
}

// Remarks say which cores were best, what formats oneDNN chose, what could not be had
// and what did not settle.
func (r PeerResult) Remarks() (lines []string) {
	if text := r.choices("Fastest core: ", func(rate bench.Rate) string { return rate.Core }); text != "" {
		lines = append(lines, text)
	}
	if text := r.choices("Formats of reordered weights: ", func(rate bench.Rate) string { return rate.Format }); text != "" {
		lines = append(lines, text)
	}
	if len(r.Notes) > 0 {
		lines = append(lines, "Not to be had: "+strings.Join(r.Notes, "; ")+".")
	}
	if len(r.Failures) > 0 {
		lines = append(lines, "Failed, and left out: "+strings.Join(r.Failures, "; ")+".")
	}
	unsettled := 0
	for _, c := range r.Done {
		if !c.Settled {
			unsettled++
		}
	}
	if unsettled == 0 {
		return append(lines, fmt.Sprintf("All ratios are known to ±%.2g%%.", 100*r.Spread))
	}
	return append(lines, fmt.Sprintf("%d of %d comparisons ended after %v s with a ratio not known to ±%.2g%%.", unsettled, len(r.Done), r.Limit, 100*r.Spread))
}

// choices lists what peers chose, and where.
func (r PeerResult) choices(title string, of func(bench.Rate) string) string {
	var names []string
	where := make(map[string][]string)
	for _, c := range r.Done {
		for _, rate := range c.Rates {
			if choice := of(rate); choice != "" {
				name := rate.By + " " + choice
				if where[name] == nil {
					names = append(names, name)
				}
				where[name] = append(where[name], fmt.Sprintf("%s by %d", c.What, c.Workers))
			}
		}
	}
	var texts []string
	for _, name := range names {
		texts = append(texts, fmt.Sprintf("%s (%s)", name, strings.Join(where[name], ", ")))
	}
	if len(texts) == 0 {
		return ""
	}
	return title + strings.Join(texts, "; ") + "."
}

// Earlier says what the earlier run says, if there is one.
func (r PeerResult) Earlier() (lines []string) {
	a := r.Against
	if a == nil {
		return nil
	}
	text := fmt.Sprintf("Against %s: of %d ratios, %d became worse and %d better: their intervals are more than %.2g%% apart.", textout.Name(a.File), a.Both, len(a.Worse), len(a.Better), 100*r.Spread)
	if len(a.Worse) > 0 {
		text += " Measure what is worse once more, with --shapes and a longer --limit, before believing it."
	}
	if model := r.Machine.Processor(); a.Model != model {
		text += fmt.Sprintf(" It is of another processor: %s.", a.Model)
	}
	if a.BLAS != r.Program.BLAS || a.OneDNN != r.Program.OneDNN {
		text += fmt.Sprintf(" It is of other peers: %s; oneDNN %s.", a.BLAS, cmp.Or(a.OneDNN, "none"))
	}
	lines = append(lines, text)
	for _, list := range []struct {
		word    string
		changes []bench.Change
	}{{"Worse", a.Worse}, {"Better", a.Better}} {
		for _, c := range list.changes {
			lines = append(lines, fmt.Sprintf("%s: %s, %s, %s, to %s: %.3g (%.3g to %.3g), was %.3g (%.3g to %.3g).", list.word,
				rowName(c.What, c.Packed), workersText(c.Workers), c.Level, c.To, c.Median, c.Low, c.High, c.Before.Median, c.Before.Low, c.Before.High))
		}
	}
	return lines
}

func rowName(what string, packed bool) string {
	if packed {
		what += ", packed"
	}
	return what
}

// tables returns one for each unit, number of workers and level, whose rows put fills.
func (r PeerResult) tables(put func(*crossTable, bench.Comparison, bench.Rate)) (tables []*crossTable) {
	type key struct {
		unit    string
		workers int
		level   string
	}
	all := make(map[key]*crossTable)
	for _, c := range r.Done {
		for _, own := range c.Rates {
			if own.By != bench.Octavo {
				continue
			}
			k := key{c.Unit, c.Workers, own.Level}
			t := all[k]
			if t == nil {
				t = &crossTable{corner: fmt.Sprintf("%s, %s, %s", own.Level, workersText(c.Workers), c.Unit)}
				all[k], tables = t, append(tables, t)
			}
			put(t, c, own)
		}
	}
	return tables
}

// putBrief fills the row of one of octavo's rates with a column for each kind of peer,
// the fastest of which counts.
func putBrief(t *crossTable, c bench.Comparison, own bench.Rate) {
	row := rowName(c.What, own.Packed)
	t.put(row, bench.Octavo, "", textout.Rate(own.Best))
	least := make(map[string]bench.RatioTo)
	for _, ratio := range ratiosOf(c, own) {
		kind := briefName(ratio.To)
		if old, ok := least[kind]; !ok || ratio.Median < old.Median {
			least[kind] = ratio
		}
	}
	for _, ratio := range ratiosOf(c, own) {
		kind := briefName(ratio.To)
		t.put(row, kind, "", ratioText(least[kind].Ratio)+" "+bestText(least[kind]))
	}
}

func ratioText(r bench.Ratio) string {
	if !r.Known() {
		return fmt.Sprintf("%.2f±?", r.Median)
	}
	return fmt.Sprintf("%.2f±%.2f", r.Median, (r.High-r.Low)/2)
}

// bestText is the ratio of the best rates, with a mark if the interval does not hold it.
func bestText(r bench.RatioTo) string {
	mark := ""
	if r.Known() && (r.Best < r.Low || r.Best > r.High) {
		mark = "!"
	}
	return fmt.Sprintf("%.2f%s", r.Best, mark)
}

// briefName is the heading of a peer's kind.
func briefName(by string) string {
	switch {
	case strings.HasPrefix(by, "openblas-s"):
		if by == "openblas-sbgemm" {
			return "sbgemm"
		}
		return "OpenBLAS"
	case strings.HasPrefix(by, "onednn-"):
		for _, kind := range []string{"bf16", "fp8"} {
			if strings.Contains(by, kind) {
				return kind
			}
		}
		return "f32"
	}
	return by
}

func ratiosOf(c bench.Comparison, own bench.Rate) (list []bench.RatioTo) {
	for _, ratio := range c.Ratios {
		if ratio.Level == own.Level && ratio.Packed == own.Packed {
			list = append(list, ratio)
		}
	}
	return list
}

// putFull fills it with all that is known about each peer.
func putFull(t *crossTable, c bench.Comparison, own bench.Rate) {
	row := rowName(c.What, own.Packed)
	t.put(row, bench.Octavo, "best", textout.Rate(own.Best))
	t.put(row, bench.Octavo, "median", textout.Rate(own.Median))
	for _, ratio := range ratiosOf(c, own) {
		other := c.Rates[slices.IndexFunc(c.Rates, func(o bench.Rate) bool {
			return o.By == ratio.To && (o.Level == "" || o.Level == own.Level) && (o.By != bench.OneProduct && o.By != bench.InFP8 || o.Packed == own.Packed)
		})]
		t.put(row, ratio.To, "best", textout.Rate(other.Best))
		t.put(row, ratio.To, "ratio", ratioText(ratio.Ratio))
		t.put(row, ratio.To, "of best", bestText(ratio))
	}
}
