package tokenizer_test

import (
	"fmt"
	"log"

	"github.com/octavo-fp8/octavo/nn/tokenizer"
)

func Example() {
	t, err := tokenizer.Read("testdata/llama2-like.json")
	if err != nil {
		log.Fatal(err)
	}
	tokens, err := t.Encode("to be or not to be")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(append(t.Prefix(), tokens...))
	// Output: [1 356 382 316 341 395 309 356 382]
}
