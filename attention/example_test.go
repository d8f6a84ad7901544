package attention_test

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/tensor"
)

// Four query heads share two heads of keys and values, all quantized token by token.
func Example() {
	s := attention.Sizes{Heads: 4, KVHeads: 2, Queries: 3, Keys: 5, Dim: 8, ValueDim: 8}
	q, k, v := make([]float32, 4*3*8), make([]float32, 2*5*8), make([]float32, 2*5*8)
	for i := range v {
		v[i] = float32(i / 8 % 5) // that of key j is j
	}
	ctx := context.Background()
	p := attention.Problem{Mask: attention.Mask{Causal: true}}
	r := attention.Recipe{Q: attention.PerToken, K: attention.PerToken, V: attention.PerHead}
	if err := r.Quantize(ctx, &p, q, k, v, s, tensor.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	out, lse := make([]float32, 4*3*8), make([]float32, 4*3)
	if err := attention.Forward(ctx, out, &p, attention.Options{LSE: lse}); err != nil {
		fmt.Println(err)
		return
	}
	for i := range s.Queries {
		fmt.Printf("query %d: mean of the keys that it sees %.2f, log of their number %.3f\n", i, out[i*8], lse[i])
	}
	// Output:
	// query 0: mean of the keys that it sees 1.00, log of their number 1.099
	// query 1: mean of the keys that it sees 1.50, log of their number 1.386
	// query 2: mean of the keys that it sees 2.00, log of their number 1.609
}
