package oracle

import (
	"fmt"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Options of a product: those of package gemm, so that a kernel's product and its
// oracle are asked for in the same way. A Reporter hears of the first NaN or infinity
// under the name of the function in lower case, such as "exact".
type Options = gemm.Options

const wrongC = "oracle: partial sums are not of M*N elements"

// checkOptions checks the options and the length of C for a result of g's shape.
func (g grid) checkOptions(c int, o *Options) error {
	if o.Workers < 0 {
		return fmt.Errorf("%d workers: want 0 or more", o.Workers)
	}
	if o.Bias != nil && len(o.Bias) != g.n {
		return sentinel.Length(gemm.ErrOperands, "the bias", len(o.Bias), g.n)
	}
	return sentinel.Length(gemm.ErrOperands, "C", c, g.m*g.n)
}

// reportNonFinite tells o's Reporter of the first value of c that is not finite.
func reportNonFinite[T gemm.Output](op string, c []T, o *Options) {
	if o.Reporter == nil {
		return
	}
	for i, x := range c {
		if v := number.Float64(x); !number.IsFinite(v) {
			o.Reporter.NonFinite(op, o.Name, i, v)
			return
		}
	}
}
