package nn_test

import (
	"context"
	"fmt"
	"log"

	"github.com/octavo-fp8/octavo/nn"
)

// What a model keeps for its backward pass takes less memory in FP8, and gives the
// same bits as long as it is the operands of products that FP32 would give.
func ExampleLlama_ActivationBytes() {
	recipes := nn.DefaultFP8()
	cfg := nn.Config{Vocab: 256, Dim: 64, Layers: 4, Heads: 4, Hidden: 172, Context: 128, FP8: &recipes}
	tokens := make([]int32, 2*128)
	for i := range tokens {
		tokens[i] = int32(i * i % 256)
	}
	for _, cfg.Activations = range nn.ActivationFormats() {
		model, err := nn.NewLlama(cfg, 1)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := model.Loss(context.Background(), tokens, tokens, 2, 128); err != nil {
			log.Fatal(err)
		}
		if err := model.Backward(context.Background()); err != nil {
			log.Fatal(err)
		}
		var sum float64
		for _, g := range model.Param("model.layers.0.mlp.down_proj.weight").Grad {
			sum += float64(g)
		}
		b := model.ActivationBytes()
		fmt.Printf("%-11v %7d bytes, %6d of them codes and %5d scales; sum of a gradient: %.9f\n",
			cfg.Activations, b.Total(), b.Codes, b.Scales, sum)
	}
	// Output:
	// fp32        6711296 bytes,      0 of them codes and     0 scales; sum of a gradient: 0.032061010
	// fp8         3507584 bytes, 372736 of them codes and 11648 scales; sum of a gradient: 0.032061010
	// fp8-swiglu  2285568 bytes, 548864 of them codes and 22528 scales; sum of a gradient: 0.045078895
	// deepseek-v3 2324480 bytes, 581632 of them codes and 28672 scales; sum of a gradient: 0.031253024
}

// A budget of bytes for activations: what does not fit is computed again, and nothing else
// changes.
func ExampleConfig_SearchPolicies() {
	cfg := nn.Config{Vocab: 256, Dim: 64, Layers: 8, Heads: 4, Hidden: 172, Context: 128}
	all, err := cfg.PlanActivations(2, 128)
	if err != nil {
		log.Fatal(err)
	}
	plan, err := cfg.SearchPolicies(2, 128, all.Total()*3/10)
	if err != nil {
		log.Fatal(err)
	}
	cfg.Policies = plan.Policies // to be trained
	fmt.Printf("%d of %d bytes, %.1f %% of a step's operations are done again\n",
		plan.Total(), all.Total(), 100*float64(plan.Again)/float64(plan.Step))
	for i, p := range plan.Policies {
		fmt.Println(i, p)
	}
	// Output:
	// 3889152 of 13027328 bytes, 17.3 % of a step's operations are done again
	// 0 recompute norms, probabilities, branches, product
	// 1 recompute norms, probabilities, branches, product
	// 2 recompute norms, probabilities, middle, branches, product
	// 3 recompute norms, probabilities, middle, branches, product
	// 4 recompute norms, probabilities, middle, branches, product
	// 5 recompute norms, probabilities, middle, branches, product
	// 6 recompute norms, probabilities, middle, branches, product
	// 7 recompute norms, probabilities, middle, branches, product
}
