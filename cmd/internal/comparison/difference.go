package comparison

import (
	"fmt"
	"math"
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

// fewestSteps is the number of last steps that can say anything: of as many throws of a coin all
// are alike in 1 % of cases.
const fewestSteps = 8

// Difference compares the losses of the last tenth of the steps, in which both models had the
// same batches.
func (r *Result) Difference() Difference {
	last := r.Points[len(r.Points)-(len(r.Points)+9)/10:]
	d, model := Difference{Verdict: undecided, Steps: len(last)}, r.Options.Model()
	var higher, lower int
	for _, p := range last {
		switch {
		case math.IsNaN(p.FP8.Loss - p.FP32.Loss), math.IsInf(p.FP8.Loss-p.FP32.Loss, 0):
			d.Summary = fmt.Sprintf("Undecided: in step %d a loss is not finite.", p.Step)
			return d
		case p.FP8.Loss > p.FP32.Loss:
			higher++
		case p.FP8.Loss < p.FP32.Loss:
			lower++
		}
	}
	in, mean := fmt.Sprintf("the last %d steps", len(last)), fmt.Sprintf("%+.3f %% on average", Gap(r.FP32.Loss, r.FP8.Loss))
	switch {
	case higher+lower == 0:
		d.Verdict, d.Summary = sameLoss, fmt.Sprintf("The loss in %s is that of FP32 in each of %s.", model, in)
	case len(last) < fewestSteps:
		d.Summary = fmt.Sprintf("Undecided whether the loss in %s is higher: the last tenth is %d steps, which says nothing below %d. It is %s.", model, len(last), fewestSteps, mean)
	case higher == len(last):
		d.Verdict, d.Summary = higherLoss, fmt.Sprintf("The loss in %s is higher than in FP32 in each of %s, %s.", model, in, mean)
	case lower == len(last):
		d.Verdict, d.Summary = lowerLoss, fmt.Sprintf("The loss in %s is lower than in FP32 in each of %s, %s.", model, in, mean)
	default:
		d.Summary = fmt.Sprintf("Undecided whether the loss in %s is higher: of %s it is so in %d, and lower in %d, %s.", model, in, higher, lower, mean)
	}
	if at := r.judgedAt(); at != nil {
		d.Summary += fmt.Sprintf(" On text that neither has seen it is %+.3f %% after step %d.", Gap(at.FP32.HeldOut, at.FP8.HeldOut), at.Step)
	}
	return d
}

// judgedAt returns the last point with held-out losses, or nil.
func (r *Result) judgedAt() *Point {
	for i := len(r.Points) - 1; i >= 0; i-- {
		if r.Points[i].FP32.HeldOut != 0 {
			return &r.Points[i]
		}
	}
	return nil
}
