package attention_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/octavo-fp8/octavo/tensor"
)

// result is what a problem gives: of every head and query.
type result struct{ out, lse, max []float32 }

// forward is what the package computes.
func forward(t *testing.T, p *attention.Problem, o attention.Options) result {
	t.Helper()
	s := p.Sizes()
	r := result{make([]float32, s.Heads*s.Queries*s.ValueDim), make([]float32, s.Heads*s.Queries),
		make([]float32, s.Heads*s.Queries)}
	o.LSE, o.Max = r.lse, r.max
	require.NoError(t, attention.Forward(t.Context(), r.out, p, o))
	return r
}

// forLevels runs a test at every level that has kernels, in plain Go, and with dot products in plain Go.
func forLevels(t *testing.T, test func(t *testing.T)) {
	var levels []cpu.Level
	for _, name := range []string{"elementary.Exp2To", "microkernel.Kernels", "microkernel.Dots"} {
		levels = append(levels, kernels.Levels(name)...)
	}
	slices.Sort(levels)
	for _, l := range slices.Compact(levels) {
		kernelstest.At(t, l, test)
	}
	t.Run("dots in plain Go", func(t *testing.T) {
		defer attention.EmulateDots()()
		test(t)
	})
}

// requireBits compares every bit.
func requireBits(t *testing.T, want, got result, note string) {
	t.Helper()
	for _, c := range []struct {
		name      string
		want, got []float32
	}{{"Max", want.max, got.max}, {"LSE", want.lse, got.lse}, {"out", want.out, got.out}} {
		require.Len(t, c.got, len(c.want))
		for i, w := range c.want {
			if w != w {
				w = math.Float32frombits(0x7FC00000)
			}
			if math.Float32bits(w) != math.Float32bits(c.got[i]) {
				t.Fatalf("%s: %s, element %d of %d: %v (%08x), want %v (%08x)",
					note, c.name, i, len(c.want), c.got[i], math.Float32bits(c.got[i]),
					w, math.Float32bits(w))
			}
		}
	}
}

// order computes a problem by the words of the package's description, one row of queries
// at a time and with nothing in common with the package but exp2, log2 and gemm's products.
type order struct {
	p      *attention.Problem
	s      attention.Sizes
	o      attention.Options
	scores []float32 // every row of Q by every row of K
	v      []float32 // elements, [heads, tokens, DV]
	vScale func(head, token, d int) float32
	tokens int
}

func newOrder(t *testing.T, p *attention.Problem, o attention.Options) *order {
	r := &order{p: p, s: p.Sizes(), o: o}
	_, r.tokens, _ = p.K.Dims()
	queries, keys := r.s.Heads*r.s.Queries, r.s.KVHeads*r.tokens
	r.scores = make([]float32, queries*keys)
	if p.Q.Codes != nil && p.K.Codes != nil {
		require.NoError(t,
			gemm.Multiply(t.Context(), r.scores, p.Q.Codes, p.K.Codes, gemm.Options{}))
	} else {
		q, k := elements(p.Q), elements(p.K)
		for i := range queries {
			for j := range keys {
				r.scores[i*keys+j] = fusedSum(r.s.Dim,
					func(d int) (x, y float32) { return q[i*r.s.Dim+d], k[j*r.s.Dim+d] }, nil)
				if c := p.K.Codes; c != nil { // of one scale for a row
					r.scores[i*keys+j] *= c.Scale(j, 0)
				}
			}
		}
	}
	r.v = elements(p.V)
	r.vScale = func(head, token, d int) float32 { return 1 }
	if c := p.V.Codes; c != nil && (c.Block.Rows == 1 && c.Block.Cols > 0 || !c.Outer.None()) {
		for i := range r.v { // values with their scales, rounded once
			row, col := i/r.s.ValueDim, i%r.s.ValueDim
			if r.v[i]-r.v[i] != 0 {
				continue // NaN and infinities stay
			}
			x := new(big.Float).SetPrec(200).SetFloat64(float64(r.v[i]))
			x.Mul(x, big.NewFloat(float64(c.Scale(row, col))))
			if !c.Outer.None() {
				x.Mul(x, big.NewFloat(float64(c.Outer.At(row))))
			}
			r.v[i], _ = x.Float32()
		}
	} else if c != nil && c.Len() > 0 {
		r.vScale = func(head, token, d int) float32 { return c.Scale(head*r.tokens+token, d) }
	}
	return r
}

