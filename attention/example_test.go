package attention_test

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
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
		fmt.Printf("query %d: mean of the keys that it sees %.2f, log of their number %.3f\n",
			i, out[i*8], lse[i])
	}
	// Output:
	// query 0: mean of the keys that it sees 1.00, log of their number 1.099
	// query 1: mean of the keys that it sees 1.50, log of their number 1.386
	// query 2: mean of the keys that it sees 2.00, log of their number 1.609
}

// A sequence grows in a paged cache token by token, is attended to, and gives back the pages
// that its window has left behind.
func ExampleCache() {
	one := attention.CacheScale{Scales: []float32{1}}
	cache, err := attention.NewCache(attention.CacheConfig{
		Pages: 4, KVHeads: 1, Dim: 2, K: one, V: one,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := cache.NewSequence("chat")
	zeros := attention.Operand{BFloat16: make([]fp8.BFloat16, 2), Shape: [3]int{1, 1, 2}}
	out := make([]float32, 2)
	for i := range 200 {
		value := float32(i / 64) // the number of its page
		if err := attention.Append(s, []float32{0, 0}, []float32{value, 0}); err != nil {
			fmt.Println(err)
			return
		}
	}
	evict := func(last int) {
		fmt.Printf("%d pages evicted, ", s.Evict(0, last))
		q := attention.Query{Sequence: s, Q: zeros}
		if err := attention.Attend(context.Background(), out, &q, attention.Options{}); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d free, pages %v: mean of the values %.2f\n",
			cache.FreePages(), s.Pages(), out[0])
	}
	evict(200)
	evict(70)
	// Output:
	// 0 pages evicted, 0 free, pages [0 1 2 3]: mean of the values 1.08
	// 2 pages evicted, 2 free, pages [-1 -1 2 3]: mean of the values 2.11
}
