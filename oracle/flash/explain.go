package flash

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle/explain"
)

// Explanation is what [Explain] found.
type Explanation struct {
	// Rows were looked at. Wrong is the number of their elements, log-sum-exps among them,
	// that are not what the claimed kernel returns, and Outside of those that no correct
	// kernel of the claim may return, by [Bound].
	Rows    int `json:"rows"`
	Wrong   int `json:"wrong"`
	Outside int `json:"outside"`
	// Findings are the faults that explain the result, the best first. None is found if
	// nothing fits, or nothing is wrong.
	Findings []Finding `json:"findings,omitempty"`
	Tried    []Fault   `json:"tried,omitempty"`
}

// Finding is a fault that explains every element that was looked at, those that are wrong
// and those that are not.
type Finding struct {
	Fault Fault  `json:"fault"`
	Text  string `json:"text"` // what Fault's String says
	// Seen are public issues in which the fault was seen.
	Seen []string `json:"seen,omitempty"`
	// Same are faults that explain the result as well.
	Same []Fault `json:"same,omitempty"`
	// Bits says that the kernel with the fault gives every bit.
	Bits bool `json:"bits"`
	// AnyCast says that weights may have been cast in another way than the claimed kernel
	// casts them: its tiles may be others.
	AnyCast bool `json:"anyCast,omitempty"`
}

// String returns a sentence, such as "O is not rescaled when the maximum grows: explains
// all elements, bit for bit (seen in ROCm/rocm-libraries#7194)".
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: explains all elements that were looked at", f.Text)
	switch {
	case f.Bits:
		b.WriteString(", bit for bit")
	case f.AnyCast:
		b.WriteString(", whichever way weights are cast")
	}
	if len(f.Seen) > 0 {
		fmt.Fprintf(&b, " (seen in %s)", strings.Join(f.Seen, ", "))
	}
	for i, same := range f.Same {
		if i == 0 {
			b.WriteString("; cannot be told here from: ")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(same.String())
	}
	return b.String()
}

// String returns the findings, a line each, or what was tried.
func (e *Explanation) String() string {
	switch {
	case e.Wrong == 0:
		return fmt.Sprintf("nothing is wrong in %d rows that were looked at", e.Rows)
	case len(e.Findings) > 0:
		lines := make([]string, len(e.Findings))
		for i, f := range e.Findings {
			lines[i] = f.String()
		}
		return strings.Join(lines, "\n")
	case e.Outside == 0:
		return "no bit need be as the claimed kernel has it: all elements are within the bound of " +
			"what is claimed"
	}
	return fmt.Sprintf("no known fault explains the %d elements that are wrong; %d were tried, "+
		"each alone", e.Wrong, len(e.Tried))
}

// Explain says which fault gives the result got where kernel k was meant to compute p.
//
// It computes what k returns and, for every fault that it could have of the problem
// ([Faults]), what it returns then, each with tolerances for another order of additions
// and other exponentials of the same quality. A fault explains a result if all elements
// that are looked at are within its tolerances, and so much nearer to it than to what
// the honest kernel returns that chance would not do it. Where the casts of P are not what
// k's tiles give, and the result is outside of [Bound], faults are tried with tolerances
// for any cast. Kernels that are correct are not accused: what is near to the honest
// prediction is left alone, and what is within the bound is, unless a fault gives it as
// nearly as sums allow.
//
// It looks at the rows of o, or at up to 96 that are spread over the result where o has
// none. Where something is wrong it takes about as long as [Predict] of one row for each
// fault, and of all rows for those that fit that one; progress is told in faults then. Errors
// are those of Predict, and [attention.ErrShape] if got is not of the problem's size.
func Explain(ctx context.Context, p *attention.Problem, got Got, k Kernel,
	o Options) (*Explanation, error) {
	m, err := newFaulty(p, k, Fault{})
	if err != nil {
		return nil, err
	}
	rows := m.s.Heads * m.s.Queries
	err = sentinel.Length(attention.ErrShape, "flash: the result", len(got.Out), rows*m.s.ValueDim)
	if err == nil && got.LSE != nil {
		err = sentinel.Length(attention.ErrShape, "flash: the result's LSE", len(got.LSE), rows)
	}
	if err != nil {
		return nil, err
	}
	if o.Rows == nil {
		o.Rows = explain.Spread(rows, 96)
	}
	o.Trace = nil
	x := &explainer{p: p, k: k, o: o}
	if x.got, err = x.take(got, m.s); err != nil {
		return nil, err
	}
	return x.explain(ctx, m)
}

// explainer is what the candidates are measured by.
type explainer struct {
	p      *attention.Problem
	k      Kernel
	o      Options
	got    []float64 // of the rows: outputs, then log-sum-exps if there are some
	honest []float64
	wrong  []bool
	sums   int // where log-sum-exps begin; 0: there are none
	worst  int // of the rows that are looked at the one that is wrong the most
}

// take returns the rows' elements of a result.
func (x *explainer) take(got Got, s attention.Sizes) (all []float64, err error) {
	rows, err := x.o.rows(s)
	for _, r := range rows {
		for _, v := range got.Out[r*s.ValueDim:][:s.ValueDim] {
			all = append(all, float64(v))
		}
	}
	if got.LSE != nil {
		x.sums = len(all)
		for _, r := range rows {
			all = append(all, float64(got.LSE[r]))
		}
	}
	return all, err
}

