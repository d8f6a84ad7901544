package evaluate_test

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/evaluate"
)

// What eight and four bits would cost a model, here one that has learned nothing.
func ExampleRun() {
	model, err := nn.NewLlama(nn.Config{
		Vocab: 16, Dim: 32, Layers: 2, Heads: 2, Hidden: 64, Context: 32,
	}, 1)
	if err != nil {
		panic(err)
	}
	tokens := make([]int32, 200)
	for i := range tokens {
		tokens[i] = int32(i * i % 16)
	}
	var o evaluate.Options
	for _, name := range []string{"fp8", "mxfp4"} {
		r, err := evaluate.ParseRecipe(name)
		if err != nil {
			panic(err)
		}
		o.Recipes = append(o.Recipes, r)
	}
	o.Modes = []evaluate.Mode{evaluate.Both}
	report, err := evaluate.Run(context.Background(), model, tokens, o)
	if err != nil {
		panic(err)
	}
	fmt.Printf("FP32: perplexity %.2f\n", float64(report.Perplexity))
	for _, of := range report.Results {
		worst := of.WorstLayers(1)[0]
		fmt.Printf("%s: perplexity %.2f, worst layer %s\n", of.Recipe, float64(of.Perplexity), worst.Name)
	}
	// Output:
	// FP32: perplexity 15.66
	// fp8: perplexity 15.65, worst layer model.layers.1
	// mxfp4: perplexity 15.58, worst layer model.layers.0
}
