package outliers

import (
	"context"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// realFigures are those of a layer whose weights nobody touched.
type realFigures struct {
	name     string
	amax     float64   // largest |z|
	median   float64   // median |z|
	halves   float64   // largest |z| of the second half of the tokens over that of the first
	channels []float64 // largest |z| of each, the largest first
	tokens   float64   // share in which the largest channel is within a factor of 4 of its own largest

	// In the order of realSchemes: as it is, and with the gain of one channel grown to
	// grownGain in the second half of the tokens, of the one that is largest there.
	asIs, grown []fidelity
}

// realScheme is a way to quantize the input of a down projection.
type realScheme struct {
	name      string
	recipe    scaling.Recipe
	smoothing *swiglu.Smoothing
}

// realSchemes begin with the one that is to fail where outliers grow. Its margin is that
// of the runs.
func realSchemes() (all []realScheme) {
	delayed := scaling.TEDelayed.Recipe(scaling.Input)
	delayed.Delayed = scaling.Delayed{Length: 1, Margin: lateMargin}
	for _, how := range smoothings {
		all = append(all, realScheme{how.name + ", delayed", delayed, how.way})
	}
	return append(all,
		realScheme{"just in time", scaling.TECurrent.Recipe(scaling.Input), nil},
		realScheme{"blocks", scaling.Default(scaling.Input), nil})
}

// fidelity is what is left of the second half of the tokens.
type fidelity struct {
	sqnr      float64 // decibels
	saturated float64 // share
	flushed   float64
}

// lookAtReal does so with the activations of the options, or else of the model that
// was trained, before anything was done to it.
func (s *study) lookAtReal(ctx context.Context) error {
	layers := s.untouched
	if s.options.Activations != nil {
		var err error
		if layers, err = branchesIn(s.options.Activations); err != nil {
			return err
		}
	}
	for _, b := range layers {
		f, err := realOf(ctx, b)
		if err != nil {
			return err
		}
		s.real = append(s.real, f)
	}
	return nil
}

func realOf(ctx context.Context, b branches) (realFigures, error) {
	z := b.plain()
	f := realFigures{name: b.name, amax: largestMagnitude(z), median: statistics.Median(magnitudes(z)), channels: channelAmax(z, b.channels)}
	half := b.tokens() / 2 * b.channels
	f.halves = largestMagnitude(z[half:]) / largestMagnitude(z[:half])
	top := slices.Index(f.channels, f.amax)
	for token := range b.tokens() {
		if v := z[token*b.channels+top]; max(v, -v) >= float32(f.amax/4) {
			f.tokens += 1 / float64(b.tokens())
		}
	}
	slices.Sort(f.channels)
	slices.Reverse(f.channels)
	present := channelAmax(z[half:], b.channels)
	after := b.withGain(slices.Index(present, slices.Max(present)), b.tokens()/2, grownGain)
	for _, scheme := range realSchemes() {
		asIs, err := scheme.encode(ctx, b)
		if err != nil {
			return f, err
		}
		grown, err := scheme.encode(ctx, after)
		if err != nil {
			return f, err
		}
		f.asIs, f.grown = append(f.asIs, asIs), append(f.grown, grown)
	}
	return f, nil
}

// withGain returns a copy of b in which both branches of a channel are multiplied by a
// factor from a token on, as if its weights had grown.
func (b branches) withGain(channel, from int, factor float32) branches {
	b.gate, b.up = slices.Clone(b.gate), slices.Clone(b.up)
	for at := from*b.channels + channel; at < len(b.up); at += b.channels {
		b.gate[at] *= factor
		b.up[at] *= factor
	}
	return b
}

// encode quantizes the second half of the tokens, under a scale from the first half
// if it is delayed, and compares what is left of z.
func (s realScheme) encode(ctx context.Context, b branches) (fidelity, error) {
	half := b.tokens() / 2
	past, present := b.rows(0, half), b.rows(half, b.tokens())
	q := scaling.Quantizer{Recipe: s.recipe}
	if s.recipe.Profile.Delayed() {
		var err error
		if q.History, err = scaling.NewHistory(s.recipe); err != nil {
			return fidelity{}, err
		}
		for _, v := range past.smooth(scalesOf(past, s.smoothing)) {
			q.History.Observe(0, max(v, -v))
		}
		q.History.Update()
	}
	var st fp8.Stats
	q.Stats = &st
	scales := scalesOf(present, s.smoothing)
	t := tensor.Tensor{Name: b.name, Shape: []int{present.tokens(), b.channels}}
	if err := scaling.Quantize(ctx, &t, present.smooth(scales), q); err != nil {
		return fidelity{}, err
	}
	left := make([]float32, t.Len())
	tensor.Dequantize(left, &t)
	if len(scales.Values) > 0 {
		unsmooth(left, b.channels, scales)
	}
	n := float64(st.Elements)
	return fidelity{
		sqnr:      statistics.SQNR(present.plain(), left),
		saturated: float64(st.SaturatedPos+st.SaturatedNeg) / n,
		flushed:   float64(st.Flushed) / n,
	}, nil
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