// elements are an operand's without its scales.
func elements(o attention.Operand) []float32 {
	var all []float32
	if c := o.Codes; c != nil {
		rows, cols := c.Dims()
		for i := range rows {
			row := make([]float32, cols)
			fp8.Decode(row, c.Row(i), c.Format)
			all = append(all, row...)
		}
		return all
	}
	for _, x := range o.BFloat16 {
		all = append(all, x.Float32())
	}
	return append(all, o.Float32...)
}

// fusedSum is gemm's step 2 with fused multiply-adds; keep nil is all.
func fusedSum(n int, of func(i int) (x, y float32), keep func(i int) bool) float32 {
	p := float32(0)
	for lo := 0; lo < n; lo += 32 {
		e, o := float32(0), float32(0)
		for i := lo; i < min(lo+32, n); i++ {
			if keep != nil && !keep(i) {
				continue
			}
			x, y := of(i)
			if (i-lo)%2 == 0 {
				e = fused(x, y, e)
			} else {
				o = fused(x, y, o)
			}
		}
		p += e + o
	}
	return p
}

// fused is x·y+z, rounded once.
func fused(x, y, z float32) float32 {
	if v := float64(x)*float64(y) + float64(z); math.IsNaN(v) || math.IsInf(v, 0) {
		return float32(v) // x*y alone may be beyond float32
	}
	if x*y == 0 || float64(x*y) == float64(x)*float64(y) {
		return x*y + z // not fused by the compiler where a product is exact
	}
	exact := new(big.Float).SetPrec(1000).Mul(big.NewFloat(float64(x)), big.NewFloat(float64(y)))
	sum, _ := exact.Add(exact, big.NewFloat(float64(z))).Float32()
	return sum
}

func exp2(x float32) float32 { return elementary.Exp2(x) }
func log2(x float32) float32 { return elementary.Log2(x) }

var (
	negInf  = float32(math.Inf(-1))
	log2OfE = float32(math.Log2E)
	lnOf2   = float32(math.Ln2)
	offsets = map[attention.PFormat]float32{attention.PBFloat16: 0, attention.PE4M3: 8,
		attention.PE5M2: 15}
	codecs = map[attention.PFormat]fp8.Format{attention.PE4M3: fp8.E4M3,
		attention.PE5M2: fp8.E5M2}
	pFormats = []attention.PFormat{attention.PBFloat16, attention.PE4M3, attention.PE5M2}
)

func cast(p float32, f attention.PFormat) float32 {
	if codec, ok := codecs[f]; ok {
		return codec.Float32(fp8.EncodeOne(p, codec, fp8.Policy{}))
	}
	return fp8.BFloat16FromFloat32(p).Float32()
}

// split is what one split of a row leaves.
type split struct {
	out     []float32
	lse2, m float32
}

