package evaluate

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab/page"
	"github.com/octavo-fp8/octavo/nn/evaluate"
)

// Budget is what was found for a budget: a recipe for each linear layer, chosen on the first tokens
// of a text. The report that it is in is of those after them.
type Budget struct {
	Asked float64       `json:"asked"` // bits a weight
	Bits  float64       `json:"bits"`  // of what was chosen
	Mode  evaluate.Mode `json:"mode"`

	// Chosen has all linear layers but experts that no token went to, whose recipe is that of others.
	Chosen []Choice `json:"chosen"`

	Uniform     []Uniform            `json:"uniform"`     // one recipe for all
	Sensitivity *evaluate.Evaluation `json:"sensitivity"` // on the tokens that it was chosen by

	result *evaluate.Result
}

// Choice is the recipe of a linear layer.
type Choice struct {
	Name   string `json:"name"`
	Layer  int    `json:"layer"`
	Kind   string `json:"kind"`
	Recipe string `json:"recipe"`
}

// Uniform is one recipe for all linear layers, and what those that were chosen lose, and diverge
// from FP32, more than it.
type Uniform struct {
	Recipe string        `json:"recipe"`
	Bits   float64       `json:"bits"`
	Fits   bool          `json:"fits"` // the budget
	Loss   evaluate.Mean `json:"mixedLossMore"`
	KL     evaluate.Mean `json:"mixedKLMore"`

	result *evaluate.Result
}

// Mixed is the name of the recipe that was chosen.
const Mixed = "mixed"

// NewBudget returns what was found: e is of the text that the choice is judged by, and has the mixed
// recipe as its last result, behind those of which bits are given.
func NewBudget(asked, mixed float64, bits map[string]float64, chosen []Choice, sensitivity, e *evaluate.Evaluation) *Budget {
	own := &e.Results[len(e.Results)-1]
	b := &Budget{Asked: asked, Bits: mixed, Mode: own.Mode, Chosen: chosen, Sensitivity: sensitivity, result: own}
	for i := range e.Results[:len(e.Results)-1] {
		of := &e.Results[i]
		u := Uniform{Recipe: of.Recipe, Bits: bits[of.Recipe], Fits: bits[of.Recipe] <= asked, result: of}
		u.Loss, u.KL = own.Against(of)
		b.Uniform = append(b.Uniform, u)
	}
	return b
}

// best returns the recipe for all linear layers that fits, has finite logits and loses least; nil if
// none does.
func (b *Budget) best() (best *Uniform) {
	for i := range b.Uniform {
		u := &b.Uniform[i]
		if u.Fits && u.result.NonFinite == 0 && (best == nil || u.result.Difference.Mean < best.result.Difference.Mean) {
			best = u
		}
	}
	return best
}

// enough is how many windows a verdict needs, and errorsApart by how many standard errors that of a
// difference must be off zero.
const (
	enough      = 8
	errorsApart = 3
)

// Told says what a difference over so many windows shows: less or more, formats of its size, or
// nothing where it is not told apart from none.
func Told(d evaluate.Mean, windows int, less, more string) string {
	x, e := float64(d.Mean), float64(d.Error)
	amount := plusMinus(math.Abs(x), e, "%.3g")
	switch {
	case x != x || e != e || windows < enough || math.Abs(x) <= errorsApart*e:
		return ""
	case x < 0:
		return fmt.Sprintf(less, amount)
	}
	return fmt.Sprintf(more, amount)
}

// Finding says how good what was chosen is on the text of r, and no more than standard errors show.
func (b *Budget) Finding(r *Report) string {
	windows, reference := r.Windows, r.reference()
	head := fmt.Sprintf("A mixed recipe of %s bits a weight fits into %s", bitsText(b.Bits), bitsText(b.Asked))
	recipes := map[string]bool{}
	for _, c := range b.Chosen {
		recipes[c.Recipe] = true
	}
	best := b.best()
	switch {
	case len(recipes) == 1:
		return fmt.Sprintf("Nothing mixed was found better within %s bits a weight than %s for all linear layers, of %s bits.",
			bitsText(b.Asked), b.Chosen[0].Recipe, bitsText(b.Bits))
	case b.result.NonFinite > 0:
		return fmt.Sprintf("%s, and its logits are NaN or infinite for %s.", head, textout.Count(b.result.NonFinite, "token"))
	case best == nil && slices.ContainsFunc(b.Uniform, func(u Uniform) bool { return u.Fits }):
		head += ", and no recipe for all linear layers that does has finite logits"
	case best == nil:
		head += ", and no recipe for all linear layers does"
	}
	if best == nil {
		return head + ". It loses " +
			plusMinus(float64(b.result.Difference.Mean), float64(b.result.Difference.Error), "%.3g") + " nats a token more than " + reference + "."
	}
	head += fmt.Sprintf(". Of single recipes that fit, %s, of %s bits, loses least. ", best.Recipe, bitsText(best.Bits))
	if windows < enough {
		return fmt.Sprintf("%s%s are too few to compare the two: %d would do.", head, textout.Count(windows, "window"), enough)
	}
	if Told(best.Loss, windows, "%s", "%s")+Told(best.KL, windows, "%s", "%s") == "" {
		return head + "Neither their losses nor their divergences from " + reference + " are told apart."
	}
	loss := cmp.Or(Told(best.Loss, windows, "The mixed one loses %s nats a token less", "The mixed one loses %s nats a token more"),
		"Their losses are not told apart")
	kl := cmp.Or(Told(best.KL, windows, "the mixed one diverges less from "+reference+", by %s nats", "the mixed one diverges more from "+reference+", by %s nats"),
		"their divergences from "+reference+" are not told apart")
	return head + loss + "; " + kl + "."
}

