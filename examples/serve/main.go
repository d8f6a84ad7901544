// Serve quantizes the weights of a Llama to FP8 once, packs them for products, and
// answers requests from eight goroutines at once, which share them. Each request gets
// the same tokens, whatever runs beside it: the bits of a product do not depend on the
// number of goroutines.
//
//	go run ./examples/serve                                # a model of random weights
//	go run ./examples/serve -model llama.safetensors       # one that says its sizes in its metadata
//
// The file has F32, F16 or BF16 parameters under the names of Hugging Face, and its metadata
// has the fields of a config.json that say sizes, such as hidden_size. Rotary positions
// turn pairs of neighbors, 2i and 2i+1, as in the original Llama: the rows of q_proj and
// k_proj of a Hugging Face checkpoint, which turn i and i+dim/2, must be put in that
// order before. Their base is 10000, and the epsilon of norms 1e-5. Without
// lm_head.weight the head is the embedding.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/safetensors"
)

const goroutines = 8

func main() {
	path := flag.String("model", "", "safetensors `file` of a Llama")
	length := flag.Int("tokens", 8, "tokens in an answer")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	m, err := open(ctx, *path)
	if err != nil {
		log.Fatal(err)
	}

	var prompts [][]int
	for i := range 2 * goroutines {
		prompts = append(prompts, []int{1, (7*i + 3) % m.vocab, (11*i + 5) % m.vocab})
	}
	answers, err := serve(ctx, m, prompts, *length, goroutines)
	if err != nil {
		log.Fatal(err)
	}
	for i, answer := range answers {
		fmt.Printf("%v: %v\n", prompts[i], answer)
	}

	alone, err := serve(ctx, m, prompts, *length, 1)
	if err != nil {
		log.Fatal(err)
	}
	if !slices.EqualFunc(answers, alone, slices.Equal) {
		log.Fatal("one goroutine gives other answers")
	}
	fmt.Printf("%d goroutines and one gave the same answers to %d requests\n", goroutines, len(prompts))
}

func open(ctx context.Context, path string) (*model, error) {
	if path == "" {
		return load(ctx, config{vocab: 256, dim: 128, hidden: 352, layers: 2, heads: 8, kvHeads: 4, theta: 10000}, random(1))
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := configOf(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return load(ctx, c, fromFile(f))
}

// serve answers every prompt with length tokens, by so many goroutines.
func serve(ctx context.Context, m *model, prompts [][]int, length, goroutines int) ([][]int, error) {
	answers := make([][]int, len(prompts))
	failures := make([]error, len(prompts))
	requests := make(chan int)
	var running sync.WaitGroup
	for range goroutines {
		running.Go(func() {
			for i := range requests {
				answers[i], failures[i] = newSequence(m).generate(ctx, prompts[i], length)
			}
		})
	}
	for i := range prompts {
		requests <- i
	}
	close(requests)
	running.Wait()
	return answers, errors.Join(failures...)
}
