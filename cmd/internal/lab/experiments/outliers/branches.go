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

// branchesOf returns the inputs of all SwiGLUs of a model for tokens, [batch, seq], in
// FP32. A model has no window for them; but one that is cut off at a layer, with the
// layer's second norm for its last and a projection for its head, has them for its
// logits.
func branchesOf(ctx context.Context, m *nn.Llama, tokens []int32, batch, seq int) ([]branches, error) {
	all := make([]branches, m.Config().Layers)
	for layer := range all {
		cut, err := cutOff(m, layer)
		if err != nil {
			return nil, err
		}
		hidden := m.Config().Hidden
		through := func(p *nn.Param) ([]float32, error) {
			copy(cut.Param("lm_head.weight").Value, p.Value)
			logits, err := cut.Logits(ctx, tokens, batch, seq)
			if err != nil {
				return nil, err
			}
			values := make([]float32, 0, batch*seq*hidden)
			for row := range slices.Chunk(logits, cut.Config().Vocab) {
				values = append(values, row[:hidden]...)
			}
			return values, nil
		}
		w := mlpOf(m, layer)
		b := branches{name: fmt.Sprintf("layer %d", layer), channels: hidden}
		if b.gate, err = through(w.gate); err != nil {
			return nil, err
		}
		if b.up, err = through(w.up); err != nil {
			return nil, err
		}
		all[layer] = b
	}
	return all, nil
}

// cutOff returns m in FP32 up to the norm before the MLP of a layer. Its vocabulary
// is large enough for a projection of that MLP to be the head.
func cutOff(m *nn.Llama, layer int) (*nn.Llama, error) {
	cfg := m.Config()
	cfg.FP8, cfg.Smoothing, cfg.TieHead = nil, nil, false
	cfg.Layers, cfg.Vocab = layer+1, max(cfg.Vocab, cfg.Hidden)
	cut, err := nn.NewLlama(cfg, 0)
	if err != nil {
		return nil, err
	}
	for _, p := range cut.Params() {
		copy(p.Value, m.Param(p.Name).Value)
	}
	clear(mlpOf(cut, layer).down.Value)
	norm := fmt.Sprintf("model.layers.%d.post_attention_layernorm.weight", layer)
	copy(cut.Param("model.norm.weight").Value, m.Param(norm).Value)
	return cut, nil
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
