// Package demo makes small files of every kind that commands read: a model that it
// trains, as transformers has it, what happens inside of it, a product of two of its
// matrices with the results of a right and of a wrong kernel, and the text that it was
// trained on. They depend on a seed and on nothing else.
package demo

import (
	"context"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/train"
)

// textBytes is the size of the text, about.
const textBytes = 64 << 10

// files are the files in the order in which Make returns them, those of the model in that of
// modelFiles.
var files = []outdir.File{
	{Name: "text.txt", What: "sentences, to train and to evaluate on"},
	{Name: "model.safetensors", What: "a Llama that was trained on them:"},
	{Name: "tokenizer.json", What: "  its tokens, which are bytes"},
	{Name: "tokenizer_config.json", What: "  how those are read"},
	{Name: "config.json", What: "  what it is made of"},
	{Name: "model.safetensors.index.json", What: "  which of these files has its weights"},
	{Name: "activations.safetensors", What: "what its layers get to see"},
	{Name: "layer.safetensors", What: "x and w of a product of it, in FP8"},
	{Name: "kernel.safetensors", What: "C = x·wᵀ of a right kernel, a DeepGEMM"},
	{Name: "wrong.safetensors", What: "C of a wrong one"},
}

// Names returns the names of the files.
func Names() (names []string) {
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

// Make makes the files, in a few seconds. It reports how far the training is; p may
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
	contents, err := save(ctx, run.Model)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	contents = append([][]byte{text}, contents...)
	for _, tensors := range [][]safetensors.Tensor{taps, layer.operands, layer.right, layer.wrong} {
		content, err := safetensors.Encode(tensors, checkpoint.Metadata())
		if err != nil {
			return nil, fmt.Errorf("demo: %w", err)
		}
		contents = append(contents, content)
	}
	made := slices.Clone(files)
	for i := range made {
		made[i].Data = contents[i]
	}
	return made, nil
}