func bitsText(x float64) string { return fmt.Sprintf("%.4g", x) }

// counted says what bits are of.
const counted = "Bits a weight are the codes and scales of the linear layers that are quantized, by all " +
	"of their values: not biases, embedding, norms, routers and head."

func (b *Budget) writeText(w io.Writer, r *Report, top int) {
	fmt.Fprintln(w)
	t := textout.NewTable(w)
	fmt.Fprintln(t, b.Mode.String()+"\tbits\tperplexity\tloss\tKL\tmixed minus it: loss\tKL")
	for _, u := range b.Uniform {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", u.Recipe, bitsText(u.Bits), perplexityCell(u.result),
			lossText(u.result.Difference), klText(u.result.KL), lossText(u.Loss), lossText(u.KL))
	}
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", Mixed, bitsText(b.Bits), perplexityCell(b.result),
		lossText(b.result.Difference), klText(b.result.KL))
	t.Flush()
	fmt.Fprintln(w)
	textout.Paragraph(w, fmt.Sprintf("The mixed recipe was chosen by what layers cost on the %d tokens before these. %s ± is a standard error; "+
		"a difference that is not more than %d of them is not told apart from none.", b.Sensitivity.Tokens, counted, errorsApart), "")
	fmt.Fprintln(w)
	for _, line := range b.Lines() {
		textout.Paragraph(w, line, "  ")
	}
	s := &Report{Evaluation: b.Sensitivity}
	for _, of := range s.Judged() {
		s.writeWorst(w, of, top)
	}
}

// lossText writes a difference of losses.
func lossText(m evaluate.Mean) string { return plusMinus(float64(m.Mean), float64(m.Error), "%+.2g") }

// Lines say which linear layers have which recipe, the most frequent one last.
func (b *Budget) Lines() (lines []string) {
	layers := map[string]map[string][]int{} // of recipes and kinds
	count := map[string]int{}
	var kinds []string
	for _, c := range b.Chosen {
		if layers[c.Recipe] == nil {
			layers[c.Recipe] = map[string][]int{}
		}
		if of := layers[c.Recipe][c.Kind]; len(of) == 0 || of[len(of)-1] != c.Layer {
			layers[c.Recipe][c.Kind] = append(of, c.Layer)
		}
		if !slices.Contains(kinds, c.Kind) {
			kinds = append(kinds, c.Kind)
		}
		count[c.Recipe]++
	}
	recipes := slices.SortedFunc(maps.Keys(layers), func(a, b string) int { return cmp.Or(count[a]-count[b], cmp.Compare(a, b)) })
	for i, name := range recipes {
		if i > 0 && i == len(recipes)-1 {
			return append(lines, name+": all others.")
		}
		var parts []string
		for _, k := range kinds {
			if of := layers[name][k]; of != nil {
				parts = append(parts, k+" of "+textout.Ranges(of))
			}
		}
		lines = append(lines, name+": "+strings.Join(parts, "; ")+".")
	}
	return lines
}

// put puts what was found on a page, with the layers alone that it was chosen by.
func (b *Budget) put(p *page.Page, r *Report) {
	p.Put("<h2>%s bits a weight</h2>\n", bitsText(b.Asked))
	t := frame.Table{Label: "Recipes for the budget", Columns: slices.Concat(frame.Columns(frame.Whole, "recipe"),
		frame.Columns(frame.Number, "bits", "loss above that of "+r.reference(), "KL", "mixed minus it: loss", "KL"))}
	for _, u := range b.Uniform {
		t.Rows = append(t.Rows, []any{u.Recipe, bitsText(u.Bits), lossText(u.result.Difference), klText(u.result.KL), lossText(u.Loss), lossText(u.KL)})
	}
	t.Rows = append(t.Rows, []any{Mixed, bitsText(b.Bits), lossText(b.result.Difference), klText(b.result.KL), "", ""})
	p.Table(t)
	p.Put("<p>%s The mixed recipe was chosen by what layers cost on the %s tokens before those that it is judged by:</p>\n<ul>", counted, b.Sensitivity.Tokens)
	for _, line := range b.Lines() {
		p.Put("<li>%s</li>\n", line)
	}
	p.Put("</ul>\n")
	(&Report{Stored: r.Stored, Evaluation: b.Sensitivity}).putLayers(p)
}