// split computes tiles [first, last) of a row; with the sink unless there are more splits.
func (r *order) split(head, query, first, last int, sink bool) split {
	kv := head / (r.s.Heads / r.s.KVHeads)
	byToken := false
	vmax := float32(0)
	for j := range r.tokens {
		byToken = byToken ||
			math.Float32bits(r.vScale(kv, j, 0)) != math.Float32bits(r.vScale(kv, 0, 0))
		if j < r.s.Keys && r.vScale(kv, j, 0) > vmax {
			vmax = r.vScale(kv, j, 0)
		}
	}
	lo, hi := r.p.Mask.Range(query, r.s.Queries, r.s.Keys)
	m, l, o := negInf, float32(0), make([]float32, r.s.ValueDim)
	offset, any := offsets[r.o.P], false
	sl := float32(float64(r.p.SoftmaxScale()) * 1.4426950408889634)
	if r.p.Cap != 0 {
		sl = float32(float64(r.p.Cap) * 1.4426950408889634)
	}
	for t := first; t < last; t++ {
		sees := func(j int) bool { return t*64+j >= lo && t*64+j < hi }
		z, kept := map[int]float32{}, false
		m2 := m
		for j := range 64 {
			if !sees(j) {
				continue
			}
			kept = true
			row := (head*r.s.Queries+query)*r.s.KVHeads + kv
			score := r.scores[row*r.tokens+t*64+j]
			if r.p.Cap != 0 {
				ratio := r.p.SoftmaxScale() / r.p.Cap
				score = elementary.Tanh(float32(score * ratio))
			}
			z[j] = float32(sl * score)
			m2 = max(m2, z[j])
		}
		if !kept {
			continue
		}
		alpha := float32(1)
		if any {
			alpha = exp2(m - m2)
		}
		any, m = true, m2
		var p [64]float32
		for j, x := range z {
			d := x - m
			p[j] = exp2(d + offset)
		}
		var lanes [16]float32
		for j, x := range p {
			lanes[j%16] += x
		}
		for n := 8; n >= 1; n /= 2 {
			for i := 0; i < n; i++ {
				lanes[i] += lanes[i+n]
			}
		}
		l = float32(l * alpha)
		l += lanes[0]
		for j := range z {
			if byToken {
				ratio := r.vScale(kv, t*64+j, 0) / vmax
				if vmax == 0 && r.vScale(kv, t*64+j, 0) == 0 {
					ratio = 1
				}
				p[j] *= ratio
			}
			if r.o.P != attention.PBFloat16 || r.p.V.Float32 == nil {
				p[j] = cast(p[j], r.o.P)
			}
		}
		for d := range o {
			sum := fusedSum(64, func(j int) (x, y float32) {
				return p[j], r.v[(kv*r.tokens+t*64+j)*r.s.ValueDim+d]
			}, sees)
			o[d] = float32(o[d] * alpha)
			o[d] += sum
		}
	}
	if !any {
		return split{out: o, lse2: negInf, m: m}
	}
	lse2 := log2(l) - offset
	lse2 += m
	if sink && r.p.Sinks != nil {
		x := float32(r.p.Sinks[head] * log2OfE)
		x -= m
		l += exp2(x + offset)
	}
	for d := range o {
		f := r.vScale(kv, 0, d)
		if byToken {
			f = vmax
		}
		g := 1 / l
		g *= f
		o[d] *= g
	}
	return split{out: o, lse2: lse2, m: m}
}

// result computes every row.
func (r *order) result() result {
	var all result
	tiles := (r.s.Keys + 63) / 64
	splits := max(r.o.Splits, 1)
	each := (tiles + splits - 1) / splits
	for head := range r.s.Heads {
		for query := range r.s.Queries {
			if splits == 1 {
				s := r.split(head, query, 0, tiles, true)
				all.out = append(all.out, s.out...)
				all.lse, all.max = append(all.lse, s.lse2*lnOf2), append(all.max, s.m)
				continue
			}
			var parts []split
			for i := range splits {
				parts = append(parts,
					r.split(head, query, min(i*each, tiles), min((i+1)*each, tiles), false))
			}
			r.merge(&all, head, parts)
		}
	}
	return all
}

