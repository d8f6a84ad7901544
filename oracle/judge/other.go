package judge

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
)

// other is the verdict on a result that fails as sums in float32, as the sums of a GPU.
type other struct {
	*Verdict
	kernel oracle.Kernel
	// same elements have the kernel's bits, of those compared.
	same, of int
}

// judgeOther judges a result that fails as sums in float32 once more, if many of its elements
// have the bits of a GPU's sums, under the bound of those.
func judgeOther[T gemm.Output](ctx context.Context, v *Verdict, j *job, got, old []T, at []int) error {
	acc := j.claim.Accumulation
	if v.Pass || v.Doubt != nil || v.elements() == 0 || j.claim.Want != Exact || describeAccumulation(acc) != "float32" {
		return nil
	}
	o, err := nearestKernel(ctx, v, j, got, old)
	if err != nil || o == nil {
		return err
	}
	as := *j
	as.claim.Accumulation.Kernel = oracle.Kernel{Model: o.kernel.Model, Promote: o.kernel.Promote, Scales: acc.Scales}
	o.Verdict = as.describe()
	o.Type, o.Sample = v.Type, v.Sample
	if err := decide(ctx, o.Verdict, &as, got, old, at); err != nil {
		return err
	}
	v.other = o
	return nil
}

// nearestKernel returns the kernel whose bits most elements have of a few that are spread over
// C, or nil: it must give half of those or more that it has other bits of than the exact
// result has, and enough of them that chance does not.
func nearestKernel[T gemm.Output](ctx context.Context, v *Verdict, j *job, got, old []T) (best *other, err error) {
	const across, work, enough = 16, 1 << 20, 8
	rows, cols := v.subproduct(min(across*across, max(work/max(j.k, 1), 4*enough)), across)
	sub := newSubproduct(j, rows, cols, got, old)
	got = sub.got
	if err := sub.exact(ctx); err != nil {
		return nil, err
	}
	options := oracle.Options{Bias: sub.options.Bias, Accumulate: old != nil, Workers: j.options.Workers}
	differs := func(x, y T) bool { return number.Float64(x) != number.Float64(y) }
	for _, k := range kernels(j) {
		if k.CheckOperands(sub.a, sub.b) != nil {
			continue
		}
		c := make([]T, len(got))
		copy(c, sub.old)
		if err := oracle.Predict(ctx, c, nil, sub.a, sub.b, k, options); err != nil {
			return nil, err
		}
		o := &other{kernel: k, of: len(c)}
		told, its := 0, 0
		for i := range c {
			is := !differs(c[i], got[i])
			o.same += one(is)
			told += one(differs(c[i], sub.got[i]))
			its += one(is && differs(c[i], sub.got[i]))
		}
		if its >= enough && 2*its >= told && (best == nil || o.same > best.same) {
			best = o
		}
	}
	return best, nil
}

// one counts what holds.
func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// kernels are those of all models, promoted as DeepGEMM promotes and not, in each order of
// scales that the claim allows.
func kernels(j *job) (all []oracle.Kernel) {
	orders := []oracle.ScaleOrder{oracle.ProductThenFMA, oracle.AThenB, oracle.BThenA}
	if order := j.claim.Accumulation.Scales; order != oracle.AnyOrder {
		orders = []oracle.ScaleOrder{order}
	}
	for _, m := range oracle.Models() {
		for _, promote := range []int{128, 0} {
			if m.Float != oracle.NoFloat || promote >= j.k || promote > 0 && m.ScalesInside() {
				continue
			}
			for _, order := range orders {
				all = append(all, oracle.Kernel{Model: m, Promote: promote, Scales: order})
			}
		}
	}
	return all
}

// flags are those of octavo verify for the kernel, after --bound or --model.
func (o *other) flags() string {
	text := o.kernel.Model.Name
	if o.kernel.Promote > 0 {
		text += fmt.Sprintf(" --promote %d", o.kernel.Promote)
	}
	return text
}

// sums names those of the kernel.
func (o *other) sums() string {
	switch m := &o.kernel.Model; {
	case o.kernel.Promote > 0:
		return fmt.Sprintf("%s, promoted to float32 every %d products", m.Name, o.kernel.Promote)
	case m.ScalesInside():
		return m.Name
	default:
		return m.Name + ", not promoted to float32 within a block of K"
	}
}

// right reports whether the result is that of a correct kernel of the GPU, as far as was seen.
func (o *other) right() bool { return o != nil && o.Pass && o.same == o.of }

// explained says what the result is as sums of a GPU, a paragraph each.
func (o *other) explained() []string {
	have := fmt.Sprintf("%d of %d elements compared have the bits of sums of %s", o.same, o.of, o.sums())
	switch {
	case o.right():
		return []string{
			have + ". A kernel that is meant to sum so is right: the bound demanded is of sums in float32, which keep more bits",
			"it passes with --bound " + o.flags(),
			fmt.Sprintf("its bits are demanded with --model %s --scale-order %v", o.flags(), o.kernel.Scales),
		}
	case o.Pass:
		return []string{fmt.Sprintf("%s; it passes with --bound %s", have, o.flags())}
	}
	text := fmt.Sprintf("%s. With --bound %s %s", have, o.flags(), o.Failure())
	return append([]string{text}, o.Explained()...)
}
