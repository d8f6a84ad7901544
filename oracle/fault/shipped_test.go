package fault

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// plainKernel multiplies block by block in float32, with everything that a fault may change
// as a function: an independent definition of what is injected here.
type plainKernel struct {
	m, n, k, block int
	a, b           func(i, k int) float64              // values of codes
	sa, sb         func(i, j, q int) float32           // scales of block q of row i of A and row j of B
	sum            func(i, j int) (c float32, ok bool) // in place of all that
}

func (p *plainKernel) product() []float32 {
	c := make([]float32, p.m*p.n)
	for at := range c {
		i, j := at/p.n, at%p.n
		if p.sum != nil {
			if v, ok := p.sum(i, j); ok {
				c[at] = v
				continue
			}
		}
		for lo := 0; lo < p.k; lo += p.block {
			var sum float32
			for k := lo; k < min(lo+p.block, p.k); k++ {
				sum += float32(p.a(i, k) * p.b(j, k))
			}
			q := lo / p.block
			c[at] += float32(float32(sum*p.sa(i, j, q)) * p.sb(i, j, q))
		}
	}
	return c
}

// shippedOperand draws a matrix with a scale for each block of a row.
func shippedOperand(r *rand.Rand, name string, rows, k, block int, f fp8.Format, scales tensor.ScaleFormat) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Format: f, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: block}, ScaleFormat: scales}
	for range rows * k {
		v := r.NormFloat64() * float64(f.Max()) / 6
		t.Codes = append(t.Codes, fp8.EncodeOne(v, f, fp8.Policy{}))
	}
	for range rows * ((k + block - 1) / block) {
		s := float32(math.Exp2(4*r.Float64() - 9))
		if scales != tensor.Float32Scales {
			s = float32(math.Exp2(float64(r.IntN(5) - 3)))
		}
		t.Scales = append(t.Scales, s)
	}
	return t
}

func kernelOf(a, b *tensor.Tensor) *plainKernel {
	m, k := a.Dims()
	n, _ := b.Dims()
	block := a.Block.Cols
	cols := (k + block - 1) / block
	decode := func(t *tensor.Tensor) func(i, at int) float64 {
		var values [256]float64
		for code := range values {
			values[code] = float64(t.Format.Float32(byte(code)))
		}
		return func(i, at int) float64 { return values[t.Codes[i*k+at]] }
	}
	return &plainKernel{m: m, n: n, k: k, block: block, a: decode(a), b: decode(b),
		sa: func(i, _, q int) float32 { return a.Scales[i*cols+q] },
		sb: func(_, j, q int) float32 { return b.Scales[j*cols+q] },
	}
}

func bfloat(x float32) float32 {
	b := math.Float32bits(x)
	b += 0x7FFF + b>>16&1
	return math.Float32frombits(b &^ 0xFFFF)
}