func (r *order) merge(all *result, head int, parts []split) {
	m, largest := negInf, negInf
	for _, s := range parts {
		m, largest = max(m, s.lse2), max(largest, s.m)
	}
	out := make([]float32, r.s.ValueDim)
	all.max = append(all.max, largest)
	if m == negInf {
		all.lse, all.out = append(all.lse, negInf), append(all.out, out...)
		return
	}
	t := float32(0)
	for _, s := range parts {
		t += exp2(s.lse2 - m)
	}
	g := m + log2(t)
	with := g
	if r.p.Sinks != nil {
		x := float32(r.p.Sinks[head] * log2OfE)
		with = g + log2(1+exp2(x-g))
	}
	for _, s := range parts {
		w := exp2(s.lse2 - with)
		for d, x := range s.out {
			product := float32(w * x)
			out[d] += product
		}
	}
	all.lse, all.out = append(all.lse, g*lnOf2), append(all.out, out...)
}

// shape is a problem to be made of random numbers.
type shape struct {
	heads, kvHeads, queries, keys, dim, valueDim int

	q, k, v tensor.Block // of scales
	format  fp8.Format
	outer   bool // K and V have an outer scale
	bf16    bool
	f32     string  // operands of float32, such as "QKV"
	limit   float32 // cap
	mask    attention.Mask
	sinks   bool
	valid   int // Keys
}

// random makes an operand.
func (s shape) random(rnd *rand.Rand, heads, tokens, dim int, b tensor.Block) attention.Operand {
	n := heads * tokens * dim
	if s.bf16 {
		o := attention.Operand{Shape: [3]int{heads, tokens, dim}}
		for range n {
			o.BFloat16 = append(o.BFloat16, fp8.BFloat16FromFloat32(float32(rnd.NormFloat64())))
		}
		return o
	}
	x := &tensor.Tensor{Format: s.format, Shape: []int{heads, tokens, dim}, Block: b,
		Codes: make([]byte, n)}
	for i := range x.Codes {
		x.Codes[i] = fp8.EncodeOne(float32(rnd.NormFloat64()*4), s.format, fp8.Policy{})
	}
	rows, cols := b.Grid(heads*tokens, dim)
	for range rows * cols {
		x.Scales = append(x.Scales,
			float32(math.Exp2(float64(rnd.IntN(5)-4)))*float32(1+rnd.Float64()))
	}
	return attention.Operand{Codes: x}
}

// operand is random, or of float32s.
func (s shape) operand(name string, rnd *rand.Rand, heads, tokens, dim int, b tensor.Block) attention.Operand {
	if !strings.Contains(s.f32, name) {
		return s.random(rnd, heads, tokens, dim, b)
	}
	o := attention.Operand{Shape: [3]int{heads, tokens, dim}, Float32: []float32{}}
	for range heads * tokens * dim {
		o.Float32 = append(o.Float32, float32(rnd.NormFloat64()))
	}
	return o
}

func (s shape) problem(seed uint64) *attention.Problem {
	rnd := rand.New(rand.NewPCG(seed, 1))
	p := &attention.Problem{Mask: s.mask, Keys: s.valid, Cap: s.limit}
	p.Q = s.operand("Q", rnd, s.heads, s.queries, s.dim, s.q)
	p.K = s.operand("K", rnd, s.kvHeads, s.keys, s.dim, s.k)
	p.V = s.operand("V", rnd, s.kvHeads, s.keys, s.valueDim, s.v)
	if s.outer {
		for _, o := range []attention.Operand{p.K, p.V} {
			o.Codes.Outer.Scales = []float32{float32(0.5 + rnd.Float64())}
		}
	}
	if s.sinks {
		for range s.heads {
			p.Sinks = append(p.Sinks, float32(rnd.NormFloat64()*2))
		}
	}
	return p
}

