package demo

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/train"
)

// The model: a Llama with half a million parameters that reads bytes, small enough to
// learn words in a few seconds.
var config = nn.Config{Vocab: 256, Dim: 128, Layers: 2, Heads: 4, Hidden: 384, Context: sequence}

const (
	steps        = 200
	batch        = 2
	sequence     = 128
	learningRate = 3e-3
)

// trained returns a model that was trained on a text, in FP32.
func trained(ctx context.Context, corpus *train.Corpus, seed uint64, p progress.Reporter) (*trial.Run, error) {
	run, err := trial.New("demo", config, seed)
	if err != nil {
		return nil, err
	}
	schedule := optim.Schedule{Peak: learningRate, Final: 0.1, Warmup: steps / 10, Steps: steps}
	for step := range steps {
		tokens, targets, err := corpus.Batch(step, batch, sequence)
		if err != nil {
			return nil, err
		}
		if _, err := run.Step(ctx, tokens, targets, batch, sequence, schedule.At(step)); err != nil {
			return nil, err
		}
		if p != nil {
			p.Progress("training", int64(step+1), steps)
		}
	}
	return run, nil
}

// modelFiles are what transformers keeps of a model, and the index, without which readers take
// the other files of the demo for shards of it.
var modelFiles = append(hf.SavedFiles(saved), checkpoint.IndexName)

// saved is how the model is written: its tokens are bytes.
var saved = hf.SaveOptions{Bytes: true}

// save returns the contents of modelFiles.
func save(ctx context.Context, m *nn.Llama) (contents [][]byte, err error) {
	dir, err := os.MkdirTemp("", "octavo-demo")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := hf.Save(ctx, m, dir, saved); err != nil {
		return nil, err
	}
	for _, name := range hf.SavedFiles(saved) {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		contents = append(contents, content)
	}
	index := &checkpoint.Index{Files: map[string]string{}}
	for s := range m.Config().Shapes() {
		index.Files[s.Name] = modelFiles[0]
		index.TotalSize += 4 * int64(s.Rows*s.Cols)
	}
	var text bytes.Buffer
	err = jsonout.Print(&text, index)
	return append(contents, text.Bytes()), err
}

// activations returns what enters the linear layers of a model when it reads the
// first batch, and the residual stream after each block.
func activations(ctx context.Context, m *nn.Llama, corpus *train.Corpus) (tensors []safetensors.Tensor, err error) {
	tokens, targets, err := corpus.Batch(0, batch, sequence)
	if err != nil {
		return nil, err
	}
	m.Shared().Tap = func(name string, values []float32, rows, cols int) {
		block := strings.HasPrefix(name, "model.layers.") && strings.Count(name, ".") == 3
		if strings.HasSuffix(name, ".input") || block && strings.HasSuffix(name, ".output") {
			tensors = append(tensors, float32s(name, []int{rows, cols}, slices.Clone(values)))
		}
	}
	defer func() { m.Shared().Tap = nil }()
	_, err = m.Evaluate(ctx, tokens, targets, batch, sequence)
	return tensors, err
}
