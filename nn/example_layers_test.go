package nn_test

import (
	"context"
	"fmt"
	"log"

	"github.com/octavo-fp8/octavo/nn"
)

// A feed-forward as GPT-2 has it, with biases, layer normalization and GELU, in FP8.
func Example_feedForward() {
	const rows, dim, hidden = 2, 4, 8
	recipes := nn.DefaultFP8()
	o := nn.Options{FP8: &recipes, Shared: new(nn.Shared)}
	norm, err := nn.NewLayerNorm("ln_2.weight", dim, 0, o)
	if err != nil {
		log.Fatal(err)
	}
	up, err := nn.NewLinear("mlp.c_fc.weight", hidden, dim, o)
	if err != nil {
		log.Fatal(err)
	}
	if up.Bias, err = nn.NewParam("mlp.c_fc.bias", 1, hidden); err != nil {
		log.Fatal(err)
	}
	gelu, err := nn.NewPointwise("mlp.act", nn.GELUTanh, o)
	if err != nil {
		log.Fatal(err)
	}
	up.Weight.Randomize(1, 1, 0.5)
	up.Bias.Value[0] = 1

	ctx := context.Background()
	x := []float32{1, 2, 3, 4, 4, 3, 2, 1}
	normed, wide, y := make([]float32, rows*dim), make([]float32, rows*hidden), make([]float32, rows*hidden)
	for _, err := range []error{
		norm.Forward(ctx, normed, x), up.Forward(ctx, wide, normed, rows), gelu.Forward(ctx, y, wide, rows),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%.3f\n%.3f\n", normed[:dim], y[:3])
	// Output:
	// [-1.342 -0.447 0.447 1.342]
	// [0.554 0.333 2.945]
}
