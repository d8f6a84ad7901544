package judge

import (
	"context"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
)

// mostWrong is the number of wrong elements that explanations are told of.
const mostWrong = 4096

// explain says what faults make got of the product.
func explain[T gemm.Output](ctx context.Context, v *Verdict, j *job, w *wanted[T], got, looked, old []T) (err error) {
	acc := j.claim.accumulation()
	acc.Finite = true
	p := fault.Product{A: j.a, B: j.b, Bias: j.options.Bias, Kernel: j.claim.Kernel, Accumulation: acc, Bits: w.bits, Together: v.Comparison.Outside == 0}
	if j.claim.Want != Predicted {
		p.Kernel = oracle.Kernel{}
	}
	if old != nil {
		p.Old = make([]float32, len(old))
		for i, x := range old {
			p.Old[i] = float32(number.Float64(x))
		}
	}
	o := fault.Options{Wrong: w.wrong(looked, v.Comparison.Outside), Workers: j.options.Workers, Progress: j.options.Progress}
	if v.Explanation, err = fault.Explain(ctx, got, p, o); err != nil {
		return err
	}
	switch found := len(v.Explanation.Findings) > 0; {
	case !found && p.Together:
		v.Explanation = nil // the alarm's report says which faults are likely
	case !found && !w.bits && 10*v.Comparison.Outside < len(looked):
		// Of errors that few elements cannot have, the others may say more.
		p.Together = true
		together, err := fault.Explain(ctx, got, p, o)
		if err != nil {
			return err
		}
		if len(together.Findings) > 0 {
			v.Explanation = together
		}
	}
	v.suspect()
	return nil
}

// wrong returns up to mostWrong of the elements of C that are outside, of so many.
func (w *wanted[T]) wrong(looked []T, outside int) []int {
	errors := w.errors(looked)
	some := spread(len(looked), outside, mostWrong, func(i int) bool { return errors(i).Outside })
	if w.at != nil {
		return gather(w.at, some)
	}
	return some
}

// suspect names the block of K of the first element that diverges, if the best of the
// explanations is about the products of one.
func (v *Verdict) suspect() {
	d := v.Comparison.First
	if d == nil || v.Explanation == nil || len(v.Explanation.Findings) == 0 {
		return
	}
	f := &v.Explanation.Findings[0].Fault
	from, to := f.K()
	if from == to || !f.Where.Has(d.Row, d.Col) {
		return
	}
	for q, b := range d.Blocks {
		if b.From <= from && to <= b.To {
			d.Suspect = q
			d.CodesA, d.CodesB = d.CodesA[2*b.From:2*b.To], d.CodesB[2*b.From:2*b.To]
			return
		}
	}
}
