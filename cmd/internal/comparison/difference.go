package comparison

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// Difference is what became of the loss in narrow numbers.
type Difference struct {
	Verdict string `json:"verdict"` // higher, lower, the same, or undecided
	Summary string `json:"summary"` // the verdict as a sentence
	Steps   int    `json:"stepsCompared"`
}

const (
	higherLoss = "higher"
	lowerLoss  = "lower"
	sameLoss   = "the same"
)

// Differences are all verdicts of a [Difference].
var Differences = []string{higherLoss, undecided, sameLoss, lowerLoss}

// lastParts is the number of parts that the last steps are cut into. Of as many throws of a coin
// all are alike in 1 % of cases; single steps would follow each batch.
const lastParts = 8

// Difference compares the losses of the last tenth of the steps, in which both models had the
// same batches.
func (r *Result) Difference() Difference {
	last := r.Points[len(r.Points)-r.lastSteps():]
	d, model := Difference{Verdict: undecided, Steps: len(last)}, r.Options.Model()
	fp32, _ := r.learning()
	if fp32.Failed() {
		d.Summary = fmt.Sprintf("Not judged whether the loss in %s is higher: FP32 has not learned in this run.", model)
		return d
	}
	for _, p := range last {
		if !finite(p.FP8.Loss - p.FP32.Loss) {
			d.Summary = fmt.Sprintf("Undecided: in step %d a loss is not finite.", p.Step)
			return d
		}
	}
	higher, lower := inParts(len(last), func(i int) float64 { return last[i].FP8.Loss - last[i].FP32.Loss })
	each, but := fmt.Sprintf("each of %d parts of them", lastParts), fmt.Sprintf("of %d parts of them higher in %d", lastParts, higher)
	if len(last) == lastParts { // a part is a step
		each, but = "each of them", fmt.Sprintf("higher in %d of them", higher)
	}
	in, mean := "the last "+textout.Count(len(last), "step"), fmt.Sprintf("%+.3f %% on average", Gap(r.FP32.Loss, r.FP8.Loss))
	switch {
	case len(last) < lastParts:
		d.Summary = fmt.Sprintf("Undecided whether the loss in %s is higher: the last tenth is %s, too few for a verdict, which needs %d: runs of %d steps or more have them. It is %s.",
			model, textout.Count(len(last), "step"), lastParts, 10*(lastParts-1)+1, mean)
	case higher == lastParts:
		d.Verdict, d.Summary = higherLoss, fmt.Sprintf("The loss in %s is higher than in FP32: in %s %s, and in %s.", model, in, mean, each)
	case lower == lastParts:
		d.Verdict, d.Summary = lowerLoss, fmt.Sprintf("The loss in %s is lower than in FP32: in %s %s, and in %s.", model, in, mean, each)
	case !slices.ContainsFunc(last, func(p Point) bool { return p.FP8.Loss != p.FP32.Loss }):
		d.Verdict, d.Summary = sameLoss, fmt.Sprintf("The loss in %s is that of FP32 in each of %s.", model, in)
	default:
		d.Summary = fmt.Sprintf("Undecided whether the loss in %s is higher: in %s it is %s, but %s and lower in %d.", model, in, mean, but, lower)
	}
	if fp32 == level && len(r.Points) > 1 {
		d.Summary += fmt.Sprintf(" FP32's loss has hardly moved, from %.4f in the first step to %.4f: of what training in %s comes to that says little.", r.Points[0].FP32.Loss, r.FP32.Loss, model)
	}
	if at := r.judgedAt(); at != nil && r.FP32.Steps != r.FP8.Steps {
		d.Summary += fmt.Sprintf(" On text that neither has seen it is not judged: FP32 has taken %s and %s %d.", textout.Count(r.FP32.Steps, "step"), model, r.FP8.Steps)
	} else if at != nil && !finite(at.FP8.HeldOut-at.FP32.HeldOut) {
		d.Summary += fmt.Sprintf(" On text that neither has seen a loss after step %d is not finite.", at.Step)
	} else if at != nil {
		d.Summary += fmt.Sprintf(" On text that neither has seen it is %+.3f %% after step %d.", Gap(at.FP32.HeldOut, at.FP8.HeldOut), at.Step)
	}
	return d
}

// inParts returns in how many parts of n steps a difference is above zero, and in how many below.
func inParts(n int, difference func(i int) float64) (higher, lower int) {
	for part := range lastParts {
		sum := 0.0
		for i := part * n / lastParts; i < (part+1)*n/lastParts; i++ {
			sum += difference(i)
		}
		if sum > 0 {
			higher++
		} else if sum < 0 {
			lower++
		}
	}
	return higher, lower
}

// Below says why the losses a of the steps of a run are not told to be below b, of another run on the
// same batches; "" where they are, in each part of the last tenth of the steps.
func Below(a, b []float64) string {
	n := (len(a) + 9) / 10
	if n < lastParts {
		return fmt.Sprintf("that needs %d steps", 10*(lastParts-1)+1)
	}
	a, b = a[len(a)-n:], b[len(b)-n:]
	if _, lower := inParts(n, func(i int) float64 { return a[i] - b[i] }); lower < lastParts {
		return fmt.Sprintf("of %d parts of the last %d steps its loss is lower in %d", lastParts, n, lower)
	}
	return ""
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// judgedAt returns the last point with held-out losses, or nil.
func (r *Result) judgedAt() *Point {
	for i := len(r.Points) - 1; i >= 0; i-- {
		if r.Points[i].FP32.HeldOut != 0 {
			return &r.Points[i]
		}
	}
	return nil
}
