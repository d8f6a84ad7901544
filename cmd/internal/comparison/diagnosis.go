package comparison

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/telemetry"
)

// Diagnosis is the health of the FP8 model: what its operands lost in each of all steps.
type Diagnosis struct {
	Verdict  string `json:"verdict"`         // healthy, suspect, sick, or undecided
	Summary  string `json:"summary"`         // the verdict as a sentence
	Steps    int    `json:"stepsJudged"`     // that were judged
	Operands int    `json:"operandsJudged"`  // likewise
	Healthy  int    `json:"operandsHealthy"` // of those
	Suspect  int    `json:"operandsSuspect"`
	Sick     int    `json:"operandsSick"`

	Thresholds *thresholds `json:"thresholds,omitempty"` // nil: nothing was kept to be judged
	Findings   []Finding   `json:"findings,omitempty"`   // what is suspect or sick; the worst first, of equals the one with more such steps
	Advice     []string    `json:"advice,omitempty"`     // what to try, the likeliest first
	NotJudged  []string    `json:"notJudged"`
}

const undecided = "undecided"

// Diagnoses are all verdicts of a [Diagnosis].
var Diagnoses = []string{telemetry.Sick.String(), telemetry.Suspect.String(), undecided, telemetry.Healthy.String()}

// Finding is an operand that lost too much in one way.
type Finding struct {
	Layer   string           `json:"layer"`
	Operand string           `json:"operand"`
	What    string           `json:"what"` // saturated, flushed, or not finite
	Health  telemetry.Health `json:"health"`
	Share   float64          `json:"share"`     // in the worst step
	Step    int64            `json:"step"`      // the worst one
	Op      string           `json:"op"`        // the product that it was in
	First   int64            `json:"firstStep"` // of those in which it was suspect or sick
	Last    int64            `json:"lastStep"`
	Steps   int              `json:"steps"` // how many there were

	tensor    string
	sick      int // in how many steps it was
	firstSick int64
}

// The ways to lose values, as findings name them.
const (
	saturated = "saturated"
	flushed   = "flushed"
	notFinite = "not finite"
)

// Diagnosis judges what was recorded, and nothing else.
func (r *Result) Diagnosis() Diagnosis {
	v := Diagnosis{Findings: r.findings(), NotJudged: r.notJudged()}
	sick, suspect := map[string]bool{}, map[string]bool{}
	for _, f := range v.Findings {
		if f.Health == telemetry.Sick {
			sick[f.tensor] = true
		} else {
			suspect[f.tensor] = true
		}
	}
	for tensor := range sick {
		delete(suspect, tensor)
	}
	v.Suspect, v.Sick = len(suspect), len(sick)
	all := len(sick) + len(suspect)
	h := r.health
	if h != nil {
		v.Steps = h.steps
		t := h.thresholds
		v.Thresholds = &thresholds{t.Saturated.Suspect, t.Saturated.Sick, t.Flushed.Suspect, t.Flushed.Sick, sickSteps}
		for _, o := range h.operands {
			if !sick[o.Tensor] && !suspect[o.Tensor] {
				all++
			}
			if o.Judged {
				v.Operands++
				if !sick[o.Tensor] && !suspect[o.Tensor] {
					v.Healthy++
				}
			}
		}
	}
	model := r.Options.Model()
	switch {
	case len(sick) > 0:
		v.Verdict, v.Summary = telemetry.Sick.String(), r.sickText(len(sick), len(suspect), all, v.Findings)
	case len(suspect) > 0:
		v.Verdict = telemetry.Suspect.String()
		v.Summary = fmt.Sprintf("Suspect: of %s of %s products %d lost %s of their values to saturation "+
			"or %s to zero in a training step. None is sick.", textout.Count(v.Operands, "operand"), model, len(suspect),
			least(h.thresholds.Saturated.Suspect), least(h.thresholds.Flushed.Suspect))
	case v.Operands == 0:
		v.Verdict = undecided
		v.Summary = fmt.Sprintf("Undecided: no operand of a product in %s was recorded in a step that can be judged.", model)
	case h.before > 0:
		v.Verdict = undecided
		v.Summary = fmt.Sprintf("Undecided: steps 0 to %d are not judged. In those after them nothing was found.", h.before-1)
	default:
		v.Verdict = telemetry.Healthy.String()
		steps, lose, have := fmt.Sprintf("none of %d training steps did one", v.Steps), "lose", "have"
		if v.Steps == 1 {
			steps, lose, have = "the one training step that is judged none", "lost", "had"
		}
		v.Summary = fmt.Sprintf("Healthy: in %s of %s of %s products %s %s of its values "+
			"to saturation or %s to zero, or %s a NaN or an infinity.", steps, textout.Count(v.Operands, "operand"), model, lose,
			least(h.thresholds.Saturated.Suspect), least(h.thresholds.Flushed.Suspect), have)
	}
	v.Advice = r.advice(v, len(sick))
	return v
}

