package outliers

import (
	"context"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/lab/statistics"
)

// givenFigures are those of a layer of a real model, of the activations of the options. They
// are of one model and one text: figures to look at, of which nothing is judged.
type givenFigures struct {
	name     string
	amax     float64   // largest |z|
	median   float64   // median |z|
	halves   float64   // largest |z| of the second half of the tokens over that of the first
	channels []float64 // largest |z| of each, the largest first

	// Of the second half of the tokens, in the order of arms. Delayed scales are those of the
	// first half, as if they were the step before.
	arms []fidelity
}

// lookAtGiven does so with the activations of the options, if there are any.
func (s *study) lookAtGiven(ctx context.Context) error {
	if s.options.Activations == nil {
		return nil
	}
	layers, err := branchesIn(s.options.Activations)
	if err != nil {
		return err
	}
	for _, b := range layers {
		f, err := givenOf(ctx, b)
		if err != nil {
			return err
		}
		s.given = append(s.given, f)
	}
	return nil
}

func givenOf(ctx context.Context, b branches) (givenFigures, error) {
	half := b.tokens() / 2
	past, present := b.rows(0, half), b.rows(half, 2*half)
	z := b.plain()
	f := givenFigures{
		name: b.name, amax: largestMagnitude(z), median: statistics.Median(magnitudes(z)), channels: channelAmax(z, b.channels),
		halves: largestMagnitude(present.plain()) / largestMagnitude(past.plain()),
	}
	slices.Sort(f.channels)
	slices.Reverse(f.channels)
	for _, a := range arms() {
		e, err := newEncoder(a)
		if err != nil {
			return f, err
		}
		if _, _, err := e.encode(ctx, past); err != nil {
			return f, err
		}
		e.renew()
		_, found, err := e.encode(ctx, present)
		if err != nil {
			return f, err
		}
		f.arms = append(f.arms, found)
	}
	return f, nil
}

// decibels is how far a signal is above its noise, from the share of the noise.
func decibels(noise float64) float64 { return -20 * math.Log10(noise) }
