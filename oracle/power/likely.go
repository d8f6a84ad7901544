package power

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/subset"
	"github.com/octavo-fp8/octavo/oracle"
)

// mostLikely is the number of faults that are named.
const mostLikely = 3

// likely names the faults that an alarm may be of: one that can be told from the numbers, or
// what the tests that raised it say.
func likely[T gemm.Output](ctx context.Context, p *population, r *Result, got, old []T, o *Options) ([]string, error) {
	if text := rounded(p, got); text != "" {
		return []string{text}, nil
	}
	if text := flushing(p, got); text != "" {
		return []string{text}, nil
	}
	text, err := lost(ctx, p, got, old, o)
	if err != nil || text != "" {
		return []string{text}, err
	}
	tests := slices.DeleteFunc(slices.Clone(r.Tests), func(t Test) bool { return !t.Alarm })
	slices.SortStableFunc(tests, func(a, b Test) int {
		return cmp.Or(cmp.Compare(rank[a.Name], rank[b.Name]), cmp.Compare(b.Score/b.Limit, a.Score/a.Limit))
	})
	var texts []string
	for _, t := range tests[:min(len(tests), mostLikely)] {
		texts = append(texts, meanings[t.Name]+": "+t.Where)
	}
	return texts, nil
}

// rank puts the tests that name a cause before the others.
var rank = map[string]int{"subnormals": 0, "products": 2, "codes": 2, "wrong sides": 1, "all of C": 3, "parts of C": 4, "variance": 5, "elements": 6}

// meanings are what alarms of tests may be of.
var meanings = map[string]string{
	"subnormals":         "subnormal codes are read as other numbers",
	"products":           "a product of K is lost or has another factor",
	"codes":              "a code of an operand is read as another",
	"wrong sides":        "results are rounded twice, or not to nearest",
	"all of C":           "sums or results are not rounded to nearest, or have a factor",
	"parts of C":         "a part of C is computed otherwise, as at an edge or by one block",
	"size in parts of C": "a part of C is computed otherwise, as at an edge or by one block",
	"variance":           "sums keep fewer bits, or are rounded in between",
	"size":               "sums keep fewer bits, or are rounded in between",
	"elements":           "an element is wrong by itself, as after a race",
}

// rounded tells whether results were rounded in another way than to nearest, or to a
// narrower type.
func rounded[T gemm.Output](p *population, got []T) string {
	const most = 0.01 // of the elements may be others
	if unitOf[T]() == 0 {
		return narrower(p, got)
	}
	var n, toZero, away, up, down int
	for i, x := range got {
		g, want, right := number.Float64(x), float64(p.exact[i]), p.right[i]
		if !number.IsFinite(g) || !number.IsFinite(right) || right == want || p.sigma[i] == 0 {
			continue
		}
		n++
		if g == right || number.Float64(next(number.From[T](p.exact[i]), int(math.Copysign(1, want-right)))) == g {
			toZero += count(math.Abs(g) < math.Abs(want))
			away += count(math.Abs(g) > math.Abs(want))
			up += count(g > want)
			down += count(g < want)
		}
	}
	for _, way := range []struct {
		n    int
		text string
	}{{toZero, "truncated, toward zero,"}, {away, "rounded away from zero"}, {up, "rounded up"}, {down, "rounded down"}} {
		if n > 100 && float64(way.n) >= (1-most)*float64(n) {
			return fmt.Sprintf("results are %s to %s in place of to the nearest number: so are %d of %d that are between two", way.text, nameOf[T](), way.n, n)
		}
	}
	return ""
}

