package judge

import (
	"context"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
)

// mostWrong is the number of wrong elements that explanations are told of.
const mostWrong = 4096

// explain says what faults make got of the product.
func explain[T gemm.Output](ctx context.Context, v *Verdict, j *job, w *wanted[T], got, old []T) (err error) {
	p := fault.Product{A: j.a, B: j.b, Bias: j.options.Bias, Kernel: j.claim.Kernel, Accumulation: j.claim.accumulation(), Bits: w.bits}
	if j.claim.Want != Predicted {
		p.Kernel = oracle.Kernel{}
	}
	if old != nil {
		p.Old = make([]float32, len(old))
		for i, x := range old {
			p.Old[i] = float32(value(x))
		}
	}
	looked := got
	if w.at != nil {
		looked = gather(got, w.at)
	}
	errors := w.errors(looked)
	wrong := spread(len(looked), v.Report.Outside, mostWrong, func(i int) bool { return errors(i).outside })
	if w.at != nil {
		wrong = gather(w.at, wrong)
	}
	if v.Explanation, err = fault.Explain(ctx, got, p, fault.Options{Wrong: wrong, Workers: j.options.Workers, Progress: j.options.Progress}); err != nil {
		return err
	}
	v.suspect()
	return nil
}

// suspect names the block of K of the first element that diverges, if the best of the
// explanations is about the products of one.
func (v *Verdict) suspect() {
	d := v.Report.First
	if d == nil || len(v.Explanation.Findings) == 0 {
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
