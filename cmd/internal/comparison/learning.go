package comparison

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/train"
)

// Learning is what became of a model's loss from its first step to the last tenth of its steps.
type Learning string

const (
	fell  Learning = "fell"
	level Learning = "level"
	rose  Learning = "rose"
)

// clearly is the share of the first loss by which another is above or below it where batches alone
// do not explain it: the first is near ln 256 whatever the batch.
const clearly = 0.05

// Learned judges the mean loss of the last tenth of the steps by that of the first step. A loss
// that is not finite has risen.
func Learned(first, final float64) Learning {
	switch {
	case !finite(final) || final > first*(1+clearly):
		return rose
	case final < first*(1-clearly):
		return fell
	}
	return level
}

// Failed reports whether the model is worse than the one that it began as.
func (l Learning) Failed() bool { return l == rose }

// learning judges both models.
func (r *Result) learning() (fp32, fp8 Learning) {
	if len(r.Points) == 0 {
		return level, level
	}
	return Learned(r.Points[0].FP32.Loss, r.FP32.Loss), Learned(r.Points[0].FP8.Loss, r.FP8.Loss)
}

// Headline says what comes before all verdicts: what ended the run early, and that a model has not
// learned. It is empty where neither is so.
func (r *Result) Headline() (lines []string) {
	if text := r.endedText(); text != "" {
		lines = append(lines, text)
	}
	if text := r.failedText(); text != "" {
		lines = append(lines, text)
	}
	return lines
}

// endedText says what ended the run before its last step, if anything did.
func (r *Result) endedText() string {
	n := len(r.Points)
	after := fmt.Sprintf("after %d of %s", n, textout.Count(r.Options.Steps, "step"))
	for _, a := range r.Alarms {
		if a.Of.Action == train.ActionStop && a.Step == int64(n-1) {
			return fmt.Sprintf("A rule ended the run %s: %v", after, a)
		}
	}
	switch {
	case r.Landing != nil:
		return fmt.Sprintf("The run ended %s: %s.", after, r.Landing.Cause)
	case n < r.Options.Steps && r.Live.Written.IsZero():
		return fmt.Sprintf("The run ended %s.", after)
	}
	return ""
}

// failedText says which model has not learned, and what that leaves of the difference.
func (r *Result) failedText() string {
	fp32, fp8 := r.learning()
	model := r.Options.Model()
	from := func(first, final float64) string {
		if !finite(final) {
			return fmt.Sprintf("its loss was %.4f in the first step and is not finite at the end", first)
		}
		return fmt.Sprintf("its loss rose from %.4f in the first step to %.4f, %s", first, final, r.meanOfLast())
	}
	var text string
	if fp32.Failed() {
		text = fmt.Sprintf("FP32 has not learned: %s. What %s makes of such a run says nothing of %s: the difference is not judged.",
			from(r.Points[0].FP32.Loss, r.FP32.Loss), model, model)
	}
	if fp8.Failed() {
		either := ""
		if fp32.Failed() {
			text, either = text+" ", " either"
		}
		text += fmt.Sprintf("%s has not learned%s: %s.", model, either, from(r.Points[0].FP8.Loss, r.FP8.Loss))
	}
	return text
}

// meanOfLast names the losses that a final loss is the mean of.
func (r *Result) meanOfLast() string {
	if n := r.lastSteps(); n > 1 {
		return fmt.Sprintf("the mean of the last %d", n)
	}
	return "the last"
}

// lastSteps is the number of steps in the last tenth.
func (r *Result) lastSteps() int { return (len(r.Points) + 9) / 10 }

// gap returns by how many percent a loss of FP8 is above FP32's; NaN where FP32 has not learned, so
// that it is no difference of formats.
func (r *Result) gap(fp32, fp8 float64) float64 {
	if of, _ := r.learning(); of.Failed() {
		return math.NaN()
	}
	return Gap(fp32, fp8)
}

// heldOutGap is gap of losses after the last step; NaN also where one model has taken more steps.
func (r *Result) heldOutGap(fp32, fp8 float64) float64 {
	if r.FP32.Steps != r.FP8.Steps {
		return math.NaN()
	}
	return r.gap(fp32, fp8)
}
