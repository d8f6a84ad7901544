package verifyattention

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/oracle/flash"
	"github.com/octavo-fp8/octavo/progress"
)

// Options say how to judge.
type Options struct {
	Queries  int // of each head, evenly; 0 is all
	Workers  int
	Progress progress.Reporter
}

// Verdict is what is said of a kernel's results.
type Verdict struct {
	Pass     bool `json:"pass"`
	Batch    int  `json:"batch"`
	Heads    int  `json:"heads"`
	KVHeads  int  `json:"kvHeads"`
	Queries  int  `json:"queries"`
	Keys     int  `json:"keys"`
	Dim      int  `json:"dim"`
	ValueDim int  `json:"valueDim"`

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
	Looked   []int        `json:"looked,omitempty"`   // queries that were looked at, if not all

	Sequences []Sequence `json:"sequences"`
}

// Sequence is what is said of a sequence of the batch.
type Sequence struct {
	Report      flash.Report       `json:"report"`
	SameBits    *Same              `json:"sameBits,omitempty"` // as a kernel that has a name
	Explanation *flash.Explanation `json:"explanation,omitempty"`

	worst [][]float64 // the largest error of [heads][queries] in units of the bound
}

// Same counts the elements whose bits are the claimed kernel's.
type Same struct {
	Elements int `json:"elements"`
	Same     int `json:"same"`
	LSEs     int `json:"lses"`
	LSEsSame int `json:"lsesSame"`
}

func (s *Same) all() bool { return s.Same == s.Elements && s.LSEsSame == s.LSEs }

// Run reads everything and judges it. When ctx ends it returns an error.
func (i *Inputs) Run(ctx context.Context, c Claim, o Options) (*Verdict, error) {
	t, err := i.read()
	if err != nil {
		return nil, err
	}
	k, err := c.kernel(t.problems[0], t.out)
	if err != nil {
		return nil, err
	}
	return t.judge(ctx, k, c, o)
}

// judge gives the verdict on all sequences.
func (t *task) judge(ctx context.Context, k flash.Kernel, c Claim, o Options) (*Verdict, error) {
	p, s := t.problems[0], t.problems[0].Sizes()
	v := &Verdict{Pass: true, Batch: len(t.problems), Heads: s.Heads, KVHeads: s.KVHeads, Queries: s.Queries, Keys: s.Keys,
		Dim: s.Dim, ValueDim: s.ValueDim, Q: describe(p.Q), K: describe(p.K), V: describe(p.V), Scale: p.SoftmaxScale(),
		Causal: p.Mask.Causal, Window: p.Mask.Window, Sinks: p.Sinks != nil, Type: t.out, Kernel: k, Bits: c.Bits}
	if o.Queries > 0 && o.Queries < s.Queries {
		for i := range o.Queries {
			v.Looked = append(v.Looked, i*s.Queries/o.Queries)
		}
	}
	for b, p := range t.problems {
		q, err := v.sequence(ctx, p, t.got[b], c.Kernel != nil, o)
		if err != nil {
			return nil, err
		}
		v.Sequences = append(v.Sequences, *q)
		v.Pass = v.Pass && q.ok() && (!c.Bits || q.SameBits.all())
	}
	return v, nil
}

// ok reports whether nothing is wrong with a sequence.
func (q *Sequence) ok() bool {
	return q.Report.OK() && (q.Explanation == nil || len(q.Explanation.Findings) == 0)
}

// sequence judges one.
func (v *Verdict) sequence(ctx context.Context, p *attention.Problem, got flash.Got, bits bool, o Options) (*Sequence, error) {
	s := p.Sizes()
	fo := flash.Options{Workers: o.Workers, Progress: o.Progress}
	part, looked := got, s
	if v.Looked != nil {
		fo.Rows = v.rows(s)
		part, looked.Queries = pick(got, fo.Rows, s.ValueDim), len(v.Looked)
	}
	want, err := flash.Exact[float64](ctx, p, fo)
	if err != nil {
		return nil, err
	}
	if v.Kernel.Base2 {
		for i := range want.LSE {
			want.LSE[i] *= math.Log2E
		}
	}
	limits, err := flash.Bound(ctx, p, v.Kernel.Claim(), fo)
	if err != nil {
		return nil, err
	}
	q := &Sequence{Report: flash.Compare(part, want, limits, looked), worst: ratios(part, want, limits, looked)}
	v.restore(&q.Report)
	if bits {
		is, err := flash.Predict(ctx, p, v.Kernel, fo)
		if err != nil {
			return nil, err
		}
		q.SameBits = compareBits(part, is)
	}
	e, err := flash.Explain(ctx, p, got, v.Kernel, flash.Options{Workers: o.Workers})
	if err != nil {
		return nil, err
	}
	if !q.Report.OK() || len(e.Findings) > 0 {
		q.Explanation = e
	}
	return q, nil
}

