package pack

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/tensor"
)

// product is A·Bᵀ. An element of A is x·2^e, of B y·2^-e, with e of their column, so that each
// product is a small integer and codes have all exponents that both formats have. A scale of A
// is f·2^(t+r), f odd, t of the block along K and r of its rows, one of B 2^(r-t).
type product struct {
	name   string
	a, b   fp8.Format
	ba, bb tensor.Block
	scales tensor.ScaleFormat
	most   [2]int // of |x| and |y|, in units of the formats' steps
	odd    []int  // f of A
	outer  bool
	packed bool
	// back takes most of a sum back in the second half of K, so that the result is at most
	// 256 and exact in bfloat16.
	back bool
}

var (
	row   = tensor.Block{Rows: 1}
	tile  = tensor.Block{Rows: 1, Cols: 128}
	micro = tensor.Block{Rows: 1, Cols: 32}
	tiny  = tensor.Block{Rows: 1, Cols: 16}
	block = tensor.Block{Rows: 128, Cols: 128}
)

var odds = []int{1, 3, 5, 7}

// products are those of a machine. With K of 2048 the largest sums of |x·y·f| are
// 15·15·7·2048 and 12·12·7·2048 steps, and four times that with the 2^r of both: below 2^24.
var products = []product{
	{name: "tensor", a: fp8.E4M3, b: fp8.E4M3, most: [2]int{15, 15}, odd: odds},
	{name: "row", a: fp8.E4M3, b: fp8.E4M3, ba: row, bb: row, most: [2]int{15, 15}, odd: odds},
	{name: "row-e5m2", a: fp8.E5M2, b: fp8.E4M3, ba: row, bb: row, most: [2]int{7, 15}, odd: odds},
	{name: "1x128-128x128", a: fp8.E4M3, b: fp8.E4M3, ba: tile, bb: block,
		most: [2]int{15, 15}, odd: odds, packed: true},
	{name: "1x128-1x128-bf16", a: fp8.E4M3, b: fp8.E4M3, ba: tile, bb: tile,
		most: [2]int{2, 2}, back: true},
	{name: "fnuz-row", a: fp8.E4M3FNUZ, b: fp8.E5M2FNUZ, ba: row, bb: row, most: [2]int{15, 7}},
	{name: "mxfp8", a: fp8.E4M3, b: fp8.E4M3, ba: micro, bb: micro, scales: tensor.E8M0Scales,
		most: [2]int{15, 15}},
	{name: "mxfp6", a: fp8.E2M3, b: fp8.E3M2, ba: micro, bb: micro, scales: tensor.E8M0Scales,
		most: [2]int{15, 7}},
	{name: "mxfp4", a: fp8.E2M1, b: fp8.E2M1, ba: micro, bb: micro, scales: tensor.E8M0Scales,
		most: [2]int{12, 12}, packed: true},
	{name: "mxint8", a: fp8.MXINT8, b: fp8.MXINT8, ba: micro, bb: micro,
		scales: tensor.E8M0Scales, most: [2]int{31, 31}},
	{name: "nvfp4", a: fp8.E2M1, b: fp8.E2M1, ba: tiny, bb: tiny, scales: tensor.UE4M3Scales,
		most: [2]int{12, 12}, odd: odds, outer: true},
}

// gpuProducts have sums of |x·y| of at most 2^13 before a scale is applied, which tensor cores
// that keep 14 bits of a sum hold exactly: 3·2·1024.
var gpuProducts = []product{
	{name: "tensor", a: fp8.E4M3, b: fp8.E4M3, most: [2]int{3, 2}, odd: odds},
	{name: "tensor-e5m2", a: fp8.E4M3, b: fp8.E5M2, most: [2]int{3, 2}, odd: odds},
	{name: "row-bf16", a: fp8.E4M3, b: fp8.E4M3, ba: row, bb: row, most: [2]int{3, 2}, back: true},
	{name: "1x128-128x128", a: fp8.E4M3, b: fp8.E4M3, ba: tile, bb: block,
		most: [2]int{3, 2}, odd: odds},
	{name: "mxfp8", a: fp8.E4M3, b: fp8.E4M3, ba: micro, bb: micro, scales: tensor.E8M0Scales,
		most: [2]int{3, 2}},
}