// shipped are faults that have shipped, and the words that name them.
var shipped = []struct {
	name   string
	format fp8.Format
	scales tensor.ScaleFormat
	block  int
	tall   int // rows of A are a multiple of it
	make   func(r *rand.Rand, k *plainKernel, a, b *tensor.Tensor) (words []string)
}{
	{"subnormal codes as normal", fp8.E4M3, tensor.Float32Scales, 64, 1, func(_ *rand.Rand, k *plainKernel, _, b *tensor.Tensor) []string {
		small(b)
		k.b = func(j, at int) float64 { return leading1(b.Row(j)[at], 3, 7) }
		return []string{"subnormal codes of B", "as if they were normal"}
	}},
	{"subnormal codes of E5M2 as normal", fp8.E5M2, tensor.Float32Scales, 64, 1, func(_ *rand.Rand, k *plainKernel, a, _ *tensor.Tensor) []string {
		small(a)
		k.a = func(i, at int) float64 { return leading1(a.Row(i)[at], 2, 15) }
		return []string{"subnormal codes of A", "as if they were normal"}
	}},
	{"subnormal codes of E2M1 as normal", fp8.E2M1, tensor.E8M0Scales, 32, 1, func(_ *rand.Rand, k *plainKernel, a, _ *tensor.Tensor) []string {
		k.a = func(i, at int) float64 { return leading1(a.Row(i)[at]&7|a.Row(i)[at]&8<<4, 1, 1) }
		return []string{"subnormal codes of A", "as if they were normal"}
	}},
	{"subnormal codes of E2M3 as normal", fp8.E2M3, tensor.E8M0Scales, 32, 1, func(_ *rand.Rand, k *plainKernel, _, b *tensor.Tensor) []string {
		k.b = func(j, at int) float64 { return leading1(b.Row(j)[at]&31|b.Row(j)[at]&32<<2, 3, 1) }
		return []string{"subnormal codes of B", "as if they were normal"}
	}},
	{"subnormal codes of E3M2 as normal", fp8.E3M2, tensor.E8M0Scales, 32, 1, func(_ *rand.Rand, k *plainKernel, a, _ *tensor.Tensor) []string {
		k.a = func(i, at int) float64 { return leading1(a.Row(i)[at]&31|a.Row(i)[at]&32<<2, 2, 3) }
		return []string{"subnormal codes of A", "as if they were normal"}
	}},
	{"infinity as 57344", fp8.E5M2, tensor.Float32Scales, 64, 1, func(r *rand.Rand, k *plainKernel, a, _ *tensor.Tensor) []string {
		for range 3 {
			a.Codes[r.IntN(len(a.Codes))] = 0x7C | byte(r.IntN(2))<<7
		}
		right := k.a
		k.a = func(i, at int) float64 { return max(-57344, min(57344, right(i, at))) }
		return []string{"infinities in A", "57344"}
	}},
	{"NaN of FNUZ as -0", fp8.E4M3FNUZ, tensor.Float32Scales, 64, 1, func(r *rand.Rand, k *plainKernel, _, b *tensor.Tensor) []string {
		for range 3 {
			b.Codes[r.IntN(len(b.Codes))] = 0x80
		}
		right := k.b
		k.b = func(j, at int) float64 {
			if v := right(j, at); v == v {
				return v
			}
			return 0
		}
		return []string{"code 80 of B", "NaN", "-0"}
	}},
	{"two blocks of codes exchanged", fp8.E4M3, tensor.Float32Scales, 32, 1, func(r *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		x, y := two(r, k.k/32)
		right := k.a
		k.a = func(i, at int) float64 { return right(i, swapped(at/32, x, y)*32+at%32) }
		return []string{"codes of A", "blocks of 32", fmt.Sprintf("blocks %d and %d are exchanged", x, y)}
	}},
	{"two blocks of scales exchanged", fp8.E4M3, tensor.Float32Scales, 64, 1, func(r *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		x, y := two(r, k.k/64)
		right := k.sb
		k.sb = func(i, j, q int) float32 { return right(i, j, swapped(q, x, y)) }
		return []string{"scales of B", "blocks of 64", fmt.Sprintf("blocks %d and %d are exchanged", x, y)}
	}},
	{"two blocks exchanged", fp8.E4M3, tensor.Float32Scales, 64, 1, func(r *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		x, y := two(r, k.k/64)
		codes, scales := k.a, k.sa
		k.a = func(i, at int) float64 { return codes(i, swapped(at/64, x, y)*64+at%64) }
		k.sa = func(i, j, q int) float32 { return scales(i, j, swapped(q, x, y)) }
		return []string{"codes and scales of A", fmt.Sprintf("blocks %d and %d are exchanged", x, y)}
	}},
	{"scales permuted", fp8.E4M3, tensor.Float32Scales, 32, 1, func(r *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		order := r.Perm(k.k / 32)
		right := k.sa
		k.sa = func(i, j, q int) float32 {
			if q < len(order) {
				q = order[q]
			}
			return right(i, j, q)
		}
		return []string{"scales of A are permuted along K, in blocks of 32"}
	}},
	{"codes permuted", fp8.E4M3, tensor.Float32Scales, 64, 1, func(r *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		order := r.Perm(k.k / 64)
		order[0], order[slices.Index(order, 1)] = 1, order[0]
		right := k.b
		k.b = func(j, at int) float64 {
			if at/64 < len(order) {
				at = order[at/64]*64 + at%64
			}
			return right(j, at)
		}
		return []string{"codes of B are permuted along K, in blocks of 64"}
	}},
	{"sums of groups in bfloat16", fp8.E4M3, tensor.Float32Scales, 128, 1, func(_ *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		k.sum = k.grouped(16, true)
		return []string{"bfloat16", "every 16 products"}
	}},
	{"groups of 16 rounded to bfloat16", fp8.E4M3, tensor.Float32Scales, 128, 1, func(_ *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		k.sum = k.grouped(16, false)
		return []string{"bfloat16", "groups of 16 products"}
	}},
	{"8 splits in bfloat16", fp8.E4M3, tensor.Float32Scales, 64, 1, func(_ *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		k.sum = k.split(8, bfloat)
		return []string{"split into 8 parts", "added in bfloat16"}
	}},
	{"4 splits in bfloat16, added in float32", fp8.E4M3, tensor.Float32Scales, 64, 1, func(_ *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		k.sum = k.split(4, func(x float32) float32 { return x })
		return []string{"split into 4 parts", "bfloat16", "added in float32"}
	}},
	{"one product lost in a row", fp8.E4M3, tensor.Float32Scales, 64, 1, func(r *rand.Rand, k *plainKernel, a, _ *tensor.Tensor) []string {
		row, at := r.IntN(k.m), r.IntN(k.k-1)
		a.Row(row)[at] = a.Format.MaxCode() // that it is seen
		k.a = without(k.a, row, at)
		return []string{fmt.Sprintf("product %d of K is left out", at), fmt.Sprintf("row %d", row)}
	}},
	{"one product lost in a column", fp8.E4M3, tensor.Float32Scales, 64, 1, func(r *rand.Rand, k *plainKernel, _, b *tensor.Tensor) []string {
		row, at := r.IntN(k.n-1), r.IntN(k.k-1)
		b.Row(row)[at] = b.Format.MaxCode()
		k.b = without(k.b, row, at)
		return []string{fmt.Sprintf("product %d of K is left out", at), fmt.Sprintf("column %d", row)}
	}},
	{"one code misread", fp8.E4M3, tensor.Float32Scales, 64, 1, func(r *rand.Rand, k *plainKernel, a, _ *tensor.Tensor) []string {
		row, at := r.IntN(k.m), r.IntN(k.k)
		a.Row(row)[at] = 0x70
		right := k.a
		k.a = func(i, l int) float64 {
			if i == row && l == at {
				return -right(i, l)
			}
			return right(i, l)
		}
		return []string{fmt.Sprintf("code %d of row %d of A is read as", at, row), "F0"}
	}},
	{"one nibble pair", fp8.E2M1, tensor.E8M0Scales, 32, 1, func(r *rand.Rand, k *plainKernel, a, _ *tensor.Tensor) []string {
		row, byte := r.IntN(k.m), r.IntN(k.k/2)
		a.Row(row)[2*byte], a.Row(row)[2*byte+1] = 7, 9
		right := k.a
		k.a = func(i, at int) float64 {
			if i == row && at/2 == byte {
				at ^= 1
			}
			return right(i, at)
		}
		return []string{fmt.Sprintf("two codes of byte %d", byte), "exchanged", fmt.Sprintf("row %d", row)}
	}},
	{"one stale scale", fp8.E4M3, tensor.Float32Scales, 64, 1, func(r *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		row, block := r.IntN(k.m), r.IntN(k.k/64)
		right := k.sa
		k.sa = func(i, j, q int) float32 {
			if i == row && q == block {
				return 1.75 * right(i, j, q)
			}
			return right(i, j, q)
		}
		return []string{fmt.Sprintf("the scale of A of products %d to %d of K is 1.75 times", 64*block, 64*block+63), fmt.Sprintf("row %d", row)}
	}},
	{"stale scales of a row", fp8.E4M3, tensor.Float32Scales, 64, 1, func(r *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		row := r.IntN(k.m)
		right := k.sa
		k.sa = func(i, j, q int) float32 {
			if i == row {
				return float32(0.5+0.375*float64(q)) * right(i, j, q)
			}
			return right(i, j, q)
		}
		return []string{fmt.Sprintf("the scales of A of row %d of their grid", row), "stale", "0.5, 0.875, 1.25"}
	}},
	{"rows with the scales of rows further on", fp8.E4M3, tensor.Float32Scales, 64, 1, func(r *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		from, by := 8+r.IntN(8), 3+r.IntN(9)
		right := k.sa
		k.sa = func(i, j, q int) float32 {
			if i >= from && i < from+16 {
				i += by
			}
			return right(i, j, q)
		}
		return []string{fmt.Sprintf("scales of A are read %d rows too far", by), "in rows ", fmt.Sprint(from + 15)}
	}},
	{"rows of groups as groups of rows", fp8.E4M3, tensor.Float32Scales, 64, 12, func(r *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		groups := []int{2, 3, 4, 6}[r.IntN(4)]
		right := k.sa
		k.sa = func(i, j, q int) float32 { return right(i%groups*(k.m/groups)+i/groups, j, q) }
		return []string{"scales of A are read as if groups and rows were exchanged", fmt.Sprintf("row n of %d groups", groups)}
	}},
	{"scales of raw thread blocks", fp8.E4M3, tensor.Float32Scales, 64, 1, func(_ *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		const tile, wide = 16, 2
		a, b := k.sa, k.sb
		k.sa = func(i, j, q int) float32 {
			return a(((i/tile*wide+j/tile%wide)*tile+i%tile)%k.m, j, q)
		}
		k.sb = func(i, j, q int) float32 { return b(i, j/tile/wide*tile+j%tile, q) }
		return []string{"scales of A and B", "raw numbers of thread blocks, under a swizzle", "tiles of 16"}
	}},
	{"mantissas leak, low byte first", fp8.E4M3, tensor.Float32Scales, 64, 1, leaking(false)},
	{"mantissas leak, high byte first", fp8.E4M3, tensor.Float32Scales, 64, 1, leaking(true)},
	{"scale byte 0 as 0", fp8.E4M3, tensor.E8M0Scales, 32, 1, readByte("A", 0, 0)},
	{"a scale byte as NaN", fp8.E4M3, tensor.E8M0Scales, 32, 1, readByte("B", 126, math.NaN())},
	{"a scale byte as 0", fp8.E4M3, tensor.E8M0Scales, 32, 1, readByte("A", 127, 0)},
	{"scale byte 1 as 0", fp8.E4M3, tensor.E8M0Scales, 32, 1, readByte("A", 1, 0)},
	{"scale byte 254 as infinity", fp8.E4M3, tensor.E8M0Scales, 32, 1, readByte("A", 254, math.Inf(1))},
	{"scale byte 254 as NaN", fp8.E4M3, tensor.E8M0Scales, 32, 1, readByte("B", 254, math.NaN())},
	{"scale byte 255 as 1", fp8.E4M3, tensor.E8M0Scales, 32, 1, readByte("A", 255, 1)},
	{"UE4M3 as exponents", fp8.E2M1, tensor.UE4M3Scales, 16, 1, func(_ *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		right := k.sa
		k.sa = func(i, j, q int) float32 {
			s := right(i, j, q) // a power of two here, with exponent bits e: code 8(e+7)
			return float32(math.Exp2(8*(math.Log2(float64(s))+7) - 127))
		}
		return []string{"scales of A, in UE4M3, are read as E8M0"}
	}},
}

