package twin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Run does a run from its beginning and tells r of it. It returns what
// [Recorder.EndStep] returns. It may be called several times, and must do the same each
// time.
type Run func(ctx context.Context, r *Recorder) error

// Trail is what a run leaves: a hash of each step.
type Trail struct {
	Steps []Step

	run   Run
	apart *drift
}

// Record does a run and returns its trail.
func Record(ctx context.Context, run Run) (*Trail, error) {
	if run == nil {
		return nil, inputError("there is no run to record")
	}
	r := newRecorder()
	if err := r.do(ctx, run); err != nil {
		return nil, err
	}
	return &Trail{Steps: r.steps, run: run, apart: r.apart}, nil
}

// do does a run, as far as is needed.
func (r *Recorder) do(ctx context.Context, run Run) error {
	if err := run(ctx, r); !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

// Result is what comes of a comparison.
type Result struct {
	Steps int `json:"steps"` // that are equal

	// Tensors is how many there are up to the end of the first step that differs, and Equal
	// how many of them are equal.
	Equal   int `json:"equal"`
	Tensors int `json:"tensors"`

	First *Difference `json:"first,omitempty"`
}

// Difference is the first place in which two runs differ, or two ranks of one run.
type Difference struct {
	Step    int    `json:"step"` // from 0
	Tensor  string `json:"tensor"`
	Part    int    `json:"part"`
	Rank    int    `json:"rank"`    // of the copy that differs
	Against int    `json:"against"` // rank of that with which it was compared

	// Reason, unless "", is why no elements were compared, and all below is 0.
	Reason string `json:"reason,omitempty"`

	Element  int   `json:"element"`
	Want     Value `json:"want"` // of the reference
	Got      Value `json:"got"`
	Differ   int   `json:"differ"`   // elements that do
	Elements int   `json:"elements"` // of the tensor
}

// Value is a float32, as text and JSON with its bits: "0.5 (3F000000)".
type Value float32

// String returns the shortest decimal number of the value, and its bits.
func (v Value) String() string {
	decimal := strconv.FormatFloat(float64(v), 'g', -1, 32)
	return fmt.Sprintf("%s (%08X)", decimal, math.Float32bits(float32(v)))
}

// MarshalText implements [encoding.TextMarshaler].
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]: it reads the bits.
func (v *Value) UnmarshalText(text []byte) error {
	_, hex, _ := strings.Cut(string(text), "(")
	bits, err := strconv.ParseUint(strings.TrimSuffix(hex, ")"), 16, 32)
	if err != nil {
		return inputError("%.40q is no value with its bits, such as 0.5 (3F000000)", text)
	}
	*v = Value(math.Float32frombits(uint32(bits)))
	return nil
}

// String says where the difference is, and both values.
func (d *Difference) String() string {
	at := fmt.Sprintf("step %d, rank %d, %s, part %d", d.Step, d.Rank, d.Tensor, d.Part)
	if d.Reason != "" {
		return at + ": " + d.Reason
	}
	return fmt.Sprintf("%s, element %d: %v, not %v; %d of %d differ",
		at, d.Element, d.Got, d.Want, d.Differ, d.Elements)
}

// Compare does another run and compares it with that of t, step by step, until the first
// difference. Then it does both again up to that step, to find the element: the memory that
// it takes is that of one tensor. It is an error, [ErrNotRepeatable], if a run does not do
// the same again, or what a run returns.
func (t *Trail) Compare(ctx context.Context, other Run) (Result, error) {
	if other == nil {
		return Result{}, inputError("there is no run to compare")
	}
	r := newRecorder()
	r.against = slices.Clip(t.Steps)
	if r.against == nil {
		r.against = []Step{}
	}
	if err := r.do(ctx, other); err != nil {
		return Result{}, err
	}
	result := Result{Steps: r.step}
	for _, s := range t.Steps[:r.step] {
		result.Tensors += s.Tensors
	}
	result.Equal = result.Tensors
	switch {
	case r.met == nil && r.step == len(t.Steps):
		return result, nil
	case r.met == nil:
		reason := fmt.Sprintf("the run ends after %d steps, the reference after %d", r.step, len(t.Steps))
		result.First = &Difference{Step: r.step, Reason: reason}
		return result, nil
	case r.step == len(t.Steps):
		reason := fmt.Sprintf("the reference has only %d steps", len(t.Steps))
		result.First = &Difference{Step: r.step, Reason: reason}
		return result, nil
	}
	err := t.locate(ctx, other, r, &result)
	return result, err
}

// search looks for the first tensor of a step in which a run differs from the other's.
type search struct {
	step  int
	met   map[key]*entry
	found *found
	equal map[key]bool
}

// found is where the reference differs.
type found struct {
	key    key
	entry  *entry
	own    held // of the reference
	values []float32
	other  held // of the other run
	absent bool
}