// backKept is how many of the first columns of K are not taken back.
const backKept = 32

// numbers are the integers of an operand and the tensor that holds them.
type numbers struct {
	rows, k int
	x       []int64 // with f and 2^r of their scale
	t       *tensor.Tensor
	e       int // elements are x·2^e, the same for all
}

// codes returns, for each integer from -most to most that the format has in units of 2^unit,
// its codes at each exponent from lo to hi; unit is 0 and exponents are many for formats whose
// exponents have three bits or more.
type codes struct {
	f      fp8.Format
	unit   int
	digits []int
	of     map[float32]byte
}

func newCodes(f fp8.Format, most int) codes {
	c := codes{f: f, of: make(map[float32]byte)}
	for code := 255; code >= 0; code-- {
		if code < 1<<f.Bits() && !f.IsNaN(byte(code)) && !f.IsInf(byte(code), 0) {
			c.of[f.Float32(byte(code))] = byte(code)
		}
	}
	if f.Max() < 240 {
		c.unit = int(math.Log2(float64(f.MinSubnormal())))
	}
	for x := -most; x <= most; x++ {
		if _, ok := c.at(x, 0); ok {
			c.digits = append(c.digits, x)
		}
	}
	return c
}

// at returns the code of x·2^(unit+e).
func (c codes) at(x, e int) (byte, bool) {
	code, ok := c.of[float32(math.Ldexp(float64(x), c.unit+e))]
	return code, ok
}

// has reports whether there are codes of all digits times 2^e.
func (c codes) has(e int) bool {
	for _, x := range c.digits {
		if _, ok := c.at(x, e); !ok {
			return false
		}
	}
	return true
}

// exponents returns the e that both operands have, which always include 0.
func exponents(a, b codes) (all []int) {
	for e := -20; e <= 20; e++ {
		if a.unit == 0 && b.unit == 0 && a.has(e) && b.has(-e) || e == 0 {
			all = append(all, e)
		}
	}
	return all
}

// operands draws A, [m, k], and B, [n, k].
func (p product) operands(key uint64, m, n, k int) (a, b numbers) {
	ca, cb := newCodes(p.a, p.most[0]), newCodes(p.b, p.most[1])
	es := exponents(ca, cb)
	exponent := func(col int) int { return es[below(key, 1, uint64(col), len(es))] }
	half := k / 2
	digit := func(c codes, operand uint64, i, col int) int {
		return c.digits[below(key, operand+uint64(i)<<8, uint64(col), len(c.digits))]
	}
	a = p.operand("a", ca, key, 2, m, k, p.ba, func(i, col int) (x, e int) {
		if p.back {
			col %= half
		}
		return digit(ca, 2, i, col), exponent(col)
	})
	b = p.operand("b", cb, key, 3, n, k, p.bb, func(i, col int) (x, e int) {
		if !p.back || col < half {
			return digit(cb, 3, i, col), -exponent(col)
		}
		if col -= half; col < backKept {
			return 0, 0
		}
		return -digit(cb, 3, i, col), -exponent(col)
	})
	return a, b
}

