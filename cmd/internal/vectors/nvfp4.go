package vectors

import (
	"context"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// nvfp4 adds a product of NVFP4 operands.
func (g *multiplier) nvfp4(ctx context.Context, seed uint64) error {
	const m, n, k = 12, 10, 192
	d := newRNG(seed, 4)
	operand := func(name string, rows int) (x *tensor.Tensor, scales []byte) {
		x = &tensor.Tensor{Name: name, Format: fp8.E2M1, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: 16}, ScaleFormat: tensor.UE4M3Scales}
		for range rows * k {
			x.Codes = append(x.Codes, byte(d.below(16)))
		}
		for range rows * k / 16 {
			scales = append(scales, byte(d.below(0x7F)))
			x.Scales = append(x.Scales, fp8.E4M3.Float32(scales[len(scales)-1]))
		}
		return x, scales
	}
	a, scalesA := operand("a", m)
	b, scalesB := operand("b", n)
	model := oracle.BlackwellNVFP4()
	c := make([]float32, m*n)
	if err := oracle.Predict(ctx, c, nil, a, b, oracle.Kernel{Model: model}, oracle.Options{}); err != nil {
		return err
	}
	g.index.NVFP4 = nvfp4Case{
		Model:   model.Name,
		ACodes:  g.add("nvfp4.a", safetensors.U8, []int{m, k}, a.Codes),
		AScales: g.add("nvfp4.a.scales", safetensors.F8E4M3, []int{m, k / 16}, scalesA),
		BCodes:  g.add("nvfp4.b", safetensors.U8, []int{n, k}, b.Codes),
		BScales: g.add("nvfp4.b.scales", safetensors.F8E4M3, []int{n, k / 16}, scalesB),
		Result:  numbers(g.tensors, "nvfp4."+model.Name, c, m, n),
	}
	return nil
}
