package agree

import (
	"fmt"

	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/explain"
)

const (
	sumTokens = 4  // of which sums are tried
	sumCols   = 32 // of the first strip
	leastBits = 32 // results that are not those of the claim
)

// sums looks for a way of adding that gives all bits of some tokens and columns, operands
// being those that are claimed, and reports whether there is one.
func (j *judge) sums(v *Verdict) bool {
	tokens := explain.Spread(j.Tokens, sumTokens)
	x, err := j.input(j.ctx, tokens, j.claimed.input)
	if err != nil {
		return false
	}
	w, err := j.strip(j.ctx, 0, nil, j.claimed.weight)
	if err != nil {
		return false
	}
	cols := min(sumCols, len(w.values)/w.cols)
	got := func(i, c int) float32 { return j.Output[tokens[i]*j.Weight.Rows+c] }
	r := rulesOf(j.Of, oracle.Kernel{}, x, w)
	odd := 0 // results that are not the nearest number
	for i := range tokens {
		for c := range cols {
			e := r.element(x.row(i), w.row(c), x.row(i), w.row(c), j.bias(c), false)
			if r.of.format().Round(float32(e.exact)) != got(i, c) {
				odd++
			}
		}
	}
	if odd < leastBits {
		return false
	}
	hold := func(sum func(i, c int) float64) bool {
		for i := range tokens {
			for c := range cols {
				if want := r.round(r.round32(sum(i, c)) + j.bias32(c)); want != got(i, c) {
					return false
				}
			}
		}
		return true
	}
	add := func(text string) {
		v.Explained = append(v.Explained, Explanation{
			Kind: "sums", Text: "sums are those of " + text, Explained: odd, Of: odd,
			input: j.claimed.input, weight: j.claimed.weight,
		})
	}
	if x.codes != nil && w.codes != nil {
		for _, k := range kernels() {
			part, err := w.codes.RowRange(0, cols)
			if err != nil || k.CheckOperands(x.codes, part) != nil {
				continue
			}
			c := make([]float32, len(tokens)*cols)
			if oracle.Predict(j.ctx, c, nil, x.codes, part, k, oracle.Options{Workers: j.workers}) != nil {
				continue
			}
			if hold(func(i, col int) float64 { return float64(c[i*cols+col]) }) {
				add(kernelText(k))
			}
		}
	}
	for _, step := range []int{1, 2, 4, 8, 16, 32, 64, 128} {
		for _, products := range []bool{false, true} {
			if products && step > 1 {
				continue
			}
			if hold(func(i, c int) float64 { return narrowSum(x.row(i), w.row(c), step, products) }) {
				text := fmt.Sprintf("BF16, rounded after every %d products", step)
				if step == 1 {
					text = "BF16, rounded after every product"
				}
				if products {
					text = "BF16, of products in BF16"
				}
				add(text)
			}
		}
	}
	return len(v.Explained) > 0
}

func (j *judge) bias32(c int) float32 {
	if j.Bias == nil {
		return 0
	}
	return j.Bias[c]
}

func (r *rules) round32(x float64) float32 { return float32(x) }
func (r *rules) round(x float32) float32   { return r.of.format().Round(x) }

// narrowSum adds products in order, in BF16, as many at a time as step says.
func narrowSum(a, b []float64, step int, products bool) float64 {
	sum := float32(0)
	for lo := 0; lo < len(a); lo += step {
		exact := float64(sum)
		if products {
			exact = float64(sum) + float64(number.BF16.Round(float32(a[lo]*b[lo])))
		} else {
			for k := lo; k < min(lo+step, len(a)); k++ {
				exact += float64(a[k] * b[k])
			}
		}
		sum = number.BF16.Round(float32(exact))
	}
	return float64(sum)
}

// kernels are the tensor cores and the ways of using them that are tried.
func kernels() (all []oracle.Kernel) {
	for _, m := range oracle.Models() {
		if m.Float != oracle.NoFloat {
			continue
		}
		for _, promote := range []int{0, 128} {
			for _, order := range []oracle.ScaleOrder{oracle.ProductThenFMA, oracle.AThenB, oracle.BThenA} {
				all = append(all, oracle.Kernel{Model: m, Promote: promote, Scales: order})
			}
		}
	}
	return all
}

func kernelText(k oracle.Kernel) string {
	text := k.Model.Name
	if k.Promote > 0 {
		text += fmt.Sprintf(", promoted to float32 after %d products", k.Promote)
	}
	return text + ", scales " + k.Scales.String()
}