// small has the codes of a tensor be near 0.
func small(t *tensor.Tensor) {
	for i := range t.Codes {
		t.Codes[i] = t.Codes[i]&0x80 | byte(i*7%13)
	}
}

// leading1 decodes a code whose sign is its highest bit with a leading 1, whatever its
// exponent is.
func leading1(code byte, mantissa, bias int) float64 {
	v := math.Ldexp(1+float64(int(code)&(1<<mantissa-1))/float64(int(1)<<mantissa), int(code&0x7F)>>mantissa-bias)
	if code&0x80 != 0 {
		return -v
	}
	return v
}

func two(r *rand.Rand, n int) (x, y int) {
	x = r.IntN(n - 1)
	return x, x + 1 + r.IntN(n-1-x)
}

func swapped(q, x, y int) int {
	switch q {
	case x:
		return y
	case y:
		return x
	}
	return q
}

func without(right func(i, k int) float64, row, at int) func(i, k int) float64 {
	return func(i, k int) float64 {
		if i == row && k == at {
			return 0
		}
		return right(i, k)
	}
}

// grouped rounds sums of so many products to bfloat16, running sums or only those.
func (p *plainKernel) grouped(size int, running bool) func(i, j int) (float32, bool) {
	return func(i, j int) (c float32, ok bool) {
		for lo := 0; lo < p.k; lo += p.block {
			var sum float32
			for g := lo; g < min(lo+p.block, p.k); g += size {
				var group float64
				for k := g; k < min(g+size, lo+p.block, p.k); k++ {
					group += p.a(i, k) * p.b(j, k)
				}
				if running {
					sum = bfloat(float32(float64(sum) + group))
				} else {
					sum += bfloat(float32(group))
				}
			}
			c += float32(float32(sum*p.sa(i, j, lo/p.block)) * p.sb(i, j, lo/p.block))
		}
		return c, true
	}
}

