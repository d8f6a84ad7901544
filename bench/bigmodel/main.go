// Command bigmodel writes a model of any size for measuring what works on checkpoints:
//
//	go run ./bench/bigmodel -o DIR -gb 20
//	go run ./bench/bigmodel -o DIR -tokens
//
// The first has the names and shapes of a model of 4096 columns, [bench.LargeModel], below 5 GB
// with a vocabulary of 32,000, the second is the Llama that octavo bench --peers generates tokens
// with, [bench.TokenModel]. All commands run them; tokens are given as IDs.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/octavo-fp8/octavo/bench"
)

func main() {
	out := flag.String("o", "", "directory to write the model to, which must not be there")
	size := flag.Float64("gb", 20, "size of the model, at least, in 10^9 bytes")
	tokens := flag.Bool("tokens", false, "write the Llama that tokens are generated with")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	model := bench.LargeModel
	if *size < 5 {
		model.Vocabulary = bench.TokenModel.Vocabulary
	}
	if *tokens {
		model = bench.TokenModel
	}
	if err := model.Write(*out, int64(*size*1e9)); err != nil {
		fmt.Fprintln(os.Stderr, "bigmodel:", err)
		os.Exit(1)
	}
}
