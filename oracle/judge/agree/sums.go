package agree

import (
	"fmt"

	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/explain"
)

const (
	sumTokens = 4  // of which sums are tried
	sumCols   = 32 // the first
	leastBits = 32 // results that are not those of the claim
)

// sums looks for a way of adding that gives all bits of some tokens and columns, operands
// being those that are claimed, and reports whether there is one.
func (j *judge) sums() bool {
	tokens, cols := explain.Spread(j.Tokens, sumTokens), explain.Spread(min(sumCols, j.Weight.Rows), sumCols)
	x, err := j.x.operand(j.ctx, tokens, j.claimed.input)
	if err != nil {
		return false
	}
	w, err := j.w.operand(j.ctx, cols, j.claimed.weight)
	if err != nil {
		return false
	}
	r := j.rulesOf(x, w)
	odd := 0 // results that are not the nearest number
	for i, token := range tokens {
		for _, c := range cols {
			if r.of.Round(float32(r.element(i, c, float64(j.bias(c))).exact)) != j.got(token, c) {
				odd++
			}
		}
	}
	if odd < leastBits {
		return false
	}
	try := func(text string, sum func(i, c int) float32) {
		for i, token := range tokens {
			for _, c := range cols {
				if r.of.Round(sum(i, c)+j.bias(c)) != j.got(token, c) {
					return
				}
			}
		}
		j.v.Explained = append(j.v.Explained, Explanation{
			Kind: "sums", Text: sumsText + text, Explained: odd, Of: odd,
			input: j.claimed.input, weight: j.claimed.weight,
		})
	}
	for _, k := range kernels() {
		if x.codes == nil || w.codes == nil || k.CheckOperands(x.codes, w.codes) != nil {
			continue
		}
		c := make([]float32, len(tokens)*len(cols))
		if oracle.Predict(j.ctx, c, nil, x.codes, w.codes, k, oracle.Options{Workers: j.workers}) == nil {
			try(kernelText(k), func(i, col int) float32 { return c[i*len(cols)+col] })
		}
	}
	for _, step := range []int{1, 2, 4, 8, 16, 32, 64, 128} {
		text := fmt.Sprintf("BF16, rounded after every %d products", step)
		if step == 1 {
			text = "BF16, rounded after every product"
		}
		try(text, func(i, c int) float32 { return narrowSum(x.row(i), w.row(c), step, false) })
		if step == 1 {
			try("BF16, of products in BF16", func(i, c int) float32 { return narrowSum(x.row(i), w.row(c), 1, true) })
		}
	}
	return len(j.v.Explained) > 0
}

// sumsText is what explanations by sums begin with.
const sumsText = "sums are those of "

// narrowSum adds products in order, in BF16, as many at a time as step says.
func narrowSum(a, b []float64, step int, products bool) float32 {
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
	return sum
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
