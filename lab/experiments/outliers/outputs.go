package outliers

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

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
