package vectors

import (
	"context"

	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
)

// nvfp4 adds a product of NVFP4 operands.
func (g *multiplier) nvfp4(ctx context.Context, seed uint64) error {
	const m, n, k = 12, 10, 192
	d := newRNG(seed, 4)
	operand := func(name string, rows int) *oracle.NVFP4 {
		x := &oracle.NVFP4{Name: name, Rows: rows, K: k}
		for range rows * k {
			x.Codes = append(x.Codes, byte(d.below(16)))
		}
		for range rows * k / 16 {
			x.Scales = append(x.Scales, byte(d.below(0x7F)))
		}
		return x
	}
	a, b, model := operand("a", m), operand("b", n), oracle.BlackwellNVFP4()
	c := make([]float32, m*n)
	if err := oracle.PredictNVFP4(ctx, c, nil, a, b, model, oracle.Options{}); err != nil {
		return err
	}
	g.index.NVFP4 = nvfp4Case{
		Model:   model.Name,
		ACodes:  g.add("nvfp4.a", safetensors.U8, []int{m, k}, a.Codes),
		AScales: g.add("nvfp4.a.scales", safetensors.F8E4M3, []int{m, k / 16}, a.Scales),
		BCodes:  g.add("nvfp4.b", safetensors.U8, []int{n, k}, b.Codes),
		BScales: g.add("nvfp4.b.scales", safetensors.F8E4M3, []int{n, k / 16}, b.Scales),
		Result:  numbers(g.tensors, "nvfp4."+model.Name, c, m, n),
	}
	return nil
}
