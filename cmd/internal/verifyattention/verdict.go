package verifyattention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

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
	return t.judge(ctx, c, o)
}

// judge gives the verdict on all sequences.
func (t *task) judge(ctx context.Context, c Claim, o Options) (*Verdict, error) {
	v, err := t.weighed(ctx, c, o)
	if err != nil {
		return nil, err
	}
	switch {
	case v.Undecided != "" || v.Pass && !v.Bits && v.unbounded()+v.wide() > 0:
		v.Pass, v.Outcome = false, "undecided"
	case v.Pass:
		v.Outcome = "pass"
	default:
		v.Outcome = "fail"
	}
	return v, nil
}

// unbounded is the number of elements that differ and have no bound.
func (v *Verdict) unbounded() int {
	return v.total(func(r *flash.Report) int { return r.Unbounded })
}

// wide is the number of elements that are as wrong as their bounds are wide.
func (v *Verdict) wide() int {
	return v.total(func(r *flash.Report) int { return r.Wide })
}

// weighed gives the verdict but for the outcome. Where the result is wrong and nothing explains it,
// it asks whether something does that is not claimed: other tiles, or a GPU's sums.
func (t *task) weighed(ctx context.Context, c Claim, o Options) (*Verdict, error) {
	if err := t.exactly(ctx, o); err != nil {
		return nil, err
	}
	v, err := t.claimed(ctx, c, o)
	if errors.Is(err, flash.ErrKernel) && (c.Kernel != nil || c.Sums != "") {
		err = fmt.Errorf("%w: leave --kernel and --sums out, and bounds are those of sums in float32",
			err)
	}
	if err != nil || v.within() {
		return v, err
	}
	// A fault that fits whichever way weights are cast may be what truncated sums look like.
	if f := v.Fault(); f != nil && !f.AnyCast {
		return v, nil
	}
	longest := slices.MaxFunc(t.problems, func(a, b *attention.Problem) int {
		return cmp.Compare(a.Sizes().Keys, b.Sizes().Keys)
	})
	all, err := c.sums(ctx, longest, t.out)
	if err != nil {
		return nil, err
	}
	for _, g := range all {
		ok, err := t.covered(ctx, g, o)
		if err != nil {
			return nil, err
		}
		if ok {
			v.Undecided = g.Sums
			for b := range v.Sequences {
				v.Sequences[b].Explanation = nil
			}
			return v, nil
		}
	}
	if v.Fault() != nil {
		return v, nil
	}
	guesses := c.tilings()
	if len(all) > 0 {
		guesses = append(guesses, all[len(all)-1])
	}
	for _, g := range guesses {
		if err := t.explain(ctx, v, g, o); err != nil || v.Fault() != nil {
			return v, err
		}
	}
	return v, nil
}

// covered reports whether the results are within the bounds of a guess.
func (t *task) covered(ctx context.Context, g guess, o Options) (bool, error) {
	for b := range t.problems {
		k, err := g.kernel(t.problems[b], t.out)
		if err != nil {
			return false, err
		}
		r, _, _, err := t.compare(ctx, b, g.bound(k), o)
		if err != nil || !r.OK() {
			return false, err
		}
	}
	return true, nil
}

// compare compares the result of sequence b with the exact one under the bounds of a claim. It
// returns the largest errors of rows, in units of their bounds, and the part that was looked at.
func (t *task) compare(ctx context.Context, b int, c flash.Claim, o Options) (
	r flash.Report, worst [][]float64, part flash.Got, err error,
) {
	p, s := t.problems[b], t.problems[b].Sizes()
	fo := o.flash(s)
	if part = t.got[b]; fo.Rows != nil {
		part, s.Queries = pick(part, fo.Rows, s.ValueDim), len(fo.Rows)/max(s.Heads, 1)
	}
	want := *t.want[b]
	if c.Base2 {
		want.LSE = slices.Clone(want.LSE)
		for i := range want.LSE {
			want.LSE[i] *= math.Log2E
		}
	}
	limits, err := flash.Bound(ctx, p, c, fo)
	if err != nil {
		return r, nil, part, err
	}
	return flash.Compare(part, &want, limits, s), ratios(part, &want, limits, s), part, nil
}

// flash are the options of what looks at a sequence.
func (o *Options) flash(s attention.Sizes) flash.Options {
	fo := flash.Options{Workers: o.Workers, Progress: o.Progress}
	if looked := o.looked(s.Queries); looked != nil {
		fo.Rows = rowsOf(looked, s)
	}
	return fo
}

// within reports whether nothing is outside of its bound.
func (v *Verdict) within() bool {
	return !slices.ContainsFunc(v.Sequences, func(q Sequence) bool { return !q.Report.OK() })
}

// mostGuessed is how many rows a guess has to explain of those that are wrong, and of all.
const mostGuessed = 16

// evenly returns so many of some numbers at most.
func evenly(all []int, most int) (some []int) {
	n := min(len(all), most)
	for i := range n {
		some = append(some, all[i*len(all)/n])
	}
	return some
}

