package certify

import (
	"context"
	"fmt"
	"io"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/parallel/layers"
	"github.com/octavo-fp8/octavo/parallel/twin"
	"github.com/octavo-fp8/octavo/progress"
)

// FaultReport says what finds which fault, in a run on 8 data-parallel ranks with delayed
// scales.
type FaultReport struct {
	Found bool    `json:"found"` // each by its twin in the step where it begins, and no other
	Steps int     `json:"steps"`
	Seed  uint64  `json:"seed"`
	Clean Checks  `json:"clean"` // what is found in a run without a fault
	Rows  []Found `json:"faults"`
}

// Checks are what the checks of a run have found.
type Checks struct {
	Twin  *twin.Difference `json:"twin,omitempty"`  // from a run without the fault
	Ranks *twin.Difference `json:"ranks,omitempty"` // of ranks from one another
	Sums  *SumsFound       `json:"sums,omitempty"`
}

// SumsFound is the first mean gradient that is wrong.
type SumsFound struct {
	Step int `json:"step"`
	twin.Wrong
}

// Found is a fault and what found it.
type Found struct {
	Fault twin.Fault `json:"fault"`
	Checks
}

// InTime reports whether the fault was found by its twin in the step where it begins.
func (f *Found) InTime() bool { return f.Twin != nil && f.Twin.Step == f.Fault.Step }

// Alone reports whether a check without a twin found it in that step.
func (f *Found) Alone() bool {
	return f.Ranks != nil && f.Ranks.Step == f.Fault.Step ||
		f.Sums != nil && f.Sums.Step == f.Fault.Step
}

// any reports whether a check has found anything.
func (c *Checks) any() bool { return c.Twin != nil || c.Ranks != nil || c.Sums != nil }

// faultSteps is the least number of steps: faults are in none but the first two and last.
const faultSteps = 4

