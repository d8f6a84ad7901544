package inspect

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/scaling"
)

// Advice is what follows from the weights alone.
type Advice struct {
	Sentence string          `json:"sentence"`
	Recipe   scaling.Profile `json:"recipe,omitempty"` // "": none is advised
	Repair   []string        `json:"repair,omitempty"` // tensors with values that are NaN or infinite
	Keep     []Kept          `json:"keep,omitempty"`   // matrices that should not be encoded, the riskiest first
}

// Kept is a matrix that should stay as it is.
type Kept struct {
	File   string `json:"file,omitempty"` // where there are several
	Tensor string `json:"tensor"`
	Why    string `json:"why"`
}

const (
	farOut = 4   // root mean squares of the others, by which rounding may move the largest value
	beyond = 1e6 // times the others, from where sums of squares do not tell how many
)

const outlier = "an outlier"

// keeping says why a matrix should stay as it is, "" if nothing speaks against a recipe. Rounding
// within the range of a format moves a value by half a step at most: a larger error shows that
// the range was too small.
func (t *TensorReport) keeping(of *RecipeReport, l limits) string {
	amax, others := float64(t.Values.Amax), float64(t.Values.Others)
	switch lost := t.lost(of); {
	case of.BecameNonFinite > 0:
		return textout.Count(of.BecameNonFinite, "value") + " would become NaN or infinite"
	case others > 0 && amax >= beyond*others:
		return fmt.Sprintf(outlier+" of %.2g, a million times the others or more", amax)
	case others > 0 && amax*l.halfStep >= farOut*others:
		return fmt.Sprintf(outlier+" of %.2g among %.1g", amax, others)
	case lost >= l.lost:
		return percent(jsonout.Number(lost)) + " of what is not zero would be lost"
	case float64(of.RowError) > l.halfStep:
		return "a row with an error of " + percent(of.RowError)
	case float64(of.BlockError) > l.halfStep:
		return "a mean error of blocks of " + percent(of.BlockError)
	}
	return ""
}

// advise makes one sentence of what was found.
func (r *Report) advise() (a Advice) {
	var plain []*TensorReport // matrices of values, which are no codes and not all zero
	codes, zeros := 0, 0
	for _, t := range r.view(View{Sort: ByRisk}) {
		switch {
		case t.Values.nonFinite() > 0:
			a.Repair = append(a.Repair, t.Name)
		case t.under(r.Judge) == nil:
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
	said := ""
	switch n := len(plain); {
	case n == 0:
		said = r.unadvised(codes, zeros, len(a.Repair))
	case 2*len(a.Keep) > n:
		said = fmt.Sprintf("keep the matrices in %s: under %s, %s, %d of %d would lose too much: %s", typesOf(plain), r.Judge, r.best(), len(a.Keep), n, firstOf(a.Keep))
	default:
		a.Recipe = r.Judge
		where := "everywhere"
		switch part := r.Stopped() || r.Selected < r.All || r.Totals.NotJudged+len(a.Repair) > 0; {
		case part && codes > 0:
			where = "in " + matrices(n) + " that could be judged, beside codes"
		case part:
			where = "in " + matrices(n) + " that could be judged"
		case codes > 0:
			where = "in " + matrices(n) + " not encoded yet"
		}
		said = fmt.Sprintf("%s under %s, a scale for each %s, %s", r.Format, r.Judge, r.Ranking[0].Block, where)
		switch len(a.Keep) {
		case 0:
			said += "; no matrix would lose enough to stay in " + typesOf(plain)
		case 1:
			said += fmt.Sprintf("; keep %s in %s: %s", briefly(a.Keep[0].Tensor), typesOf(plain), a.Keep[0].Why)
		default:
			said += fmt.Sprintf("; keep %d of the %s in %s: %s", len(a.Keep), matrices(n), typesOf(plain), firstOf(a.Keep))
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

// unadvised says why no recipe is advised where there is no matrix to encode; nothing where
// what must be repaired is the reason.
func (r *Report) unadvised(codes, zeros, repair int) string {
	switch {
	case codes > 0 && r.Totals.NotJudged == 0:
		return fmt.Sprintf("nothing to decide: all that could be read is codes already, %s", matrices(codes))
	case codes > 0:
		return fmt.Sprintf("nothing to decide of what could be read, %s of codes; %s could not be judged", matrices(codes), textout.Count(r.Totals.NotJudged, "tensor"))
	case r.Totals.NotJudged > 0:
		return fmt.Sprintf("no advice: %s could not be judged, and there is no other matrix of values", textout.Count(r.Totals.NotJudged, "tensor"))
	case zeros > 0:
		return fmt.Sprintf("no advice: all values are 0, in %s", matrices(zeros))
	case repair > 0:
		return ""
	}
	return "no advice: there is no matrix of floating-point values among what was read"
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