// split rounds sums of so many parts of K to bfloat16, and what they add up to as given.
func (p *plainKernel) split(parts int, narrow func(float32) float32) func(i, j int) (float32, bool) {
	return func(i, j int) (c float32, ok bool) {
		size := (p.k + parts - 1) / parts
		for lo := 0; lo < p.k; lo += size {
			var part float64
			for k := lo; k < min(lo+size, p.k); k++ {
				part += p.a(i, k) * p.b(j, k) * float64(p.sa(i, j, k/p.block)) * float64(p.sb(i, j, k/p.block))
			}
			c = narrow(c + bfloat(float32(part)))
		}
		return c, true
	}
}

func leaking(high bool) func(r *rand.Rand, k *plainKernel, a, b *tensor.Tensor) []string {
	return func(_ *rand.Rand, k *plainKernel, _, _ *tensor.Tensor) []string {
		blocks := (k.k + k.block - 1) / k.block
		right := k.sa
		k.sa = func(i, j, q int) float32 {
			var word uint64
			for n := range min(4, blocks-q/4*4) {
				at := n
				if high {
					at = 3 - n
				}
				word |= uint64(math.Float32bits(right(i, j, q/4*4+n))) << (8 * at) >> 23
			}
			at := q % 4
			if high {
				at = 3 - at
			}
			code := word >> (8 * at) & 0xFF
			if code == 255 {
				return float32(math.NaN())
			}
			return float32(math.Exp2(float64(code) - 127))
		}
		return []string{"scales of A, float32, are packed into words of four exponents", "leak"}
	}
}