// elements are the predictions and the tolerances in the same order.
func (x *explainer) elements(v *vicinity) (value, tol []float64) {
	for _, y := range v.Out {
		value = append(value, float64(y))
	}
	for _, y := range v.LSE {
		value = append(value, float64(y))
	}
	return value, append(v.out, v.lse...)
}

// row returns the place among the rows of the one that element n is of.
func (x *explainer) row(n int) int {
	if row := n / max(x.p.Sizes().ValueDim, 1); row < len(x.o.Rows) {
		return row
	}
	return n - x.sums
}

func (x *explainer) explain(ctx context.Context, m *model) (*Explanation, error) {
	e := &Explanation{Rows: len(x.o.Rows)}
	v, err := m.near(ctx, x.o, false)
	if err != nil {
		return nil, err
	}
	value, tol := x.elements(v)
	x.honest, x.wrong = value, make([]bool, len(x.got))
	inRow := make([]int, len(x.o.Rows))
	for n, g := range x.got {
		if agrees(g, value[n], tol[n]) {
			continue
		}
		x.wrong[n] = true
		e.Wrong++
		inRow[x.row(n)]++
	}
	if e.Wrong == 0 {
		return e, nil
	}
	x.worst = slices.Index(inRow, slices.Max(inRow))
	if e.Outside, err = x.outside(ctx); err != nil {
		return nil, err
	}
	e.Tried = Faults(x.p, x.k)
	fits, err := x.compete(ctx, e.Tried, false)
	if err == nil && len(fits) == 0 && e.Outside > 0 {
		fits, err = x.compete(ctx, e.Tried, true)
	}
	if err != nil || len(fits) == 0 {
		return e, err
	}
	best := fits[0]
	f := Finding{Fault: best.fault, Text: best.fault.String(), Seen: best.fault.Kind.Seen(),
		Bits: best.bits, AnyCast: best.anyCast}
	for _, c := range fits[1:] {
		f.Same = append(f.Same, c.fault)
	}
	e.Findings = []Finding{f}
	return e, nil
}

// outside counts the elements that no correct kernel returns.
func (x *explainer) outside(ctx context.Context) (n int, err error) {
	want, err := Exact[float64](ctx, x.p, x.o)
	if err != nil {
		return 0, err
	}
	l, err := Bound(ctx, x.p, x.k.Numerics(), x.o)
	if err != nil {
		return 0, err
	}
	exact := slices.Concat(want.Out, inBase(want.LSE, x.k.Base2))
	bounds := slices.Concat(l.Out, l.LSE)
	for i, g := range x.got {
		if !agrees(g, exact[i], bounds[i]) {
			n++
		}
	}
	return n, nil
}

// agrees reports whether got is within tol of want. NaN agrees with NaN, and an infinity with
// the same.
func agrees(got, want, tol float64) bool {
	if got == want || math.IsNaN(got) && math.IsNaN(want) || math.IsInf(tol, 1) {
		return true
	}
	return math.Abs(got-want) <= tol
}

// candidate is a fault and how it fits elements that were looked at.
type candidate struct {
	explain.Tally
	fault   Fault
	bits    bool
	anyCast bool
}

// compete returns the faults that fit all elements: those that give every bit first, and
// then in the order of the table. A part of the sample is the row that is wrong the most.
func (x *explainer) compete(ctx context.Context, faults []Fault, anyCast bool) ([]*candidate, error) {
	tried := meter.New(ctx, x.o.Progress, "explain", int64(len(faults)))
	fits, err := explain.Compete(faults, 1, func(f Fault, whole bool) (*candidate, bool, error) {
		c, err := x.weigh(ctx, f, whole, anyCast)
		fits := c != nil && (!whole || c.Convinces(1, len(faults)))
		if err == nil && (whole || !fits) {
			err = tried.Add(1)
		}
		return c, fits, err
	})
	others := slices.Clone(fits)
	fits = slices.DeleteFunc(fits, func(c *candidate) bool { return !c.bits })
	return append(fits, slices.DeleteFunc(others, func(c *candidate) bool { return c.bits })...), err
}

// weigh returns how a fault fits all rows or, if not whole, the one that is wrong the most.
// It returns nil if an element is refuted, and where such a problem is none or the kernel
// does not compute it.
func (x *explainer) weigh(ctx context.Context, f Fault, whole, anyCast bool) (*candidate, error) {
	m, err := newFaulty(x.p, x.k, f)
	if err != nil {
		return nil, nil
	}
	o := x.o
	o.Progress = nil // it is told in faults
	if !whole {
		o.Rows = o.Rows[x.worst : x.worst+1]
	}
	v, err := m.near(ctx, o, anyCast)
	if err != nil {
		return nil, err
	}
	c := &candidate{fault: f, bits: true, anyCast: anyCast}
	value, tol := x.elements(v)
	at := 0
	for n := range x.got {
		if !whole && x.row(n) != x.worst {
			continue
		}
		x.count(c, n, value[at], tol[at])
		at++
		if c.Missed > 0 || c.Contradicted > 0 {
			return nil, nil
		}
	}
	return c, nil
}

// count takes in element n, for which the kernel with the fault gives value within tol.
func (x *explainer) count(c *candidate, n int, value, tol float64) {
	const most = 16 // bits of evidence of an element
	g, o := x.got[n], explain.Refuted
	if agrees(g, value, tol) {
		o = explain.Fits
	}
	c.bits = c.bits && (g == value || math.IsNaN(g) && math.IsNaN(value))
	c.Count(x.wrong[n], o, explain.Evidence(math.Abs(g-x.honest[n]), tol, most))
}