// explain asks what explains the sequence that is the most wrong, if a guess is true.
func (t *task) explain(ctx context.Context, v *Verdict, g guess, o Options) error {
	b := v.worstSequence()
	k, err := g.kernel(t.problems[b], t.out)
	if err != nil {
		return err
	}
	q, s := &v.Sequences[b], t.problems[b].Sizes()
	var wrong, all []int
	for h, r := range q.Report.Heads {
		for _, i := range r.Rows {
			wrong = append(wrong, h*s.Queries+i)
		}
	}
	for row := range s.Heads * s.Queries {
		all = append(all, row)
	}
	rows := append(evenly(wrong, mostGuessed), evenly(all, mostGuessed)...)
	slices.Sort(rows)
	rows = slices.Compact(rows)
	e, err := flash.Explain(ctx, t.problems[b], t.got[b], k,
		flash.Options{Rows: rows, Workers: o.Workers, Progress: o.Progress})
	if err == nil && len(e.Findings) > 0 {
		q.Explanation, v.Supposed = e, g.text
	}
	return err
}

// exactly computes exact attention of what is looked at.
func (t *task) exactly(ctx context.Context, o Options) error {
	for _, p := range t.problems {
		want, err := flash.Exact[float64](ctx, p, o.flash(p.Sizes()))
		if err != nil {
			return err
		}
		t.want = append(t.want, want)
	}
	return nil
}

// looked returns the queries of n to look at, or nil for all.
func (o *Options) looked(n int) (queries []int) {
	if o.Queries == 0 || o.Queries >= n {
		return nil
	}
	for i := range n {
		queries = append(queries, i)
	}
	return evenly(queries, o.Queries)
}

// rowsOf returns the rows of some queries of every head.
func rowsOf(looked []int, s attention.Sizes) (rows []int) {
	for h := range s.Heads {
		for _, i := range looked {
			rows = append(rows, h*s.Queries+i)
		}
	}
	return rows
}

// claimed gives the verdict as a claim has it.
func (t *task) claimed(ctx context.Context, c Claim, o Options) (*Verdict, error) {
	p, s := t.problems[0], t.problems[0].Sizes()
	k, err := c.kernel(p, t.out)
	if err != nil {
		return nil, err
	}
	v := &Verdict{Pass: true, Batch: len(t.problems), Heads: s.Heads, KVHeads: s.KVHeads,
		Dim: s.Dim, ValueDim: s.ValueDim,
		Q:     t.describe(func(p *attention.Problem) attention.Operand { return p.Q }),
		K:     t.describe(func(p *attention.Problem) attention.Operand { return p.K }),
		V:     t.describe(func(p *attention.Problem) attention.Operand { return p.V }),
		Scale: p.SoftmaxScale(), Causal: p.Mask.Causal, Window: p.Mask.Window, Sinks: p.Sinks != nil,
		Type: t.out, Kernel: k, Bits: c.Bits}
	for b := range t.problems {
		q, err := v.sequence(ctx, t, b, c, o)
		if err != nil {
			return nil, err
		}
		v.Sequences = append(v.Sequences, *q)
		v.Queries, v.Keys = max(v.Queries, q.Queries), max(v.Keys, q.Keys)
		v.Pass = v.Pass && q.ok() && (!c.Bits || q.SameBits.all())
	}
	return v, nil
}

// ok reports whether nothing is wrong with a sequence.
func (q *Sequence) ok() bool {
	return q.Report.OK() && (q.Explanation == nil || len(q.Explanation.Findings) == 0)
}

// sequence judges one.
func (v *Verdict) sequence(ctx context.Context, t *task, b int, c Claim, o Options) (*Sequence,
	error) {
	p, s := t.problems[b], t.problems[b].Sizes()
	r, worst, part, err := t.compare(ctx, b, c.bound(v.Kernel), o)
	if err != nil {
		return nil, err
	}
	q := &Sequence{Queries: s.Queries, Keys: s.Keys, Looked: o.looked(s.Queries), Report: r,
		worst: worst}
	q.restore()
	if c.Kernel != nil {
		is, err := flash.Predict(ctx, p, v.Kernel, o.flash(s))
		if err != nil {
			return nil, err
		}
		q.SameBits = compareBits(part, is)
	}
	e, err := flash.Explain(ctx, p, t.got[b], v.Kernel,
		flash.Options{Workers: o.Workers, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	if !q.Report.OK() || len(e.Findings) > 0 {
		q.Explanation = e
	}
	return q, nil
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
func (q *Sequence) restore() {
	if q.Looked == nil {
		return
	}
	for _, w := range []*flash.Worst{q.Report.Worst, q.Report.WorstLSE} {
		if w != nil {
			w.Query = q.Looked[w.Query]
		}
	}
	for h := range q.Report.Heads {
		for n, i := range q.Report.Heads[h].Rows {
			q.Report.Heads[h].Rows[n] = q.Looked[i]
		}
	}
}

// ratios returns the largest error of each row in units of its bound.
func ratios(got flash.Got, want *flash.Result[float64], l *flash.Limits,
	s attention.Sizes) [][]float64 {
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

// describe says what an operand of all problems holds: those without tokens have no scales.
func (t *task) describe(of func(p *attention.Problem) attention.Operand) string {
	for _, p := range t.problems {
		if _, tokens, _ := of(p).Dims(); tokens > 0 {
			return describe(of(p))
		}
	}
	return describe(of(t.problems[0]))
}

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