// readByte gives some scales of a side the byte, and reads it as another number.
func readByte(side string, code int, as float64) func(r *rand.Rand, k *plainKernel, a, b *tensor.Tensor) []string {
	return func(r *rand.Rand, k *plainKernel, a, b *tensor.Tensor) []string {
		t, other := a, b
		if side == "B" {
			t, other = b, a
		}
		value := math.Exp2(float64(code - 127))
		if code == 255 {
			value = math.NaN()
		}
		if code < 2 { // or it would be lost anyway
			for i := range other.Scales {
				other.Scales[i] = float32(math.Exp2(float64(100 + r.IntN(6))))
			}
			for i := range t.Scales {
				t.Scales[i] = float32(math.Exp2(float64(3 - 127 + r.IntN(5))))
			}
		}
		if code == 254 { // that is no sum too large
			small(a)
			small(b)
			for i := range other.Scales {
				other.Scales[i] = float32(math.Exp2(float64(-120 + r.IntN(6))))
			}
		}
		for range len(t.Scales) / 20 {
			t.Scales[r.IntN(len(t.Scales))] = float32(value)
		}
		scale := &k.sa
		if side == "B" {
			scale = &k.sb
		}
		right := *scale
		*scale = func(i, j, q int) float32 {
			if s := float64(right(i, j, q)); s == value || s != s && code == 255 {
				return float32(as)
			}
			return right(i, j, q)
		}
		return []string{fmt.Sprintf("scale byte %d of %s", code, side), map[bool]string{true: fmt.Sprint(as), false: "infinity"}[!math.IsInf(as, 0)]}
	}
}