// flushing tells whether errors are what C changes by without subnormals.
func flushing[T gemm.Output](p *population, got []T) (text string) {
	most := 20 // elements, at least
	for q, change := range p.flushed {
		var n, as int
		for i := range change {
			want := number.From[T](float32(float64(p.exact[i]) + change[i]))
			if unitOf[T]() == 0 && !(math.Abs(change[i]) > 4*u*math.Abs(float64(p.exact[i]))) || number.Float64(want) == p.right[i] {
				continue
			}
			n++
			// Sums in float32 are off besides.
			off := math.Abs(number.Float64(got[i]) - number.Float64(want))
			as += count(off < math.Abs(number.Float64(got[i])-p.right[i]))
		}
		if as >= most && 10*as >= 9*n {
			most, text = as+1, fmt.Sprintf("subnormal codes of %s are flushed to zero: of %d elements that this changes, %d are nearer to what it gives than to the exact result",
				[...]string{"A", "B", "both operands"}[q], n, as)
		}
	}
	return text
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// narrower tells whether all results in float32 are numbers of a narrower type.
func narrower[T gemm.Output](p *population, got []T) string {
	var n, bfloats, halves int
	isBFloat := func(v float32) bool { return fp8.BFloat16FromFloat32(v).Float32() == v }
	isHalf := func(v float32) bool { return math.Float32bits(v)&(1<<13-1) == 0 }
	for i, x := range got {
		// The exact results of some operands are such numbers.
		if v := number.Float32(x); v-v == 0 && p.sigma[i] > 0 && !isHalf(p.exact[i]) {
			n++
			bfloats += count(isBFloat(v))
			halves += count(isHalf(v))
		}
	}
	switch {
	case n > 100 && bfloats == n:
		return fmt.Sprintf("results were rounded to bfloat16 on the way: all %d that need more bits have lost them", n)
	case n > 100 && halves == n:
		return fmt.Sprintf("results were rounded to 11 bits on the way, those of float16: all %d that need more have lost them", n)
	}
	return ""
}

// nameOf names the type of C.
func nameOf[T gemm.Output]() string {
	switch unitOf[T]() {
	case 0:
		return "float32"
	case 0x1p-8:
		return "bfloat16"
	}
	return "float16"
}

// lost tells whether errors are as large as those of a model of tensor cores that keeps few
// bits, other than the claimed one.
func lost[T gemm.Output](ctx context.Context, p *population, got, old []T, o *Options) (string, error) {
	const side, near = 64, 1.25
	rows, cols := subset.Evenly(p.m, side), subset.Evenly(p.n, side)
	a, b := subset.Rows(p.a, rows), subset.Rows(p.b, cols)
	var bias []float32
	if o.Bias != nil {
		for _, j := range cols {
			bias = append(bias, o.Bias[j])
		}
	}
	var at []int
	for _, i := range rows {
		for _, j := range cols {
			at = append(at, i*p.n+j)
		}
	}
	size := func(c func(n int) T) (sum float64) {
		for n, i := range at {
			if off := math.Abs(number.Float64(c(n)) - p.right[i]); p.sigma[i] > 0 && number.IsFinite(off) {
				sum += off / p.sigma[i]
			}
		}
		return sum
	}
	mine := size(func(n int) T { return got[at[n]] })
	best, text := near, ""
	for _, model := range oracle.Models() {
		for _, promote := range []int{0, 128} {
			k := oracle.Kernel{Model: model, Promote: promote, Scales: o.Accumulation.Kernel.Scales}
			if model.Float != oracle.NoFloat || model.F > 20 || promote >= p.block || k == o.Accumulation.Kernel || k.CheckOperands(a, b) != nil {
				continue
			}
			c := make([]T, len(at))
			if old != nil {
				for n, i := range at {
					c[n] = old[i]
				}
			}
			if err := oracle.Predict(ctx, c, nil, a, b, k, oracle.Options{Bias: bias, Accumulate: old != nil, Workers: o.Workers}); err != nil {
				return "", fmt.Errorf("power: %w", err)
			}
			same := 0
			for n := range c {
				same += count(number.Float64(c[n]) == number.Float64(got[at[n]]))
			}
			how := "unpromoted"
			if promote > 0 {
				how = fmt.Sprintf("promoted every %d products", promote)
			}
			what := fmt.Sprintf("lose bits below 2^-%d of their largest term, as %d-bit accumulators do: ", model.F, model.F+1)
			if same == len(c) && mine > 0 {
				return "sums " + what + fmt.Sprintf("all %d elements compared have the bits of %s, %s", same, model.Name, how), nil
			}
			if its := size(func(n int) T { return c[n] }); its > 0 && mine > 0 && max(mine/its, its/mine) < best {
				best = max(mine/its, its/mine)
				text = "sums may " + what + fmt.Sprintf("errors are %.2f times as large as those of %s, %s", mine/its, model.Name, how)
			}
		}
	}
	return text, nil
}