// operand makes the tensor of an operand and its integers.
func (p product) operand(
	name string, c codes, key, operand uint64, rows, k int, blocks tensor.Block,
	draw func(i, col int) (x, e int),
) numbers {
	t := &tensor.Tensor{Name: name, Format: c.f, Shape: []int{rows, k}, Block: blocks,
		ScaleFormat: p.scales, Codes: make([]byte, rows*k)}
	gridRows, gridCols := t.Grid()
	t.Scales = make([]float32, gridRows*gridCols)
	factors := make([]int64, len(t.Scales)) // f·2^r
	for i := range t.Scales {
		along := 0 // what B takes back, where each block along K has its scale
		if gridCols > 1 {
			along = below(key, 4, uint64(i%gridCols), 7) - 3
		}
		r, f := below(key, 5+operand<<8, uint64(i/gridCols), 2), 1
		if p.back {
			r = 0
		}
		if operand == 3 {
			along = -along
		} else if len(p.odd) > 0 {
			f = p.odd[below(key, 7, uint64(i), len(p.odd))]
		}
		factors[i] = int64(f) << r
		t.Scales[i] = float32(math.Ldexp(float64(factors[i]), along))
	}
	n := numbers{rows: rows, k: k, x: make([]int64, rows*k), t: t, e: c.unit}
	if p.outer {
		t.Outer = tensor.Outer{Scales: []float32{float32(math.Ldexp(1, int(operand)-5))}}
		n.e += int(operand) - 5
	}
	extentRows, extentCols := cmp.Or(blocks.Rows, rows), cmp.Or(blocks.Cols, k)
	parallel.For(rows, 1, 0, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for col := range k {
				x, e := draw(i, col)
				t.Codes[i*k+col], _ = c.at(x, e)
				n.x[i*k+col] = int64(x) * factors[i/extentRows*gridCols+col/extentCols]
			}
		}
	})
	return n
}

// dot is an element of the result.
func dot(a, b numbers, i, j int) (sum int64) {
	y := b.x[j*b.k : (j+1)*b.k]
	for k, x := range a.x[i*a.k : (i+1)*a.k] {
		sum += x * y[k]
	}
	return sum
}

// sumRows returns Σ_j w_j·C(i,j) for rows of A as A·(Bᵀw).
func sumRows(a, b numbers, w []uint64) []uint64 {
	t := make([]uint64, b.k)
	for j, weight := range w[:b.rows] {
		for k, y := range b.x[j*b.k : (j+1)*b.k] {
			t[k] += weight * uint64(y)
		}
	}
	sums := make([]uint64, a.rows)
	for i := range sums {
		for k, x := range a.x[i*a.k : (i+1)*a.k] {
			sums[i] += uint64(x) * t[k]
		}
	}
	return sums
}

func (p product) operator() operator {
	return operator{"product/" + p.name, func(key uint64, s size) *job {
		a, b := p.operands(key, s.M, s.N, s.K)
		r := &result{what: "C", rows: s.M, cols: s.N, unit: a.e + b.e,
			want: func(i, j int) int64 { return dot(a, b, i, j) },
			sum:  func(w []uint64) []uint64 { return sumRows(a, b, w) }}
		j := &job{results: []*result{r}}
		if s.GPU {
			j.setProduct(p, a.t, b.t)
		}
		if p.back {
			c := make([]fp8.BFloat16, s.M*s.N)
			r.got = func(i, j int) float64 { return float64(c[i*s.N+j].Float32()) }
			j.run = func(ctx context.Context) error { return p.multiply(ctx, nil, c, a.t, b.t) }
			return j
		}
		c := make([]float32, s.M*s.N)
		r.got = func(i, j int) float64 { return float64(c[i*s.N+j]) }
		j.run = func(ctx context.Context) error { return p.multiply(ctx, c, nil, a.t, b.t) }
		return j
	}}
}

// multiply multiplies into the C that is there, which is NaN before.
func (p product) multiply(
	ctx context.Context, c []float32, narrow []fp8.BFloat16, a, b *tensor.Tensor,
) error {
	fillNaN(c)
	for i := range narrow {
		narrow[i] = 0x7FC0
	}
	if narrow != nil {
		return gemm.Multiply(ctx, narrow, a, b, gemm.Options{})
	}
	if !p.packed {
		return gemm.Multiply(ctx, c, a, b, gemm.Options{})
	}
	w, err := gemm.Pack(b)
	if err != nil {
		return err
	}
	return gemm.Multiply(ctx, c, a, w, gemm.Options{})
}

func fillNaN(x []float32) {
	for i := range x {
		x[i] = float32(math.NaN())
	}
}

