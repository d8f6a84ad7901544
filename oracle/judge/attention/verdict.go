package attention

import (
	"slices"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/oracle/flash"
)

// Verdict is what is said of a kernel's results. Its JSON is stable: keys are added, never
// changed.
type Verdict struct {
	Pass     bool   `json:"pass"`
	Outcome  string `json:"outcome"` // "pass", "fail" or "undecided"
	Batch    int    `json:"batch"`
	Heads    int    `json:"heads"`
	KVHeads  int    `json:"kvHeads"`
	Queries  int    `json:"queries"` // of the sequence with the most
	Keys     int    `json:"keys"`    // likewise
	Dim      int    `json:"dim"`
	ValueDim int    `json:"valueDim"`

	Q      string            `json:"q"` // what it holds: "E4M3, a scale for each head"
	K      string            `json:"k"`
	V      string            `json:"v"`
	Scale  float32           `json:"scale"`
	Causal bool              `json:"causal"`
	Window *attention.Window `json:"window,omitempty"`
	Sinks  bool              `json:"sinks"`

	Injected *flash.Fault `json:"injected,omitempty"` // in an example
	Type     flash.Cast   `json:"type"`               // of the output
	Kernel   flash.Kernel `json:"kernel"`             // what is claimed
	Bits     bool         `json:"bits"`               // those of Kernel are demanded

	// Supposed is what is not claimed, and has to be so for the fault that was found.
	Supposed string `json:"supposed,omitempty"`
	// Undecided is a GPU with whose sums the result is right, where nothing is claimed of sums
	// and it is not with those in float32.
	Undecided string `json:"undecided,omitempty"`

	Sequences []Sequence `json:"sequences"`
}

// Sequence is what is said of a sequence of the batch.
type Sequence struct {
	Queries     int                `json:"queries"`
	Keys        int                `json:"keys"`
	Looked      []int              `json:"looked,omitempty"` // queries that were looked at, if not all
	Comparison  flash.Comparison   `json:"report"`
	SameBits    *Same              `json:"sameBits,omitempty"` // as a kernel that has a name
	Explanation *flash.Explanation `json:"explanation,omitempty"`

	ratios []float64 // the largest of [heads][queries] in units of the bound
}

// Same counts the elements whose bits are the claimed kernel's.
type Same struct {
	Elements int `json:"elements"`
	Same     int `json:"same"`
	LSEs     int `json:"lses"`
	LSEsSame int `json:"lsesSame"`
}

func (s *Same) all() bool { return s.Same == s.Elements && s.LSEsSame == s.LSEs }

// Fault returns the fault that explains most sequences, or nil.
func (v *Verdict) Fault() *flash.Finding {
	count := map[flash.Fault]int{}
	var best *flash.Finding
	for i := range v.Sequences {
		if e := v.Sequences[i].Explanation; e != nil && len(e.Findings) > 0 {
			f := &e.Findings[0]
			count[f.Fault]++
			if best == nil || count[f.Fault] > count[best.Fault] {
				best = f
			}
		}
	}
	return best
}

// within reports whether nothing is outside of its bound.
func (v *Verdict) within() bool {
	r := v.total()
	return r.OK()
}

// total adds the counts of all sequences.
func (v *Verdict) total() (all flash.Comparison) {
	for i := range v.Sequences {
		r := &v.Sequences[i].Comparison
		all.Elements += r.Elements
		all.Outside += r.Outside
		all.LSEOutside += r.LSEOutside
		all.Unbounded += r.Unbounded
		all.Wide += r.Wide
		all.Rows += r.Rows
		all.NonFinite += r.NonFinite
	}
	return all
}

// worstSequence returns the number of the sequence with the largest error in units of its
// bound.
func (v *Verdict) worstSequence() int {
	ratios := make([]float64, len(v.Sequences))
	for b := range ratios {
		ratios[b] = worst(&v.Sequences[b].Comparison)
	}
	return slices.Index(ratios, slices.Max(ratios))
}

// head returns the largest error of a head in units of its bound.
func (q *Sequence) head(h int) (ratio float64) {
	n := len(q.ratios) / len(q.Comparison.Heads)
	for _, r := range q.ratios[h*n : (h+1)*n] {
		ratio = max(ratio, r)
	}
	return ratio
}
