package gemm

import (
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
)

// result is C, in one of its types, and what is done before values go there.
type result struct {
	float32s   []float32
	bfloat16s  []fp8.BFloat16
	float16s   []float16.Float16
	bias       []float32
	accumulate bool
}

func newResult[T Output](c []T, o Options) result {
	r := result{bias: o.Bias, accumulate: o.Accumulate}
	switch c := any(c).(type) {
	case []float32:
		r.float32s = c
	case []fp8.BFloat16:
		r.bfloat16s = c
	case []float16.Float16:
		r.float16s = c
	}
	return r
}

// plain reports whether a product's sums go to C as they are.
func (r *result) plain(p *part) bool { return r.bare() && !p.outer() }

// bare reports whether results have no epilogue, but for outer scales.
func (r *result) bare() bool { return r.float32s != nil && r.bias == nil && !r.accumulate }

// store hands the sums of an area, whose rows are width apart, to out.
func (p *part) store(sums []float32, width int, r area, out *result) {
	n := r.j1 - r.j0
	for i := r.i0; i < r.i1; i++ {
		p.storeRow(sums[(i-r.i0)*width:][:n], i, r.j0, out)
	}
}

// storeRow hands the sums of row i, of columns j and following, to out.
func (p *part) storeRow(sums []float32, i, j int, out *result) {
	at, n := p.at+i*p.n+j, len(sums)
	if p.outer() {
		p.multiplyOuter(sums, i, j)
	}
	switch {
	case out.float32s != nil:
		epilogue(out.float32s[at:at+n], sums, j, out)
	case out.bfloat16s != nil:
		epilogue(out.bfloat16s[at:at+n], sums, j, out)
	case out.float16s != nil:
		epilogue(out.float16s[at:at+n], sums, j, out)
	}
}

// epilogue is step 4 for values of columns j and following.
func epilogue[T Output](c []T, values []float32, j int, out *result) {
	if out.bias != nil {
		for i, b := range out.bias[j : j+len(values)] {
			values[i] += b
		}
	}
	if out.accumulate {
		for i := range values {
			values[i] += number.Float32(c[i])
		}
	}
	if out.bias != nil || out.accumulate {
		canonicalNaN(values)
	}
	number.Narrow(c, values)
}
