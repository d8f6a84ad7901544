package multiply

import (
	"fmt"
	"io"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/telemetry"
)

// Result says what was done. Its JSON is stable: keys are added, never changed.
type Result struct {
	Out   string `json:"out"`
	Bytes int64  `json:"bytes"`
	Type  string `json:"type"` // of C

	M          int           `json:"m"`
	N          int           `json:"n"`
	K          int           `json:"k"`
	A          judge.Operand `json:"a"`
	B          judge.Operand `json:"b"`
	Bias       bool          `json:"bias"`
	Accumulate bool          `json:"accumulate"`

	Level    string  `json:"level"`
	Seconds  float64 `json:"seconds"` // multiplying, without reading and writing
	GFLOPS   float64 `json:"gflops"`
	NaN      int     `json:"nan"`
	Infinite int     `json:"infinite"`

	NonFinite *telemetry.NonFinite `json:"-"` // the first that is not finite
}

// newResult describes a product that was written.
func newResult(p *Product) *Result {
	m, k := p.A.Dims()
	n, _ := p.B.Dims()
	r := &Result{
		M: m, N: n, K: k, A: judge.NewOperand(p.A), B: judge.NewOperand(p.B),
		Bias: p.Bias != nil, Accumulate: p.Old != nil,
		Seconds: p.Elapsed.Seconds(), NaN: p.NaN, Infinite: p.Infinite, NonFinite: p.NonFinite,
	}
	if r.Seconds > 0 {
		r.GFLOPS = 2 * float64(m) * float64(n) * float64(k) / r.Seconds / 1e9
	}
	return r
}

// WriteText writes the result for people.
func (r *Result) WriteText(w io.Writer) error {
	sum := "A·Bᵀ"
	if r.Bias {
		sum += " + bias"
	}
	if r.Accumulate {
		sum += " + old C"
	}
	values := "all finite"
	if r.NaN > 0 || r.Infinite > 0 {
		values = fmt.Sprintf("%d NaN and %d infinite of %d", r.NaN, r.Infinite, r.M*r.N)
	}
	_, err := fmt.Fprintf(w, "%s: C = %s, %dx%d %s, %d bytes, %s\n", textout.Name(r.Out), sum, r.M, r.N, r.Type, r.Bytes, values)
	if err == nil {
		_, err = fmt.Fprintf(w, "K = %d, A %s in %s, B %s in %s, level %s, %.3g s, %.3g GFLOP/s\n",
			r.K, r.A.Format, r.A.Block, r.B.Format, r.B.Block, r.Level, r.Seconds, r.GFLOPS)
	}
	return err
}

// count counts what is not finite.
func (p *Product) count(c any) {
	switch c := c.(type) {
	case []float32:
		countNonFinite(p, c, func(x float32) float32 { return x })
	case []fp8.BFloat16:
		countNonFinite(p, c, fp8.BFloat16.Float32)
	case []float16.Float16:
		countNonFinite(p, c, float16.Float16.Float32)
	}
}

func countNonFinite[T gemm.Output](p *Product, c []T, value func(T) float32) {
	for _, x := range c {
		v := float64(value(x))
		switch {
		case math.IsNaN(v):
			p.NaN++
		case math.IsInf(v, 0):
			p.Infinite++
		}
	}
}