// firstSick returns the place of the finding that was the first to be sick; 0 where none is.
func firstSick(findings []Finding) (first int) {
	for i, f := range findings {
		if f.Health == telemetry.Sick && f.firstSick < findings[first].firstSick {
			first = i
		}
	}
	return first
}

// sickText says why so many of all tensors are sick, and since when.
func (r *Result) sickText(sick, suspect, all int, findings []Finding) string {
	first := findings[firstSick(findings)]
	bad := map[string]bool{}
	for _, f := range findings {
		if f.Health == telemetry.Sick {
			bad[f.What] = true
		}
	}
	var why []string
	if bad[saturated] {
		why = append(why, fmt.Sprintf("lost %s of the values to saturation in %d steps or more", least(r.health.thresholds.Saturated.Sick), sickSteps))
	}
	if bad[flushed] {
		why = append(why, fmt.Sprintf("lost %s of the values to zero in %d steps or more", least(r.health.thresholds.Flushed.Sick), sickSteps))
	}
	if bad[notFinite] {
		why = append(why, "had a NaN or an infinity")
	}
	text := fmt.Sprintf("Sick: %d of %s of %s products %s", sick, textout.Count(all, "operand"), r.Options.Model(), strings.Join(why, ", or "))
	if suspect > 0 {
		text += fmt.Sprintf("; %d more suspect", suspect)
	}
	return text + fmt.Sprintf(". The first is %s %s, %s, in step %d.", first.Layer, first.Operand, first.What, first.firstSick)
}

// least says that a share is the least that is too much.
func least(share float64) string { return percentText(share) + " or more" }

func percentText(share float64) string { return strconv.FormatFloat(100*share, 'g', 3, 64) + " %" }

// findings lists what is suspect or sick.
func (r *Result) findings() (all []Finding) {
	add := func(tensor, what string, l lost, h telemetry.Health) {
		if h == telemetry.Healthy {
			return
		}
		role := roleOf(tensor)
		all = append(all, Finding{
			Layer: shortName(strings.TrimSuffix(tensor, "."+role)), Operand: role, What: what, Health: h,
			Share: l.Share, Step: l.Step, Op: l.Op, First: l.First, Last: l.Last, Steps: l.Steps, tensor: tensor, sick: l.Sick, firstSick: l.FirstSick,
		})
	}
	if r.health != nil {
		for _, o := range r.health.sorted() {
			add(o.Tensor, saturated, o.Saturated, o.Saturated.health())
			add(o.Tensor, flushed, o.Flushed, o.Flushed.health())
			add(o.Tensor, notFinite, o.NonFinite, o.nonFiniteHealth())
		}
	}
	seen := slices.ContainsFunc(all, func(f Finding) bool { return f.What == notFinite })
	if n := r.NonFinite; n != nil && !seen { // it met no product, or before anything was kept
		add(n.Tensor, notFinite, lost{Step: n.Step, Op: n.Op, First: n.Step, Last: n.Step, Steps: 1, FirstSick: n.Step}, telemetry.Sick)
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Health, a.Health), cmp.Compare(order(a.What), order(b.What)),
			cmp.Compare(b.sick, a.sick), cmp.Compare(b.Steps, a.Steps), cmp.Compare(b.Share, a.Share))
	})
	return all
}

// order puts what is not finite first.
func order(what string) int {
	if what == notFinite {
		return 0
	}
	return 1
}

// notJudged names what the verdict says nothing of.
func (r *Result) notJudged() []string {
	all := []string{"what happens when a model is tested on text kept from training"}
	h := r.health
	if h == nil {
		return all
	}
	if h.before > 0 {
		all = append(all, fmt.Sprintf("steps 0 to %d, of which a version of octavo that did them kept sums alone", h.before-1))
	}
	if h.delayed && h.before == 0 {
		all = append(all, "the first step of each operand, in which delayed scales have no history")
	}
	if r.ModelFP8 == nil {
		return all
	}
	cfg := r.ModelFP8.Config()
	if end := int(h.last) + 1; cfg.FP8 == nil && end < len(r.Points) {
		all = append(all, fmt.Sprintf("steps from %d on, in which all products are of BF16", end))
	}
	if cfg.BF16First > 0 {
		all = append(all, fmt.Sprintf("products of %s, which are of BF16", layers(0, cfg.BF16First-1)))
	}
	if cfg.BF16Last > 0 {
		all = append(all, fmt.Sprintf("products of %s, which are of BF16", layers(cfg.Layers-cfg.BF16Last, cfg.Layers-1)))
	}
	idle := 0
	for _, l := range r.LoadsFP8 {
		for _, tokens := range l.Tokens {
			if tokens == 0 {
				idle++
			}
		}
	}
	if idle > 0 {
		all = append(all, fmt.Sprintf("%d experts that no token came to", idle))
	}
	return all
}

// layers names those from one to another.
func layers(from, to int) string {
	if from == to {
		return fmt.Sprintf("layer %d", from)
	}
	return fmt.Sprintf("layers %d to %d", from, to)
}