// look is the watch of the reference's replay.
func (s *search) look(step int, k key, e *entry, c held, values []float32) {
	if step != s.step {
		return
	}
	other, ok := s.met[k]
	var odd held
	differs := !ok
	if ok {
		for _, o := range other.copies {
			if o.digest != c.digest && (!differs || o.rank == c.rank) {
				odd, differs = o, true
			}
		}
	}
	if before, seen := s.equal[k]; !differs && !seen {
		s.equal[k] = true
	} else if differs && (before || !seen) {
		s.equal[k] = false
	}
	if !differs || s.found != nil && !s.better(k, e, c) {
		return
	}
	s.found = &found{k, e, c, slices.Clone(values), odd, !ok}
}

// better reports whether a copy is to be named before what was found.
func (s *search) better(k key, e *entry, c held) bool {
	if k == s.found.key {
		return c.rank < s.found.own.rank
	}
	return e.before(k, s.found.entry, s.found.key)
}

// locate finds the first difference in the step that r has met.
func (t *Trail) locate(ctx context.Context, other Run, r *Recorder, result *Result) error {
	s := &search{step: r.step, met: r.met, equal: map[key]bool{}}
	again := newRecorder()
	again.last, again.watch = r.step, s.look
	if err := again.do(ctx, t.run); err != nil {
		return err
	}
	if again.step <= r.step || again.steps[r.step] != t.Steps[r.step] {
		return notRepeatable("the reference has other bits up to step %d when it is done again", r.step)
	}
	for _, equal := range s.equal {
		if equal {
			result.Equal++
		}
	}
	result.Tensors += t.Steps[r.step].Tensors
	if s.found == nil {
		return t.surplus(s, result)
	}
	f := s.found
	d := &Difference{Step: r.step, Tensor: f.key.tensor, Part: f.key.part}
	d.Rank, d.Against = f.other.rank, f.own.rank
	result.First = d
	if f.absent {
		d.Rank, d.Reason = f.own.rank, "the run does not have it, and the reference does"
		return nil
	}
	values, err := values(ctx, other, r.step, f.key, f.other)
	if err != nil {
		return err
	}
	d.compare(f.values, values)
	return nil
}

// surplus names what the reference does not have.
func (t *Trail) surplus(s *search, result *Result) error {
	var first key
	var of *entry
	for k, e := range s.met {
		if _, ok := s.equal[k]; !ok && (of == nil || e.before(k, of, first)) {
			first, of = k, e
		}
	}
	if of == nil { // copies that differ from one another in both runs
		return notRepeatable("hashes of step %d differ and those of its tensors do not", s.step)
	}
	result.First = &Difference{
		Step: s.step, Tensor: first.tensor, Part: first.part, Rank: of.copies[0].rank,
		Reason: "the run has it, and the reference does not",
	}
	return nil
}

// values does a run again for the values of a copy.
func values(ctx context.Context, run Run, step int, k key, c held) (found []float32, err error) {
	r := newRecorder()
	r.last = step
	ok := false
	r.watch = func(at int, of key, _ *entry, other held, values []float32) {
		if at == step && of == k && other == c {
			found, ok = slices.Clone(values), true
		}
	}
	if err := r.do(ctx, run); err != nil {
		return nil, err
	}
	if !ok {
		return nil, notRepeatable("%s of rank %d has other bits in step %d when the run is done again",
			k.tensor, c.rank, step)
	}
	return found, nil
}

// compare names the first element that differs.
func (d *Difference) compare(want, got []float32) {
	d.Elements = len(want)
	if len(got) != len(want) {
		d.Reason = fmt.Sprintf("it has %d elements, in the reference %d", len(got), len(want))
		return
	}
	for i, v := range want {
		if math.Float32bits(v) == math.Float32bits(got[i]) {
			continue
		}
		if d.Differ == 0 {
			d.Element, d.Want, d.Got = i, Value(v), Value(got[i])
		}
		d.Differ++
	}
}

// Apart returns the first place in which copies of ranks differ, or nil: no twin is needed.
// The copy of most ranks is right, that of the lowest of them where there are as many of
// several. It does the run again for the element.
func (t *Trail) Apart(ctx context.Context) (*Difference, error) {
	a := t.apart
	if a == nil {
		return nil, nil
	}
	want, err := values(ctx, t.run, a.step, a.key, a.most)
	if err != nil {
		return nil, err
	}
	got, err := values(ctx, t.run, a.step, a.key, a.odd)
	if err != nil {
		return nil, err
	}
	d := &Difference{Step: a.step, Tensor: a.key.tensor, Part: a.key.part}
	d.Rank, d.Against = a.odd.rank, a.most.rank
	d.compare(want, got)
	return d, nil
}
