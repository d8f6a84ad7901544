// Package demo makes small files of every kind that commands read: a model that it
// trains, what happens inside of it, a product of two of its matrices with the results
// of a right and of a wrong kernel, and the text that it was trained on. They depend on
// a seed and on nothing else.
package demo

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/train"
)

// textBytes is the size of the text, about.
const textBytes = 64 << 10

// names are the files in the order in which Make returns them.
var names = []string{"text.txt", "model.safetensors", "activations.safetensors", "layer.safetensors", "kernel.safetensors", "wrong.safetensors"}

// Names returns the names of the files.
func Names() []string { return append([]string(nil), names...) }

// Make makes the files, in a second or two. It reports how far the training is; p may
// be nil.
func Make(ctx context.Context, seed uint64, p progress.Reporter) ([]outdir.File, error) {
	text := newText(textBytes, seed)
	corpus, err := train.NewCorpus(text, 0, seed)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	run, err := trained(ctx, corpus, seed, p)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	taps, err := activations(ctx, run.Model, corpus)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	layer, err := newProduct(ctx, run.Model, taps)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	files := []outdir.File{{What: "sentences, for octavo train", Data: text}}
	for _, part := range []struct {
		what    string
		tensors []safetensors.Tensor
	}{
		{"a Llama trained on them", weights(run.Model)},
		{"what its layers get to see", taps},
		{"a product of it in FP8: x and w with scales", layer.operands},
		{"C = x·wᵀ of a right kernel, a DeepGEMM", layer.right},
		{"C of a wrong one", layer.wrong},
	} {
		data, err := safetensors.Encode(part.tensors, nil)
		if err != nil {
			return nil, fmt.Errorf("demo: %w", err)
		}
		files = append(files, outdir.File{What: part.what, Data: data})
	}
	for i := range files {
		files[i].Name = names[i]
	}
	return files, nil
}