// TestShipped has the faults above named, of other operands, shapes and seeds than any table
// has, and what is right not called wrong.
func TestShipped(t *testing.T) {
	for n, s := range shipped {
		for seed := range min(seeds(2), 30) {
			r := rand.New(rand.NewPCG(seed, uint64(100+n)))
			m, rows, k := 40+r.IntN(40), 33+r.IntN(40), s.block*(5+r.IntN(3))
			if seed == 1 && s.format != fp8.E2M1 {
				k += 1 + r.IntN(s.block-1)
			}
			m = m / s.tall * s.tall
			a, b := shippedOperand(r, "a", m, k, s.block, s.format, s.scales), shippedOperand(r, "b", rows, k, s.block, s.format, s.scales)
			right, wrong := kernelOf(a, b), kernelOf(a, b)
			words := s.make(r, wrong, a, b)
			e, err := Explain(t.Context(), right.product(), Product{A: a, B: b}, Options{})
			require.NoError(t, err)
			require.Zero(t, e.Wrong, "%s, seed %d: a right product: %v", s.name, seed, e)

			got := wrong.product()
			e, err = Explain(t.Context(), got, Product{A: a, B: b}, Options{Wrong: wrongOf(t, got, Product{A: a, B: b})})
			require.NoError(t, err)
			said := e.String()
			if len(e.Findings) == 0 {
				said = "nothing: " + said[:min(len(said), 60)]
			}
			for _, w := range words {
				if len(e.Findings) == 0 || !strings.Contains(said, w) {
					t.Errorf("%s, seed %d, %dx%dx%d: want %q in %s", s.name, seed, m, rows, k, w, said)
				}
			}
		}
	}
}

// TestExchangedFarApart names two blocks of scales that are exchanged where K has more than are put in order.
func TestExchangedFarApart(t *testing.T) {
	const m, n, block, blocks = 12, 11, 32, mostOrdered + 5
	r := rand.New(rand.NewPCG(36, 7))
	a, b := shippedOperand(r, "a", m, block*blocks, block, fp8.E4M3, tensor.Float32Scales), shippedOperand(r, "b", n, block*blocks, block, fp8.E4M3, tensor.Float32Scales)
	k := kernelOf(a, b)
	right := k.sa
	k.sa = func(i, j, q int) float32 { return right(i, j, swapped(q, 17, 131)) }
	e, err := Explain(t.Context(), k.product(), Product{A: a, B: b}, Options{})
	require.NoError(t, err)
	require.Contains(t, e.String(), "scales of A are permuted along K, in blocks of 32: blocks 17 and 131 are exchanged")
}
