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

// A stream gives the text of tokens as they come, and holds back what is no whole character as yet.
func ExampleTokenizer_Stream() {
	t, err := tokenizer.Read("testdata/llama2-like.json")
	if err != nil {
		log.Fatal(err)
	}
	tokens, err := t.EncodeSpecial("a snowman ☃!")
	if err != nil {
		log.Fatal(err)
	}
	stream, err := t.Stream(true)
	if err != nil {
		log.Fatal(err)
	}
	for _, token := range tokens {
		fmt.Printf("%q ", stream.Add(token))
	}
	fmt.Printf("%q\n", stream.End())
	// Output: "" "a" " s" "no" "w" "m" "an" " " "" "" "☃" "!" ""
}