// Faults does one fault of each kind in a run of at least 4 steps, which the seed places,
// and says what finds it.
func Faults(
	ctx context.Context, steps int, seed uint64, p progress.Reporter,
) (*FaultReport, error) {
	if steps < faultSteps {
		return nil, fmt.Errorf("%d steps: want at least %d to put a fault between", steps, faultSteps)
	}
	j, err := newJob(Delayed, steps, seed)
	if err != nil {
		return nil, err
	}
	faults, err := j.faults()
	if err != nil {
		return nil, err
	}
	var done meter.Meter
	done.Start(ctx, p, "certify", int64(len(faults)+1))
	o := layers.ZeroOptions{Stage: 1, Gradients: collective.Exchange{Order: collective.OrderScatter}}
	clean, err := twin.Record(ctx, j.zero(o))
	if err != nil {
		return nil, err
	}
	r := &FaultReport{Found: true, Steps: steps, Seed: seed}
	if r.Clean, err = j.check(ctx, clean, o); err != nil {
		return nil, err
	}
	r.Found = !r.Clean.any()
	if err := done.Add(1); err != nil {
		return nil, err
	}
	for _, f := range faults {
		found := Found{Fault: f}
		if found.Checks, err = j.check(ctx, clean, o, f); err != nil {
			return nil, fmt.Errorf("%v: %w", f.Kind, err)
		}
		r.Rows = append(r.Rows, found)
		r.Found = r.Found && found.InTime()
		if err := done.Add(1); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// check does a run with faults, and all checks of it.
func (j *job) check(
	ctx context.Context, clean *twin.Trail, o layers.ZeroOptions, faults ...twin.Fault,
) (c Checks, err error) {
	run := j.zero(o, faults...)
	result, err := clean.Compare(ctx, run)
	if err != nil {
		return c, err
	}
	c.Twin = result.First
	trail, err := twin.Record(ctx, run)
	if err != nil {
		return c, err
	}
	if c.Ranks, err = trail.Apart(ctx); err != nil {
		return c, err
	}
	var sums twin.Sums
	w := twin.Watch{Sums: &sums, Faults: &twin.Injector{Faults: faults}}
	step := 0
	return c, j.onZero(ctx, o, w, func(z *layers.Zero[*nn.Llama]) error {
		if wrong := sums.Check(twin.Means(z, 0)); wrong != nil && c.Sums == nil {
			c.Sums = &SumsFound{step, *wrong}
		}
		step++
		return nil
	})
}

// faults returns one of each kind, and one that rounding may hide from sums.
func (j *job) faults() ([]twin.Fault, error) {
	m, err := nn.NewLlama(j.cfg, j.seed)
	if err != nil {
		return nil, err
	}
	var matrices []*nn.Param
	for _, p := range m.Params() {
		if p.Decay && p.Rows != vocabulary { // rows of the embedding may have no gradient
			matrices = append(matrices, p)
		}
	}
	draw := func(fault, what, n int) int {
		return int(random.Hash(j.seed+2, uint64(fault), uint64(what)) % uint64(n))
	}
	var all []twin.Fault
	kinds := append(twin.FaultKinds(), twin.BitFlippedOnTheWay)
	for i, k := range kinds {
		f := twin.Fault{Kind: k, Step: 2 + draw(i, 0, j.steps-3), Rank: draw(i, 1, sequences)}
		layer := fmt.Sprintf("model.layers.%d.", draw(i, 2, depth))
		switch k {
		case twin.FlippedBit, twin.BitFlippedOnTheWay:
			p := matrices[draw(i, 3, len(matrices))]
			f.Tensor, f.Element, f.Bit = p.Name, draw(i, 4, len(p.Grad)), 24 // a factor of 4
			if i == len(kinds)-1 {
				f.Bit = 10
			}
		case twin.StaleAmax:
			f.Tensor = layer + "mlp.up_proj.input forward"
		case twin.MixedScales:
			f.Tensor, f.Other = layer+"mlp.up_proj.input forward", layer+"mlp.down_proj.input forward"
		}
		all = append(all, f)
	}
	return all, nil
}

// WriteText prints the table for people.
func (r *FaultReport) WriteText(stdout io.Writer) error {
	w := textout.NewWriter(stdout)
	fmt.Fprintf(w, "%s\n%s\n\n", heading(r.Steps, Delayed, r.Seed), onRanks)
	fmt.Fprintln(w, "no fault")
	r.Clean.write(w)
	for _, f := range r.Rows {
		textout.Paragraph(w, FaultText(f.Fault), "")
		f.write(w)
	}
	_, title := r.verdict()
	fmt.Fprintf(w, "\n%s\n", title)
	return w.Flush()
}

// onRanks is where faults are.
const onRanks = "on 8 data-parallel ranks, ZeRO stage 1"

// verdict returns the outcome and says it.
func (r *FaultReport) verdict() (outcome, title string) {
	inTime, alone := 0, 0
	for _, f := range r.Rows {
		if f.InTime() {
			inTime++
		}
		if f.Alone() {
			alone++
		}
	}
	outcome, title = verdict.Pass, "PASS"
	if !r.Found {
		outcome, title = verdict.Fail, "FAIL"
	}
	return outcome, fmt.Sprintf("%s: %d of %d found in their step by the twin, %d without one", title, inTime, len(r.Rows), alone)
}

// FaultText says what a fault is.
func FaultText(f twin.Fault) string {
	text := fmt.Sprintf("%v in step %d on rank %d", f.Kind, f.Step, f.Rank)
	if f.Tensor != "" {
		text += ": " + f.Tensor
	}
	switch f.Kind {
	case twin.FlippedBit, twin.BitFlippedOnTheWay:
		text += fmt.Sprintf(", element %d, bit %d", f.Element, f.Bit)
	case twin.MixedScales:
		text += ", with those of " + f.Other
	}
	return text
}

// write prints what each check has found.
func (c *Checks) write(w io.Writer) {
	for i, text := range c.found() {
		textout.Paragraph(w, fmt.Sprintf("%s: %s", checks[i], text), "  ")
	}
}

// checks are names of what found says.
var checks = [3]string{"twin", "ranks", "sums"}

// found says what each check has found.
func (c *Checks) found() (texts [3]string) {
	texts = [3]string{"nothing", "nothing", "nothing"}
	if c.Twin != nil {
		texts[0] = c.Twin.String()
	}
	if c.Ranks != nil {
		texts[1] = c.Ranks.String()
	}
	if c.Sums != nil {
		texts[2] = fmt.Sprintf("step %d, %v", c.Sums.Step, &c.Sums.Wrong)
	}
	return texts
}
