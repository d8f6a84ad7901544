package vectors

import (
	"context"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// product is operands of a product.
type product struct {
	name      string
	a, b      *tensor.Tensor
	bias, old []float32
}

func (p product) options() oracle.Options {
	return oracle.Options{Bias: p.bias, Accumulate: p.old != nil}
}

var (
	whole  = tensor.Block{}
	row    = tensor.Block{Rows: 1}
	tile   = tensor.Block{Rows: 1, Cols: 128}
	square = tensor.Block{Rows: 128, Cols: 128}
	micro  = tensor.Block{Rows: 1, Cols: 32}

	sixteen = tensor.Block{Rows: 1, Cols: 16}
)

// makeProducts returns all products: of many formats, blocks and patterns.
func makeProducts(ctx context.Context, seed uint64) ([]product, error) {
	var all []product
	for _, s := range []struct {
		name           string
		profile        scaling.Profile
		formatA        fp8.Format
		formatB        fp8.Format
		blockA, blockB tensor.Block
		m, n, k        int
		pattern        oracle.Pattern
	}{
		{"per-tensor", scaling.TECurrent, fp8.E4M3, fp8.E4M3, whole, whole, 16, 24, 160, oracle.Bell},
		{"per-row", scaling.TorchAORowwise, fp8.E4M3, fp8.E4M3, row, row, 16, 24, 160, oracle.Outlier},
		{"deepseek", scaling.DeepSeek, fp8.E4M3, fp8.E4M3, tile, square, 12, 136, 384, oracle.Bell},
		{"1x128-both", scaling.TEBlockPow2, fp8.E4M3, fp8.E5M2, tile, tile, 16, 16, 384, oracle.Powers},
		{"128x128-both", scaling.TEBlock, fp8.E4M3, fp8.E4M3, square, square, 16, 16, 256, oracle.Outlier},
		{"1x128-by-row", scaling.TEBlock, fp8.E4M3, fp8.E4M3, tile, row, 16, 16, 300, oracle.Bell},
		{"mx", scaling.MXFloor, fp8.E4M3, fp8.E4M3, micro, micro, 16, 16, 128, oracle.Outlier},
		{"mx-e5m2", scaling.MXRCeil, fp8.E5M2, fp8.E4M3, micro, micro, 16, 16, 96, oracle.Powers},
		{"e5m2-e4m3", scaling.TECurrent, fp8.E5M2, fp8.E4M3, whole, whole, 16, 16, 160, oracle.Bell},
		{"e5m2-both", scaling.TECurrent, fp8.E5M2, fp8.E5M2, row, row, 16, 16, 160, oracle.Outlier},
		{"e4m3fnuz", scaling.TECurrent, fp8.E4M3FNUZ, fp8.E4M3FNUZ, tile, square, 16, 16, 256, oracle.Bell},
		{"fnuz-mixed", scaling.TECurrent, fp8.E5M2FNUZ, fp8.E4M3FNUZ, whole, row, 16, 16, 160, oracle.Outlier},
		{"subnormals", scaling.TECurrent, fp8.E4M3, fp8.E4M3, tile, square, 16, 16, 256, oracle.Subnormals},
		{"zeros", scaling.TEBlock, fp8.E4M3, fp8.E4M3, tile, square, 16, 16, 256, oracle.Zeros},
		{"nan", scaling.TEBlock, fp8.E4M3, fp8.E4M3, tile, square, 8, 8, 160, oracle.NaNs},
		{"ragged", scaling.TEBlock, fp8.E4M3, fp8.E5M2, tile, square, 7, 5, 131, oracle.Bell},
		{"one", scaling.TECurrent, fp8.E4M3, fp8.E4M3, whole, whole, 1, 1, 1, oracle.Bell},
		{"no-k", scaling.TECurrent, fp8.E4M3, fp8.E4M3, whole, whole, 3, 2, 0, oracle.Bell},
	} {
		p, err := makeProduct(ctx, seed, s.name, s.pattern, s.m, s.n, s.k,
			scaling.Recipe{Profile: s.profile, Format: s.formatA, Block: s.blockA},
			scaling.Recipe{Profile: s.profile, Format: s.formatB, Block: s.blockB})
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	narrow, err := narrowProducts(ctx, seed)
	return slices.Concat(all, narrow, special(seed), narrowSpecial(seed)), err
}

// makeProduct returns a product of a pattern and of values that are nothing special.
func makeProduct(ctx context.Context, seed uint64, name string, pattern oracle.Pattern, m, n, k int, a, b scaling.Recipe) (product, error) {
	ta, err := quantized(ctx, "a", a, pattern, seed, m, k)
	if err != nil {
		return product{}, err
	}
	tb, err := quantized(ctx, "b", b, oracle.Bell, seed+1, n, k)
	return product{name: name, a: ta, b: tb}, err
}

// quantized returns a tensor of a pattern.
func quantized(ctx context.Context, name string, r scaling.Recipe, pattern oracle.Pattern, seed uint64, rows, cols int) (*tensor.Tensor, error) {
	x := oracle.Generator{Pattern: pattern, Rows: rows, Cols: cols, Block: r.Block, Format: r.Format, Seed: seed, Uniform: true}.Values()
	t := &tensor.Tensor{Name: name, Shape: []int{rows, cols}}
	return t, scaling.Quantize(ctx, t, x, scaling.Quantizer{Recipe: r})
}

// special returns products whose codes are not those of a quantizer.
func special(seed uint64) []product {
	var all []product
	for _, f := range fp8.Formats() {
		a, b := oracle.Cancelling(12, 12, 128, f, seed)
		all = append(all, product{name: "cancelling-" + lower(f), a: a, b: b})
		all = append(all, product{name: "any-codes-" + lower(f),
			a: anyCodes("a", f, seed, 16, 96, false), b: anyCodes("b", f, seed+1, 16, 96, false)})
		if !f.HasNaN() {
			continue
		}
		all = append(all, product{name: "specials-" + lower(f),
			a: anyCodes("a", f, seed+2, 16, 64, true), b: anyCodes("b", f, seed+3, 16, 64, false)})
	}
	p := product{name: "epilogue", a: anyCodes("a", fp8.E4M3, seed+4, 10, 96, false), b: anyCodes("b", fp8.E4M3, seed+5, 14, 96, false)}
	p.bias = oracle.Generator{Rows: 1, Cols: 14, Seed: seed}.Values()
	p.old = oracle.Generator{Rows: 10, Cols: 14, Seed: seed + 1}.Values()
	for i, x := range p.old {
		p.old[i] = fp8.BFloat16FromFloat32(x).Float32() // the same in every type but for a rare float16
	}
	return append(all, p)
}

// anyCodes returns a tensor of random codes, all finite but for a few where asked,
// and so of the widest range.
func anyCodes(name string, f fp8.Format, seed uint64, rows, k int, specials bool) *tensor.Tensor {
	d := newRNG(seed, uint64(f))
	t := &tensor.Tensor{Name: name, Format: f, Shape: []int{rows, k}, Block: micro, Codes: make([]byte, rows*k)}
	for i := range t.Codes {
		c := d.codeOf(f)
		for f.IsNaN(c) || f.IsInf(c, 0) {
			c = d.codeOf(f)
		}
		t.Codes[i] = c
	}
	if specials {
		for i := range rows { // none in some rows, one of each kind in others, two at times
			for range i % 3 {
				t.Codes[i*k+d.below(k)] = anySpecial(d, f)
			}
		}
	}
	gridRows, gridCols := t.Grid()
	for range gridRows * gridCols {
		t.Scales = append(t.Scales, float32(int32(1)<<d.below(8))/16)
	}
	return t
}

func anySpecial(d rng, f fp8.Format) byte {
	for {
		if c := d.code() | 0x7C; f.IsNaN(c) || f.IsInf(c, 0) {
			return c
		}
		if c := f.NaNCode(); d.below(8) == 0 {
			return c
		}
	}
}