// grouped are products of groups of rows and of columns, as of experts.
var grouped = []operator{
	{"grouped/rows", func(key uint64, s size) *job {
		p := product{a: fp8.E4M3, b: fp8.E4M3, ba: tile, bb: block, most: [2]int{15, 15}, odd: odds}
		return p.groupedRows(key, s, s.K)
	}},
	{"grouped/k", groupedK},
}

// gpuGrouped has groups of rows with a scale for each row.
var gpuGrouped = operator{"grouped/rows", func(key uint64, s size) *job {
	p := product{a: fp8.E4M3, b: fp8.E4M3, ba: row, bb: row, most: [2]int{3, 2}, back: true}
	return p.groupedRows(key, s, s.K)
}}

const groups = 4

// groupRows cuts rows into groups, the second of them empty.
func groupRows(rows int) []int {
	return []int{rows / 4, 0, rows/2 - 5, rows - rows/4 - (rows/2 - 5)}
}

func (p product) groupedRows(key uint64, s size, k int) *job {
	a, b := p.operands(key, s.M, groups*s.N/4, k)
	rows, n := groupRows(s.M), s.N/4
	experts := make([]*tensor.Tensor, groups)
	parts := make([]numbers, groups)
	of := make([]int, 0, s.M) // the group of each row
	for g := range experts {
		view, err := b.t.RowRange(g*n, (g+1)*n)
		if err != nil {
			panic(err) // sizes are ours
		}
		experts[g] = view
		parts[g] = numbers{rows: n, k: k, x: b.x[g*n*k : (g+1)*n*k]}
		for range rows[g] {
			of = append(of, g)
		}
	}
	c := make([]float32, s.M*n)
	r := &result{what: "C", rows: s.M, cols: n, unit: a.e + b.e,
		got:  func(i, j int) float64 { return float64(c[i*n+j]) },
		want: func(i, j int) int64 { return dot(a, parts[of[i]], i, j) },
		sum: func(w []uint64) (sums []uint64) {
			at := 0
			for g, m := range rows {
				part := numbers{rows: m, k: k, x: a.x[at*k : (at+m)*k]}
				sums = append(sums, sumRows(part, parts[g], w)...)
				at += m
			}
			return sums
		}}
	j := &job{results: []*result{r}, run: func(ctx context.Context) error {
		fillNaN(c)
		return gemm.GroupedRows(ctx, c, a.t, experts, rows, gemm.Options{})
	}}
	if s.GPU {
		j.setProduct(p, a.t, b.t)
		j.kind, j.with["rows"] = "grouped", rows
	}
	return j
}

// groupedK sums groups of columns, each a result of its own.
func groupedK(key uint64, s size) *job {
	p := product{a: fp8.E4M3, b: fp8.E5M2, ba: micro, bb: micro, scales: tensor.E8M0Scales,
		most: [2]int{15, 7}}
	a, b := p.operands(key, s.M, s.N, s.K)
	cols := []int{s.K / 2, 0, s.K / 8, s.K - s.K/2 - s.K/8}
	c := make([]float32, groups*s.M*s.N)
	j := &job{run: func(ctx context.Context) error {
		fillNaN(c)
		return gemm.GroupedK(ctx, c, a.t, b.t, cols, gemm.Options{})
	}}
	at := 0
	for g, k := range cols {
		pa, pb := a.columns(at, k), b.columns(at, k)
		at += k
		part := c[g*s.M*s.N:]
		j.results = append(j.results, &result{
			what: fmt.Sprintf("C of group %d", g), rows: s.M, cols: s.N, unit: a.e + b.e,
			got:  func(i, j int) float64 { return float64(part[i*s.N+j]) },
			want: func(i, j int) int64 { return dot(pa, pb, i, j) },
			sum:  func(w []uint64) []uint64 { return sumRows(pa, pb, w) },
		})
	}
	return j
}

// columns returns the integers of k columns.
func (n numbers) columns(from, k int) numbers {
	part := numbers{rows: n.rows, k: k, e: n.e}
	for i := range n.rows {
		part.x = append(part.x, n.x[i*n.k+from:i*n.k+from+k]...)
	}
	return part
}
