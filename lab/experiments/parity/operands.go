package parity

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/safetensors"
)

// width says how widely the values of an operand, [tokens, channels], are spread.
type width struct {
	kurtosis float64 // 3 if they are normal
	amax     float64 // over the root mean square
	channels float64 // standard deviation of the channels' root mean squares, in powers of two
	largest  float64 // of the channels' root mean squares, over their median
}

func widthOf(values []float32, channels int) width {
	var squares, fourths, amax float64
	of := make([]float64, channels)
	for i, v := range values {
		x := float64(v)
		squares += x * x
		fourths += x * x * x * x
		amax = max(amax, math.Abs(x))
		of[i%channels] += x * x
	}
	n := float64(len(values))
	var logs []float64
	for i := range of {
		of[i] = math.Sqrt(of[i] * float64(channels) / n)
		if of[i] > 0 {
			logs = append(logs, math.Log2(of[i]))
		}
	}
	deviation, _ := statistics.Spread(logs)
	return width{
		kurtosis: fourths * n / (squares * squares), amax: amax / math.Sqrt(squares/n),
		channels: deviation, largest: slices.Max(of) / statistics.Median(of),
	}
}

// operandKinds are the inputs of linear layers: as taps name them, and as a file of
// activations does.
var operandKinds = []struct{ what, tap, file string }{
	{"input of q, k and v", "self_attn.q_proj.input", "attn_in"},
	{"input of o", "self_attn.o_proj.input", "attn_out"},
	{"input of gate and up", "mlp.gate_proj.input", "mlp_in"},
	{"input of down", "mlp.down_proj.input", "swiglu"},
}

// widths are those of an operand in each layer, by kind.
type widths [][]width

// mean returns the mean over layers.
func mean(all []width) (m width) {
	n := float64(len(all))
	for _, w := range all {
		m.kurtosis += w.kurtosis / n
		m.amax += w.amax / n
		m.channels += w.channels / n
		m.largest += w.largest / n
	}
	return m
}

// widths returns those of the inputs of a trainee's layers.
func (t *trainee) widths(ctx context.Context, b batch) (widths, error) {
	all := make(widths, len(operandKinds))
	t.model.Shared().Tap = func(name string, values []float32, _, cols int) {
		_, rest, _ := layerOf(name)
		for i, k := range operandKinds {
			if rest == k.tap {
				all[i] = append(all[i], widthOf(values, cols))
			}
		}
	}
	defer func() { t.model.Shared().Tap = nil }()
	_, err := t.model.Logits(ctx, b.tokens, b.sequences, b.seq)
	return all, err
}

// realWidths returns those of a file of activations, as far as it has them.
func realWidths(f *safetensors.File) (widths, error) {
	all := make(widths, len(operandKinds))
	for i, k := range operandKinds {
		for layer := 0; ; layer++ {
			name := fmt.Sprintf("layers.%d.%s", layer, k.file)
			info, ok := f.Info(name)
			if !ok {
				break
			}
			values, err := f.Float32s(name)
			if err != nil {
				return nil, err
			}
			if len(info.Shape) != 2 || len(values) == 0 {
				return nil, fmt.Errorf("%s is %v: it must be [tokens, channels]", name, info.Shape)
			}
			all[i] = append(all[i], widthOf(values, info.Shape[1]))
		}
	}
	return all, nil
}
