package inspect

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/scaling"
)

// Advice is what follows from the weights alone.
type Advice struct {
	Sentence string          `json:"sentence"`
	Command  string          `json:"command,omitempty"` // that does it
	Recipe   scaling.Profile `json:"recipe,omitempty"`  // "": none is advised
	Repair   []string        `json:"repair,omitempty"`  // tensors with values that are NaN or infinite
	Keep     []Kept          `json:"keep,omitempty"`    // matrices that should not be encoded, the riskiest first
}

// Kept is a matrix that should stay as it is, though it is no part of a model that does.
type Kept struct {
	File   string `json:"file,omitempty"` // where there are several
	Tensor string `json:"tensor"`
	Why    string `json:"why"`
}

// keeping says why a matrix should stay as it is, "" if nothing speaks against a recipe: what that
// loses of it is more than half a step, of which rounding within the range of a format moves a value
// at most.
func (t *TensorReport) keeping(of *RecipeReport, halfStep float64) string {
	switch lost := t.lost(of); {
	case of.BecameNonFinite > 0:
		return textout.Count(of.BecameNonFinite, "value") + " would become NaN or infinite"
	case lost > halfStep:
		return percent(jsonout.Number(lost)) + " of what is not zero would be lost"
	case float64(of.RowError) > halfStep:
		return "a row with an error of " + percent(of.RowError)
	case float64(of.BlockError) > halfStep:
		return "a mean error of blocks of " + percent(of.BlockError)
	}
	return ""
}

// advise makes one sentence of what was found.
func (r *Report) advise() (a Advice) {
	var plain []*TensorReport // matrices of values to quantize, which are no codes and not all zero
	codes, zeros := 0, 0
	for _, t := range r.view(View{Sort: ByRisk}) {
		switch {
		case t.Values.nonFinite() > 0:
			a.Repair = append(a.Repair, t.Name)
		case len(t.Recipes) == 0 || t.part != nil:
		case t.Scheme != "":
			codes++
		case t.Values.Amax == 0:
			zeros++
		default:
			plain = append(plain, t)
			if t.Risk.Keep != "" {
				a.Keep = append(a.Keep, Kept{t.File, t.Name, t.Risk.Keep})
			}
		}
	}
	said, stay := "", r.stay()
	switch n := len(plain); {
	case n == 0:
		if said = r.unadvised(codes, zeros, len(a.Repair)); said != "" {
			said += staying(stay)
		}
	case 2*len(a.Keep) > n:
		said = fmt.Sprintf("keep the matrices in %s: under %s, %s, %d of %s would lose too much: %s",
			typesOf(append(plain, stay...)), r.Judge, r.best(), len(a.Keep), r.several(n), firstOf(a.Keep))
	default:
		a.Recipe = r.Judge
		where := "in all " + r.several(n+zeros)
		switch part := r.Stopped() || r.Selected < r.All || r.Totals.NotJudged+len(a.Repair) > 0; {
		case part && codes > 0:
			where = "in " + r.several(n) + " that could be judged, beside codes"
		case part:
			where = "in " + r.several(n) + " that could be judged"
		case codes > 0:
			where = "in " + r.several(n) + " not encoded yet"
		case len(a.Keep) > 0:
			where = fmt.Sprintf("in %d of %s", n+zeros-len(a.Keep), r.several(n+zeros))
		case n+zeros == 1:
			where = "in the only " + strings.TrimPrefix(r.several(1), "1 ")
		}
		said = fmt.Sprintf("%s under %s, a scale for each %s, %s", r.Format, r.Judge, r.Ranking[0].Block, where)
		switch len(a.Keep) {
		case 0:
			said += "; none would lose enough to stay in " + typesOf(plain)
		case 1:
			said += fmt.Sprintf("; keep %s in %s: %s", briefly(a.Keep[0].Tensor), typesOf(plain), a.Keep[0].Why)
		default:
			said += fmt.Sprintf("; keep %d in %s: %s", len(a.Keep), typesOf(plain), firstOf(a.Keep))
		}
		if said += staying(stay); len(stay) > 0 && len(a.Keep) > 0 {
			said += ", too"
		}
	}
	if n := len(a.Repair); n > 0 {
		first := fmt.Sprintf("repair %s first: it has values that are NaN or infinite", briefly(a.Repair[0]))
		if n > 1 {
			first = fmt.Sprintf("repair %d tensors first, such as %s: they have values that are NaN or infinite", n, briefly(a.Repair[0]))
		}
		said = strings.TrimSuffix(first+"; then "+said, "; then ")
	}
	a.Sentence = strings.ToUpper(said[:1]) + said[1:] + "."
	return a
}

