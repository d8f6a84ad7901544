package outliers

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/swiglu"
)

// branches are the inputs of a SwiGLU, each [tokens, channels].
type branches struct {
	name     string
	gate, up []float32
	channels int
}

func (b branches) tokens() int { return len(b.up) / b.channels }

// rows returns tokens [lo, hi), which share b's memory.
func (b branches) rows(lo, hi int) branches {
	b.gate, b.up = b.gate[lo*b.channels:hi*b.channels], b.up[lo*b.channels:hi*b.channels]
	return b
}

// plain returns z of plain SwiGLU.
func (b branches) plain() []float32 { return b.smooth(swiglu.Scales{}) }

// smooth returns z under smoothing scales.
func (b branches) smooth(s swiglu.Scales) []float32 {
	z := make([]float32, len(b.up))
	swiglu.Forward(z, b.up, b.gate, s)
	return z
}

// watch returns the inputs of all SwiGLUs of a model, which are those of its last forward
// pass. It takes the model's tap.
func watch(m *nn.Llama) []branches {
	layers := make([]branches, m.Config().Layers)
	taken := make(map[string]*[]float32)
	for layer := range layers {
		b := &layers[layer]
		b.name, b.channels = fmt.Sprintf("layer %d", layer), m.Config().Hidden
		taken[fmt.Sprintf("model.layers.%d.mlp.swiglu.gate", layer)] = &b.gate
		taken[fmt.Sprintf("model.layers.%d.mlp.swiglu.up", layer)] = &b.up
	}
	m.Shared().Tap = func(name string, values []float32, _, _ int) {
		if of := taken[name]; of != nil {
			*of = append((*of)[:0], values...)
		}
	}
	return layers
}

// branchesOf returns the inputs of all SwiGLUs of a model for tokens, [batch, seq]. It
// takes the model's tap for that time.
func branchesOf(ctx context.Context, m *nn.Llama, tokens []int32, batch, seq int) ([]branches, error) {
	layers := watch(m)
	defer func() { m.Shared().Tap = nil }()
	_, err := m.Logits(ctx, tokens, batch, seq)
	return layers, err
}

// branchesIn returns those of a file, "layers.N.gate" and "layers.N.up" for N from 0
// on.
func branchesIn(f *safetensors.File) ([]branches, error) {
	var all []branches
	for layer := 0; ; layer++ {
		gate, up := fmt.Sprintf("layers.%d.gate", layer), fmt.Sprintf("layers.%d.up", layer)
		info, ok := f.Info(gate)
		if !ok {
			break
		}
		b := branches{name: fmt.Sprintf("layer %d", layer)}
		other, _ := f.Info(up)
		if len(info.Shape) != 2 || info.Shape[0] < 2 || info.Shape[1] == 0 || !slices.Equal(info.Shape, other.Shape) {
			return nil, fmt.Errorf("%s is %v and %s is %v: they must both be [tokens, channels], with two tokens at least", gate, info.Shape, up, other.Shape)
		}
		b.channels = info.Shape[1]
		var err error
		if b.gate, err = finiteValues(f, gate); err != nil {
			return nil, err
		}
		if b.up, err = finiteValues(f, up); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the activations have no layers.0.gate: --activations wants layers.N.gate and layers.N.up")
	}
	return all, nil
}

func finiteValues(f *safetensors.File, name string) ([]float32, error) {
	values, err := f.Float32s(name)
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("%s: element %d is %v: activations must be finite", name, i, v)
		}
	}
	return values, nil
}

func largestMagnitude(values []float32) (amax float64) {
	for _, v := range values {
		amax = max(amax, math.Abs(float64(v)))
	}
	return amax
}

// channelAmax returns the largest magnitude of each column.
func channelAmax(z []float32, channels int) []float64 {
	amax := make([]float64, channels)
	for i, v := range z {
		amax[i%channels] = max(amax[i%channels], math.Abs(float64(v)))
	}
	return amax
}

// magnitudes returns the absolute values.
func magnitudes(values []float32) []float64 {
	all := make([]float64, len(values))
	for i, v := range values {
		all[i] = math.Abs(float64(v))
	}
	return all
}
