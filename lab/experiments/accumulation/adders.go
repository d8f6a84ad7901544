package accumulation

import (
	"context"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// adder is a way to add the products of a dot product.
type adder struct {
	name     string
	multiply func(ctx context.Context, c []float32, a, b *tensor.Tensor, workers int) error
}

func adders() []adder {
	predict := func(k oracle.Kernel) func(context.Context, []float32, *tensor.Tensor, *tensor.Tensor, int) error {
		return func(ctx context.Context, c []float32, a, b *tensor.Tensor, workers int) error {
			return oracle.Predict(ctx, c, nil, a, b, k, oracle.Options{Workers: workers})
		}
	}
	return []adder{
		{unpromoted, predict(oracle.Kernel{Model: oracle.HopperWGMMA()})},
		{promoted, predict(oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128})},
		{"Blackwell tcgen05", predict(oracle.Kernel{Model: oracle.BlackwellTCGen05()})},
		{ownOrder, func(ctx context.Context, c []float32, a, b *tensor.Tensor, workers int) error {
			return gemm.Multiply(ctx, c, a, b, gemm.Options{Workers: workers})
		}},
	}
}
