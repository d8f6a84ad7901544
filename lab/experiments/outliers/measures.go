package outliers

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
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

// mlpWeights are the projections of a layer's SwiGLU; a neuron is a row of up and
// of gate, [hidden, dim], and a column of down, [dim, hidden].
type mlpWeights struct{ up, gate, down *nn.Param }

func mlpOf(m *nn.Llama, layer int) mlpWeights {
	param := func(name string) *nn.Param {
		return m.Param(fmt.Sprintf("model.layers.%d.mlp.%s_proj.weight", layer, name))
	}
	return mlpWeights{up: param("up"), gate: param("gate"), down: param("down")}
}

// rowOf returns a row of p, which shares its memory.
func rowOf(p *nn.Param, i int) []float32 { return p.Value[i*p.Cols : (i+1)*p.Cols] }

// cosine is that of the angle between a neuron's two branches; 0 where one is zero.
func (w mlpWeights) cosine(neuron int) float64 {
	if w.gain(neuron) == 0 {
		return 0
	}
	return scalarProduct(rowOf(w.up, neuron), rowOf(w.gate, neuron)) / w.gain(neuron)
}

// gain is the product of the lengths of a neuron's branches: if they are aligned, the
// factor before the square of its input.
func (w mlpWeights) gain(neuron int) float64 {
	up, gate := rowOf(w.up, neuron), rowOf(w.gate, neuron)
	return math.Sqrt(scalarProduct(up, up) * scalarProduct(gate, gate))
}

func scalarProduct(a, b []float32) (sum float64) {
	for i, x := range a {
		sum += float64(float64(x) * float64(b[i]))
	}
	return sum
}

// alignment is what became of the neurons of a layer.
type alignment struct {
	step, layer int

	cosine    float64 // median |cosine| of the branches of all neurons
	cosineTop float64 // of the twentieth with the largest gain
	amax      float64 // largest |z|
	rms       float64 // root mean square of z
}

func (a alignment) top() float64 { return a.cosineTop }
func (a alignment) all() float64 { return a.cosine }

// logOutlier is how far the largest value stands out, as a logarithm to base 2.
func (a alignment) logOutlier() float64 { return math.Log2(a.amax / a.rms) }

// cosineAtRandom is about the median |cosine| of random directions: a normal variable
// of deviation 1/√dim, whose median magnitude is 0.6745 of that.
func cosineAtRandom(dim int) float64 { return 0.6745 / math.Sqrt(float64(dim)) }

func alignmentOf(m *nn.Llama, step int, layers []branches) (all []alignment) {
	for layer, b := range layers {
		w := mlpOf(m, layer)
		byGain := make([]int, b.channels)
		for i := range byGain {
			byGain[i] = i
		}
		slices.SortStableFunc(byGain, func(i, j int) int { return cmp.Compare(w.gain(j), w.gain(i)) })
		cosines := make([]float64, b.channels)
		for i, neuron := range byGain {
			cosines[i] = math.Abs(w.cosine(neuron))
		}
		z := b.plain()
		all = append(all, alignment{
			step: step, layer: layer,
			cosine:    statistics.Median(cosines),
			cosineTop: statistics.Median(cosines[:(b.channels+19)/20]),
			amax:      largestMagnitude(z),
			rms:       math.Sqrt(scalarProduct(z, z) / float64(len(z))),
		})
	}
	return all
}

// encoder quantizes the input of one down projection under an arm, step by step.
type encoder struct {
	of       arm
	smoother *swiglu.Smoother // nil: plain
	history  *scaling.History // nil: just in time
}

func newEncoder(a arm) (*encoder, error) {
	e := &encoder{of: a}
	if s := a.smoother(); s != nil {
		e.smoother = &swiglu.Smoother{Smoothing: *s}
	}
	var err error
	if a.timing != justInTime {
		e.history, err = scaling.NewHistory(a.recipe())
	}
	return e, err
}

// fidelity is what quantizing the input of a down projection does in one step.
type fidelity struct {
	saturated, flushed float64 // shares of the input's values
	reach              float64 // largest value over what the scale of its block holds
	input              float64 // |error| / |input|, Euclidean norms
	output             float64 // the same of the projection's output
}

// encode quantizes z of b as the arm does, and returns what is wrong with what is left of it.
func (e *encoder) encode(ctx context.Context, b branches) (lost []float32, f fidelity, err error) {
	var scales swiglu.Scales
	if e.smoother != nil {
		scales = e.smoother.Scales(b.up, b.channels)
	}
	var st fp8.Stats
	q := scaling.Quantizer{Recipe: e.of.recipe(), History: e.history}
	q.Stats = &st
	t := tensor.Tensor{Name: b.name, Shape: []int{b.tokens(), b.channels}}
	smoothed := b.smooth(scales)
	if err := scaling.Quantize(ctx, &t, smoothed, q); err != nil {
		return nil, f, err
	}
	f.saturated = float64(st.Saturated()) / float64(st.Elements)
	f.flushed = float64(st.Flushed) / float64(st.Elements)
	f.reach = reachOf(smoothed, &t)
	lost = make([]float32, t.Len())
	tensor.Dequantize(lost, &t)
	if len(scales.Values) > 0 {
		unsmooth(lost, b.channels, scales)
	}
	z := b.plain()
	for i, v := range z {
		lost[i] -= v
	}
	f.input = math.Sqrt(scalarProduct(lost, lost) / scalarProduct(z, z))
	return lost, f, nil
}

// reachOf returns the largest ratio of a value to what the scale of its block holds.
func reachOf(z []float32, t *tensor.Tensor) (reach float64) {
	rows, cols := t.Shape[0], t.Shape[1]
	high, wide := t.Block.Extents(rows, cols)
	_, across := t.Block.Grid(rows, cols)
	for i, v := range z {
		holds := float64(t.Scales[i/cols/high*across+i%cols/wide]) * float64(t.Format.Max())
		reach = max(reach, math.Abs(float64(v))/holds)
	}
	return reach
}

// unsmooth divides z by the scales it was multiplied by.
func unsmooth(z []float32, channels int, s swiglu.Scales) {
	for i := range z {
		if s.Axis == swiglu.PerToken {
			z[i] /= s.Values[i/channels]
		} else {
			z[i] /= s.Values[i%channels]
		}
	}
}

// renew ends a step of delayed scales.
func (e *encoder) renew() {
	if e.history != nil {
		e.history.Update()
	}
	if e.smoother != nil {
		e.smoother.Update()
	}
}

// projection is a down projection that errors are looked at behind. Its weight is not
// quantized, so that they are those of its input.
type projection struct {
	down     []float32 // [dim, channels]
	channels int
}

// norm returns that of the output for an input.
func (p projection) norm(z []float32) float64 {
	var squares float64
	for at := 0; at < len(z); at += p.channels {
		for to := 0; to < len(p.down); to += p.channels {
			y := scalarProduct(z[at:at+p.channels], p.down[to:to+p.channels])
			squares += float64(y * y)
		}
	}
	return math.Sqrt(squares)
}
