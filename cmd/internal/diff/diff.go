// Package diff compares two checkpoints for octavo diff.
package diff

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Job says what to compare.
type Job struct {
	A, B         string // files, directories or indexes
	Only, Except *regexp.Regexp
	Tolerance    checkpoint.Tolerance
	Lossless     bool // whether to prove what B could hold
	Options      checkpoint.Options
}

// Side is one of the two.
type Side struct {
	Path    string `json:"path"`
	Layout  string `json:"layout"` // "" if it is not known
	Weights int    `json:"tensors"`

	NotJudged []checkpoint.Unread `json:"notJudged,omitempty"` // but by bytes
}

// Counts are how many tensors have what in common.
type Counts struct {
	Bytes        int `json:"sameBytes"`
	Values       int `json:"sameValues"`
	Rounded      int `json:"sameOnceRounded"`
	Different    int `json:"different"`
	Incomparable int `json:"incomparable"`
}

// Weight is a tensor of the model in JSON.
type Weight struct {
	Name      string           `json:"name"`
	Same      string           `json:"same"`
	Within    bool             `json:"within"` // the tolerance
	Why       string           `json:"why,omitempty"`
	A         *Stored          `json:"a"`
	B         *Stored          `json:"b"`
	Elements  int64            `json:"elements"`
	Differ    int64            `json:"differ"`
	First     []int            `json:"first,omitempty"`
	Type      string           `json:"roundedTo,omitempty"`
	Rounded   int64            `json:"differRounded"`
	NonFinite int64            `json:"nonFinite"`
	FirstNaN  []int            `json:"firstNonFinite,omitempty"`
	ZeroSigns int64            `json:"zeroSigns"`
	Largest   jsonout.Number   `json:"largestError"`
	At        []int            `json:"at,omitempty"`
	SQNR      jsonout.Number   `json:"sqnrDecibels"`
	Inputs    []jsonout.Number `json:"inputScales,omitempty"`
}

// Stored is how a tensor is stored.
type Stored struct {
	Scheme string            `json:"scheme,omitempty"` // of codes
	DType  safetensors.DType `json:"dtype"`
	Shape  []int             `json:"shape"`
	File   string            `json:"file"`
}

// Proof is what was proved of a tensor.
type Proof struct {
	Name string `json:"name"`
	To   string `json:"to"`
	checkpoint.ProofSummary
}

// Report is the result.
type Report struct {
	A       Side     `json:"a"`
	B       Side     `json:"b"`
	Same    bool     `json:"same"` // but for what the tolerance allows
	Counts  Counts   `json:"counts"`
	Outside int      `json:"outside"` // tensors that are not within the tolerance
	Weights []Weight `json:"tensors"`
	Proofs  []Proof  `json:"proofs,omitempty"`

	differences []checkpoint.Difference
	chosen      string // by what, where not all tensors were
	tolerant    bool   // more than the same values is allowed
	unjudged    int    // of those outside, whose method is not read
}

// Run compares. When ctx ends it returns an error.
func (j *Job) Run(ctx context.Context) (*Report, error) {
	a, err := checkpoint.Open(j.A)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	b, err := checkpoint.Open(j.B)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	all, err := checkpoint.Diff(ctx, a, b, j.chooses, j.Options)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 && (j.Only != nil || j.Except != nil) {
		return nil, errors.New("no tensor has a name that --only and --except choose: octavo inspect lists them")
	}
	r := &Report{A: side(j.A, a), B: side(j.B, b), differences: all, chosen: j.choice(), tolerant: j.Tolerance != checkpoint.Tolerance{}}
	for i := range all {
		r.add(&all[i], j.Tolerance)
	}
	r.Same = r.Outside == 0
	if !j.Lossless {
		return r, nil
	}
	proofs, err := checkpoint.Lossless(ctx, all, j.Options)
	if err != nil {
		return nil, err
	}
	for i := range proofs {
		r.Proofs = append(r.Proofs, proofOf(&proofs[i]))
	}
	return r, nil
}

func (j *Job) chooses(name string) bool {
	return (j.Only == nil || j.Only.MatchString(name)) && (j.Except == nil || !j.Except.MatchString(name))
}

// choice says by what tensors are chosen.
func (j *Job) choice() string {
	switch {
	case j.Only != nil && j.Except != nil:
		return " that --only and --except choose"
	case j.Only != nil:
		return " that --only chooses"
	case j.Except != nil:
		return " that --except leaves"
	}
	return ""
}

func side(path string, c *checkpoint.Checkpoint) Side {
	s := Side{Path: path, Weights: len(c.Weights()), NotJudged: c.Unread()}
	if found, err := c.Detect(); err == nil && len(found) > 0 {
		s.Layout = found[0].Name
	}
	return s
}

func (r *Report) add(d *checkpoint.Difference, t checkpoint.Tolerance) {
	count := map[checkpoint.Sameness]*int{
		checkpoint.SameBytes: &r.Counts.Bytes, checkpoint.SameValues: &r.Counts.Values, checkpoint.RoundedValues: &r.Counts.Rounded,
		checkpoint.Different: &r.Counts.Different, checkpoint.Incomparable: &r.Counts.Incomparable,
	}
	*count[d.Same]++
	w := Weight{
		Name: d.Name, Same: d.Same.String(), Within: d.Within(t), Why: d.Why, A: stored(d.A), B: stored(d.B),
		Elements: d.Elements, Differ: d.Differ, Type: string(d.Type), Rounded: d.Rounded, NonFinite: d.NonFinite, ZeroSigns: d.ZeroSigns,
		Largest: jsonout.Number(d.Error.Largest), SQNR: jsonout.Number(d.SQNR()),
	}
	if !w.Within {
		r.Outside++
		if d.Unread != "" {
			r.unjudged++
		}
	}
	if d.First >= 0 {
		w.First = d.Index(d.First)
	}
	if d.FirstNonFinite >= 0 {
		w.FirstNaN = d.Index(d.FirstNonFinite)
	}
	if d.Error.Largest > 0 {
		w.At = d.Index(d.Error.Where)
	}
	if d.Inputs {
		w.Inputs = []jsonout.Number{jsonout.Number(d.InputA), jsonout.Number(d.InputB)}
	}
	r.Weights = append(r.Weights, w)
}

func stored(w *checkpoint.Weight) *Stored {
	if w == nil {
		return nil
	}
	e := w.Parts[checkpoint.Codes]
	s := &Stored{DType: e.DType, Shape: append([]int{}, w.Shape...), File: e.File}
	if w.Scheme != nil {
		s.Scheme = w.Scheme.Name
	}
	return s
}

func proofOf(p *checkpoint.Proof) Proof {
	j := Proof{Name: p.Weight.Name, To: string(p.Type), ProofSummary: *p.Summary()}
	if p.Scheme != nil {
		j.To = p.Scheme.Name
	}
	return j
}

// Failure says how much is not the same, or not within the tolerance, and how much is not
// judged.
func (r *Report) Failure() string {
	var texts []string
	if differ := r.Outside - r.unjudged; differ > 0 {
		text := "are not equal"
		if r.tolerant {
			text = "differ by more than is allowed"
		}
		texts = append(texts, fmt.Sprintf("%d of %d tensors %s", differ, len(r.Weights), text))
	}
	if r.unjudged > 0 {
		texts = append(texts, fmt.Sprintf("%d of %d tensors are not judged", r.unjudged, len(r.Weights)))
	}
	return strings.Join(texts, ", ")
}