// advice says what to try against what was found.
func (r *Result) advice(v Diagnosis, sick int) (all []string) {
	found := map[string]bool{}
	gradients := false // that were flushed
	for _, f := range v.Findings {
		found[f.What] = true
		gradients = gradients || f.What == flushed && f.Operand == "gradient"
	}
	o := r.Options
	if found[notFinite] {
		all = append(all, "Train again with --landing DIR, which keeps the first product with a NaN or an infinity for octavo train replay.")
	}
	var scales []string
	if found[saturated] || found[flushed] {
		switch {
		case r.health.delayed:
			scales = append(scales, "Take scales from the values themselves, by --recipe te-current or te-block-pow2: delayed ones follow "+
				"earlier steps. Where they must be delayed, give them a margin.")
		case r.health.thresholds != telemetry.ThresholdsFor(fp8.E4M3):
			scales = append(scales, "Take numbers of 8 bits, by --recipe mxfp8 or fp8.")
		case found[saturated] && o.Recipe == "":
			scales = append(scales, "Take a profile that does not round scales down, such as --recipe te-block-pow2 or mx-rceil, or leave a margin.")
		}
		if gradients && o.Recipe == "" && o.GradientFormat == fp8.E4M3 {
			scales = append(scales, "Take --gradient-format e5m2, whose range is 2^14 times as wide as that of e4m3.")
		}
		if found[flushed] && !r.health.delayed && !strings.HasPrefix(string(o.Profile), "mx") && o.Recipe == "" {
			scales = append(scales, "Take smaller blocks, by --recipe mx-rceil.")
		}
		scales = append(scales, "Keep the layers in wider numbers: a rule of --rules with action widen goes from E4M3 to E5M2 and then to BF16 "+
			"in all layers; nn.Config has BF16First and BF16Last for the first and the last layers.")
	}
	rate := fmt.Sprintf("Lower --lr, which is %g.", o.LearningRate)
	fp32, _ := r.learning()
	switch {
	case len(v.Findings) == 0 && !fp32.Failed():
	case sick > v.Operands/4 || fp32.Failed(): // it is the run, and not an operand
		all = append(append(all, rate), scales...)
	default:
		all = append(append(all, scales...), rate)
	}
	return all
}

// mostFindings is the number of operands that the table lists.
const mostFindings = 6

// listed returns the tensors of the operands that the table lists: the worst, among them the one that
// was the first to be sick.
func (v Diagnosis) listed() map[string]bool {
	listed := map[string]bool{v.Findings[firstSick(v.Findings)].tensor: true}
	for _, f := range v.Findings {
		if len(listed) < mostFindings {
			listed[f.tensor] = true
		}
	}
	return listed
}

// writeFindings writes what is not healthy, if anything is, and what to try.
func writeFindings(w io.Writer, v Diagnosis) {
	if len(v.Findings) > 0 {
		fmt.Fprintln(w)
		t := textout.NewTable(w)
		fmt.Fprintln(t, "layer\toperand\thealth\tlost, worst step\tin steps")
		listed := v.listed()
		for _, f := range v.Findings {
			if !listed[f.tensor] {
				continue
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s, %d\t%s\n", f.Layer, f.Operand, textout.WrongIf(f.Health == telemetry.Sick, f.Health.String()), f.Lost(), f.Step, f.In())
		}
		t.Flush()
		if more := v.Sick + v.Suspect - len(listed); more > 0 {
			fmt.Fprintf(w, "and %s more, which the page and result.json list.\n", textout.Count(more, "operand"))
		}
	}
	if len(v.Advice) > 0 {
		fmt.Fprintln(w, "\nWhat to try, the likeliest first:")
		for _, a := range v.Advice {
			textout.Hanging(w, "- ", a, 2)
		}
	}
}

// Lost says what share was lost in which way.
func (f Finding) Lost() string {
	if f.Share == 0 { // it is not known how many values there were
		return f.What
	}
	return percentText(f.Share) + " " + f.What
}

// In says in how many steps it was, and from which to which.
func (f Finding) In() string {
	if f.Steps == 1 {
		return fmt.Sprintf("%d", f.First)
	}
	return fmt.Sprintf("%d to %d, %d of them", f.First, f.Last, f.Steps)
}

// mark is put behind a figure of an operand that is not healthy.
func mark(h telemetry.Health) string {
	return [...]string{telemetry.Healthy: "", telemetry.Suspect: "?", telemetry.Sick: "!"}[h]
}

// thresholds are those of shares of values in a step.
type thresholds struct {
	SaturatedSuspect float64 `json:"saturatedSuspect"`
	SaturatedSick    float64 `json:"saturatedSick"`
	FlushedSuspect   float64 `json:"flushedSuspect"`
	FlushedSick      float64 `json:"flushedSick"`
	SickSteps        int     `json:"sickSteps"`
}
