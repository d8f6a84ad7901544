package hf

import (
	"context"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/progress"
)

// CalibrationOptions are those of [Calibrate].
type CalibrationOptions struct {
	// Cache also finds the largest keys, with their positions, and values that attention
	// would cache.
	Cache bool

	// Like, unless nil, is the checkpoint that the model was loaded from: names are those of the
	// modules that its layers are in there, which may be several layers in one. nil: they are those
	// of package nn.
	Like *checkpoint.Checkpoint

	// Progress, unless nil, hears of tokens, as "calibrate".
	Progress progress.Reporter
}

// Calibrate runs sequences of tokens through a model in inference and returns the largest
// magnitude of the input of every linear layer, the head included, by the name of its
// module, such as "model.layers.0.mlp.up_proj"; those of keys and values are under the names
// of their scales, such as "model.layers.0.self_attn.k_scale". It is what
// [checkpoint.PlanOptions] takes as Amax. Of several results the larger counts of each name.
//
// Inputs are what the layers are given, before a recipe of the model rounds them; what
// earlier layers have rounded is in them. A Tap that the model has still sees everything.
//
// The error is [nn.ErrInput] for a sequence that the model cannot have, and for none at all,
// [ErrNotFinite] for an input that has no largest magnitude, or that of the context.
func Calibrate(
	ctx context.Context, m *nn.Llama, sequences [][]int32, o CalibrationOptions,
) (amax map[string]float32, err error) {
	total := 0
	for _, s := range sequences {
		total += len(s)
	}
	if total == 0 {
		return nil, inputError("there is no token to calibrate with")
	}
	count := meter.New(ctx, o.Progress, "calibrate", int64(total))
	names, err := inputNames(m, o)
	if err != nil {
		return nil, err
	}
	r := recorder{names: names, amax: map[string]float32{}}
	before := m.Shared().Tap
	defer func() { m.Shared().Tap = before }()
	m.Shared().Tap = func(name string, values []float32, rows, cols int) {
		r.record(name, values, cols)
		if before != nil {
			before(name, values, rows, cols)
		}
	}
	for i, s := range sequences {
		if r.sequence = i; len(s) == 0 {
			continue
		}
		if _, err := m.Logits(ctx, s, 1, len(s)); err != nil {
			return nil, err
		}
		if r.err != nil {
			return nil, r.err
		}
		if err := count.Add(int64(len(s))); err != nil {
			return nil, err
		}
	}
	return r.amax, nil
}

// inputNames returns the names under which maxima are kept by those of activations.
func inputNames(m *nn.Llama, o CalibrationOptions) (names map[string]string, err error) {
	d := described{Config: m.Config()}
	if o.Like != nil {
		if d, err = describe(o.Like); err != nil {
			return nil, err
		}
		if missing := different(m.Config(), d); len(missing) > 0 {
			return nil, configError(d.file, "the model has %s: it is another one", missing[0])
		}
	}
	names = map[string]string{"lm_head.input": "lm_head"}
	for s := range d.Shapes() {
		module, _ := strings.CutSuffix(s.Name, ".weight")
		if !strings.HasSuffix(module, "_proj") && !strings.HasSuffix(module, "_proj_with_mqa") {
			continue
		}
		of := d.places(s)[0]
		if o.Like != nil {
			of, _ = find(o.Like, d.places(s))
		}
		names[module+".input"] = strings.TrimSuffix(of.tensor, ".weight")
		if attention, ok := strings.CutSuffix(module, ".k_proj"); ok && o.Cache {
			names[attention+".key"] = d.prefixed(attention) + ".k_scale"
			names[attention+".value"] = d.prefixed(attention) + ".v_scale"
		}
	}
	return names, nil
}

// recorder keeps the largest magnitudes of activations.
type recorder struct {
	names    map[string]string
	amax     map[string]float32
	sequence int
	err      error
}

func (r *recorder) record(name string, values []float32, cols int) {
	key, ok := r.names[name]
	if !ok || r.err != nil {
		return
	}
	most := r.amax[key]
	for i, x := range values {
		// A NaN is not less than anything.
		if x = float32(math.Abs(float64(x))); !(x <= math.MaxFloat32) {
			r.err = notFinite("%s is %v in sequence %d, at token %d and channel %d",
				name, values[i], r.sequence, i/cols, i%cols)
			return
		}
		most = max(most, x)
	}
	r.amax[key] = most
}
