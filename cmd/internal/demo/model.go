package demo

import (
	"context"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/train"
)

// The model: a Llama with half a million parameters that reads bytes, small enough to
// train in a second or two.
var config = nn.Config{Vocab: 256, Dim: 128, Layers: 2, Heads: 4, Hidden: 384, Context: sequence}

const (
	steps        = 30
	batch        = 4
	sequence     = 64
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

// weights returns the parameters of a model.
func weights(m *nn.Llama) (tensors []safetensors.Tensor) {
	for _, p := range m.Params() {
		shape := []int{p.Rows, p.Cols}
		if p.Rows == 1 {
			shape = shape[1:]
		}
		tensors = append(tensors, float32s(p.Name, shape, p.Value))
	}
	return tensors
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