// rows are those that are looked at.
func (v *Verdict) rows(s attention.Sizes) (rows []int) {
	for h := range s.Heads {
		for _, i := range v.Looked {
			rows = append(rows, h*s.Queries+i)
		}
	}
	return rows
}

// pick returns some rows of a result.
func pick(got flash.Got, rows []int, dim int) (part flash.Got) {
	for _, r := range rows {
		part.Out = append(part.Out, got.Out[r*dim:(r+1)*dim]...)
		if got.LSE != nil {
			part.LSE = append(part.LSE, got.LSE[r])
		}
	}
	return part
}

// restore gives queries the numbers that they have among all.
func (v *Verdict) restore(r *flash.Report) {
	if v.Looked == nil {
		return
	}
	for _, w := range []*flash.Worst{r.Worst, r.WorstLSE} {
		if w != nil {
			w.Query = v.Looked[w.Query]
		}
	}
	for h := range r.Heads {
		for n, i := range r.Heads[h].Rows {
			r.Heads[h].Rows[n] = v.Looked[i]
		}
	}
}

// ratios returns the largest error of each row in units of its bound.
func ratios(got flash.Got, want *flash.Result[float64], l *flash.Limits, s attention.Sizes) [][]float64 {
	all := make([][]float64, s.Heads)
	for row := range s.Heads * s.Queries {
		worst := 0.0
		for n := row * s.ValueDim; n < (row+1)*s.ValueDim; n++ {
			worst = max(worst, ratio(float64(got.Out[n]), want.Out[n], l.Out[n]))
		}
		if got.LSE != nil {
			worst = max(worst, ratio(float64(got.LSE[row]), want.LSE[row], l.LSE[row]))
		}
		all[row/s.Queries] = append(all[row/s.Queries], worst)
	}
	return all
}

func ratio(got, want, bound float64) float64 {
	if got == want || math.IsNaN(got) && math.IsNaN(want) || math.IsInf(bound, 1) {
		return 0
	}
	if r := math.Abs(got-want) / bound; !math.IsNaN(r) {
		return r
	}
	return math.Inf(1)
}

// compareBits counts equal bits; NaN are equal whatever theirs.
func compareBits(got flash.Got, want *flash.Prediction) *Same {
	same := func(a, b []float32) (n int) {
		for i, x := range a {
			nan := math.IsNaN(float64(x)) && math.IsNaN(float64(b[i]))
			if nan || math.Float32bits(x) == math.Float32bits(b[i]) {
				n++
			}
		}
		return n
	}
	return &Same{len(got.Out), same(got.Out, want.Out), len(got.LSE), same(got.LSE, want.LSE)}
}

// describe says what an operand holds.
func describe(o attention.Operand) string {
	if o.Codes == nil {
		return "BF16"
	}
	heads, tokens, dim := o.Dims()
	rows, cols := o.Codes.Block.Extents(heads*tokens, dim)
	text := "a scale for each head"
	switch {
	case len(o.Codes.Scales) == 1:
		text = "one scale"
	case rows < tokens:
		text = "a scale for each token"
	}
	if cols < dim {
		text += fmt.Sprintf(" and %d columns", cols)
	}
	return fmt.Sprintf("%v, %s", o.Codes.Format, text)
}

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

// worstSequence returns the number of the sequence with the largest error in units of its
// bound.
func (v *Verdict) worstSequence() (best int) {
	largest := -1.0
	for b := range v.Sequences {
		at := 0.0
		for _, w := range []*flash.Worst{v.Sequences[b].Report.Worst, v.Sequences[b].Report.WorstLSE} {
			if w != nil {
				at = max(at, float64(w.Ratio))
			}
		}
		if at > largest {
			best, largest = b, at
		}
	}
	return best
}

// total adds a number of all sequences.
func (v *Verdict) total(of func(r *flash.Report) int) (n int) {
	for i := range v.Sequences {
		n += of(&v.Sequences[i].Report)
	}
	return n
}