var shapes = map[string]shape{
	"one token": {heads: 1, kvHeads: 1, queries: 1, keys: 1, dim: 1, valueDim: 1},
	"plain":     {heads: 2, kvHeads: 1, queries: 3, keys: 70, dim: 32, valueDim: 16},
	"causal": {heads: 2, kvHeads: 2, queries: 67, keys: 67, dim: 40, valueDim: 33,
		mask: attention.Mask{Causal: true}},
	"chunk": {heads: 4, kvHeads: 2, queries: 9, keys: 200, dim: 64, valueDim: 48,
		mask: attention.Mask{Causal: true}},
	"more queries": {heads: 2, kvHeads: 1, queries: 12, keys: 5, dim: 16, valueDim: 16,
		mask: attention.Mask{Causal: true}, sinks: true},
	"window": {heads: 2, kvHeads: 1, queries: 40, keys: 300, dim: 24, valueDim: 40,
		mask: attention.Mask{Causal: true, Window: &attention.Window{Left: 17, Right: 0}}},
	"window both, sinks": {heads: 3, kvHeads: 3, queries: 33, keys: 90, dim: 20, valueDim: 10,
		mask: attention.Mask{Window: &attention.Window{Left: 5, Right: 3}}, sinks: true},
	"by head": {heads: 4, kvHeads: 2, queries: 2, keys: 130, dim: 32, valueDim: 32,
		q: tensor.Block{Rows: 2}, k: tensor.Block{Rows: 130}, v: tensor.Block{Rows: 130}},
	"by token": {heads: 4, kvHeads: 2, queries: 3, keys: 130, dim: 32, valueDim: 32,
		q: tensor.Block{Rows: 1}, k: tensor.Block{Rows: 1}, v: tensor.Block{Rows: 1}},
	"by block of tokens": {heads: 2, kvHeads: 2, queries: 5, keys: 100, dim: 32, valueDim: 32,
		q: tensor.Block{Rows: 4}, k: tensor.Block{Rows: 16}, v: tensor.Block{Rows: 16}},
	"by channel": {heads: 2, kvHeads: 2, queries: 5, keys: 100, dim: 32, valueDim: 34,
		v: tensor.Block{Rows: 100, Cols: 1}},
	"blocks of dim": {heads: 2, kvHeads: 1, queries: 5, keys: 100, dim: 100, valueDim: 16,
		q: tensor.Block{Rows: 1, Cols: 32}, k: tensor.Block{Rows: 1, Cols: 64}},
	"odd blocks of dim": {heads: 2, kvHeads: 1, queries: 5, keys: 70, dim: 31, valueDim: 7,
		q: tensor.Block{Rows: 1, Cols: 9}, k: tensor.Block{Rows: 1, Cols: 27}},
	"E5M2": {heads: 2, kvHeads: 1, queries: 5, keys: 100, dim: 33, valueDim: 16,
		format: fp8.E5M2},
	"E5M2FNUZ": {heads: 2, kvHeads: 1, queries: 5, keys: 100, dim: 33, valueDim: 16,
		format: fp8.E5M2FNUZ},
	"bfloat16": {heads: 4, kvHeads: 2, queries: 3, keys: 140, dim: 40, valueDim: 24,
		bf16: true, mask: attention.Mask{Causal: true}, sinks: true},
	"valid keys": {heads: 2, kvHeads: 1, queries: 3, keys: 150, dim: 32, valueDim: 32,
		valid: 129, v: tensor.Block{Rows: 1}},
	"many rows": {heads: 16, kvHeads: 1, queries: 9, keys: 100, dim: 32, valueDim: 36,
		mask: attention.Mask{Causal: true}},
	"NVFP4": {heads: 4, kvHeads: 2, queries: 5, keys: 150, dim: 64, valueDim: 48, format: fp8.E2M1, outer: true,
		q: tensor.Block{Rows: 1, Cols: 16}, k: tensor.Block{Rows: 1, Cols: 16}, v: tensor.Block{Rows: 1, Cols: 16}},
	"MXFP8": {heads: 2, kvHeads: 2, queries: 7, keys: 131, dim: 64, valueDim: 72, sinks: true,
		q: tensor.Block{Rows: 1, Cols: 32}, k: tensor.Block{Rows: 1, Cols: 32}, v: tensor.Block{Rows: 1, Cols: 32}},
	"outer alone": {heads: 2, kvHeads: 1, queries: 3, keys: 70, dim: 32, valueDim: 20, outer: true,
		v: tensor.Block{Rows: 70}, mask: attention.Mask{Causal: true}},
	"valid keys, blocks": {heads: 2, kvHeads: 1, queries: 3, keys: 150, dim: 32, valueDim: 33,
		valid: 129, v: tensor.Block{Rows: 1, Cols: 16}},
	"float32": {heads: 6, kvHeads: 2, queries: 5, keys: 140, dim: 40, valueDim: 24, f32: "QKV",
		mask: attention.Mask{Causal: true, Window: &attention.Window{Left: 90, Right: 0}}, sinks: true},
	"float32, cap":    {heads: 2, kvHeads: 2, queries: 9, keys: 70, dim: 33, valueDim: 17, f32: "QKV", limit: 2},
	"float32 Q":       {heads: 4, kvHeads: 2, queries: 1, keys: 140, dim: 64, valueDim: 64, f32: "Q", k: tensor.Block{Rows: 1}},
	"float32 Q, rows": {heads: 16, kvHeads: 2, queries: 3, keys: 140, dim: 64, valueDim: 64, f32: "Q"},
	"float32 K":       {heads: 4, kvHeads: 2, queries: 5, keys: 140, dim: 40, valueDim: 24, f32: "K", bf16: true},
	"float32 V":       {heads: 4, kvHeads: 2, queries: 5, keys: 140, dim: 40, valueDim: 24, f32: "V"},
	"cap": {heads: 6, kvHeads: 2, queries: 5, keys: 140, dim: 40, valueDim: 24, limit: 1.5,
		mask: attention.Mask{Causal: true, Window: &attention.Window{Left: 90, Right: 0}}, sinks: true},
	"cap, one row": {heads: 2, kvHeads: 2, queries: 1, keys: 100, dim: 64, valueDim: 64, limit: 30,
		k: tensor.Block{Rows: 1}, v: tensor.Block{Rows: 1}},
	"cap, outer": {heads: 4, kvHeads: 2, queries: 5, keys: 150, dim: 64, valueDim: 48, format: fp8.E2M1, outer: true, limit: 2,
		q: tensor.Block{Rows: 1, Cols: 16}, k: tensor.Block{Rows: 1, Cols: 16}, v: tensor.Block{Rows: 1, Cols: 16}},
	"no keys":    {heads: 2, kvHeads: 1, queries: 3, keys: 0, dim: 8, valueDim: 4},
	"no queries": {heads: 2, kvHeads: 1, queries: 0, keys: 3, dim: 8, valueDim: 4},
	"no values":  {heads: 2, kvHeads: 1, queries: 2, keys: 3, dim: 8, valueDim: 0},
	"no bfloat16 values": {heads: 2, kvHeads: 1, queries: 2, keys: 3, dim: 8, valueDim: 0,
		bf16: true},
}

func TestOrder(t *testing.T) {
	for name, s := range shapes {
		for i, splits := range []int{1, 2, 5} {
			f := pFormats[i]
			p := s.problem(uint64(len(name)))
			o := attention.Options{P: f, Splits: splits, Workers: 1 + i%2*2} // each shape has both
			want := newOrder(t, p, o).result()
			forLevels(t, func(t *testing.T) { requireBits(t, want, forward(t, p, o), name) })
		}
	}
}

// TestSplitsBeyondTiles: splits without keys change nothing, however many there are.
func TestSplitsBeyondTiles(t *testing.T) {
	for _, name := range []string{"one token", "chunk", "more queries", "no keys"} {
		p := shapes[name].problem(7)
		want := newOrder(t, p, attention.Options{Splits: 9}).result()
		requireBits(t, want, forward(t, p, attention.Options{Splits: math.MaxInt}), name)
	}
}
