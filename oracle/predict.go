package oracle

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Predict writes to c what kernel k returns on its hardware, bit for bit, for
// A·Bᵀ: c is of shape [M, N] and dense, a of [M, K], b of [N, K].
//
// Where bound is not nil it receives, per element, a bound of the distance to the
// result of [Exact], a posteriori: it adds up what the alignment of terms cut off
// (their number times their last place), what each rounding really was, and the
// rounding of the exact result; it is 0 where the prediction is exact or where
// the exact result is not finite, and +Inf where something overflowed that need
// not have. The bound is rounded up.
//
// The bits do not depend on Workers. It returns an error, and writes nothing, if
// [Exact] would, if the model does not take the operands' formats or scales, or if bound
// is not of the right length ([gemm.ErrOperands]). When ctx ends it returns
// ctx's error, within milliseconds unless K is in the millions, and what is in c and
// bound is unspecified. c must not overlap the operands or the bias. Safe for concurrent
// use on distinct c and bound.
func Predict[T gemm.Output](ctx context.Context, c []T, bound []float64, a, b *tensor.Tensor, k Kernel, o Options) error {
	p, err := newProduct(a, b)
	if err == nil {
		err = k.check(&p)
	}
	if err == nil {
		err = p.checkOptions(len(c), &o)
	}
	if err == nil {
		mantissa := a.Format.Mantissa() + b.Format.Mantissa()
		err = predict(ctx, c, bound, &p.grid, &k, &o, func(s *prediction, t *tile) func(i int) []running {
			s.begin(&p, &k, codeRows{a}, codeRows{b}, mantissa, t)
			return s.row
		})
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

// predict writes predictions to c and, unless it is nil, bound. rows begins a tile, and returns
// what computes a row of it.
func predict[T gemm.Output](ctx context.Context, c []T, bound []float64, g *grid, k *Kernel, o *Options, rows func(s *prediction, t *tile) func(i int) []running) error {
	if bound != nil && len(bound) != len(c) {
		return sentinel.Length(gemm.ErrOperands, "bound", len(bound), len(c))
	}
	err := g.tiles(ctx, "predict", o, func(t *tile) error {
		s := predictPool.Get().(*prediction)
		defer predictPool.Put(s)
		row := rows(s, t)
		for i := t.i0; i < t.i1; i++ {
			for j, total := range row(i) {
				storePrediction(c, bound, i*g.n+t.j0+j, t.j0+j, total, &k.Model, g, o)
				if err := t.done(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		reportNonFinite("predict", c, o)
	}
	return err
}

// storePrediction adds bias and old C to an element of column j, and stores it and its
// bound at index at.
func storePrediction[T gemm.Output](c []T, bound []float64, at, j int, total running, m *Model, g *grid, o *Options) {
	if o.Bias != nil {
		total.add(o.Bias[j])
	}
	if o.Accumulate {
		total.add(number.Float32(c[at]))
	}
	c[at] = finish[T](m, total)
	if bound != nil {
		bound[at] = total.bound(layoutOf[T](), number.Float32(c[at]), 8*g.k+64)
	}
}

// finish rounds to the type of C; a NaN is the hardware's.
func finish[T gemm.Output](m *Model, total running) T {
	if total.value != total.value {
		return fromBits[T](m.nan(layoutOf[T]()))
	}
	return narrow32[T](total.value)
}

// running is a float32 on its way, and how far from the exact one it may be; err
// is infinite once there was an overflow.
type running struct {
	value float32
	err   float64
}

func newRunning(r result) running {
	return running{math.Float32frombits(uint32(r.bits)), r.err}
}

// add adds x.
func (t *running) add(x float32) { t.addRunning(running{value: x}) }

// addRunning adds x, rounded to nearest.
func (t *running) addRunning(x running) {
	sum := t.value + x.value
	t.err += x.err + sumError(float64(t.value), float64(x.value), sum)
	t.value = sum
}

// sumError bounds the rounding error of x + y = sum, where x and y are float32 or
// products of two; it is 0 where one is not finite.
func sumError(x, y float64, sum float32) float64 {
	if plain := x + y; math.IsInf(plain, 0) || plain != plain {
		return 0
	}
	plain := x + y
	// Knuth's TwoSum: rest is the error of plain, exactly.
	t := plain - x
	rest := (x - (plain - t)) + (y - t)
	return math.Abs(plain-float64(sum)) + math.Abs(rest)
}

// addScaled adds p·sa·sb.
func (t *running) addScaled(p running, sa, sb float32, order ScaleOrder) {
	var x, y float32 // what is multiplied in the fused multiply-add
	var err float64  // of x·y
	a, b, v := float64(sa), float64(sb), float64(p.value)
	switch order {
	case ProductThenFMA:
		x, y = float32(sa*sb), p.value
		err = float64(math.Abs(float64(a*b)-float64(x)) * math.Abs(v))
	case BThenA:
		x, y = float32(p.value*sb), sa
		err = float64(math.Abs(float64(v*b)-float64(x)) * a)
	default:
		x, y = float32(p.value*sa), sb
		err = float64(math.Abs(float64(v*a)-float64(x)) * b)
	}
	next := fma32(x, y, t.value)
	if sa != sa || sb != sb {
		t.value = next // NaN, as the exact result is
		return
	}
	if classOf(p.value) != finite {
		err = 0
		if (x == 0 || y == 0) && sa != 0 && sb != 0 {
			err = math.Inf(1) // the scales' product vanished, and infinity times 0 is NaN
		}
	}
	if p.err != 0 {
		err += float64(float64(a*b) * p.err)
	}
	t.err = orInf(t.err + err + sumError(float64(float64(x)*float64(y)), float64(t.value), next))
	t.value = next
}

// times multiplies by alpha, which is f rounded.
func (t *running) times(f factor, alpha float32) {
	v, exact := float64(t.value), f.float64()
	next := float32(v * float64(alpha)) // of two float32, exact before it is rounded
	if classOf(t.value) == finite {
		product := float64(v * exact)
		t.err = float64(t.err*exact) + math.Abs(product-float64(next)) + float64(math.Abs(product)*0x1p-50)
		if classOf(next) != finite {
			t.err = math.Inf(1)
		}
	}
	t.value = next
}

// bound is a bound of the distance between got, t rounded, and the exact number
// rounded, after a number of operations on t.err.
func (t *running) bound(l layout, got float32, operations int) float64 {
	switch {
	case math.IsInf(t.err, 1):
		return t.err
	case t.err == 0 || classOf(t.value) != finite:
		return 0
	}
	v := math.Abs(float64(t.value))
	if classOf(got) != finite {
		return math.Inf(1)
	}
	narrowed := math.Abs(float64(t.value) - float64(got))
	return raise(t.err+narrowed+l.rounding(raise(v+t.err, operations)), operations)
}
