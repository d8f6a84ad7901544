package nn_test

import (
	"fmt"
	"log"

	"github.com/octavo-fp8/octavo/nn"
)

// A checkpoint is loaded parameter by parameter: each has the name it has there.
func ExampleLlama_Param() {
	model, err := nn.NewLlama(nn.Config{Vocab: 32, Dim: 8, Layers: 1, Heads: 2, Hidden: 16, Context: 8}, 1)
	if err != nil {
		log.Fatal(err)
	}
	gate := model.Param("model.layers.0.mlp.gate_proj.weight")
	fmt.Println(gate.Rows, gate.Cols, len(gate.Value), gate.Decay)
	// Output: 16 8 128 true
}