// stay returns the finite matrices that are parts of a model which are not quantized.
func (r *Report) stay() (all []*TensorReport) {
	for i := range r.Tensors {
		if t := &r.Tensors[i]; t.part != nil && t.Values.nonFinite() == 0 {
			all = append(all, t)
		}
	}
	return all
}

// staying says which parts of a model stay, "" if there are none.
func staying(all []*TensorReport) string {
	var parts []string
	counts := map[*checkpoint.Part]int{} // of those that are not said yet
	for _, t := range all {
		counts[t.part]++
	}
	for _, t := range all {
		switch n := counts[t.part]; n {
		case 0:
		case 1:
			parts = append(parts, "the "+t.part.Name)
		default:
			parts = append(parts, textout.Count(n, t.part.Name))
		}
		delete(counts, t.part)
	}
	switch said := "; " + strings.Join(parts, " and "); len(all) {
	case 0:
		return ""
	case 1:
		return said + " stays in " + typesOf(all)
	default:
		return said + " stay in " + typesOf(all)
	}
}

// unadvised says why no recipe is advised where there is no matrix to encode; nothing where
// what must be repaired is the reason.
func (r *Report) unadvised(codes, zeros, repair int) string {
	switch {
	case codes > 0 && r.Totals.NotJudged == 0:
		return fmt.Sprintf("nothing to decide: what could be quantized is codes already, %s", matrices(codes))
	case codes > 0:
		return fmt.Sprintf("nothing to decide of what could be read, %s of codes; %s could not be judged", matrices(codes), textout.Count(r.Totals.NotJudged, "tensor"))
	case r.Totals.NotJudged > 0:
		return fmt.Sprintf("no advice: %s could not be judged, and there is no matrix of values to quantize", textout.Count(r.Totals.NotJudged, "tensor"))
	case zeros > 0:
		return fmt.Sprintf("no advice: all values are 0, in %s", matrices(zeros))
	case repair > 0:
		return ""
	}
	return "no advice: there is no matrix of values to quantize among what was read"
}

// best says which of the recipes the judging one is.
func (r *Report) best() string {
	if n := len(r.Ranking); n > 1 {
		return fmt.Sprintf("the best of %d recipes", n)
	}
	return "the only recipe tried"
}

func matrices(n int) string {
	if n == 1 {
		return "1 matrix"
	}
	return fmt.Sprintf("%d matrices", n)
}

// several counts what is quantized: projections, where there is a part of a model that is not.
func (r *Report) several(n int) string {
	if len(r.stay()) > 0 {
		return textout.Count(n, "projection")
	}
	return matrices(n)
}

// typesOf is the type of tensors.
func typesOf(tensors []*TensorReport) string {
	for _, t := range tensors {
		if t.DType != tensors[0].DType {
			return "their types"
		}
	}
	return string(tensors[0].DType)
}

// firstOf lists some that are kept, and why.
func firstOf(all []Kept) string {
	const most = 3
	var parts []string
	for _, k := range all[:min(most, len(all))] {
		parts = append(parts, fmt.Sprintf("%s (%s)", briefly(k.Tensor), k.Why))
	}
	if more := len(all) - most; more > 0 {
		return strings.Join(parts, ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(parts, ", ")
}

func briefly(name string) string { return textout.Shorten(textout.Name(name), 60) }
